#include "derive/stage_content.h"

#include <algorithm>
#include <utility>

#include "derive/flat_buffers.h"
#include "derive/memory.h"
#include "derive/shared_tensors.h"
#include "units/at.h"
#include "units/checked.h"

namespace placet {
namespace {

Division division_of(const LocalParameter& parameter) {
  Division out{.replica_axes = parameter.replica_axes, .replicas = parameter.replicas};
  for (std::size_t s = 0; s < out.by.size(); ++s) {
    out.by[s] = parameter.cut | parameter.divided[s];
  }
  return out;
}

/// The states of a division in the list, made if there are none yet.
StateBytes& states_divided(std::vector<DividedStates>& parts, const Division& division) {
  const auto found = std::ranges::find(parts, division, &DividedStates::division);
  if (found != parts.end()) return found->bytes;
  constexpr std::size_t kUsual = 4;
  if (parts.empty()) parts.reserve(kUsual);
  parts.push_back({.division = division, .bytes = {}});
  return parts.back().bytes;
}

UnitStates states_at_rest(const Layout& layout, const LocalUnit& local) {
  const UnitKind& kind = layout.job->model.kinds[at(local.kind)];
  UnitStates out;
  for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
    const StateBytes own = state_bytes(*layout.job, kind.parameters[p], local.parameters[p]);
    out.bytes += own;
    states_divided(out.parts, division_of(local.parameters[p])) += own;
    out.shares_tensors = out.shares_tensors || kind.parameters[p].tied.has_value();
    if (layout.job->profile.parts_stand_apart) {
      out.times += update_times(layout, kind.parameters[p], local.parameters[p]);
    } else {
      out.update += update_inputs(layout, kind.parameters[p], local.parameters[p]);
    }
  }
  return out;
}

/// What forward leaves of a unit, taken away.
UnitMemory without_kept(UnitMemory walk) {
  walk.kept = walk.kept_whole = walk.kept_on_host = 0;
  return walk;
}

/// A local unit not recomputed, where there are such, recomputed, and inside of such that are made
/// again together.
std::array<UnitMemory, 3> walks_of(const Layout& layout, std::size_t unit) {
  const Job& job = *layout.job;
  const UnitRole role = job.model.kinds[at(layout.units[unit].kind)].role;
  const bool block = role == UnitRole::block || role == UnitRole::mtp;
  const bool together = job.recompute.kind == Recompute::Kind::uniform;
  const bool mixed = together || job.recompute.kind == Recompute::Kind::every ||
                     job.recompute.kind == Recompute::Kind::first;
  const int number = static_cast<int>(unit);
  std::array<UnitMemory, 3> out;
  if (mixed || !block) out[0] = unit_memory(layout, number, false);
  if (block) out[1] = unit_memory(layout, number, true);
  if (together && role == UnitRole::block) out[2] = without_kept(out[1]);
  return out;
}

/// Takes out of a unit's states those of tensors that the device holds as another unit's.
void without_second_uses(const Layout& layout, const Stage& stage, const LocalUnit& local,
                         UnitStates& own) {
  const Model& model = layout.job->model;
  const UnitKind& kind = model.kinds[at(local.kind)];
  for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
    if (!is_second_use(model, stage, kind.parameters[p])) continue;
    const StateBytes second = state_bytes(*layout.job, kind.parameters[p], local.parameters[p]);
    own.bytes -= second;
    states_divided(own.parts, division_of(local.parameters[p])) -= second;
    if (layout.job->profile.parts_stand_apart) {
      own.times -= update_times(layout, kind.parameters[p], local.parameters[p]);
    } else {
      own.update -= update_inputs(layout, kind.parameters[p], local.parameters[p]);
    }
  }
}

/// What the updates of a run of equal units need.
struct RunUpdates {
  UpdateInputs each;
  UpdateTimes times;
  std::int64_t count = 0;
  std::string_view unit;
};

UpdateInputs times(const UpdateInputs& inputs, std::int64_t count) {
  UpdateInputs out;
  for (const auto part : kUpdateParts) {
    out.*part = checked_multiply(inputs.*part, count, "inputs of updates");
  }
  return out;
}

void keep_larger(UpdateInputs& most, const UpdateInputs& now) {
  if (now.total() > most.total()) most = now;
}

/// The fullest moments of reductions and updates. Within a run of equal units what is there grows,
/// or shrinks, evenly, so that its first and last unit are looked at.
class UpdateMoments {
 public:
  /// `between_stages`: bytes in which a gradient is summed over the stages that hold its tensor,
  /// one after the other, when all units are reduced.
  UpdateMoments(const std::vector<RunUpdates>& runs, std::int64_t between_stages, StageContent& out)
      : runs_(runs), between_stages_(between_stages), out_(out) {}

  void find(bool limits_norm) {
    for (const RunUpdates& run : runs_) {
      add(run.times.reduced, run.count - 1);
      there_ += run.times.reduced;
      keep_larger(out_.reduction, with(run.times.reducing));
    }
    keep_larger(out_.reduction, with({.sums = between_stages_}));
    // A limit of the norm sees all gradients as the update takes them.
    if (limits_norm) gather_all();
    for (const RunUpdates& run : runs_) update(run, limits_norm);
  }

 private:
  UpdateInputs with(const UpdateInputs& more) const {
    UpdateInputs now = there_;
    now += more;
    return now;
  }

  void add(const UpdateInputs& each, std::int64_t count) { there_ += times(each, count); }

  void raise(const RunUpdates& run, const UpdateInputs& now) {
    if (now.total() > out_.update.total()) out_.updated_unit = run.unit;
    keep_larger(out_.update, now);
  }

  void gather_all() {
    for (const RunUpdates& run : runs_) {
      UpdateInputs change = run.times.taken;
      change -= run.times.reduced;
      raise(run, with(run.times.gathered));
      add(change, run.count - 1);
      raise(run, with(run.times.gathered));
      there_ += change;
    }
  }

  void update(const RunUpdates& run, bool gathered) {
    const UpdateInputs& before = gathered ? run.times.taken : run.times.reduced;
    raise(run, gathered ? there_ : with(run.times.gathered));
    there_ -= before;
    UpdateInputs own = run.times.left;
    own += run.times.updating;
    raise(run, with(run.times.taken));
    raise(run, with(own));
    there_ -= times(before, run.count - 1);
  }

  const std::vector<RunUpdates>& runs_;
  std::int64_t between_stages_ = 0;
  StageContent& out_;
  UpdateInputs there_;
};

/// The unit whose update needs most, by itself.
void find_largest_update(const std::vector<RunUpdates>& runs, StageContent& out) {
  for (const RunUpdates& run : runs) {
    if (run.each.total() > out.update.total()) out.updated_unit = run.unit;
    keep_larger(out.update, run.each);
  }
}

void add_waiting(const Layout& layout, const Stage& stage, const UnitRun& run, StageContent& out) {
  const LocalUnit& local = layout.units[at(run.local)];
  const Model& model = layout.job->model;
  const UnitKind& kind = model.kinds[at(local.kind)];
  const Precision& formats = layout.job->precision;
  // Automatic differentiation hands a tensor's gradient on when those of all its uses are there.
  const bool grows = layout.job->profile.gradient_life == GradientLife::growing;
  for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
    const LocalParameter& parameter = local.parameters[p];
    const bool scatters =
        (parameter.partial & parameter.scattered_each) != 0 || parameter.on_host[2] != Rational(0);
    const bool waits = parameter.trainable && (scatters || grows);
    if (!waits || !is_second_use(model, stage, kind.parameters[p])) continue;
    out.waiting.push_back(
        {.unit = run.first,
         .owner = kind.parameters[p].tied->kind,
         .bytes = in_bytes(
             bytes_of(parameter.elements, scatters ? formats.compute : formats.gradients))});
  }
}

/// Adds the states of a run's units; gives what their update works on.
RunUpdates add_states(const Layout& layout, const Stage& stage, const UnitRun& run, UnitStates own,
                      StageContent& out) {
  const LocalUnit& local = layout.units[at(run.local)];
  if (own.shares_tensors) {
    without_second_uses(layout, stage, local, own);
    if (layout.stages == 1) add_waiting(layout, stage, run, out);
  }
  const StateBytes sum = own.bytes * run.count;
  out.rest += sum;
  for (const DividedStates& part : own.parts) {
    states_divided(out.per_local[at(run.local)], part.division) += part.bytes * run.count;
  }
  for (std::size_t s = 0; s < 4; ++s) out.staged[s] = std::max(out.staged[s], own.bytes.nvme[s]);
  return {.each = own.update,
          .times = own.times,
          .count = run.count,
          .unit = layout.job->model.kinds[at(local.kind)].name};
}

/// Of the gradients that are summed over stages, the largest copy in the format of sums.
std::int64_t summed_between_stages(const Layout& layout, const Stage& stage,
                                   const std::vector<UnitRun>& runs) {
  if (layout.stages == 1) return 0;
  const SharedTensors shared(*layout.job, stage);
  std::int64_t most = 0;
  for (const UnitRun& run : runs) {
    const LocalUnit& local = layout.units[at(run.local)];
    if (!shared.may_share(local.kind)) continue;
    for (std::size_t p = 0; p < local.parameters.size(); ++p) {
      if (!local.parameters[p].trainable || !shared.is_elsewhere(run.first, p)) continue;
      most = std::max(most, summed_copy(layout, local.parameters[p]));
    }
  }
  return most;
}

/// What of the parameters passes through host memory between NVMe and the device: one unit, and
/// those read ahead.
std::int64_t staged_parameters(const Layout& layout, const UnitFigures& figures,
                               const Stage& stage) {
  const auto window = static_cast<std::size_t>(units_ahead(layout)) + 1;
  const auto bytes_of_unit = [&](int u) {
    return figures.states[at(layout.unit_of[at(u)])].bytes.nvme[0];
  };
  std::int64_t most = 0;
  for (const std::vector<int>& chunk : stage.chunks) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      sum += bytes_of_unit(chunk[i]);
      if (i >= window) sum -= bytes_of_unit(chunk[i - window]);
      most = std::max(most, sum);
    }
  }
  return most;
}

void add_engine_terms(const Layout& layout, const Stage& stage, StageContent& out) {
  for (const EngineMemory& term : layout.job->profile.memory) {
    if (!all_hold(term.when, layout, stage)) continue;
    const std::int64_t bytes = evaluate(term.bytes, layout, stage);
    for (std::size_t i = 0; i < out.engine.size(); ++i) {
      if ((term.instants & bit_of(static_cast<Instant>(i))) != 0) out.engine[i] += bytes;
    }
  }
}

}  // namespace

std::int64_t units_ahead(const Layout& layout) { return layout.plan.gathers.ahead.value_or(0); }

UnitFigures figures_of(const Layout& layout) {
  UnitFigures out;
  out.states.reserve(layout.units.size());
  out.walks.reserve(layout.units.size());
  for (std::size_t k = 0; k < layout.units.size(); ++k) {
    out.states.push_back(states_at_rest(layout, layout.units[k]));
    out.walks.push_back(walks_of(layout, k));
  }
  return out;
}

StageContent content_of(const Layout& layout, const UnitFigures& figures, const Stage& stage,
                        StageUnits units) {
  StageContent out{.units = std::move(units)};
  out.per_local.resize(layout.units.size());
  std::vector<RunUpdates> updates;
  updates.reserve(out.units.runs.size());
  for (const UnitRun& run : out.units.runs) {
    updates.push_back(add_states(layout, stage, run, figures.states_of(run), out));
  }
  out.beyond_tensors = beyond_tensors(layout, stage, out.units);
  out.beside_wholes = beside_wholes(layout, stage, out.units);
  out.rest += out.beyond_tensors;
  out.rest += out.beside_wholes;
  if (layout.job->profile.parts_stand_apart) {
    const std::int64_t between = summed_between_stages(layout, stage, out.units.runs);
    UpdateMoments(updates, between, out).find(needs_all_gradients(*layout.job));
  } else {
    find_largest_update(updates, out);
  }
  if (out.rest.nvme[0] != 0) {
    out.staged[0] = std::max(out.staged[0], staged_parameters(layout, figures, stage));
  }
  add_engine_terms(layout, stage, out);
  return out;
}

}  // namespace placet
