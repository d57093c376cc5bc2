// Tables of saved activations: bytes per device, or the share of what the same run keeps without
// sequence parallelism and without recomputation.
#include "derive/layout.h"
#include "derive/memory.h"
#include "derive/stages.h"
#include "derive/unit_memory.h"
#include "units/error.h"
#include "validate/run_jobs.h"
#include "validate/score.h"

namespace placet {
namespace {

constexpr double kPercent = 0.01;
constexpr Range kFigures{.least = 1e-9, .greatest = 1e9};
constexpr WholeRange kSizes{1, 1 << 30};

class ActivationScorer {
 public:
  ActivationScorer(const Catalog& catalog, const Table& table, const ValidateOptions& options)
      : table_(table),
        options_(options),
        reading_(load_validation(catalog)),
        planner_(catalog, reading_, options.engine) {}

  Validation score() {
    const std::vector<std::size_t> rows = chosen_rows(table_, options_);
    result_.table = table_.where;
    result_.rows = static_cast<std::int64_t>(rows.size());
    for (const std::size_t row : rows) score_row(row);
    for (const auto& [frame, count] : profile_rows_) {
      facts_.add_profile(frame->job.profile, count, {});
    }
    result_.facts = facts_.list();
    return std::move(result_);
  }

 private:
  std::string text(std::size_t row, std::string_view column) const {
    return std::string(table_.text(row, column));
  }

  void skip(std::size_t row, std::string reason, bool scorable) {
    result_.skipped.push_back(
        {.row_id = text(row, "row_id"), .reason = std::move(reason), .scorable = scorable});
  }

  const EngineRule* engine_of(std::size_t row) const {
    for (const EngineRule& rule : reading_.engines) {
      if (matches(rule.when, table_, row)) return &rule;
    }
    return nullptr;
  }

  RunFacts facts_in(RowReader& reader) const {
    RunFacts facts;
    RunShape& shape = facts.shape;
    shape = {.layers = reader.need_whole("n_layers", kSizes),
             .hidden = reader.need_whole("hidden", kSizes),
             .heads = reader.need_whole("n_heads", kSizes),
             .ffn = reader.need_whole("ffn", kSizes),
             .mlp_type = reader.need("mlp_type"),
             .vocabulary = reader.need_whole("vocab", kSizes),
             .tied = reader.need_whole("tied_embeddings", {0, 1}) == 1,
             .positions = reader.need("pos_embedding"),
             .sequence = reader.need_whole("seq_len", kSizes),
             .dropout = static_cast<double>(reader.need_whole("dropout_percent", {0, 99})) / 100};
    shape.kv_heads = shape.heads;
    if (shape.hidden % shape.heads != 0) reader.miss("hidden is not a multiple of n_heads");
    shape.head_size = shape.hidden / shape.heads;
    facts.degrees = {.data = reader.need_whole("dp", kSizes),
                     .tensor = reader.need_whole("tp", kSizes),
                     .layer = reader.need_whole("pp", kSizes),
                     .chunks = reader.need_whole("vpp", kSizes)};
    facts.batch = {.sequence = shape.sequence,
                   .global = reader.need_whole("global_batch", kSizes),
                   .micro = reader.need_whole("micro_batch", kSizes)};
    facts.splits_stream = reader.need_whole("sp", {0, 1}) == 1;
    facts.schedule = facts.degrees.chunks > 1 ? "interleaved 1f1b" : "1f1b";
    facts.recompute = reader.need("act_ckpt");
    facts.precision = reader.need("precision");
    facts.optimizer = reader.need("optimizer");
    return facts;
  }

  void score_row(std::size_t row) {
    if (const std::string& fault = fault_of(table_, row); !fault.empty()) {
      return skip(row, fault, false);
    }
    RowReader reader(table_, row, reading_of(reading_, table_.text(row, "source_id")));
    const RunFacts facts = facts_in(reader);
    const EngineRule* engine = engine_of(row);
    if (engine == nullptr || engine->profile.empty()) {
      return skip(row, "no engine profile is known for its source", false);
    }
    if (!reader.missing().empty()) return skip(row, reader.missing().front(), false);
    ++result_.scorable;
    const RowLabels labels = labels_of(row, facts, reader);
    try {
      predict(row, labels, facts, *engine);
      ++result_.predicted;
      facts_.add_filled(labels.source, reader.used());
    } catch (const InputError& error) {
      skip(row, reason_of(error), true);
      add(labels, "activations", 1, 0, true);
    }
  }

  RowLabels labels_of(std::size_t row, const RunFacts& facts, const RowReader& reader) const {
    return {.row_id = text(row, "row_id"),
            .source = text(row, "source_id"),
            .model = text(row, "model"),
            .tensor_degree = facts.degrees.tensor,
            .layer_degree = facts.degrees.layer,
            .group = reader.used().empty() ? RowGroup::stated : RowGroup::assumed};
  }

  void predict(std::size_t row, RowLabels labels, const RunFacts& facts, const EngineRule& engine) {
    const std::string place = table_.place(row, "engine");
    const RunPlan plan = planner_.plan(facts, engine, place);
    labels.engine = plan.frame->job.engine_text;
    labels.placement = plan.placement_text;
    profile_rows_[plan.frame] += 1;
    const BlockBytes blocks = bytes_of_blocks(plan);
    if (const std::string cell = text(row, "activation_gib"); !cell.empty()) {
      add(labels, "activations", figure(row, "activation_gib") * kGib, blocks.kept, false);
    }
    if (const std::string cell = text(row, "activation_pct_of_no_sp_no_ckpt"); !cell.empty()) {
      const double whole = bytes_of_blocks(planner_.plan(baseline(facts), engine, place)).kept;
      add(labels, "activation share", figure(row, "activation_pct_of_no_sp_no_ckpt") * kPercent,
          blocks.kept / whole, false);
    }
    if (const std::string cell = text(row, "param_opt_gib"); !cell.empty()) {
      add(labels, "states", figure(row, "param_opt_gib") * kGib, blocks.states, false);
    }
  }

  static RunFacts baseline(RunFacts facts) {
    facts.splits_stream = false;
    facts.recompute = "none";
    return facts;
  }

  double figure(std::size_t row, std::string_view column) const {
    return number_of(table_.text(row, column), kFigures, table_.place(row, column));
  }

  struct BlockBytes {
    double kept = 0;    // for backward, over the micro-batches in flight
    double states = 0;  // parameters, gradients and optimizer state
  };

  /// What the blocks of the first device hold: the tables count neither embedding nor output layer
  /// (arXiv 2205.05198, section 4.3).
  static BlockBytes bytes_of_blocks(const RunPlan& plan) {
    const Job job = job_of(plan);
    const Layout layout = lay_out(job, plan.frame->prepared);
    const Stage stage = stages_of(job).front();
    const std::vector<std::int64_t> held =
        layout.stages == 1
            ? std::vector<std::int64_t>{1}
            : held_micro_batches(job.schedule, layout.stages, 0, layout.micro_batches);
    BlockBytes sum;
    for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
      for (const int u : stage.chunks[c]) {
        const int local = layout.unit_of[static_cast<std::size_t>(u)];
        const LocalUnit& unit = layout.units[static_cast<std::size_t>(local)];
        const UnitKind& kind = job.model.kinds[static_cast<std::size_t>(unit.kind)];
        if (kind.role != UnitRole::block) continue;
        const double kept = static_cast<double>(unit_memory(layout, local, true).kept);
        sum.kept += kept * static_cast<double>(held[c]);
        sum.states += states_of(job, kind, unit);
      }
    }
    return sum;
  }

  static double states_of(const Job& job, const UnitKind& kind, const LocalUnit& unit) {
    std::int64_t sum = 0;
    for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
      const StateBytes own = state_bytes(job, kind.parameters[p], unit.parameters[p]);
      sum += own.device[0] + own.device[1] + own.device[2];
    }
    return static_cast<double>(sum);
  }

  void add(const RowLabels& labels, std::string measure, double measured, double predicted,
           bool failed) {
    const bool decides = measure != "states";
    const bool is_share = measure == "activation share";
    result_.predictions.push_back({.labels = labels,
                                   .measure = std::move(measure),
                                   .decides = decides,
                                   .is_share = is_share,
                                   .measured = measured,
                                   .predicted = predicted,
                                   .error = predicted / measured - 1,
                                   .failed = failed});
  }

  const Table& table_;
  const ValidateOptions& options_;
  ValidationCatalog reading_;
  RunPlanner planner_;
  std::map<std::shared_ptr<const RunFrame>, std::int64_t> profile_rows_;
  FactList facts_;
  Validation result_;
};

}  // namespace

Validation score_activations(const Catalog& catalog, const Table& table,
                             const ValidateOptions& options) {
  return ActivationScorer(catalog, table, options).score();
}

}  // namespace placet
