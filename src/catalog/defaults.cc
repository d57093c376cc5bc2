#include "catalog/defaults.h"

#include <algorithm>

#include "catalog/reader.h"

namespace placet {
namespace {

constexpr std::int64_t kMostParametersOfRow = 1'000'000'000'000'000'000;

DefaultFigure read_default(const Reader& reader) {
  reader.allow({"value", "source", "date", "parameters"});
  reader.at("date").text();
  return {.value = reader.at("value").whole({1, 1'000'000'000}),
          .source = reader.at("source").text()};
}

std::int64_t rounded_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

bool trains_adapters_only(const Model& model) {
  const ParameterCounts counts = count_parameters(model);
  return counts.trainable < counts.total;
}

}  // namespace

JobDefaults load_defaults(const Catalog& catalog) {
  const Document document = open_document(path_in(catalog, "defaults", "job"));
  const Reader reader(document);
  reader.allow(
      {"schema", "sequence", "tokens_per_step", "devices_per_sample", "samples_with_adapters"});
  const Reader schema = reader.at("schema");
  if (schema.text() != "placet.defaults/1") {
    schema.fail("is another schema", "\"placet.defaults/1\"");
  }
  JobDefaults defaults;
  defaults.sequence = read_default(reader.at("sequence"));
  for (const Reader& row : reader.at("tokens_per_step").items()) {
    const std::int64_t least =
        defaults.tokens_per_step.empty() ? 1 : defaults.tokens_per_step.back().parameters + 1;
    defaults.tokens_per_step.push_back(
        {.parameters = row.at("parameters").whole({least, kMostParametersOfRow}),
         .tokens = read_default(row)});
  }
  if (defaults.tokens_per_step.empty()) {
    reader.at("tokens_per_step").fail("is empty", "at least one size of models");
  }
  defaults.devices_per_sample = read_default(reader.at("devices_per_sample"));
  defaults.samples_with_adapters = read_default(reader.at("samples_with_adapters"));
  return defaults;
}

AssumedBatch assumed_batch(const JobDefaults& defaults, const Model& model, std::int64_t devices,
                           std::int64_t sequence) {
  const std::int64_t size = count_parameters(model).total;
  auto row = std::ranges::find_if(defaults.tokens_per_step,
                                  [&](const auto& one) { return size <= one.parameters; });
  if (row == defaults.tokens_per_step.end()) --row;
  AssumedBatch batch{.samples = std::max<std::int64_t>(row->tokens.value / sequence, 1),
                     .why = "for a model of this size " + std::to_string(row->tokens.value) +
                            " tokens: " + row->tokens.source};
  if (trains_adapters_only(model)) {
    batch = {.samples = defaults.samples_with_adapters.value,
             .why = "where a part is trained: " + defaults.samples_with_adapters.source};
  }
  const std::int64_t least =
      (devices + defaults.devices_per_sample.value - 1) / defaults.devices_per_sample.value;
  if (least > batch.samples) {
    batch = {.samples = least,
             .why = "one sample for " + std::to_string(defaults.devices_per_sample.value) +
                    " devices: " + defaults.devices_per_sample.source};
  }
  batch.samples = rounded_up(batch.samples, batch.samples >= devices ? devices : least);
  return batch;
}

}  // namespace placet
