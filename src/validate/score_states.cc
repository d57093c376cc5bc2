// Tables of model states: bytes per device of parameters, gradients and optimizer state, of a model
// of which only the size is known.
#include <cmath>

#include "catalog/profile_catalog.h"
#include "catalog/strategy_catalog.h"
#include "catalog/training_catalog.h"
#include "derive/derive.h"
#include "model/build.h"
#include "placement/grammar.h"
#include "units/error.h"
#include "validate/score.h"

namespace placet {
namespace {

constexpr std::int64_t kMostDevices = 1 << 20;

class StateScorer {
 public:
  StateScorer(const Catalog& catalog, const Table& table, const ValidateOptions& options)
      : table_(table), strategies_(load_strategies(catalog)) {
    base_.profile = load_profile(catalog, options.engine.value_or("placet"), "--engine");
    base_.engine_text = base_.profile.name + "@" + base_.profile.version;
    base_.precision = base_.profile.precision;
    base_.optimizer = load_optimizer(catalog, "adam", "optimizer");
  }

  Validation score(const std::vector<std::size_t>& rows) {
    result_.table = table_.where;
    result_.rows = static_cast<std::int64_t>(rows.size());
    for (const std::size_t row : rows) score_row(row);
    facts_.add_profile(base_.profile, result_.predicted, {});
    result_.facts = facts_.list();
    return std::move(result_);
  }

 private:
  std::string text(std::size_t row, std::string_view column) const {
    return std::string(table_.text(row, column));
  }

  void score_row(std::size_t row) {
    if (const std::string& fault = fault_of(table_, row); !fault.empty()) {
      result_.skipped.push_back({.row_id = text(row, "row_id"), .reason = fault});
      return;
    }
    const std::string figure = text(row, "gpu_gb_derived");
    if (figure.empty() || text(row, "params_billion").empty() || text(row, "zero_stage").empty()) {
      result_.skipped.push_back(
          {.row_id = text(row, "row_id"),
           .reason = figure.empty() ? "another tool's estimate, with conventions of its own: no "
                                      "figure of model states"
                                    : "params_billion or zero_stage is not stated"});
      return;
    }
    ++result_.scorable;
    ++result_.predicted;
    const Job job = job_of(row);
    Prediction prediction{.labels = {.row_id = text(row, "row_id"),
                                     .source = text(row, "source_id"),
                                     .model = text(row, "params_billion") + "B parameters",
                                     .engine = job.engine_text,
                                     .placement = job.placement_text},
                          .measure = "states"};
    prediction.measured =
        number_of(figure, {.least = 1e-9, .greatest = 1e9}, table_.place(row, "gpu_gb_derived")) *
        kGb;
    prediction.predicted = static_cast<double>(in_bytes(states_of(job)));
    prediction.error = prediction.predicted / prediction.measured - 1;
    result_.predictions.push_back(std::move(prediction));
  }

  // "any" number of devices: the formula does not divide.
  std::int64_t devices_in(std::size_t row) const {
    const std::string cell = text(row, "dp");
    if (cell.empty() || cell == "any") return 1;
    return whole_of(cell, {1, kMostDevices}, table_.place(row, "dp"));
  }

  Job job_of(std::size_t row) const {
    const double billions = number_of(text(row, "params_billion"), {.least = 1e-9, .greatest = 1e7},
                                      table_.place(row, "params_billion"));
    const auto stage = whole_of(text(row, "zero_stage"), {0, 3}, table_.place(row, "zero_stage"));
    const std::int64_t devices = devices_in(row);
    Job job = base_;
    job.model = bare_model(std::llround(billions * 1e9), 1);
    job.placement_text =
        "dp=" + std::to_string(devices) + (stage == 0 ? ":ddp" : ":zero" + std::to_string(stage));
    job.placement = parse_placement(job.placement_text, strategies_.vocabulary);
    job.attention = attention_of(strategies_, job.placement);
    job.batch = {.sequence = 1, .global = devices, .micro = 1};
    return job;
  }

  static Bytes states_of(const Job& job) {
    const Derivation derivation = derive(job);
    ensure(derivation.memory.size() == 1, "without a layer cut all devices are alike");
    Bytes sum;
    for (const State state : {State::parameters, State::optimizer, State::gradients}) {
      sum += derivation.memory.front().at_rest[static_cast<std::size_t>(state)];
    }
    return sum;
  }

  const Table& table_;
  StrategyCatalog strategies_;
  Job base_;
  FactList facts_;
  Validation result_;
};

}  // namespace

Validation score_states(const Catalog& catalog, const Table& table,
                        const ValidateOptions& options) {
  return StateScorer(catalog, table, options).score(chosen_rows(table, options));
}

}  // namespace placet
