#include <cmath>

#include "report/json_parts.h"
#include "report/validation.h"

namespace placet {
namespace {

Json summary_json(const ErrorSummary& summary) {
  const bool none = summary.rows == 0;
  const auto value = [none](double x) { return none ? Json(nullptr) : Json(x); };
  Json within = Json::object();
  for (std::size_t i = 0; i < kErrorBounds.size(); ++i) {
    static constexpr std::array<const char*, kErrorBounds.size()> kKeys = {"0.02", "0.05", "0.1",
                                                                           "0.18"};
    within[kKeys[i]] = value(summary.within[i]);
  }
  return {{"rows", summary.rows},
          {"mean_abs_error", value(summary.mean_abs)},
          {"median_abs_error", value(summary.median_abs)},
          {"p95_abs_error", value(summary.p95_abs)},
          {"worst_abs_error", value(summary.worst_abs)},
          {"bias", value(summary.bias)},
          {"within", within}};
}

Json summaries_json(const SummaryTable& summaries) {
  Json json = Json::object();
  for (const auto& [name, summary] : summaries) json[name] = summary_json(summary);
  return json;
}

Json groups_json(const std::map<RowGroup, ErrorSummary>& groups) {
  Json json = Json::object();
  for (const RowGroup group : {RowGroup::stated, RowGroup::assumed, RowGroup::unknown}) {
    const auto found = groups.find(group);
    json[std::string(name_of(group))] =
        summary_json(found == groups.end() ? ErrorSummary{} : found->second);
  }
  return json;
}

Json time_json(const Validation& validation) {
  Json json = summary_json(validation.time);
  json["rank_correlation"] =
      validation.rank_correlation ? Json(*validation.rank_correlation) : Json(nullptr);
  json["ranked_groups"] = validation.ranked_groups;
  json["rows_with_time"] = validation.time_rows;
  json["groups"] = groups_json(validation.time_groups);
  SummaryTable by = validation.time_by_model;
  by.insert(validation.time_by_source.begin(), validation.time_by_source.end());
  json["by"] = summaries_json(by);
  json["by_engine"] = summaries_json(validation.time_by_engine);
  return json;
}

// Bytes are whole numbers; shares of another row's bytes are not.
Json amount_json(const Prediction& prediction, double amount) {
  if (prediction.is_share || prediction.is_time) return amount;
  return static_cast<std::int64_t>(std::llround(amount));
}

Json prediction_json(const Prediction& prediction) {
  return {{"row_id", prediction.labels.row_id},
          {"measure", prediction.measure},
          {"measured", amount_json(prediction, prediction.measured)},
          {"predicted", amount_json(prediction, prediction.predicted)},
          {"unit", prediction.is_time    ? "seconds"
                   : prediction.is_share ? "share"
                                         : "bytes"},
          {"error", prediction.error},
          {"group", name_of(prediction.labels.group)},
          {"engine", prediction.labels.engine},
          {"placement", prediction.labels.placement}};
}

Json fits_json(const Validation& validation) {
  Json json = Json::array();
  for (const FitJudgement& fit : validation.fits) {
    json.push_back({{"row_id", fit.labels.row_id},
                    {"status", fit.ran_out ? "oom" : "ok"},
                    {"predicted", fit.grade == FitGrade::too_large ? "oom" : "ok"},
                    {"fit", name_of(fit.grade)},
                    {"needed_bytes", std::llround(fit.needed)},
                    {"capacity_bytes", std::llround(fit.capacity)}});
  }
  return json;
}

Json facts_json(const Validation& validation) {
  Json json = Json::array();
  for (const UsedFact& fact : validation.facts) {
    json.push_back({{"origin", fact.origin},
                    {"key", fact.key},
                    {"value", fact.value},
                    {"source", fact.source},
                    {"rows", fact.rows}});
  }
  return json;
}

Json skipped_json(const Validation& validation) {
  Json json = Json::array();
  for (const SkippedRow& row : validation.skipped) {
    json.push_back({{"row_id", row.row_id}, {"reason", row.reason}, {"scorable", row.scorable}});
  }
  return json;
}

}  // namespace

std::string validation_json(const Validation& validation, const ValidationReport& report) {
  const Confusion& counts = validation.out_of_memory;
  SummaryTable by = validation.by_model;
  by.insert(validation.by_source.begin(), validation.by_source.end());
  Json json = {{"schema", "placet.validation/1"},
               {"table", validation.table},
               {"rows", validation.rows},
               {"scorable", validation.scorable},
               {"predicted", validation.predicted},
               {"skipped", skipped_json(validation)},
               {"memory", summary_json(validation.memory)},
               {"memory_near_capacity", summary_json(validation.near_limit)},
               {"memory_below_capacity", summary_json(validation.below_limit)},
               {"time", time_json(validation)},
               {"oom",
                {{"tp", counts.true_positive},
                 {"fp", counts.false_positive},
                 {"fn", counts.false_negative},
                 {"tn", counts.true_negative},
                 {"tight_ran_out", counts.tight_ran_out},
                 {"tight_finished", counts.tight_finished}}},
               {"groups", groups_json(validation.groups)},
               {"by", summaries_json(by)},
               {"by_measure", summaries_json(validation.by_measure)},
               {"by_engine", summaries_json(validation.by_engine)},
               {"by_tp", summaries_json(validation.by_tensor_degree)},
               {"by_pp", summaries_json(validation.by_layer_degree)},
               {"predictions", Json::array()},
               {"fits", fits_json(validation)}};
  for (const Prediction& prediction : validation.predictions) {
    if (!prediction.failed) json["predictions"].push_back(prediction_json(prediction));
  }
  if (validation.without_table) {
    json["without_table"] = {{"memory", summary_json(validation.without_table->memory)},
                             {"time", summary_json(validation.without_table->time)}};
  }
  if (!validation.commands.empty()) {
    json["commands"] = Json::array();
    for (const RowCommand& command : validation.commands) {
      json["commands"].push_back({{"row_id", command.row_id}, {"command", command.line}});
    }
  }
  json["notes"] = Json::array();
  for (const auto& [note, rows] : validation.notes) {
    json["notes"].push_back({{"note", note}, {"rows", rows}});
  }
  if (report.tolerance) {
    json["tolerance"] = *report.tolerance;
    json["within_tolerance"] = is_within(validation, report);
  }
  if (report.constants) json["constants"] = facts_json(validation);
  return print_json(json);
}

}  // namespace placet
