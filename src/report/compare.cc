#include "report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "report/derivation_text.h"
#include "report/human.h"
#include "report/memory_bars.h"
#include "report/timeline.h"
#include "units/error.h"

namespace placet {
namespace {

bool all_timed(const std::vector<Judged>& all) {
  return std::ranges::all_of(all, [](const Judged& judged) {
    return !judged.derivation.meaningful || judged.time.has_value();
  });
}

// Steps of equal jobs are compared; clusters of other sizes by what a device gets done.
Seconds time_of(const Judged& judged) { return judged.time ? judged.time->step : Seconds(); }

bool comes_before(const Judged& a, const Judged& b, bool timed) {
  const auto key = [timed](const Judged& judged) {
    const Derivation& d = judged.derivation;
    const Seconds time = timed ? time_of(judged) : Seconds();
    return std::tuple(!d.meaningful, !is_good(d), time, d.sent, most_needed(d));
  };
  return key(a) < key(b);
}

bool needs_less(const Judged& a, const Judged& b) {
  const auto key = [](const Derivation& d) {
    return std::tuple(!d.meaningful, most_needed(d), d.sent);
  };
  return key(a.derivation) < key(b.derivation);
}

std::string times(Bytes more, Bytes less) {
  return less == Bytes() ? "" : fmt::format(" ({})", human_ratio(more, less));
}

bool on_several_clusters(const std::vector<Judged>& all) {
  const auto name = [](const Judged& judged) {
    return judged.job->cluster ? judged.job->cluster->name : std::string();
  };
  return std::ranges::any_of(
      all, [&](const Judged& judged) { return name(judged) != name(all.front()); });
}

std::string name_with_placement(const std::vector<Judged>& all, std::size_t i) {
  const Job& job = *all[i].job;
  const bool says_cluster = job.cluster && on_several_clusters(all);
  return label_of(i) + " (" + job.placement_text +
         (says_cluster ? " on " + job.cluster->name : std::string()) + ")";
}

double tokens_per_second(const TimeDerivation& time) { return time.tokens / in_seconds(time.step); }

// "A (dp=8:zero3) is the fastest of those: 1.23 s per step, 12345 tokens/s, MFU 45.1 %."
std::string fastest_text(const std::vector<Judged>& all, const Ranking& ranking,
                         const std::string& of_those) {
  const Judged& best = all[ranking.best];
  return fmt::format(" {} is the fastest{}, {} per step, {:.0f} tokens/s, MFU {}, and needs {}.",
                     name_with_placement(all, ranking.best), of_those,
                     human_seconds(best.time->step), tokens_per_second(*best.time),
                     utilisation_text(utilisation(*best.time)),
                     human_bytes(most_needed(best.derivation)));
}

// "A, C": those of which `which` holds.
template <class Which>
std::string labels_of(const std::vector<Judged>& all, Which which) {
  std::string names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (which(all[i].derivation)) names += (names.empty() ? "" : ", ") + label_of(i);
  }
  return names;
}

// "None of them can be run: A does not fit; B, C break a rule."
std::string which_fail(const std::vector<Judged>& all) {
  const std::string sound = labels_of(all, breaks_no_rule);
  const std::string broken =
      labels_of(all, [](const Derivation& derivation) { return !breaks_no_rule(derivation); });
  if (sound.empty()) return "All of them break a rule.";
  if (broken.empty()) return "None of them fits.";
  return fmt::format("None of them can be run: {} {} not fit; {} break{} a rule.", sound,
                     sound.size() == 1 ? "does" : "do", broken, broken.size() == 1 ? "s" : "");
}

// "2 of 4 fit: B, D."
std::string which_fit(const std::vector<Judged>& all, std::size_t good) {
  const bool judged = all.front().derivation.capacity > Bytes();
  if (good == all.size()) return judged ? "All of them fit." : "None of them breaks a rule.";
  if (good == 0) return which_fail(all);
  const std::string names = labels_of(all, is_good);
  const char* verb = !judged ? "without a broken rule" : good == 1 ? "fits" : "fit";
  return fmt::format("{} of {} {}: {}.", good, all.size(), verb, names);
}

// What the advantage of the best one costs, against the one that needs the least memory.
std::string trade_off(const std::vector<Judged>& all, const Ranking& ranking) {
  const Derivation& best = all[ranking.best].derivation;
  const Derivation& lean = all[ranking.least_memory].derivation;
  if (ranking.least_memory == ranking.best) return " No other needs less memory.";
  if (all[ranking.best].time && all[ranking.least_memory].time) {
    const Seconds slow = time_of(all[ranking.least_memory]);
    return fmt::format(" {} needs the least memory, {} against {}, and takes {} ({:+.1f} %).",
                       name_with_placement(all, ranking.least_memory),
                       human_bytes(most_needed(lean)), human_bytes(most_needed(best)),
                       human_seconds(slow), (slow / time_of(all[ranking.best]) - 1) * 100);
  }
  return fmt::format(" {} needs the least memory, {} against {}, and sends {}{}.",
                     name_with_placement(all, ranking.least_memory), human_bytes(most_needed(lean)),
                     human_bytes(most_needed(best)), human_bytes(lean.sent),
                     times(lean.sent, best.sent));
}

std::string answer_of(const std::vector<Judged>& all, const Ranking& ranking) {
  const auto good = static_cast<std::size_t>(std::count_if(
      all.begin(), all.end(), [](const Judged& judged) { return is_good(judged.derivation); }));
  std::string answer = which_fit(all, good);
  if (all.size() == 1) return answer;
  const Derivation& best = all[ranking.best].derivation;
  const bool some_sound = std::ranges::any_of(all, breaks_no_rule, &Judged::derivation);
  const bool all_sound = std::ranges::all_of(all, breaks_no_rule, &Judged::derivation);
  if (!best.meaningful || (good == 0 && some_sound && !all_sound)) return answer;
  const std::string name = name_with_placement(all, ranking.best);
  const std::string of_those = good > 0 && good < all.size() ? " of those" : "";
  if (all_timed(all) && all[ranking.best].time) {
    answer += fastest_text(all, ranking, of_those);
  } else if (good == 1) {
    answer += fmt::format(" {} needs {} per device and sends {} per step.", name,
                          human_bytes(most_needed(best)), human_bytes(best.sent));
  } else {
    answer += fmt::format(" {} sends the least{}, {} per device and step, and needs {}.", name,
                          of_those, human_bytes(best.sent), human_bytes(most_needed(best)));
  }
  return answer + trade_off(all, ranking);
}

using Rows = std::vector<std::vector<std::string>>;

// Whether the placement can be run: "rule" where it breaks one, "-" where no cluster is given.
std::string fits_text(const Derivation& derivation) {
  if (!derivation.meaningful) return "rule";
  if (!runs(derivation)) return "no";
  if (!is_good(derivation)) return "rule";
  if (derivation.fit == FitGrade::tight) return "tight";
  return derivation.capacity > Bytes() ? "yes" : "-";
}

// One row per placement; the ratios are to the first.
Rows rows_of(const std::vector<Judged>& all) {
  const Derivation& first = all.front().derivation;
  Rows rows;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Derivation& derivation = all[i].derivation;
    std::vector<std::string> row = {label_of(i)};
    std::array<Bytes, kMemoryCategoryCount> amounts{};
    if (derivation.meaningful) amounts = fullest(derivation).at_peak;
    for (const Bytes amount : amounts) {
      row.push_back(amount == Bytes() ? "-" : human_bytes(amount));
    }
    row.push_back(figure_of(derivation, needed_of(derivation)));
    row.push_back(ratio_of(derivation, needed_of(derivation), needed_of(first)));
    row.push_back(figure_of(derivation, derivation.sent));
    row.push_back(ratio_of(derivation, derivation.sent, first.sent));
    row.push_back(fits_text(derivation));
    const std::optional<TimeDerivation>& time = all[i].time;
    row.push_back(time ? human_seconds(time->step) : "-");
    row.push_back(time ? fmt::format("{:.0f}", tokens_per_second(*time)) : "-");
    row.push_back(time ? utilisation_text(utilisation(*time)) : "-");
    rows.push_back(std::move(row));
  }
  return rows;
}

// Characters that the columns need beside each other.
int width_of(const std::vector<Column>& columns, const Rows& rows) {
  constexpr std::size_t kGap = 2;
  std::size_t sum = 0;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    std::size_t widest = columns[c].title.size();
    for (const auto& row : rows) widest = std::max(widest, row[c].size());
    sum += widest + (c > 0 ? kGap : 0);
  }
  return static_cast<int>(sum);
}

void take_away(std::size_t column, std::vector<Column>& columns, Rows& rows) {
  const auto at = static_cast<std::ptrdiff_t>(column);
  columns.erase(columns.begin() + at);
  for (auto& row : rows) row.erase(row.begin() + at);
}

// Takes the columns away that hold nothing, and on a narrow screen those that the bars show as
// well, the last first.
std::string side_by_side(const std::vector<Judged>& all, const TextStyle& style) {
  std::vector<Column> columns = {{.title = ""},
                                 {.title = "param", .right = true},
                                 {.title = "optim", .right = true},
                                 {.title = "grad", .right = true},
                                 {.title = "activ", .right = true},
                                 {.title = "trans", .right = true},
                                 {.title = "over", .right = true},
                                 {.title = "needs", .right = true},
                                 {.title = "", .right = true},
                                 {.title = "sent", .right = true},
                                 {.title = "", .right = true},
                                 {.title = "fits"},
                                 {.title = "step", .right = true},
                                 {.title = "tokens/s", .right = true},
                                 {.title = "MFU", .right = true}};
  constexpr std::size_t kActivations = 4;
  Rows rows = rows_of(all);
  const bool timed =
      std::ranges::any_of(all, [](const Judged& one) { return one.time.has_value(); });
  constexpr int kTimeColumns = 3;
  for (int i = 0; !timed && i < kTimeColumns; ++i) take_away(columns.size() - 1, columns, rows);
  for (std::size_t column = kMemoryCategoryCount; column > 0; --column) {
    const bool empty = column > kActivations && std::ranges::all_of(rows, [&](const auto& row) {
                         return row[column] == "-";
                       });
    if (empty || width_of(columns, rows) > style.width) take_away(column, columns, rows);
  }
  return table(style, columns, rows, 0);
}

std::string bars(const std::vector<Judged>& all, const TextStyle& style) {
  Bytes scale = bytes(1);
  for (const Judged& judged : all) {
    scale = std::max({scale, judged.derivation.capacity, most_needed(judged.derivation)});
  }
  const auto width = static_cast<std::size_t>(std::max(style.width, 40));
  const std::size_t columns = std::min<std::size_t>(width - 16, 96);
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].derivation.meaningful) continue;
    std::vector<BarPart> parts;
    const MemoryClass& memory = fullest(all[i].derivation);
    for (std::size_t c = 0; c < memory.at_peak.size(); ++c) {
      const auto category = static_cast<MemoryCategory>(c);
      parts.push_back({ink_of(category), letter_of(category), memory.at_peak[c] / scale});
    }
    text += "  " + label_of(i) + "  " + stacked_bar(style, parts, columns) +
            padded_left(human_bytes(needed(memory)), 10) + "\n";
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
      std::min_element(all.begin(), all.end(),
                       [timed = all_timed(all)](const Judged& a, const Judged& b) {
                         return comes_before(a, b, timed);
                       }) -
      all.begin());
  ranking.least_memory =
      static_cast<std::size_t>(std::min_element(all.begin(), all.end(), needs_less) - all.begin());
  ranking.answer = answer_of(all, ranking);
  return ranking;
}

Bytes needed_of(const Derivation& derivation) {
  return derivation.meaningful ? needed(fullest(derivation)) : derivation.peak;
}

std::string comparison_text(const std::vector<Judged>& all, const TextStyle& style) {
  const Job& job = *all.front().job;
  const bool several = on_several_clusters(all);
  std::string text = inked(style, Ink::bold, job.model.name) + "  " +
                     human_count(count_parameters(job.model).total) + " parameters" +
                     (job.cluster && !several ? ", " + job.cluster->name : std::string()) + "\n";
  for (std::size_t i = 0; i < all.size(); ++i) {
    text += "  " + inked(style, Ink::bold, label_of(i)) + "  " +
            wrapped(style,
                    all[i].job->placement_text + (several && all[i].job->cluster
                                                      ? "  on " + all[i].job->cluster->name
                                                      : std::string()),
                    5) +
            "\n";
  }
  for (const std::string& note : job.model.notes) {
    text += inked(style, Ink::faint, "note ") + wrapped(style, note, 5) + "\n";
  }
  text += "\n" + bars(all, style) + memory_legend(style) + "\n";
  text += side_by_side(all, style) + "\n";
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const Finding& finding : all[i].derivation.findings) {
      if (finding.severity != Severity::error) continue;
      text += "  " + label_of(i) + "  " + wrapped(style, finding_words(finding), 5) + "\n";
    }
  }
  return text + wrapped(style, rank(all).answer, 0) + "\n";
}

}  // namespace placet
