#include "validate/validation.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "units/error.h"

namespace placet {
namespace {

using Errors = std::map<std::string, std::vector<double>>;

SummaryTable summarize_all(const Errors& errors) {
  SummaryTable table;
  for (const auto& [name, values] : errors) table.emplace(name, summarize(values));
  return table;
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
    measures[prediction.measure].push_back(prediction.error);
    if (!prediction.decides) continue;
    const RowLabels& labels = prediction.labels;
    all.push_back(prediction.error);
    (prediction.near_limit ? near_limit : below_limit).push_back(prediction.error);
    groups[labels.group].push_back(prediction.error);
    sources[labels.source].push_back(prediction.error);
    if (!labels.model.empty()) models[labels.model].push_back(prediction.error);
    if (!labels.engine.empty()) engines[labels.engine].push_back(prediction.error);
    if (labels.tensor_degree > 0) {
      tensor_degrees[std::to_string(labels.tensor_degree)].push_back(prediction.error);
    }
    if (labels.layer_degree > 0) {
      layer_degrees[std::to_string(labels.layer_degree)].push_back(prediction.error);
    }
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
  for (const FitJudgement& fit : validation.fits) {
    validation.out_of_memory = with(validation.out_of_memory, fit.ran_out, fit.predicted_out);
  }
  return validation;
}

std::vector<Prediction> worst_of(const Validation& validation, std::size_t count) {
  std::vector<Prediction> worst;
  for (const Prediction& prediction : validation.predictions) {
    if (prediction.decides && !prediction.failed) worst.push_back(prediction);
  }
  std::stable_sort(worst.begin(), worst.end(), [](const Prediction& a, const Prediction& b) {
    return std::abs(a.error) > std::abs(b.error);
  });
  if (worst.size() > count) worst.resize(count);
  return worst;
}

}  // namespace placet
