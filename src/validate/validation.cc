#include "validate/validation.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>

#include "units/error.h"

namespace placet {
namespace {

using Errors = std::map<std::string, std::vector<double>>;

/// Counts an error under a name; none counts nowhere.
void add(Errors& errors, const std::string& name, double error) {
  if (!name.empty()) errors[name].push_back(error);
}

std::string degree_text(std::int64_t degree) {
  return degree > 0 ? std::to_string(degree) : std::string();
}

SummaryTable summarize_all(const Errors& errors) {
  SummaryTable table;
  for (const auto& [name, values] : errors) table.emplace(name, summarize(values));
  return table;
}

bool is_scored(const RowLabels& labels) { return labels.group != RowGroup::unknown; }

// Layouts of one job: the same source, model, devices and global throughput's meaning.
struct Ranked {
  std::vector<double> measured, predicted;
};

void rank(Validation& validation) {
  std::map<std::tuple<std::string, std::string, std::int64_t>, Ranked> groups;
  for (const Prediction& p : validation.predictions) {
    if (!p.is_time || p.failed || !is_scored(p.labels)) continue;
    Ranked& group = groups[{p.labels.source, p.labels.model, p.devices}];
    group.measured.push_back(p.throughput / p.measured);
    group.predicted.push_back(p.throughput / p.predicted);
  }
  std::vector<double> found;
  for (const auto& [key, group] : groups) {
    if (group.measured.size() < 3) continue;
    if (const auto r = rank_correlation(group.measured, group.predicted)) found.push_back(*r);
  }
  validation.ranked_groups = static_cast<std::int64_t>(found.size());
  if (found.empty()) return;
  std::sort(found.begin(), found.end());
  validation.rank_correlation = quantile(found, 0.5);
}

void summarize_time(Validation& validation) {
  Errors sources, models, engines;
  std::map<RowGroup, std::vector<double>> groups;
  std::vector<double> all;
  for (const Prediction& prediction : validation.predictions) {
    if (!prediction.is_time) continue;
    const RowLabels& labels = prediction.labels;
    groups[labels.group].push_back(prediction.error);
    if (!is_scored(labels)) continue;
    all.push_back(prediction.error);
    sources[labels.source].push_back(prediction.error);
    add(models, labels.model, prediction.error);
    add(engines, labels.engine, prediction.error);
  }
  validation.time = summarize(all);
  for (const auto& [group, errors] : groups) validation.time_groups[group] = summarize(errors);
  validation.time_by_source = summarize_all(sources);
  validation.time_by_model = summarize_all(models);
  validation.time_by_engine = summarize_all(engines);
  rank(validation);
}

}  // namespace

std::string_view name_of(RowGroup group) {
  switch (group) {
    case RowGroup::stated:
      return "stated";
    case RowGroup::assumed:
      return "assumed";
    case RowGroup::unknown:
      return "unknown";
  }
  fail_internally("every group of rows has a name");
}

Validation summarized(Validation validation) {
  Errors measures, sources, models, engines, tensor_degrees, layer_degrees;
  std::vector<double> all, near_limit, below_limit;
  std::map<RowGroup, std::vector<double>> groups;
  for (const Prediction& prediction : validation.predictions) {
    if (prediction.is_time) continue;
    const RowLabels& labels = prediction.labels;
    if (is_scored(labels)) measures[prediction.measure].push_back(prediction.error);
    if (!prediction.decides) continue;
    groups[labels.group].push_back(prediction.error);
    if (!is_scored(labels)) continue;
    all.push_back(prediction.error);
    (prediction.near_limit ? near_limit : below_limit).push_back(prediction.error);
    sources[labels.source].push_back(prediction.error);
    add(models, labels.model, prediction.error);
    add(engines, labels.engine, prediction.error);
    add(tensor_degrees, degree_text(labels.tensor_degree), prediction.error);
    add(layer_degrees, degree_text(labels.layer_degree), prediction.error);
  }
  validation.memory = summarize(all);
  validation.near_limit = summarize(near_limit);
  validation.below_limit = summarize(below_limit);
  for (const auto& [group, errors] : groups) validation.groups[group] = summarize(errors);
  validation.by_measure = summarize_all(measures);
  validation.by_source = summarize_all(sources);
  validation.by_model = summarize_all(models);
  validation.by_engine = summarize_all(engines);
  validation.by_tensor_degree = summarize_all(tensor_degrees);
  validation.by_layer_degree = summarize_all(layer_degrees);
  summarize_time(validation);
  for (const FitJudgement& fit : validation.fits) {
    if (!is_scored(fit.labels)) continue;
    validation.out_of_memory = with(validation.out_of_memory, fit.ran_out, fit.grade);
  }
  return validation;
}

namespace {

std::vector<Prediction> sorted_by_error(std::vector<Prediction> worst, std::size_t count) {
  std::stable_sort(worst.begin(), worst.end(), [](const Prediction& a, const Prediction& b) {
    return std::abs(a.error) > std::abs(b.error);
  });
  if (worst.size() > count) worst.resize(count);
  return worst;
}

}  // namespace

std::vector<Prediction> worst_of(const Validation& validation, std::size_t count) {
  std::vector<Prediction> worst;
  for (const Prediction& prediction : validation.predictions) {
    if (prediction.decides && !prediction.failed && !prediction.is_time) {
      worst.push_back(prediction);
    }
  }
  return sorted_by_error(std::move(worst), count);
}

std::vector<Prediction> worst_times(const Validation& validation, std::size_t count) {
  std::vector<Prediction> worst;
  for (const Prediction& prediction : validation.predictions) {
    if (prediction.is_time && !prediction.failed) worst.push_back(prediction);
  }
  return sorted_by_error(std::move(worst), count);
}

}  // namespace placet
