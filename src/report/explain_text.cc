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

/// How an amount of bytes is written: to the byte, or rounded where there is no room for that.
using Written = std::string (*)(Bytes);

std::string to_the_byte(Bytes amount) { return grouped(in_bytes(amount)); }

std::string or_dash(Bytes amount, Written written) {
  return amount == Bytes() ? "-" : written(amount);
}

using Rows = std::vector<std::vector<std::string>>;

bool fits_width(const TextStyle& style, const std::vector<Column>& columns, const Rows& rows,
                std::size_t indent) {
  std::size_t width = indent;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::size_t most = columns_of(columns[i].title);
    for (const auto& row : rows) most = std::max(most, columns_of(row[i]));
    width += most + (i > 0 ? 2 : 0);
  }
  return width <= static_cast<std::size_t>(style.width);
}

/// Rows under the names of their column `name`, which is left out of them: one line for each name.
std::string under_names(const TextStyle& style, std::vector<Column> columns, Rows rows,
                        std::size_t name) {
  std::vector<std::string> names;
  for (auto& row : rows) {
    names.push_back(row[name]);
    row.erase(row.begin() + static_cast<std::ptrdiff_t>(name));
  }
  columns.erase(columns.begin() + static_cast<std::ptrdiff_t>(name));
  constexpr std::size_t kIndent = 2;
  const std::string all = table(style, columns, rows, kIndent);
  std::string text;
  std::size_t begin = 0;
  for (std::size_t line = 0; begin < all.size(); ++line) {
    const std::size_t end = all.find('\n', begin) + 1;
    const bool named = line > 0 && line <= names.size() && !names[line - 1].empty() &&
                       (line == 1 || names[line - 1] != names[line - 2]);
    if (named) text += wrapped(style, names[line - 1], kIndent) + "\n";
    text += all.substr(begin, end - begin);
    begin = end;
  }
  return text;
}

/// A table whose rows have long names: with them in a column where there is room for all, else on
/// lines of their own, and amounts rounded if that is not enough. `make` gives the rows.
template <class Make>
std::string table_of_names(const TextStyle& style, const std::vector<Column>& columns,
                           std::size_t name, Make make) {
  const Rows exact = make(to_the_byte);
  if (fits_width(style, columns, exact, 0)) return table(style, columns, exact, 0);
  std::vector<Column> others = columns;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(name));
  Rows without = exact;
  for (auto& row : without) row.erase(row.begin() + static_cast<std::ptrdiff_t>(name));
  const bool fits = fits_width(style, others, without, 2);
  return under_names(style, columns, fits ? exact : make(human_bytes), name);
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
  const auto make = [&](Written written) {
    Rows rows;
    Bytes at_peak;
    for (const MemoryTerm* term : terms) {
      at_peak += term->bytes;
      rows.push_back({std::string(name_of(term->category)), name_in_unit(term->what, term->unit),
                      factors_text(*judged.job, factors_of(judged.job->placement, memory, *term)),
                      or_dash(term->bytes, written), or_dash(term->rest, written),
                      or_dash(term->host, written)});
      if (on_nvme) rows.back().push_back(or_dash(term->nvme, written));
    }
    rows.push_back({"sum", "", "", written(at_peak), "", ""});
    if (on_nvme) rows.back().emplace_back();
    return rows;
  };
  std::vector<Column> columns = {{.title = "of"},
                                 {.title = "what", .may_shrink = true},
                                 {.title = "axis factors", .may_shrink = true},
                                 {.title = "bytes at the peak", .right = true},
                                 {.title = "at rest", .right = true},
                                 {.title = "on the host", .right = true}};
  if (on_nvme) columns.push_back({.title = "on NVMe", .right = true});
  return inked(style, Ink::bold, "Terms of " + what) + "  " + class_name(*judged.job, memory) +
         ", at " + peak_text(*judged.job, memory) + "\n" + table_of_names(style, columns, 1, make);
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
  const auto make = [&](Written written) {
    Rows rows;
    for (const CommunicationTerm& term : most.terms) {
      rows.push_back({fmt::format("{}", fmt::join(axis_names(job, term.axes), " ")),
                      spaced(name_of(term.collective)), name_in_unit(term.what, term.unit),
                      std::string(name_of(term.dtype)), std::string(name_of(term.phase)),
                      std::to_string(term.group), grouped(term.count), written(term.payload),
                      written(term.sent)});
    }
    rows.push_back({"sum", "", "", "", "", "", "", "", written(most.sent)});
    return rows;
  };
  const std::vector<Column> columns = {{.title = "axes"},
                                       {.title = "collective"},
                                       {.title = "what", .may_shrink = true},
                                       {.title = "dtype"},
                                       {.title = "phase"},
                                       {.title = "group", .right = true},
                                       {.title = "calls", .right = true},
                                       {.title = "payload", .right = true},
                                       {.title = "sent", .right = true}};
  return inked(style, Ink::bold, "Terms of communication") + "  " + class_name(job, most.stage) +
         ", bytes per device and step\n" + table_of_names(style, columns, 2, make);
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
