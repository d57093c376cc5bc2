// Predictions beside measurements as a page.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/html_parts.h"
#include "report/validation.h"
#include "report/validation_parts.h"

namespace placet {
namespace {

constexpr std::size_t kWorstOnPage = 20;
constexpr double kSide = 400;  // of the picture, in its own units
constexpr std::size_t kMostDrawn = 20'000;

std::string summaries_html(const std::string& title, const SummaryTable& summaries) {
  if (summaries.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  for (const std::string& name : names_in_order(summaries)) {
    const ErrorSummary& s = summaries.at(name);
    rows.push_back({escaped(name), std::to_string(s.rows), percent(s.mean_abs),
                    percent(s.median_abs), percent(s.p95_abs), percent(s.worst_abs),
                    signed_percent(s.bias), percent(s.within.back())});
  }
  return section(escaped(title), html_table({{""},
                                             {"rows", true},
                                             {"mean", true},
                                             {"median", true},
                                             {"p95", true},
                                             {"worst", true},
                                             {"bias", true},
                                             {"&le; 18 %", true}},
                                            rows));
}

/// Both on one logarithmic scale, from the least to the largest of them.
struct Scale {
  double least = 0, most = 0;  // logarithms
  double at(double value) const {
    return (std::log(value) - least) / std::max(most - least, 1e-9) * kSide;
  }
};

Scale scale_of(const std::vector<const Prediction*>& points) {
  Scale scale{.least = std::log(points.front()->measured), .most = scale.least};
  for (const Prediction* p : points) {
    scale.least = std::min({scale.least, std::log(p->measured), std::log(p->predicted)});
    scale.most = std::max({scale.most, std::log(p->measured), std::log(p->predicted)});
  }
  return scale;
}

/// A point for each figure: measured to the right, predicted upwards; on the line they are equal.
std::string picture_html(const std::string& title, const std::vector<const Prediction*>& points) {
  if (points.empty()) return {};
  const Scale scale = scale_of(points);
  std::string body = fmt::format(
      "<svg class=\"points\" viewBox=\"-4 -4 {0} {0}\" role=\"img\" aria-label=\"{1}\">"
      "<rect class=\"track\" width=\"{2}\" height=\"{2}\"/>"
      "<line class=\"equal\" x1=\"0\" y1=\"{2}\" x2=\"{2}\" y2=\"0\"/>",
      kSide + 8, escaped(title), kSide);
  for (const Prediction* p : points) {
    body += fmt::format(
        "<circle class=\"c-parameters\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>{}: measured "
        "{}, predicted {} ({})</title></circle>",
        scale.at(p->measured), kSide - scale.at(p->predicted), escaped(p->labels.row_id),
        figure_text(*p, p->measured), figure_text(*p, p->predicted), signed_percent(p->error));
  }
  body += fmt::format(
      "</svg>\n<p class=\"soft\">A point for each of {} figures: measured to the right, predicted "
      "upwards, both from {} to {} on a logarithmic scale. On the line they are equal.</p>\n",
      points.size(), figure_text(*points.front(), std::exp(scale.least)),
      figure_text(*points.front(), std::exp(scale.most)));
  return section(escaped(title), body);
}

/// What can be drawn: figures of one kind, both above zero.
std::vector<const Prediction*> points_of(const Validation& validation, bool times) {
  std::vector<const Prediction*> points;
  for (const Prediction& p : validation.predictions) {
    const bool drawn = p.is_time == times && (times || (p.decides && !p.is_share)) && !p.failed &&
                       p.measured > 0 && p.predicted > 0;
    if (drawn && points.size() < kMostDrawn) points.push_back(&p);
  }
  return points;
}

std::string predictions_html(const std::string& title, const std::vector<Prediction>& worst) {
  if (worst.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  rows.reserve(worst.size());
  for (const Prediction& p : worst) {
    rows.push_back({escaped(p.labels.row_id), figure_text(p, p.measured),
                    figure_text(p, p.predicted), signed_percent(p.error), code(p.labels.placement),
                    escaped(p.labels.engine)});
  }
  return section(title, html_table({{"row"},
                                    {"measured", true},
                                    {"predicted", true},
                                    {"error", true},
                                    {"placement"},
                                    {"engine"}},
                                   rows));
}

std::string fits_html(const Validation& validation) {
  if (validation.fits.empty()) return {};
  const Confusion& counts = validation.out_of_memory;
  return section(
      "Out of memory",
      html_table({{"the run"}, {"does not fit", true}, {"tight", true}, {"fits", true}},
                 {{"ran out", std::to_string(counts.true_positive),
                   std::to_string(counts.tight_ran_out), std::to_string(counts.false_negative)},
                  {"finished", std::to_string(counts.false_positive),
                   std::to_string(counts.tight_finished), std::to_string(counts.true_negative)}}));
}

std::string skipped_html(const Validation& validation) {
  if (validation.skipped.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  rows.reserve(validation.skipped.size());
  for (const SkippedRow& row : validation.skipped) {
    rows.push_back({escaped(row.row_id), escaped(row.reason),
                    row.scorable ? "counted as 100 % error" : "not scored"});
  }
  return section("Rows left out", folded(fmt::format("{} rows", rows.size()),
                                         html_table({{"row"}, {"reason"}, {""}}, rows)));
}

std::string facts_html(const Validation& validation) {
  if (validation.facts.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  rows.reserve(validation.facts.size());
  for (const UsedFact& fact : validation.facts) {
    rows.push_back({escaped(fact.origin), escaped(fact.key), escaped(fact.value),
                    std::to_string(fact.rows), escaped(fact.source)});
  }
  return section(
      "Facts and the rows they touch",
      folded(fmt::format("{} facts", rows.size()),
             html_table({{"of"}, {"fact"}, {"value"}, {"rows", true}, {"source"}}, rows)));
}

}  // namespace

std::string validation_html(const Validation& validation, const ValidationReport& report) {
  std::string body = "<h1>Predictions beside " + escaped(validation.table) + "</h1>\n";
  for (const std::string& sentence : sentences_of(validation)) {
    body += "<p>" + escaped(sentence) + "</p>\n";
  }
  if (const std::string ranking = ranking_text(validation); !ranking.empty()) {
    body += "<p>" + ranking + "</p>\n";
  }
  if (const std::string judgement = tolerance_text(validation, report); !judgement.empty()) {
    body += fmt::format("<div class=\"card verdict {}\">{}</div>\n",
                        is_within(validation, report) ? "good" : "bad", judgement);
  }
  body += picture_html("Memory", points_of(validation, false)) +
          summaries_html("Memory, |error|", memory_groups(validation)) +
          picture_html("Step time", points_of(validation, true)) +
          summaries_html("Step time, |error|", time_groups(validation)) +
          summaries_html("Step time by source", validation.time_by_source) +
          summaries_html("Step time by model", validation.time_by_model) +
          summaries_html(validation.memory.rows == 0 ? "Reported, not scored" : "By measure",
                         validation.by_measure) +
          summaries_html("By source", validation.by_source) +
          summaries_html("By model", validation.by_model) +
          summaries_html("By engine", validation.by_engine) +
          summaries_html("By tensor degree", validation.by_tensor_degree) +
          summaries_html("By pipeline degree", validation.by_layer_degree) + fits_html(validation) +
          predictions_html("Worst rows", worst_of(validation, kWorstOnPage)) +
          predictions_html("Worst times", worst_times(validation, kWorstOnPage)) +
          skipped_html(validation) + facts_html(validation);
  return page("Predictions beside " + validation.table, body);
}

}  // namespace placet
