#include "report/validation.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/validation_parts.h"

namespace placet {
namespace {

constexpr std::size_t kWorstRows = 8;
constexpr std::size_t kMostReasons = 12;
constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

std::vector<Column> summary_columns(const std::string& title) {
  return {{.title = title, .may_shrink = true}, {.title = "rows", .right = true},
          {.title = "mean", .right = true},     {.title = "median", .right = true},
          {.title = "p95", .right = true},      {.title = "worst", .right = true},
          {.title = "bias", .right = true},     {.title = "<= 18 %", .right = true}};
}

std::vector<std::string> summary_row(const std::string& name, const ErrorSummary& summary) {
  return {name,
          std::to_string(summary.rows),
          percent(summary.mean_abs),
          percent(summary.median_abs),
          percent(summary.p95_abs),
          percent(summary.worst_abs),
          signed_percent(summary.bias),
          percent(summary.within.back())};
}

// Numbers in the order of their size, words in that of the alphabet.
bool comes_first(const std::string& a, const std::string& b) {
  const bool numbers = !a.empty() && !b.empty() && std::isdigit(static_cast<unsigned char>(a[0])) &&
                       std::isdigit(static_cast<unsigned char>(b[0]));
  return numbers && a.size() != b.size() ? a.size() < b.size() : a < b;
}

}  // namespace

std::string percent(double share) { return fmt::format("{:.2f} %", share * 100); }
std::string signed_percent(double share) { return fmt::format("{:+.2f} %", share * 100); }

std::string figure_text(const Prediction& prediction, double value) {
  if (prediction.is_time) return fmt::format("{:.4g} s", value);
  return prediction.is_share ? percent(value) : fmt::format("{:.2f} GiB", value / kGib);
}

std::vector<std::string> names_in_order(const SummaryTable& summaries) {
  std::vector<std::string> names;
  names.reserve(summaries.size());
  for (const auto& [name, summary] : summaries) names.push_back(name);
  std::sort(names.begin(), names.end(), comes_first);
  return names;
}

namespace {

std::string summaries_text(const std::string& title, const SummaryTable& summaries,
                           const TextStyle& style) {
  if (summaries.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  for (const std::string& name : names_in_order(summaries))
    rows.push_back(summary_row(name, summaries.at(name)));
  return "\n" + table(style, summary_columns(title), rows, 0);
}

std::string worst_text(const std::string& title, const std::vector<Prediction>& worst,
                       const TextStyle& style) {
  if (worst.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  rows.reserve(worst.size());
  for (const Prediction& prediction : worst) {
    rows.push_back({prediction.labels.row_id, figure_text(prediction, prediction.measured),
                    figure_text(prediction, prediction.predicted), signed_percent(prediction.error),
                    prediction.labels.placement});
  }
  return "\n" + table(style,
                      {{.title = title},
                       {.title = "measured", .right = true},
                       {.title = "predicted", .right = true},
                       {.title = "error", .right = true},
                       {.title = "placement", .may_shrink = true}},
                      rows, 0);
}

SummaryTable with_groups(const ErrorSummary& all, const std::map<RowGroup, ErrorSummary>& groups) {
  SummaryTable table;
  if (all.rows > 0) table.emplace("all", all);
  for (const auto& [group, summary] : groups) {
    table.emplace(group == RowGroup::unknown ? "not scored: what is customary"
                                             : "only " + std::string(name_of(group)),
                  summary);
  }
  return table;
}

}  // namespace

SummaryTable memory_groups(const Validation& validation) {
  if (validation.groups.empty()) return {};
  SummaryTable groups = with_groups(validation.memory, validation.groups);
  if (validation.near_limit.rows > 0) {
    groups.emplace("near capacity", validation.near_limit);
    groups.emplace("not near it", validation.below_limit);
  }
  return groups;
}

SummaryTable time_groups(const Validation& validation) {
  if (validation.time_groups.empty()) return {};
  return with_groups(validation.time, validation.time_groups);
}

namespace {

std::string time_text(const Validation& validation, const TextStyle& style) {
  if (validation.time_groups.empty()) return {};
  std::string text = summaries_text("step time, |error|", time_groups(validation), style);
  if (validation.time_by_source.size() > 1) {
    text += summaries_text("step time by source", validation.time_by_source, style);
  }
  text += summaries_text("step time by model", validation.time_by_model, style);
  if (const std::string ranking = ranking_text(validation); !ranking.empty()) {
    text += "\n" + ranking + "\n";
  }
  return text + worst_text("worst times", worst_times(validation, kWorstRows), style);
}

std::string skipped_text(const Validation& validation, const TextStyle& style) {
  if (validation.skipped.empty()) return {};
  std::map<std::pair<bool, std::string>, std::vector<std::string>> reasons;
  for (const SkippedRow& row : validation.skipped) {
    reasons[{!row.scorable, row.reason}].push_back(row.row_id);
  }
  std::string text = "\n" + inked(style, Ink::bold, "Rows left out") + "\n";
  std::size_t shown = 0;
  for (const auto& [reason, ids] : reasons) {
    if (shown++ == kMostReasons) {
      text += fmt::format("  and {} more reasons\n", reasons.size() - kMostReasons);
      break;
    }
    text += "  " +
            wrapped(style,
                    fmt::format("{} {}{} (first: {})", ids.size(), reason.second,
                                reason.first ? "" : "; counted as 100 % error", ids.front()),
                    4) +
            "\n";
  }
  return text;
}

std::string fit_text(const Validation& validation) {
  if (validation.fits.empty()) return {};
  const Confusion& counts = validation.out_of_memory;
  const std::int64_t right = counts.true_positive + counts.true_negative;
  const std::int64_t sure = right + counts.false_positive + counts.false_negative;
  std::string text = "\nDoes it fit?\n";
  if (sure > 0) {
    text = fmt::format("\nDoes it fit? {} of {} runs judged rightly ({}), {} called tight.\n",
                       right, sure, percent(static_cast<double>(right) / static_cast<double>(sure)),
                       counts.tight_ran_out + counts.tight_finished);
  }
  return text + fmt::format(
                    "  ran out:  {} called too large, {} tight, {} said to fit\n"
                    "  finished: {} said to fit, {} called tight, {} too large\n",
                    counts.true_positive, counts.tight_ran_out, counts.false_negative,
                    counts.true_negative, counts.tight_finished, counts.false_positive);
}

// The same rows without anything that was read off their own table.
std::string without_table_text(const Validation& validation) {
  if (!validation.without_table) return {};
  const WithoutTable& other = *validation.without_table;
  std::string text = "\nWithout what was read off the table's own figures\n";
  const auto line = [&](const char* what, const ErrorSummary& with, const ErrorSummary& without) {
    if (with.rows == 0 && without.rows == 0) return;
    text += fmt::format("  {:9} mean {} instead of {}, bias {} instead of {} ({} rows)\n", what,
                        percent(without.mean_abs), percent(with.mean_abs),
                        signed_percent(without.bias), signed_percent(with.bias), without.rows);
  };
  line("memory", validation.memory, other.memory);
  line("step time", validation.time, other.time);
  return text;
}

std::string notes_text(const Validation& validation, const TextStyle& style) {
  std::string text;
  for (const auto& [note, rows] : validation.notes) {
    text += "  " + wrapped(style, fmt::format("{} ({} rows)", note, rows), 4) + "\n";
  }
  return text.empty() ? text : "\n" + inked(style, Ink::bold, "Not understood") + "\n" + text;
}

std::string facts_text(const Validation& validation, const TextStyle& style) {
  std::string text = "\n" + inked(style, Ink::bold, "Facts and the rows they touch") + "\n";
  std::string origin;
  for (const UsedFact& fact : validation.facts) {
    if (fact.origin != origin) text += fact.origin + "\n";
    origin = fact.origin;
    text += "  " +
            wrapped(style, fmt::format("{} = {} ({} rows)", fact.key, fact.value, fact.rows), 4) +
            "\n    " + inked(style, Ink::faint, wrapped(style, fact.source, 4)) + "\n";
  }
  return text;
}

// What fills gaps of the table, by column: "mlp_type (28 rows), optimizer (28 rows)".
void add_assumed(const Validation& validation, std::string_view origin, const std::string& intro,
                 std::vector<std::string>& sentences) {
  std::map<std::string, std::int64_t> rows;
  for (const UsedFact& fact : validation.facts) {
    if (fact.origin != origin) continue;
    const std::size_t column = fact.key.rfind(' ');
    rows[fact.key.substr(column == std::string::npos ? 0 : column + 1)] += fact.rows;
  }
  if (rows.empty()) return;
  std::string text = intro;
  for (const auto& [column, count] : rows) {
    if (text != intro) text += ", ";
    text += fmt::format("{} ({} rows)", column, count);
  }
  sentences.push_back(text + ".");
}

// A table without figures of memory is judged by its times.
const ErrorSummary& judged_of(const Validation& validation) {
  return validation.memory.rows > 0 ? validation.memory : validation.time;
}

}  // namespace

bool is_within(const Validation& validation, const ValidationReport& report) {
  if (!report.tolerance) return true;
  const ErrorSummary& judged = judged_of(validation);
  return judged.rows > 0 && judged.mean_abs <= *report.tolerance;
}

std::string tolerance_text(const Validation& validation, const ValidationReport& report) {
  if (!report.tolerance) return {};
  const ErrorSummary& judged = judged_of(validation);
  if (judged.rows == 0) return "No row could be scored: the tolerance is missed.";
  return fmt::format("Mean error {} is {} the tolerance {}.", percent(judged.mean_abs),
                     is_within(validation, report) ? "within" : "above",
                     percent(*report.tolerance));
}

std::vector<std::string> sentences_of(const Validation& validation) {
  std::vector<std::string> out = {
      fmt::format("{} rows, {} scorable, {} predicted. No constant of memory is fitted to a row.",
                  validation.rows, validation.scorable, validation.predicted)};
  add_assumed(validation, kAssumed, "Assumed, from other sources: ", out);
  add_assumed(validation, kAssumedFromTable, "Assumed, read off the table's own figures: ", out);
  add_assumed(validation, kCustom, "Not known of the source, customary, and not scored: ", out);
  if (validation.time_rows == 0) return out;
  out.push_back(fmt::format("{} rows give a time or a throughput; {} of them are scored.",
                            validation.time_rows, validation.time.rows));
  if (validation.time.rows > 0) {
    out.push_back(
        "Times are not free of fitting: rates of devices and times of hosts were calibrated on "
        "tables that docs/theory.md, section 7.6 names.");
  }
  return out;
}

std::string ranking_text(const Validation& validation) {
  if (!validation.rank_correlation) return {};
  return fmt::format("Ranking of layouts (Spearman, median of {} groups): {:.3f}",
                     validation.ranked_groups, *validation.rank_correlation);
}

std::string validation_text(const Validation& validation, const ValidationReport& report,
                            const TextStyle& style) {
  std::string text = inked(style, Ink::bold, "Predictions beside " + validation.table) + "\n";
  for (const std::string& sentence : sentences_of(validation)) {
    text += wrapped(style, sentence, 2) + "\n";
  }
  text += summaries_text("memory, |error|", memory_groups(validation), style);
  text += time_text(validation, style);
  if (validation.memory.rows == 0) {
    text += summaries_text("reported, not scored", validation.by_measure, style);
  } else if (validation.by_measure.size() > 1) {
    text += summaries_text("by measure", validation.by_measure, style);
  }
  if (validation.by_source.size() > 1) {
    text += summaries_text("by source", validation.by_source, style);
  }
  if (validation.by_engine.size() > 1) {
    text += summaries_text("by engine", validation.by_engine, style);
  }
  text += summaries_text("by model", validation.by_model, style);
  text += summaries_text("by tensor degree", validation.by_tensor_degree, style);
  text += summaries_text("by pipeline degree", validation.by_layer_degree, style);
  text += without_table_text(validation);
  text += fit_text(validation) + worst_text("worst rows", worst_of(validation, kWorstRows), style) +
          skipped_text(validation, style) + notes_text(validation, style);
  if (report.constants) text += facts_text(validation, style);
  const std::string judgement = tolerance_text(validation, report);
  return judgement.empty() ? text : text + "\n" + judgement + "\n";
}

}  // namespace placet
