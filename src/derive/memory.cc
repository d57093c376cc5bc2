#include "derive/memory.h"

#include <algorithm>
#include <numeric>

#include "derive/gathered_memory.h"
#include "derive/update_inputs.h"
#include "units/checked.h"
#include "units/error.h"
#include "units/shares.h"

namespace placet {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// Elements of Adafactor-like state: one per row and one per column of the last two dims.
std::int64_t row_and_column(const Parameter& parameter, std::int64_t elements) {
  if (parameter.dims.size() < 2) return elements;
  const std::int64_t rows = parameter.dims[parameter.dims.size() - 2].size;
  const std::int64_t columns = parameter.dims.back().size;
  return largest_share(elements, columns) + largest_share(elements, rows);
}

Dtype parameter_dtype(const Job& job, const Parameter& parameter) {
  return parameter.dtype ? *parameter.dtype : job.precision.parameters;
}

void split_media(std::int64_t whole, const LocalParameter& local, std::size_t s, StateBytes& out) {
  const std::int64_t moved = in_bytes(part_rounded_up(bytes(whole), local.on_host[s]));
  (local.on_nvme[s] ? out.nvme : out.host)[s] += moved;
  out.device[s] += whole - moved;
}

/// What one local unit holds at rest, and its parts by name.
struct UnitStates {
  StateBytes bytes;
  std::int64_t padding = 0;     // bytes of Θ that are vocabulary padding
  bool shares_tensors = false;  // some parameter is another unit's tensor
  UpdateInputs update;
};

/// Builds the class of one stage: base at rest, then the instants.
class StageMemory {
 public:
  StageMemory(const Layout& layout, const Stage& stage, const std::vector<UnitStates>& states,
              const std::vector<std::array<UnitMemory, 2>>& units)
      : layout_(layout), job_(*layout.job), stage_(stage), states_(states), units_(units) {}

  MemoryClass build() {
    out_.stage = stage_.device;
    out_.devices = devices_of(job_.placement) / layout_.stages;
    count_rest();
    count_activations();
    visit_instants();
    write_terms();
    return std::move(out_);
  }

 private:
  /// One moment with its bytes by category.
  struct Moment {
    Instant instant = Instant::forward;
    int unit = -1;  // position in Model::units
    std::int64_t gradients = 0;
    std::int64_t activations = 0;
    UnitPeak peak;  // of the unit that runs
    GatheredBytes gathered;
    std::int64_t held_gradients = 0;  // of weights of the units behind, of this micro-batch
    UpdateInputs update;              // of the unit whose update needs most
    std::int64_t total = 0;
  };

  int local_of(int u) const { return layout_.unit_of[at(u)]; }

  const UnitRole& role_of(int u) const {
    return job_.model.kinds[at(job_.model.units[at(u)].kind)].role;
  }

  /// Whether block `ordinal` of this stage is recomputed.
  bool recomputed(int u, std::int64_t ordinal) const {
    const UnitRole role = role_of(u);
    if (role != UnitRole::block && role != UnitRole::mtp) return false;
    switch (job_.recompute.kind) {
      case Recompute::Kind::none:
      case Recompute::Kind::full:
      case Recompute::Kind::selective:
        return true;  // the plans are equal where nothing is
      case Recompute::Kind::every:
        return job_.recompute.count > 0 && ordinal % job_.recompute.count == 0;
      case Recompute::Kind::first:
        return ordinal < job_.recompute.count;
    }
    return false;
  }

  const UnitMemory& memory_of(int u) const {
    return units_[at(local_of(u))][recomputed_[at(u - first_unit_)] ? 1 : 0];
  }

  void count_rest() {
    std::int64_t ordinal = 0;
    const int units = static_cast<int>(job_.model.units.size());
    first_unit_ = units;
    for (const auto& chunk : stage_.chunks) {
      for (int u : chunk) first_unit_ = std::min(first_unit_, u);
    }
    recomputed_.assign(at(units - first_unit_), false);
    for (const auto& chunk : stage_.chunks) {
      for (int u : chunk) {
        recomputed_[at(u - first_unit_)] = recomputed(u, ordinal);
        if (role_of(u) == UnitRole::block) ++ordinal;
        add_states(u);
      }
    }
  }

  void add_states(int u) {
    const LocalUnit& local = layout_.units[at(local_of(u))];
    const UnitKind& kind = job_.model.kinds[at(local.kind)];
    StateBytes own = states_[at(local_of(u))].bytes;
    UpdateInputs update = states_[at(local_of(u))].update;
    const bool shares = states_[at(local_of(u))].shares_tensors;
    for (std::size_t p = 0; shares && p < kind.parameters.size(); ++p) {
      if (!is_second_use(job_.model, stage_, kind.parameters[p])) continue;
      const StateBytes twice = state_bytes(job_, kind.parameters[p], local.parameters[p]);
      update -= update_inputs(job_, kind.parameters[p], local.parameters[p]);
      own -= twice;
    }
    rest_ += own;
    for (std::size_t s = 0; s < 4; ++s) staged_[s] = std::max(staged_[s], own.nvme[s]);
    if (update.total() > update_.total()) {
      update_ = update;
      updated_unit_ = kind.name;
    }
    per_local_.resize(layout_.units.size());
    per_local_[at(local_of(u))] += own;
  }

  void count_activations() {
    held_ = layout_.stages == 1 ? std::vector<std::int64_t>(1, 1)
                                : held_micro_batches(job_.schedule, layout_.stages, stage_.device,
                                                     layout_.micro_batches);
    held_.resize(stage_.chunks.size(), 0);
    for (std::size_t c = 0; c < stage_.chunks.size(); ++c) {
      std::int64_t kept = 0;
      StateBytes off;
      for (int u : stage_.chunks[c]) {
        const UnitMemory& unit = memory_of(u);
        kept = checked_add(kept, unit.kept, "activations");
        (unit.kept_on_nvme ? off.nvme : off.host)[3] += unit.kept_on_host;
        if (unit.kept_on_nvme) staged_[3] = std::max(staged_[3], unit.kept_on_host);
      }
      held_bytes_ =
          checked_add(held_bytes_, checked_multiply(kept, held_[c], "activations"), "activations");
      off.host[3] = checked_multiply(off.host[3], held_[c], "activations");
      off.nvme[3] = checked_multiply(off.nvme[3], held_[c], "activations");
      rest_ += off;
      if (held_[c] > 0) active_ = c;
    }
    rest_.device[3] = held_bytes_;
    stage_parameters();
  }

  /// What passes through host memory between NVMe and the device: one unit of each state, of
  /// parameters also the units read ahead.
  void stage_parameters() {
    if (rest_.nvme[0] == 0) return;
    const auto window = static_cast<std::size_t>(prefetch()) + 1;
    for (const auto& chunk : stage_.chunks) {
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < chunk.size(); ++i) {
        sum += states_[at(local_of(chunk[i]))].bytes.nvme[0];
        if (i >= window) sum -= states_[at(local_of(chunk[i - window]))].bytes.nvme[0];
        staged_[0] = std::max(staged_[0], sum);
      }
    }
  }

  /// The engine may keep a unit gathered for longer than its placement says.
  Keep keep_of(int u) const {
    const Profile& profile = job_.profile;
    const UnitRole role = role_of(u);
    const bool end = role == UnitRole::embedding || role == UnitRole::head;
    if (end && profile.joins_ends) return Keep::step;
    const bool stays = (role == UnitRole::head && profile.last_unit_stays_gathered) ||
                       (profile.last_block_stays_gathered && is_last_block(job_.model, u));
    return stays ? std::max(memory_of(u).keep, Keep::backward) : memory_of(u).keep;
  }

  GatheredUnit gathered_of(int u) const {
    const UnitMemory& unit = memory_of(u);
    return {.whole = unit.gathered_parameters,
            .keep = keep_of(u),
            .parts = unit.kept_parts,
            .parts_step = unit.kept_parts_step};
  }

  /// Running sums over the active chunk, so that every instant costs the same.
  void sum_active_chunk() {
    const std::vector<int>& chunk = stage_.chunks[active_];
    gathered_ = GatheredChunk(prefetch(), held_[active_] > 1);
    grown_before_.assign(chunk.size() + 1, 0);
    made_before_.assign(chunk.size() + 1, 0);
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      gathered_.add(gathered_of(chunk[i]));
      grown_before_[i + 1] = grown_before_[i] + states_[at(local_of(chunk[i]))].bytes.device[2];
      made_before_[i + 1] = made_before_[i] + memory_of(chunk[i]).weight_gradients;
    }
  }

  /// What the chunks that do not run keep gathered.
  void sum_other_chunks() {
    for (std::size_t c = 0; c < stage_.chunks.size(); ++c) {
      if (c == active_) continue;
      for (int u : stage_.chunks[c]) {
        const GatheredBytes kept = kept_of(gathered_of(u), held_[c] > 0);
        gathered_elsewhere_.whole += kept.whole;
        gathered_elsewhere_.parts += kept.parts;
      }
    }
  }

  /// Gradients that exist while the unit at `position` of the active chunk runs backward: all of
  /// them where they rest or an earlier micro-batch made them, else those of the units behind it.
  std::int64_t gradients_at(Instant instant, std::size_t position) const {
    const std::int64_t all = rest_.device[2];
    const bool grows =
        job_.profile.gradient_life == GradientLife::growing && layout_.micro_batches == 1;
    if (!grows || instant == Instant::reduction || instant == Instant::update) return all;
    if (instant != Instant::backward) return 0;
    return std::min(grown_before_.back() - grown_before_[position + 1], all);
  }

  /// Gathered parameters alive while the unit at `position` of the active chunk runs.
  GatheredBytes gathered_at(Instant instant, std::size_t position) const {
    if (instant == Instant::reduction || instant == Instant::update) return {};
    const GatheredBytes here = instant == Instant::backward ? gathered_.in_backward(position)
                                                            : gathered_.in_forward(position);
    return {.whole = here.whole + gathered_elsewhere_.whole,
            .parts = here.parts + gathered_elsewhere_.parts};
  }

  /// Weights' gradients of the micro-batch in backward that wait for its end.
  std::int64_t held_gradients(Instant instant, std::size_t position) const {
    if (instant != Instant::backward || job_.profile.gradient_hold != GradientHold::micro_batch) {
      return 0;
    }
    return made_before_.back() - made_before_[position + 1];
  }

  std::int64_t prefetch() const {
    std::int64_t ahead = job_.profile.prefetch;
    for (const AxisPlacement& axis : job_.placement.axes) {
      if (axis.how.prefetch) ahead = *axis.how.prefetch;
    }
    return ahead;
  }

  std::int64_t engine_bytes(Instant instant) {
    auto& cached = engine_[static_cast<std::size_t>(instant)];
    if (cached) return *cached;
    std::int64_t sum = 0;
    for (const EngineMemory& term : job_.profile.memory) {
      if ((term.instants & bit_of(instant)) != 0 && all_hold(term.when, layout_, stage_)) {
        sum += evaluate(term.bytes, layout_, stage_);
      }
    }
    cached = sum;
    return sum;
  }

  /// Compares one moment with the fullest of its instant so far. `activations`: kept by other units
  /// and micro-batches.
  void consider(Instant instant, std::size_t position, std::int64_t activations,
                const UnitPeak& peak) {
    Moment& best = instants_[static_cast<std::size_t>(instant)];
    const std::int64_t gradients = gradients_at(instant, position);
    const GatheredBytes gathered = gathered_at(instant, position);
    const std::int64_t held = held_gradients(instant, position);
    const std::int64_t engine = engine_bytes(instant);
    const UpdateInputs update = instant == Instant::update ? update_ : UpdateInputs{};
    const std::int64_t total = rest_.device[0] + rest_.device[1] + gradients + activations +
                               peak.total() + gathered.total() + held + engine + update.total();
    if (total <= best.total) return;
    const std::vector<int>& chunk = stage_.chunks[active_];
    const bool runs = instant != Instant::reduction && instant != Instant::update;
    best = {.instant = instant,
            .unit = runs ? chunk[position] : -1,
            .gradients = gradients,
            .activations = activations,
            .peak = peak,
            .gathered = gathered,
            .held_gradients = held,
            .update = update,
            .total = total};
  }

  void visit_instants() {
    const std::vector<int>& chunk = stage_.chunks[active_];
    sum_active_chunk();
    sum_other_chunks();
    std::int64_t all = 0;
    for (int u : chunk) all += memory_of(u).kept;
    // Kept by other micro-batches, then also by the units before the one that runs.
    std::int64_t before = held_bytes_ - (held_[active_] > 0 ? all : 0);
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      const UnitMemory& unit = memory_of(chunk[i]);
      consider(Instant::forward, i, before, unit.forward);
      if (unit.loss.total() > 0) consider(Instant::loss, i, before, unit.loss);
      consider(Instant::backward, i, before, unit.backward);
      before += unit.kept;
    }
    consider(Instant::reduction, 0, 0, {});
    consider(Instant::update, 0, 0, {});
  }

  void add_term(MemoryCategory category, std::string_view what, std::string_view unit,
                std::int64_t alive, std::string_view source = {}) {
    if (alive == 0) return;
    out_.terms.push_back({.category = category,
                          .what = what,
                          .unit = unit,
                          .bytes = bytes(alive),
                          .source = source});
    out_.at_peak[static_cast<std::size_t>(category)] += bytes(alive);
  }

  void write_state(std::size_t s, std::string_view what, std::int64_t alive_part,
                   std::int64_t alive_whole) {
    for (std::size_t k = 0; k < per_local_.size(); ++k) {
      const StateBytes& sum = per_local_[k];
      if (sum.device[s] == 0 && sum.host[s] == 0 && sum.nvme[s] == 0) continue;
      // Where gradients are still growing, only a part of what will rest is alive.
      const bool whole = alive_part == alive_whole;
      MemoryTerm term{.category = static_cast<MemoryCategory>(s),
                      .what = what,
                      .unit = job_.model.kinds[at(layout_.units[k].kind)].name,
                      .bytes = bytes(whole ? sum.device[s] : 0),
                      .rest = bytes(sum.device[s]),
                      .host = bytes(sum.host[s]),
                      .nvme = bytes(sum.nvme[s]),
                      .factors = factors_of(layout_.units[k], s)};
      out_.at_peak[s] += term.bytes;
      out_.terms.push_back(std::move(term));
    }
    if (alive_part != alive_whole) {
      add_term(static_cast<MemoryCategory>(s), "gradients made so far", {}, alive_part);
    }
  }

  /// How the axes divide the unit's largest parameter in one state.
  std::vector<AxisFactor> factors_of(const LocalUnit& unit, std::size_t s) const {
    const LocalParameter* largest = nullptr;
    for (const LocalParameter& p : unit.parameters) {
      if (largest == nullptr || p.elements > largest->elements) largest = &p;
    }
    std::vector<AxisFactor> factors;
    if (largest == nullptr) return factors;
    const AxisMask mask = largest->cut | largest->divided[s];
    for (std::size_t a = 0; a < job_.placement.axes.size(); ++a) {
      if ((mask >> a & 1U) == 0) continue;
      factors.push_back({static_cast<int>(a), Rational(1, job_.placement.axes[a].degree)});
    }
    return factors;
  }

  void write_terms() {
    const Moment* peak = &instants_[0];
    for (const Moment& moment : instants_) {
      if (moment.total > peak->total) peak = &moment;
    }
    for (std::size_t i = 0; i < instants_.size(); ++i) {
      if (instants_[i].total == 0) continue;
      out_.instants.push_back(
          {.instant = static_cast<Instant>(i), .bytes = bytes(instants_[i].total)});
    }
    out_.peak_instant = peak->instant;
    out_.peak_unit = peak->unit;
    out_.terms.reserve(16);
    write_state(0, "parameters", rest_.device[0], rest_.device[0]);
    write_state(1, "optimizer state", rest_.device[1], rest_.device[1]);
    write_state(2, "gradients", peak->gradients, rest_.device[2]);
    write_activations(*peak);
    write_staging();
    write_transients(*peak);
    for (const EngineMemory& term : job_.profile.memory) {
      if ((term.instants & bit_of(peak->instant)) == 0 || !all_hold(term.when, layout_, stage_)) {
        continue;
      }
      add_term(term.category, term.what, {}, evaluate(term.bytes, layout_, stage_), term.source);
    }
    for (std::size_t s = 0; s < 4; ++s) {
      out_.at_rest[s] = bytes(rest_.device[s]);
      out_.on_host[s] = bytes(rest_.host[s] + staged_[s]);
      out_.on_nvme[s] = bytes(rest_.nvme[s]);
      out_.staged[s] = bytes(staged_[s]);
    }
    for (Bytes part : out_.at_peak) out_.peak += part;
    ensure(in_bytes(out_.peak) == peak->total, "the terms of a peak add up to it");
  }

  /// Of activations `rest` is what the micro-batches in flight keep at most, `alive` what of it is
  /// there at the peak.
  void add_kept(std::string_view what, std::string_view unit, std::int64_t alive,
                std::int64_t rest) {
    if (alive == 0 && rest == 0) return;
    const auto category = MemoryCategory::activations;
    out_.terms.push_back({.category = category,
                          .what = what,
                          .unit = unit,
                          .bytes = bytes(alive),
                          .rest = bytes(rest)});
    out_.at_peak[static_cast<std::size_t>(category)] += bytes(alive);
  }

  void write_activations(const Moment& peak) {
    const auto category = MemoryCategory::activations;
    const std::string_view unit = unit_name(peak);
    const bool holds_own = peak.unit >= 0 && held_[active_] > 0;
    const std::int64_t own = holds_own ? memory_of(peak.unit).kept : 0;
    add_kept("kept for backward by other units and micro-batches", {}, peak.activations,
             held_bytes_ - own);
    add_kept("kept for backward by the running unit", unit, peak.peak.kept, own);
    add_term(category, "recomputed for backward", unit, peak.peak.rebuilt);
    if (rest_.host[3] > 0) {
      out_.terms.push_back({.category = category,
                            .what = "kept for backward, in host memory",
                            .host = bytes(rest_.host[3])});
    }
    if (rest_.nvme[3] > 0) {
      out_.terms.push_back({.category = category,
                            .what = "kept for backward, on NVMe",
                            .nvme = bytes(rest_.nvme[3])});
    }
  }

  void write_staging() {
    for (std::size_t s = 0; s < 4; ++s) {
      if (staged_[s] == 0) continue;
      out_.terms.push_back({.category = static_cast<MemoryCategory>(s),
                            .what = "staging between NVMe and the device",
                            .host = bytes(staged_[s])});
    }
  }

  std::string_view unit_name(const Moment& peak) const {
    if (peak.unit < 0) return {};
    return job_.model.kinds[at(job_.model.units[at(peak.unit)].kind)].name;
  }

  void write_transients(const Moment& peak) {
    const auto category = MemoryCategory::transient;
    const std::string_view unit = unit_name(peak);
    const bool forward = peak.instant != Instant::backward;
    add_term(category, forward ? "values in flight" : "gradients of values", unit,
             peak.peak.working);
    add_term(category, "gathered inputs", unit, peak.peak.gathered);
    add_term(category, "weight gradients not yet added or reduced", unit,
             peak.peak.weight_gradient);
    add_term(category, "weight gradients held until the micro-batch ends", {}, peak.held_gradients);
    add_term(category, "workspace of the loss", unit, peak.peak.loss);
    add_term(category, "gathered parameters", {}, peak.gathered.whole);
    add_term(category, "parameters kept gathered in part", {}, peak.gathered.parts);
    for (const NamedBytes& part : named_parts(peak.peak.exchange)) {
      add_term(category, part.what, unit, part.bytes);
    }
    for (const NamedBytes& part : named_parts(peak.update)) {
      add_term(category, part.what, updated_unit_, part.bytes);
    }
  }

  const Layout& layout_;
  const Job& job_;
  const Stage& stage_;
  const std::vector<UnitStates>& states_;
  const std::vector<std::array<UnitMemory, 2>>& units_;
  StateBytes rest_;
  std::vector<StateBytes> per_local_;
  std::array<std::int64_t, 4> staged_{};  // in host memory, on the way to or from NVMe
  UpdateInputs update_;                   // of the unit whose update needs most, and its kind
  std::string_view updated_unit_;
  std::vector<bool> recomputed_;
  int first_unit_ = 0;
  std::vector<std::int64_t> held_;
  std::int64_t held_bytes_ = 0;
  std::size_t active_ = 0;
  GatheredChunk gathered_{0, false};
  GatheredBytes gathered_elsewhere_;        // by the chunks that do not run
  std::vector<std::int64_t> grown_before_;  // sums over the units before a position
  std::vector<std::int64_t> made_before_;
  std::array<std::optional<std::int64_t>, kInstantCount> engine_{};
  std::array<Moment, kInstantCount> instants_{};
  MemoryClass out_;
};

}  // namespace

bool has_master(const Job& job, const Parameter& parameter) {
  const bool low = bits_of(parameter_dtype(job, parameter)) < 32;
  return low && job.precision.master && job.optimizer.keeps_master;
}

StateBytes state_bytes(const Job& job, const Parameter& parameter, const LocalParameter& local) {
  StateBytes out;
  const Dtype dtype = parameter_dtype(job, parameter);
  const Bytes parameters =
      bytes_of(local.rest[0], dtype) + bytes_of(local.rest[0], parameter.constants);
  split_media(in_bytes(parameters), local, 0, out);
  if (!local.trainable) return out;
  std::int64_t per_element = 0;
  std::int64_t optimizer = 0;
  if (has_master(job, parameter)) {
    per_element += bits_of(*job.precision.master);
  }
  for (const OptimizerState& state : states_of(job.optimizer, parameter)) {
    switch (state.extent) {
      case OptimizerState::Extent::element:
        per_element += bits_of(state.dtype);
        break;
      case OptimizerState::Extent::row_and_column:
        optimizer += in_bytes(bytes_of(row_and_column(parameter, local.rest[1]), state.dtype));
        break;
      case OptimizerState::Extent::block:
        optimizer +=
            in_bytes(bytes_of(largest_share(local.rest[1], job.optimizer.block), state.dtype));
        break;
    }
  }
  optimizer += checked_multiply(local.rest[1], per_element, "optimizer state") / 8;
  split_media(optimizer, local, 1, out);
  split_media(in_bytes(bytes_of(local.rest[2], job.precision.gradients)), local, 2, out);
  return out;
}

namespace {

UnitStates states_at_rest(const Job& job, const LocalUnit& local) {
  const UnitKind& kind = job.model.kinds[at(local.kind)];
  UnitStates out;
  for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
    const StateBytes own = state_bytes(job, kind.parameters[p], local.parameters[p]);
    out.shares_tensors = out.shares_tensors || kind.parameters[p].tied.has_value();
    out.update += update_inputs(job, kind.parameters[p], local.parameters[p]);
    out.bytes += own;
  }
  return out;
}

/// A local unit not recomputed, where there are such, and recomputed.
std::array<UnitMemory, 2> walks_of(const Layout& layout, std::size_t unit) {
  const Job& job = *layout.job;
  const UnitRole role = job.model.kinds[at(layout.units[unit].kind)].role;
  const bool mixed = job.recompute.kind == Recompute::Kind::every ||
                     job.recompute.kind == Recompute::Kind::first || role == UnitRole::embedding ||
                     role == UnitRole::head;
  const int number = static_cast<int>(unit);
  return {mixed ? unit_memory(layout, number, false) : UnitMemory{},
          unit_memory(layout, number, true)};
}

}  // namespace

std::vector<MemoryClass> derive_memory(const Layout& layout, const std::vector<Stage>& stages) {
  std::vector<UnitStates> states;
  std::vector<std::array<UnitMemory, 2>> units;
  states.reserve(layout.units.size());
  units.reserve(layout.units.size());
  for (std::size_t k = 0; k < layout.units.size(); ++k) {
    states.push_back(states_at_rest(*layout.job, layout.units[k]));
    units.push_back(walks_of(layout, k));
  }
  std::vector<MemoryClass> classes;
  classes.reserve(stages.size());
  for (const Stage& stage : stages) {
    classes.push_back(StageMemory(layout, stage, states, units).build());
  }
  return classes;
}

}  // namespace placet
