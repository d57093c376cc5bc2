// Rule 4 of docs/theory.md §4 for operators with movements of their own: statistics of cut norms
// and of the loss, activations kept elsewhere; attention and routed tokens have their own files.
#include <algorithm>

#include "derive/partial_sums.h"
#include "derive/unit_memory.h"
#include "derive/unit_traffic.h"
#include "model/gradients.h"
#include "units/at.h"
#include "units/checked.h"

namespace placet {
namespace {

IndexSet dims_of(const UnitTraffic& unit, int v) {
  return indices_in(unit.kind.values[at(v)].dims);
}

/// Softmax statistics of a loss whose vocabulary is cut: largest logit, sum of exponentials, logit
/// of the target, one fp32 number per token each.
void write_loss(UnitTraffic& unit, std::size_t o) {
  const Operator& op = unit.kind.operators[o];
  const AxisMask axes =
      unit.axes_that_cut(o, dims_of(unit, op.inputs.front()), dims_of(unit, op.outputs.front()));
  const std::int64_t tokens = unit.local.values[at(op.outputs.front())];
  auto send = [&](std::string_view what, std::int64_t elements, ReduceOp reduce) {
    unit.add(
        {.what = what, .axes = axes, .elements = elements, .dtype = Dtype::fp32, .op = reduce});
  };
  send("loss.max", tokens, ReduceOp::max);
  if (unit.job.profile.fuses_loss_sums) {
    send("loss.sums", checked_multiply(tokens, 2, "loss sums"), ReduceOp::sum);
    return;
  }
  send("loss.target", tokens, ReduceOp::sum);
  send("loss.sum", tokens, ReduceOp::sum);
}

/// How many numbers a norm sums of its entries: two of a layer norm.
std::int64_t numbers_of(const Value& statistics) {
  std::int64_t numbers = 1;
  for (const Dim& dim : statistics.dims) numbers *= dim.index == Index::other ? dim.size : 1;
  return numbers;
}

/// A norm over an index that is cut needs its statistics summed, both ways, each by itself.
void write_norm(UnitTraffic& unit, std::size_t o) {
  const Operator& op = unit.kind.operators[o];
  if (op.internals.empty()) return;
  const int statistics = op.internals[internal::kNormStatistics];
  const AxisMask axes =
      unit.axes_that_cut(o, dims_of(unit, op.inputs.front()), dims_of(unit, statistics));
  const std::int64_t numbers = numbers_of(unit.kind.values[at(statistics)]);
  auto send = [&](std::string_view what, Phase phase) {
    unit.add({.what = what,
              .phase = phase,
              .axes = axes,
              .elements = unit.local.values[at(statistics)] / numbers,
              .dtype = Dtype::fp32,
              .count = numbers});
  };
  send("norm.statistics", Phase::forward);
  if (unit.starts_again(o)) send("norm.statistics", Phase::backward);
  const bool goes_back = unit.prepared.gradients.values[at(op.inputs.front())];
  if (unit.prepared.operators[o].backward && goes_back) send("norm.gradient", Phase::backward);
}

/// Tensor axes that divide the checkpoints of recomputed units although the stream is whole.
AxisMask axes_of_divided_checkpoints(const UnitTraffic& unit) {
  AxisMask axes = 0;
  for (std::size_t a = 0; a < unit.axis_count(); ++a) {
    const AxisPlacement& axis = unit.axis(a);
    if (axis.how.cut != Cut::tensor || axis.how.modes.activations == Mode::sharded_gather) continue;
    bool divided = false;
    for (const Override& o : axis.overrides) {
      if (!std::holds_alternative<Checkpoints>(o.selector)) continue;
      divided = o.how.modes.activations == Mode::sharded_gather;
    }
    if (divided) axes |= axis_bit(static_cast<int>(a));
  }
  return axes;
}

/// Whether some activations, or checkpoints, live in host memory.
bool keeps_on_host(const Placement& placement) {
  const auto on_host = [](const How& how) {
    return how.modes.activations == Mode::offloaded ||
           how.offload[static_cast<std::size_t>(State::activations)].has_value();
  };
  return std::ranges::any_of(placement.axes, [&](const AxisPlacement& axis) {
    return on_host(axis.how) || std::ranges::any_of(axis.overrides, [&](const Override& o) {
             return std::holds_alternative<Checkpoints>(o.selector) && on_host(o.how);
           });
  });
}

/// What was kept in parts comes together before the unit is recomputed; what was kept in host
/// memory went there in forward and comes back for backward.
void write_kept(UnitTraffic& unit, int number, bool recomputed) {
  if (unit.kind.values.empty()) return;
  if (unit.plan.whole_unit) {
    unit.add({.what = "kept input",
              .collective = Collective::all_gather,
              .phase = Phase::backward,
              .axes = axes_of_divided_checkpoints(unit),
              .elements = unit.local.values[0],
              .dtype = unit.dtype_of(unit.kind.values[0])});
  }
  if (!keeps_on_host(unit.job.placement)) return;
  const UnitMemory memory = unit_memory(unit.layout, number, recomputed);
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    unit.add({.what = phase == Phase::forward ? "kept for backward to host"
                                              : "kept for backward from host",
              .collective = Collective::host_copy,
              .phase = phase,
              .elements = memory.kept_on_host,
              .dtype = Dtype::uint8,
              .nvme = memory.kept_on_nvme});
  }
}

}  // namespace

IndexSet indices_in(const std::vector<Dim>& dims) {
  IndexSet set = 0;
  for (const Dim& dim : dims) set |= bit_of(dim.index);
  return set;
}

UnitTraffic::UnitTraffic(const Layout& of, int unit, bool recomputed)
    : UnitView(of, unit, recomputed), number_(unit), recomputed_(recomputed) {
  last_needed_ = kind.operators.size();
  if (!job.profile.recompute_stops_early || !plan.whole_unit) return;
  while (last_needed_ > 0 && !keeps_something(kind.operators[last_needed_ - 1])) --last_needed_;
}

bool UnitTraffic::keeps_something(const Operator& op) const {
  const SavedSlots& slots = job.profile.saved[static_cast<std::size_t>(op.kind)];
  const bool frozen = is_contraction(op.kind) && is_frozen(kind, op);
  auto any = [](const std::vector<int>& values, std::uint16_t mask) {
    for (std::size_t i = 0; i < values.size() && i < 16; ++i) {
      if ((unsigned{mask} >> i & 1U) != 0) return true;
    }
    return false;
  };
  return (!frozen && any(op.inputs, slots.inputs)) || any(op.outputs, slots.outputs) ||
         any(op.internals, slots.internals);
}

bool UnitTraffic::starts_again(std::size_t op) const {
  return op < last_needed_ && runs_again(kind, plan, op);
}

bool UnitTraffic::ends_again(std::size_t op) const {
  const bool stops = job.profile.recompute_stops_early && plan.whole_unit;
  return starts_again(op) && (!stops || op + 1 < last_needed_);
}

const How& UnitTraffic::how_for(std::size_t a, std::size_t op) const {
  return how_of(axis(a), prepared.operators[op].classes, std::nullopt);
}

AxisMask UnitTraffic::axes_that_cut(std::size_t op, IndexSet from, IndexSet without) const {
  AxisMask axes = 0;
  for (std::size_t a = 0; a < axis_count(); ++a) {
    const How& how = how_for(a, op);
    if (how.cut == Cut::tensor && (from & ~without & how.tensor_indices) != 0) {
      axes |= axis_bit(static_cast<int>(a));
    }
  }
  return axes;
}

bool UnitTraffic::is_routed(const Operator& op) const {
  return op.kind == OpKind::dispatch || op.kind == OpKind::combine ||
         std::ranges::any_of(op.inputs, [&](int v) { return prepared.values[at(v)].routed; });
}

Dtype UnitTraffic::dtype_of(const Value& value) const {
  return value.type == ValueType::fp32 ? Dtype::fp32 : job.precision.compute;
}

void UnitTraffic::add(const Message& message) {
  const bool host = message.collective == Collective::host_copy;
  if ((message.axes == 0 && !host) || message.elements == 0) return;
  const std::int64_t group = degree_of(job.placement, message.axes);
  if (group <= 1 && !host) return;
  Bytes payload = bytes_of(message.elements, message.dtype);
  if (message.constants != nullptr) payload += bytes_of(message.elements, *message.constants);
  const bool reduces = message.collective == Collective::all_reduce ||
                       message.collective == Collective::reduce_scatter;
  terms_.push_back({.term = {.axes = message.axes,
                             .collective = message.collective,
                             .op = reduces ? message.op : ReduceOp::none,
                             .state = State::activations,
                             .what = message.what,
                             .unit = kind.name,
                             .dtype = message.dtype,
                             .phase = message.phase,
                             .payload = payload,
                             .count = message.count,
                             .group = group,
                             .nvme = message.nvme},
                    .per_micro_batch = true});
}

void write_operators(UnitTraffic& unit) {
  for (std::size_t o = 0; o < unit.kind.operators.size(); ++o) {
    const OpKind kind = unit.kind.operators[o].kind;
    if (kind == OpKind::attention) write_attention(unit, o);
    if (kind == OpKind::dispatch) write_sent_tokens(unit, o);
    if (kind == OpKind::combine) write_returned_tokens(unit, o);
    if (kind == OpKind::loss) write_loss(unit, o);
    if (kind == OpKind::norm) write_norm(unit, o);
  }
  write_kept(unit, unit.number(), unit.recomputed());
}

}  // namespace placet
