// A model as text: counts, FLOPs, tensors.
#include <fmt/format.h>

#include "model/listing.h"
#include "report/derivation_text.h"
#include "report/human.h"
#include "report/trained.h"

namespace placet {
namespace {

std::string shape_of(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::int64_t elements_in(const TensorEntry& entry) {
  std::int64_t elements = entry.count;
  for (const std::int64_t size : entry.shape) elements *= size;
  return elements;
}

std::string tensors_table(const Model& model, const TextStyle& style) {
  const std::vector<Column> columns = {{.title = "tensor", .may_shrink = true},
                                       {.title = "shape"},
                                       {.title = "class"},
                                       {.title = "count", .right = true},
                                       {.title = "elements", .right = true},
                                       {.title = ""}};
  std::vector<std::vector<std::string>> rows;
  for (const TensorEntry& entry : list_tensors(model)) {
    std::string remark;
    if (!entry.trainable) remark = "frozen";
    if (entry.dtype) remark += (remark.empty() ? "" : ", ") + std::string(name_of(*entry.dtype));
    if (entry.shared) remark = "shared";
    rows.push_back({entry.name, shape_of(entry.shape), entry.tensor_class, grouped(entry.count),
                    entry.shared ? "-" : grouped(elements_in(entry)), remark});
  }
  return table(style, columns, rows, 0);
}

}  // namespace

std::string model_text(const Model& model, std::int64_t sequence, const TextStyle& style) {
  const ParameterCounts counts = count_parameters(model);
  const FlopsPerToken flops = flops_per_token(model, sequence);
  std::string text = inked(style, Ink::bold, model.name) + "  " + model.family + "\n";
  const auto line = [&](const char* name, const std::string& value) {
    text += inked(style, Ink::faint, padded(name, 13)) + wrapped(style, value, 13) + "\n";
  };
  line("parameters", grouped(counts.total) + " (" + human_count(counts.total) + ")");
  if (counts.active != counts.total) {
    line("active", grouped(counts.active) + " per token (" + human_count(counts.active) +
                       ", embeddings included; " + human_count(counts.active_without_embedding) +
                       " without the input embedding)");
  }
  if (counts.trainable != counts.total) {
    const TrainedPart part = trained_part(model);
    line("trainable", fmt::format("{} ({}), {} of all", grouped(part.trained),
                                  human_count(part.trained), share_text(part)));
    line("trained", modules_text(part));
  }
  if (counts.prediction > 0) line("of them", grouped(counts.prediction) + " in prediction modules");
  line("blocks", std::to_string(model.figures.blocks));
  line("FLOPs", fmt::format("{} forward, {} training per token of a sequence of {}",
                            human_flops(in_flops(flops.forward)),
                            human_flops(in_flops(flops.training)), sequence));
  for (const std::string& note : model.notes) line("note", note);
  return text + "\n" + tensors_table(model, style);
}

}  // namespace placet
