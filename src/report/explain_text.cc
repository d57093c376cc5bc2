// The terms behind a number, each with the factors that its axes gave it.
#include <fmt/format.h>

#include <algorithm>

#include "derive/kept_tensors.h"
#include "report/derivation_text.h"
#include "report/human.h"
#include "units/error.h"

namespace placet {
namespace {

std::string factors_text(const Job& job, const std::vector<AxisFactor>& factors) {
  std::string text;
  for (const AxisFactor& factor : factors) {
    if (factor.factor == Rational(1)) continue;
    const auto axis = static_cast<std::size_t>(factor.axis);
    if (!text.empty()) text += " ";
    text += std::string(job.placement.axes[axis].axis.text()) + ":" + to_string(factor.factor);
  }
  return text.empty() ? "-" : text;
}

std::string name_in_unit(std::string_view what, std::string_view unit) {
  return unit.empty() ? std::string(what) : std::string(what) + " of " + std::string(unit);
}

std::string bytes_or_dash(Bytes amount) {
  return amount == Bytes() ? "-" : grouped(in_bytes(amount));
}

// Terms of a category (or of all), by category, then the largest first.
std::string memory_terms(const Judged& judged, const std::string& what, const TextStyle& style) {
  const MemoryClass& memory = fullest(judged.derivation);
  std::vector<const MemoryTerm*> terms;
  for (const MemoryTerm& term : memory.terms) {
    if (what == "memory" || what == name_of(term.category)) terms.push_back(&term);
  }
  std::stable_sort(terms.begin(), terms.end(), [](const MemoryTerm* a, const MemoryTerm* b) {
    if (a->category != b->category) return a->category < b->category;
    return a->bytes > b->bytes;
  });
  const bool on_nvme =
      std::ranges::any_of(terms, [](const MemoryTerm* term) { return term->nvme > Bytes(); });
  std::vector<std::vector<std::string>> rows;
  Bytes at_peak;
  for (const MemoryTerm* term : terms) {
    at_peak += term->bytes;
    rows.push_back({std::string(name_of(term->category)), name_in_unit(term->what, term->unit),
                    factors_text(*judged.job, factors_of(judged.job->placement, memory, *term)),
                    bytes_or_dash(term->bytes), bytes_or_dash(term->rest),
                    bytes_or_dash(term->host)});
    if (on_nvme) rows.back().push_back(bytes_or_dash(term->nvme));
  }
  rows.push_back({"sum", "", "", grouped(in_bytes(at_peak)), "", ""});
  if (on_nvme) rows.back().emplace_back();
  std::vector<Column> columns = {{.title = "of"},
                                 {.title = "what", .may_shrink = true},
                                 {.title = "axis factors", .may_shrink = true},
                                 {.title = "bytes at the peak", .right = true},
                                 {.title = "at rest", .right = true},
                                 {.title = "on the host", .right = true}};
  if (on_nvme) columns.push_back({.title = "on NVMe", .right = true});
  return inked(style, Ink::bold, "Terms of " + what) + "  " + class_name(*judged.job, memory) +
         ", at " + peak_text(*judged.job, memory) + "\n" + table(style, columns, rows, 0);
}

std::string_view word_for(KeptAs as) {
  switch (as) {
    case KeptAs::value:
      return "";
    case KeptAs::checkpoint:
      return "checkpoint";
    case KeptAs::waiting:
      return "for weights";
    case KeptAs::waiting_gradient:
      return "gradient, for weights";
  }
  return "";
}

// What a device keeps for backward, tensor by tensor: where to look for what to recompute.
std::string kept_table(const Judged& judged, const TextStyle& style) {
  const std::vector<KeptTensor> tensors = kept_tensors(*judged.job, fullest(judged.derivation));
  if (tensors.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  Bytes sum;
  for (const KeptTensor& tensor : tensors) {
    sum += tensor.bytes;
    rows.push_back({std::string(tensor.what), std::string(tensor.unit),
                    std::string(word_for(tensor.as)), grouped(in_bytes(tensor.each)),
                    grouped(tensor.times), grouped(in_bytes(tensor.bytes))});
  }
  rows.push_back({"sum", "", "", "", "", grouped(in_bytes(sum))});
  return "\n" + inked(style, Ink::bold, "Kept for backward") +
         "  by all micro-batches in flight, when they are most\n" +
         table(style,
               {{.title = "tensor", .may_shrink = true},
                {.title = "of"},
                {.title = ""},
                {.title = "bytes of one", .right = true},
                {.title = "times", .right = true},
                {.title = "bytes", .right = true}},
               rows, 0);
}

std::string instants_table(const Judged& judged, const TextStyle& style) {
  const MemoryClass& memory = fullest(judged.derivation);
  std::vector<std::vector<std::string>> rows;
  rows.reserve(memory.instants.size());
  for (const InstantBytes& instant : memory.instants) {
    rows.push_back({std::string(name_of(instant.instant)), grouped(in_bytes(instant.bytes)),
                    instant.instant == memory.peak_instant ? "the peak" : ""});
  }
  return "\n" + inked(style, Ink::bold, "Instants of a step") + "\n" +
         table(style,
               {{.title = "instant"}, {.title = "bytes alive", .right = true}, {.title = ""}}, rows,
               0);
}

std::string communication_terms(const Judged& judged, const TextStyle& style) {
  if (judged.derivation.communication.empty()) return "nothing is sent\n";
  const Job& job = *judged.job;
  const CommunicationClass& most = busiest(judged.derivation);
  std::vector<std::vector<std::string>> rows;
  rows.reserve(most.terms.size() + 1);
  for (const CommunicationTerm& term : most.terms) {
    rows.push_back({fmt::format("{}", fmt::join(axis_names(job, term.axes), " ")),
                    spaced(name_of(term.collective)), name_in_unit(term.what, term.unit),
                    std::string(name_of(term.dtype)), std::string(name_of(term.phase)),
                    std::to_string(term.group), grouped(term.count),
                    grouped(in_bytes(term.payload)), grouped(in_bytes(term.sent))});
  }
  rows.push_back({"sum", "", "", "", "", "", "", "", grouped(in_bytes(most.sent))});
  const std::vector<Column> columns = {{.title = "axes"},
                                       {.title = "collective"},
                                       {.title = "what", .may_shrink = true},
                                       {.title = "dtype"},
                                       {.title = "phase"},
                                       {.title = "group", .right = true},
                                       {.title = "calls", .right = true},
                                       {.title = "payload bytes", .right = true},
                                       {.title = "sent bytes", .right = true}};
  return inked(style, Ink::bold, "Terms of communication") + "  " + class_name(job, most.stage) +
         ", per device and step\n" + table(style, columns, rows, 0);
}

// Where an engine's own terms come from.
std::string sources_text(const Judged& judged, const TextStyle& style) {
  std::string text;
  for (const MemoryTerm& term : fullest(judged.derivation).terms) {
    if (term.source.empty()) continue;
    text +=
        "  " + wrapped(style, std::string(term.what) + ": " + std::string(term.source), 4) + "\n";
  }
  return text.empty() ? "" : "\n" + inked(style, Ink::bold, "Sources") + "\n" + text;
}

}  // namespace

std::vector<std::string> explainable() {
  std::vector<std::string> words = {"memory", "communication"};
  for (int i = 0; i < kMemoryCategoryCount; ++i) {
    words.emplace_back(name_of(static_cast<MemoryCategory>(i)));
  }
  return words;
}

std::string explanation_text(const Judged& judged, const std::string& what,
                             const TextStyle& style) {
  const std::vector<std::string> words = explainable();
  ensure(std::find(words.begin(), words.end(), what) != words.end(), "only terms are explained");
  if (!judged.derivation.meaningful) return "there are no figures to explain\n";
  if (what == "communication") return communication_terms(judged, style);
  std::string text = memory_terms(judged, what, style);
  if (what == "memory") text += instants_table(judged, style);
  if (what == name_of(MemoryCategory::activations)) text += kept_table(judged, style);
  return text + sources_text(judged, style);
}

}  // namespace placet
