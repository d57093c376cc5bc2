#include "report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "report/human.h"
#include "report/memory_bars.h"
#include "units/error.h"

namespace placet {
namespace {

bool sends_less(const Judged& a, const Judged& b) {
  return std::tuple(!is_good(a.derivation), a.derivation.sent, a.derivation.peak) <
         std::tuple(!is_good(b.derivation), b.derivation.sent, b.derivation.peak);
}

bool needs_less(const Judged& a, const Judged& b) {
  return std::tuple(a.derivation.peak, a.derivation.sent) <
         std::tuple(b.derivation.peak, b.derivation.sent);
}

std::string times(Bytes more, Bytes less) {
  return less == Bytes() ? "" : fmt::format(" ({})", human_ratio(more, less));
}

std::string which_fit(const std::vector<Judged>& all) {
  std::size_t good = 0;
  for (const Judged& judged : all) good += is_good(judged.derivation) ? 1 : 0;
  const bool judged = all.front().derivation.capacity > Bytes();
  const char* fit = judged ? "fit" : "break no rule";
  if (good == all.size()) return fmt::format("All {} {}.", all.size(), fit);
  if (good == 0) return fmt::format("None of the {} placements {}.", all.size(), judged ? "fits" : "is sound");
  std::string names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!is_good(all[i].derivation)) continue;
    names += (names.empty() ? "" : ", ") + label_of(i);
  }
  return fmt::format("{} of {} {}: {}.", good, all.size(), good == 1 && judged ? "fits" : fit, names);
}

// "B sends least, 94.1 GB per device and step, 0.67x of A. C needs least memory, ..."
std::string answer_of(const std::vector<Judged>& all, const Ranking& ranking) {
  std::string answer = which_fit(all);
  if (all.size() == 1) return answer;
  const Judged& best = all[ranking.best];
  const Judged& lean = all[ranking.least_memory];
  const bool any_good = is_good(best.derivation);
  answer += fmt::format(" {}{} ({}) sends least{}: {} per device and step.", label_of(ranking.best),
                        "", best.job->placement_text, any_good ? " of those" : "",
                        human_bytes(best.derivation.sent));
  if (ranking.least_memory == ranking.best) {
    return answer + fmt::format(" It also needs the least memory, {}.",
                                human_bytes(lean.derivation.peak));
  }
  return answer + fmt::format(" {} ({}) needs the least memory, {} against {}{}, and sends {}{}.",
                              label_of(ranking.least_memory), lean.job->placement_text,
                              human_bytes(lean.derivation.peak), human_bytes(best.derivation.peak),
                              times(lean.derivation.peak, best.derivation.peak),
                              human_bytes(lean.derivation.sent),
                              times(lean.derivation.sent, best.derivation.sent));
}

using Rows = std::vector<std::vector<std::string>>;

// One row per placement; the ratios are to the first.
Rows rows_of(const std::vector<Judged>& all) {
  const Derivation& first = all.front().derivation;
  Rows rows;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Derivation& derivation = all[i].derivation;
    const MemoryClass& memory = fullest(derivation);
    std::vector<std::string> row = {label_of(i)};
    for (std::size_t c = 0; c < memory.at_peak.size(); ++c) {
      row.push_back(memory.at_peak[c] == Bytes() ? "-" : human_bytes(memory.at_peak[c]));
    }
    row.push_back(human_bytes(derivation.peak));
    row.push_back(human_ratio(derivation.peak, first.peak));
    row.push_back(human_bytes(derivation.sent));
    row.push_back(human_ratio(derivation.sent, first.sent));
    const bool good = is_good(derivation);
    const bool known = derivation.capacity > Bytes();
    row.push_back(!derivation.fits ? "no" : !good ? "rule" : known ? "yes" : "-");
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string bars(const std::vector<Judged>& all, const TextStyle& style) {
  Bytes scale = bytes(1);
  for (const Judged& judged : all) {
    scale = std::max({scale, judged.derivation.capacity, judged.derivation.peak});
  }
  const auto width = static_cast<std::size_t>(std::max(style.width, 40));
  const std::size_t columns = std::min<std::size_t>(width - 16, 96);
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<BarPart> parts;
    const MemoryClass& memory = fullest(all[i].derivation);
    for (std::size_t c = 0; c < memory.at_peak.size(); ++c) {
      const auto category = static_cast<MemoryCategory>(c);
      parts.push_back({ink_of(category), letter_of(category), memory.at_peak[c] / scale});
    }
    text += "  " + label_of(i) + "  " + stacked_bar(style, parts, columns) +
            padded_left(human_bytes(memory.peak), 10) + "\n";
  }
  return text;
}

}  // namespace

std::string label_of(std::size_t position) {
  constexpr std::size_t kLetters = 26;
  std::string label(1, static_cast<char>('A' + position % kLetters));
  if (position >= kLetters) label += std::to_string(position / kLetters);
  return label;
}

Ranking rank(const std::vector<Judged>& all) {
  ensure(!all.empty(), "at least one placement is compared");
  Ranking ranking;
  ranking.best = static_cast<std::size_t>(
      std::min_element(all.begin(), all.end(), sends_less) - all.begin());
  ranking.least_memory = static_cast<std::size_t>(
      std::min_element(all.begin(), all.end(), needs_less) - all.begin());
  ranking.answer = answer_of(all, ranking);
  return ranking;
}

std::string comparison_text(const std::vector<Judged>& all, const TextStyle& style) {
  const Job& job = *all.front().job;
  std::string text = inked(style, Ink::bold, job.model.name) + "  " +
                     human_count(count_parameters(job.model).total) + " parameters" +
                     (job.cluster ? ", " + job.cluster->name : std::string()) + "\n";
  for (std::size_t i = 0; i < all.size(); ++i) {
    text += "  " + inked(style, Ink::bold, label_of(i)) + "  " +
            wrapped(style, all[i].job->placement_text, 5) + "\n";
  }
  for (const std::string& note : job.model.notes) {
    text += inked(style, Ink::faint, "note ") + wrapped(style, note, 5) + "\n";
  }
  text += "\n" + bars(all, style) +
          "     P parameters, O optimizer, G gradients, A activations, t transient, v overhead\n\n";
  const std::vector<Column> columns = {{.title = ""},
                                       {.title = "param", .right = true},
                                       {.title = "optim", .right = true},
                                       {.title = "grad", .right = true},
                                       {.title = "activ", .right = true},
                                       {.title = "trans", .right = true},
                                       {.title = "over", .right = true},
                                       {.title = "peak", .right = true},
                                       {.title = "", .right = true},
                                       {.title = "sent", .right = true},
                                       {.title = "", .right = true},
                                       {.title = "fits"}};
  text += table(style, columns, rows_of(all), 0) + "\n";
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const Finding& finding : all[i].derivation.findings) {
      if (finding.severity != Severity::error) continue;
      text += "  " + label_of(i) + "  " +
              wrapped(style, finding.rule + ": " + finding.message + " (cure: " + finding.cure + ")", 5) +
              "\n";
    }
  }
  return text + wrapped(style, rank(all).answer, 0) + "\n";
}

}  // namespace placet
