// Tables of runs: reserved memory, bytes alive, and whether a run fits.
#include <algorithm>
#include <mutex>

#include "units/error.h"
#include "validate/parallel.h"
#include "validate/run_command.h"
#include "validate/run_figures.h"
#include "validate/run_jobs.h"
#include "validate/run_time.h"
#include "validate/score.h"

namespace placet {
namespace {

/// A figure that a row gives.
struct MeasuredFigure {
  const MemoryMeasure* measure = nullptr;
  double bytes = 0;
  bool decides = false;  // of a row's figures the first that may
};

/// A row that can be scored, on its way.
struct RunRow {
  std::size_t row = 0;
  RowLabels labels;
  bool ran_out = false;
  std::vector<MeasuredFigure> figures;
  std::optional<RunPlan> plan;  // none: failed
  RunFigures predicted;
  std::optional<double> step;  // measured, seconds
  TimeDerivation time;
  bool gives_time = false;  // the row has a figure of time that is scored
  std::string failure;
};

// Near the device's capacity the allocator frees cached blocks and asks again, so that its figure
// says less about the job; such rows are summarized apart.
constexpr double kNearLimit = 0.88;

// Of a unit of memory; 0: it is none. What torch and nvidia-smi print as MB or MiB is 2^20 bytes
// (nvidia-smi) or what the table's own unit says.
double bytes_per(std::string_view unit) {
  if (unit.starts_with("GiB")) return kGib;
  if (unit.starts_with("GB")) return kGb;
  if (unit.starts_with("MiB")) return kGib / 1024;
  return unit.starts_with("MB") ? kGb / 1000 : 0;
}

double in_bytes_real(Bytes amount) { return static_cast<double>(in_bytes(amount)); }

std::string text_of(std::string_view text) { return std::string(text); }

std::string pattern_text(const RowPattern& pattern) {
  std::string text;
  for (const CellPattern& cell : pattern) {
    text += (text.empty() ? "" : ", ") + cell.column + " = ";
    for (std::size_t i = 0; i < cell.any_of.size(); ++i) {
      text += (i > 0 ? " or " : "") + (cell.any_of[i].empty() ? "(empty)" : cell.any_of[i]);
    }
  }
  return text.empty() ? "every row" : text;
}

// What is known of the tables; without what was read off their own figures if that is asked for.
ValidationCatalog readings(const Catalog& catalog, const ValidateOptions& options) {
  ValidationCatalog validation = load_validation(catalog);
  if (!options.without_table) return validation;
  for (auto& [name, source] : validation.sources) {
    std::erase_if(source.fillings, [](const Filling& filling) { return filling.from_table; });
  }
  return validation;
}

class RunScorer {
 public:
  RunScorer(const Catalog& catalog, const Table& table, const ValidateOptions& options)
      : table_(table),
        options_(options),
        reading_(readings(catalog, options)),
        planner_(catalog, reading_, options.engine) {}

  Validation score() {
    const std::vector<std::size_t> rows = chosen_rows(table_, options_);
    result_.table = table_.where;
    result_.rows = static_cast<std::int64_t>(rows.size());
    for (const std::size_t row : rows) read_or_skip(row);
    derive_all();
    for (const RunRow& run : runs_) record(run);
    for (const auto& [profile, count] : profile_rows_) {
      facts_.add_profile(*profile, count, term_rows_[profile]);
    }
    result_.facts = facts_.list();
    result_.command_files = command_files_.files();
    return std::move(result_);
  }

 private:
  void skip(std::size_t row, std::string reason, bool scorable = false) {
    result_.skipped.push_back({.row_id = text_of(table_.text(row, "row_id")),
                               .reason = std::move(reason),
                               .scorable = scorable});
  }

  /// Why a row says nothing about memory; empty if it does.
  std::string unusable(std::size_t row, const SourceReading& source) const {
    const std::string_view status = table_.text(row, "status");
    if (status != "ok" && status != "oom") {
      return "status '" + text_of(status) + "' is neither ok nor oom";
    }
    for (const Exclusion& exclusion : source.exclusions) {
      if (matches(exclusion.when, table_, row)) return exclusion.reason;
    }
    return {};
  }

  std::vector<MeasuredFigure> figures_in(std::size_t row) const {
    std::vector<MeasuredFigure> figures;
    for (const MemoryMeasure& measure : reading_.measures) {
      const std::string_view cell = table_.text(row, measure.column);
      if (cell.empty() || !matches(measure.when, table_, row)) continue;
      const bool known = std::any_of(figures.begin(), figures.end(), [&](const MeasuredFigure& f) {
        return f.measure->name == measure.name;
      });
      if (known) continue;
      const double amount =
          number_of(cell, {.least = 1e-6, .greatest = 1e9}, table_.place(row, measure.column));
      const std::string_view unit =
          measure.unit.empty() ? table_.text(row, "mem_unit") : std::string_view(measure.unit);
      const double scale = bytes_per(unit);
      if (scale == 0) continue;
      const bool decided = std::ranges::any_of(figures, &MeasuredFigure::decides);
      figures.push_back(
          {.measure = &measure, .bytes = amount * scale, .decides = measure.decides && !decided});
    }
    return figures;
  }

  /// The rule of a row; where the caller names the engine, the first with a layout.
  const EngineRule* engine_of(std::size_t row) const {
    for (const EngineRule& rule : reading_.engines) {
      if (rule.profile.empty() && options_.engine) continue;
      if (matches(rule.when, table_, row)) return &rule;
    }
    return nullptr;
  }

  // One bad cell is its row's own trouble.
  void read_or_skip(std::size_t row) {
    if (const std::string& fault = fault_of(table_, row); !fault.empty()) return skip(row, fault);
    try {
      read(row);
    } catch (const InputError& error) {
      skip(row, fault_of_cell(error));
    }
  }

  void read(std::size_t row) {
    if (has_time(row)) ++result_.time_rows;
    const SourceReading& source = reading_of(reading_, table_.text(row, "source_id"));
    if (std::string reason = unusable(row, source); !reason.empty()) return skip(row, reason);
    RunRow run{.row = row, .ran_out = table_.text(row, "status") == "oom"};
    run.figures = figures_in(row);
    run.gives_time = !run.ran_out && has_time(row) && !excludes_time(row, source);
    if (run.figures.empty() && !run.ran_out && !run.gives_time) {
      return skip(row, table_.text(row, "peak_mem_gb").empty()
                           ? "no figure of memory"
                           : "what its figure of memory measures is not known");
    }
    const EngineRule* engine = engine_of(row);
    if (engine == nullptr || engine->profile.empty()) {
      return skip(
          row, engine == nullptr ? "no engine profile is known for its framework" : engine->reason);
    }
    RowReader reader(table_, row, source);
    const RunFacts facts =
        read_run(reader, {.catalog = &planner_.catalog(), .words = &reading_.words});
    if (!reader.missing().empty()) return skip(row, list_of(reader.missing()));
    for (const std::string& note : facts.notes) ++result_.notes[note];
    run.labels.group = group_of(reader, *engine);
    add(std::move(run), facts, *engine, reader);
  }

  RowGroup group_of(const RowReader& reader, const EngineRule& engine) const {
    const bool customary = std::ranges::any_of(
        reader.used(), [](const FilledCell& cell) { return cell.filling->is_custom; });
    if (customary || (engine.is_guess && !options_.engine)) return RowGroup::unknown;
    return reader.used().empty() ? RowGroup::stated : RowGroup::assumed;
  }

  static std::string list_of(const std::vector<std::string>& reasons) {
    std::string text;
    for (const std::string& reason : reasons) text += (text.empty() ? "" : "; ") + reason;
    return text;
  }

  bool has_time(std::size_t row) const {
    for (const char* column : {"step_time_s", "step_time_s_derived", "tokens_per_s_per_gpu",
                               "tokens_per_s_total", "samples_per_s", "tflops_per_gpu"}) {
      if (!table_.text(row, column).empty()) return true;
    }
    return false;
  }

  bool excludes_time(std::size_t row, const SourceReading& source) const {
    return std::ranges::any_of(source.time_exclusions, [&](const Exclusion& exclusion) {
      return matches(exclusion.when, table_, row);
    });
  }

  void add(RunRow run, const RunFacts& facts, const EngineRule& engine, RowReader& reader) {
    run.labels = {.row_id = text_of(table_.text(run.row, "row_id")),
                  .source = text_of(table_.text(run.row, "source_id")),
                  .model = text_of(table_.text(run.row, "model")),
                  .engine = options_.engine.value_or(engine.profile),
                  .tensor_degree = facts.degrees.tensor,
                  .layer_degree = facts.degrees.layer,
                  .group = run.labels.group};
    if (is_scored(run)) ++result_.scorable;
    try {
      run.plan = planner_.plan(facts, engine, table_.place(run.row, "framework"));
      run.labels.engine = run.plan->frame->job.engine_text;
      run.labels.placement = run.plan->placement_text;
      if (run.gives_time) run.step = measured_step(reader, facts, run.plan->frame->job.model);
      note_facts(run, facts, engine, reader);
      note_command(run, facts);
    } catch (const InputError& error) {
      run.failure = reason_of(error);
    }
    runs_.push_back(std::move(run));
  }

  void note_command(const RunRow& run, const RunFacts& facts) {
    if (!options_.commands) return;
    result_.commands.push_back({.row_id = run.labels.row_id,
                                .line = command_of(planner_.catalog(), planner_.vocabulary(),
                                                   *run.plan, facts, command_files_)});
  }

  void note_facts(const RunRow& run, const RunFacts& facts, const EngineRule& engine,
                  const RowReader& reader) {
    profile_rows_[&run.plan->frame->job.profile] += 1;
    if (!options_.engine) {
      facts_.add({"engine", pattern_text(engine.when), engine.profile, engine.evidence.source});
    }
    facts_.add_filled(run.labels.source, reader.used());
    for (const MeasuredFigure& figure : run.figures) {
      facts_.add({"measure", figure.measure->column, figure.measure->name,
                  figure.measure->evidence.source});
    }
    if (run.step && run.plan->cluster) {
      const std::string& device = run.plan->cluster->groups.front().device.name;
      for (const Fact& fact : planner_.device_facts(device)) {
        facts_.add({"device " + device, fact.key, fact.value, fact.source});
      }
    }
    if (run.plan->capacity) {
      facts_.add({"device", facts.device, to_string(*run.plan->capacity), "data/hardware/devices"});
    }
  }

  void derive_all() {
    std::int64_t done = 0;
    std::mutex mutex;
    for_each_index(runs_.size(), options_.threads, [&](std::size_t i) {
      derive_one(runs_[i]);
      const std::lock_guard lock(mutex);
      if (options_.progress) options_.progress(++done, static_cast<std::int64_t>(runs_.size()));
    });
  }

  static void derive_one(RunRow& run) {
    if (!run.plan) return;
    try {
      Job job = job_of(*run.plan);
      run.predicted =
          figures_of(*run.plan, job, run.figures.empty() ? Needs::verdict : Needs::figures);
      if (!run.step || !run.plan->cluster) return;
      job.cluster = run.plan->cluster;
      run.time = derive_time(job, run.plan->frame->prepared);
    } catch (const InputError& error) {
      run.failure = reason_of(error);
      run.plan.reset();
    }
  }

  static bool is_scored(const RunRow& run) { return run.labels.group != RowGroup::unknown; }

  void record(const RunRow& run) {
    if (run.plan) {
      if (is_scored(run)) ++result_.predicted;
      for (const std::string& term : run.predicted.engine_terms) {
        ++term_rows_[&run.plan->frame->job.profile][term];
      }
    } else {
      skip(run.row, run.failure, is_scored(run));
      if (!is_scored(run)) return;
    }
    for (const MeasuredFigure& figure : run.figures) {
      Prediction prediction{.labels = run.labels,
                            .measure = figure.measure->name,
                            .decides = figure.decides,
                            .measured = figure.bytes,
                            .failed = !run.plan};
      if (run.plan) {
        prediction.predicted = in_bytes_real(figure_for(*figure.measure, run.predicted));
      }
      prediction.error = prediction.predicted / prediction.measured - 1;
      prediction.near_limit = run.plan && run.plan->capacity &&
                              figure.bytes > kNearLimit * in_bytes_real(*run.plan->capacity);
      result_.predictions.push_back(std::move(prediction));
    }
    record_time(run);
    record_fit(run);
  }

  void record_time(const RunRow& run) {
    if (!run.step) return;
    Prediction prediction{.labels = run.labels,
                          .measure = "step",
                          .is_time = true,
                          .devices = run.time.known ? devices_of(run.plan->placement) : 0,
                          .throughput = run.time.known ? run.time.tokens : 1,
                          .measured = *run.step,
                          .failed = !run.time.known};
    prediction.predicted = in_seconds(run.time.step);
    prediction.error = prediction.predicted / prediction.measured - 1;
    result_.predictions.push_back(std::move(prediction));
  }

  // A row that cannot be predicted counts as judged wrongly.
  void record_fit(const RunRow& run) {
    if (run.plan && !run.plan->capacity) return;
    FitJudgement fit{.labels = run.labels,
                     .ran_out = run.ran_out,
                     .grade = run.ran_out ? FitGrade::fits : FitGrade::too_large};
    if (run.plan) {
      fit.needed = in_bytes_real(run.predicted.needed);
      fit.capacity = in_bytes_real(*run.plan->capacity);
      fit.grade = run.predicted.fit;
    }
    result_.fits.push_back(std::move(fit));
  }

  const Table& table_;
  const ValidateOptions& options_;
  ValidationCatalog reading_;
  RunPlanner planner_;
  std::vector<RunRow> runs_;
  // By the profile of a frame, which the runs keep alive: that of one engine differs between jobs.
  std::map<const Profile*, std::int64_t> profile_rows_;
  std::map<const Profile*, std::map<std::string, std::int64_t>> term_rows_;  // by profile, term
  FactList facts_;
  CommandFiles command_files_{options_.commands.value_or("")};
  Validation result_;
};

}  // namespace

Validation score_runs(const Catalog& catalog, const Table& table, const ValidateOptions& options) {
  return RunScorer(catalog, table, options).score();
}

}  // namespace placet
