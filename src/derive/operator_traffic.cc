// Rule 4 of docs/theory.md §4 for operators with movements of their own: attention over a cut
// sequence, routed tokens, statistics of cut norms and of the loss, activations kept elsewhere.
#include <algorithm>

#include "derive/exchange_memory.h"
#include "derive/unit_memory.h"
#include "derive/unit_traffic.h"
#include "units/checked.h"
#include "units/shares.h"

namespace placet {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

bool is_contraction(OpKind kind) {
  return kind == OpKind::linear || kind == OpKind::grouped_linear || kind == OpKind::embedding;
}

/// Tensor axes that cut an index which `from` has and `without` has not.
AxisMask axes_that_cut(const UnitTraffic& unit, std::size_t o, IndexSet from, IndexSet without) {
  AxisMask axes = 0;
  for (std::size_t a = 0; a < unit.axis_count(); ++a) {
    const How& how = unit.how_for(a, o);
    if (how.cut == Cut::tensor && (from & ~without & how.tensor_indices) != 0) {
      axes |= axis_bit(static_cast<int>(a));
    }
  }
  return axes;
}

/// Attention over a sequence that axes divide: what their exchanges move.
class AttentionTraffic {
 public:
  AttentionTraffic(UnitTraffic& unit, std::size_t op)
      : unit_(unit), number_(op), op_(unit.kind.operators[op]), again_(unit.starts_again(op)) {}

  /// Axes with the same exchange are one group.
  void write() {
    if (op_.inputs.size() < 3 || op_.outputs.empty()) return;
    AxisMask seen = 0;
    for (std::size_t a = 0; a < unit_.axis_count() && a < unit_.job.attention.size(); ++a) {
      if (!exchanges(a) || (seen >> a & 1U) != 0) continue;
      mask_ = axes_like(a);
      seen |= mask_;
      degree_ = degree_of(unit_.job.placement, mask_);
      write_steps(unit_.job.attention[a].steps);
    }
  }

 private:
  bool exchanges(std::size_t a) const {
    return unit_.axis(a).how.cut == Cut::sequence && unit_.axis(a).degree > 1;
  }

  /// Axes from `a` on with the same exchange.
  AxisMask axes_like(std::size_t a) const {
    AxisMask mask = 0;
    for (std::size_t b = a; b < unit_.job.attention.size(); ++b) {
      const bool alike = exchanges(b) && unit_.job.attention[b] == unit_.job.attention[a];
      if (alike) mask |= axis_bit(static_cast<int>(b));
    }
    return mask;
  }

  void write_steps(const std::vector<ExchangeStep>& steps) {
    for (const ExchangeStep& step : steps) {
      if (step.in_backward) continue;
      write_step(step, Phase::forward);
      if (again_) write_step(step, Phase::backward);
    }
    std::vector<ExchangeStep> backward;
    std::ranges::copy_if(steps, std::back_inserter(backward),
                         [](const ExchangeStep& step) { return step.in_backward; });
    if (unit_.job.profile.ring_carries_gradients && goes_round(backward)) {
      write_carried(backward[0], backward[1]);
      return;
    }
    for (const ExchangeStep& step : backward) write_step(step, Phase::backward);
  }

  static bool goes_round(const std::vector<ExchangeStep>& steps) {
    using Movement = ExchangeStep::Movement;
    return steps.size() == 2 && steps[0].movement == Movement::pieces && steps[0].together &&
           steps[1].movement == Movement::pieces_sum && steps[1].together;
  }

  /// Pieces and the gradients that belong to them travel in one message, the gradients one round
  /// later: n messages in place of 2 (n - 1), of the same bytes.
  void write_carried(const ExchangeStep& pieces, const ExchangeStep& gradients) {
    const std::int64_t first = part_of(pieces);
    const std::int64_t last = part_of(gradients);
    send("attention.pieces", Collective::send_recv, Phase::backward, first, 1);
    send("attention.pieces_and_gradients", Collective::send_recv, Phase::backward,
         checked_add(first, last, "attention exchange"), degree_ - 2);
    send("attention.gradients", Collective::send_recv, Phase::backward, last, 1);
  }

  int value_of(AttentionTensor tensor) const {
    return exchanged_value(op_, tensor, unit_.job.profile);
  }

  std::int64_t part_of(const ExchangeStep& step) const {
    std::int64_t sum = 0;
    for (AttentionTensor tensor : step.tensors) {
      sum = checked_add(sum, moved_of(step, value_of(tensor)), "attention exchange");
    }
    return sum;
  }

  /// Elements of a value that a step moves. Where heads go to more devices than there are key and
  /// value heads, r of them share a head: each gets it (and gives back its part of its gradient, to
  /// be added where the tokens are), so that r times the value moves. Case: 8 heads over 16
  /// devices: 2.
  std::int64_t moved_of(const ExchangeStep& step, int v) const {
    using Movement = ExchangeStep::Movement;
    const std::int64_t own = unit_.local.values[at(v)];
    if (step.movement != Movement::heads && step.movement != Movement::tokens) return own;
    return checked_multiply(own, sharers_of(v), "attention exchange");
  }

  std::int64_t sharers_of(int v) const {
    const std::vector<Dim>& dims = unit_.kind.values[at(v)].dims;
    const auto heads = std::ranges::find(dims, Index::kv_head, &Dim::index);
    if (heads == dims.end()) return 1;
    const IndexSet kv = bit_of(Index::kv_head);
    return copies_of_heads(unit_.job.placement, *heads, axes_that_cut(unit_, number_, kv, 0),
                           degree_);
  }

  void write_step(const ExchangeStep& step, Phase phase) {
    if (step.together) {
      move(step, "attention.exchange", phase, part_of(step));
      return;
    }
    for (AttentionTensor tensor : step.tensors) {
      const int v = value_of(tensor);
      move(step, unit_.kind.values[at(v)].name, phase, moved_of(step, v));
    }
  }

  /// Elements of a value along whole sequences, from this device's part.
  std::int64_t whole_of(std::int64_t part) const {
    return along_whole_sequence(unit_.layout, mask_, part);
  }

  void move(const ExchangeStep& step, std::string_view what, Phase phase, std::int64_t part) {
    using Movement = ExchangeStep::Movement;
    switch (step.movement) {
      case Movement::gather:
        send(what, Collective::all_gather, phase, whole_of(part), 1);
        return;
      case Movement::scatter_sum:
        send(what, Collective::reduce_scatter, phase, whole_of(part), 1);
        return;
      case Movement::pieces:
      case Movement::pieces_sum:
        send(what, Collective::send_recv, phase, part, degree_ - 1);
        return;
      case Movement::heads:
      case Movement::tokens:
        send(what, Collective::all_to_all, phase, part, 1);
        return;
    }
  }

  void send(std::string_view what, Collective collective, Phase phase, std::int64_t elements,
            std::int64_t count) {
    if (count <= 0) return;
    unit_.add({.what = what,
               .collective = collective,
               .phase = phase,
               .axes = mask_,
               .elements = elements,
               .dtype = unit_.job.precision.compute,
               .count = count});
  }

  UnitTraffic& unit_;
  std::size_t number_ = 0;
  const Operator& op_;
  bool again_ = false;
  AxisMask mask_ = 0;
  std::int64_t degree_ = 1;
};

/// Tokens on their way to their experts, or back.
class RoutingTraffic {
 public:
  explicit RoutingTraffic(UnitTraffic& unit) : unit_(unit), axes_(unit.routed_axes()) {}

  /// `outward`: the operator sends; otherwise it receives. Backward goes the other way.
  void write(std::size_t o, bool outward) {
    const Operator& op = unit_.kind.operators[o];
    routed_ = at(outward ? op.outputs.front() : op.inputs.front());
    stream_ = at(outward ? op.inputs.front() : op.outputs.front());
    auto go = [&](Phase phase, bool out) {
      switch (unit_.job.profile.token_dispatch) {
        case TokenDispatch::exchange:
        case TokenDispatch::exchange_once:
          exchange(phase, out);
          return;
        case TokenDispatch::gather:
          gather(phase, axes_.exchanged | axes_.gathered, out);
          return;
        case TokenDispatch::whole_then_exchange:
          exchange_whole(phase, out);
          return;
      }
    };
    go(Phase::forward, outward);
    go(Phase::backward, !outward);
    if (unit_.starts_again(o)) go(Phase::backward, outward);
  }

 private:
  /// Tokens that a device sends: its own, once per choice; of those whose experts stand in its part
  /// of the axes that share its tokens.
  std::int64_t sent() const {
    std::int64_t elements =
        checked_multiply(unit_.layout.residual_tokens, unit_.layout.micro_batch, "routed tokens");
    for (const Dim& dim : unit_.kind.values[routed_].dims) {
      if (dim.index == Index::sample || dim.index == Index::token) continue;
      elements = checked_multiply(elements, dim.size, "routed tokens");
    }
    return largest_share(elements, degree_of(unit_.job.placement, axes_.parted));
  }

  /// Tokens that a device gets from its experts: what they have received, which need not be what it
  /// sent.
  std::int64_t returned() const { return unit_.local.values[routed_]; }

  /// Experts with so many slots each are sent all of them, full or not.
  bool sends_slots() const { return unit_.job.routing.kind == Routing::Kind::capacity; }

  void exchange(Phase phase, bool outward) {
    const std::int64_t spread = degree_of(unit_.job.placement, axes_.gathered);
    const std::int64_t own =
        outward && !sends_slots() ? sent() : returned() / std::max<std::int64_t>(1, spread);
    send(Collective::all_to_all, phase, axes_.exchanged, once_per_device(own));
    send(outward ? Collective::all_gather : Collective::reduce_scatter, phase, axes_.gathered,
         checked_multiply(own, spread, "routed tokens"));
  }

  /// Of k choices on g devices min(k, g) are sent, where a token goes once to each device. Case: 8
  /// choices over 4 devices: half.
  std::int64_t once_per_device(std::int64_t elements) const {
    if (unit_.job.profile.token_dispatch != TokenDispatch::exchange_once) return elements;
    const std::int64_t choices =
        std::max<std::int64_t>(1, unit_.job.model.figures.experts_per_token);
    const std::int64_t devices = degree_of(unit_.job.placement, axes_.exchanged);
    return elements / choices * std::min(choices, devices);
  }

  /// Every device gets the tokens of all and gives back its part of the results.
  void gather(Phase phase, AxisMask axes, bool outward) {
    const std::int64_t whole = checked_multiply(
        unit_.local.values[stream_], degree_of(unit_.job.placement, axes), "gathered tokens");
    send(outward ? Collective::all_gather : Collective::reduce_scatter, phase, axes, whole);
  }

  /// Tokens are whole along the tensor axes before they are sent, once per choice: by all devices
  /// of an axis that cuts the experts, in turn by those of an axis that does not.
  void exchange_whole(Phase phase, bool outward) {
    gather(phase, unit_.layout.split_residual_axes, outward);
    const std::int64_t spread = degree_of(unit_.job.placement, axes_.gathered);
    send(
        Collective::all_to_all, phase, axes_.exchanged,
        outward && !sends_slots() ? checked_multiply(sent(), spread, "routed tokens") : returned());
  }

  void send(Collective collective, Phase phase, AxisMask axes, std::int64_t elements) {
    unit_.add({.what = unit_.kind.values[routed_].name,
               .collective = collective,
               .phase = phase,
               .axes = axes,
               .elements = elements,
               .dtype = unit_.job.precision.compute});
  }

  UnitTraffic& unit_;
  RoutedAxes axes_;
  std::size_t routed_ = 0;
  std::size_t stream_ = 0;
};

IndexSet dims_of(const UnitTraffic& unit, int v) {
  return indices_in(unit.kind.values[at(v)].dims);
}

/// Softmax statistics of a loss whose vocabulary is cut: largest logit, sum of exponentials, logit
/// of the target, one fp32 number per token each.
void write_loss(UnitTraffic& unit, std::size_t o) {
  const Operator& op = unit.kind.operators[o];
  const AxisMask axes =
      axes_that_cut(unit, o, dims_of(unit, op.inputs.front()), dims_of(unit, op.outputs.front()));
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

/// A norm over an index that is cut needs its statistics summed, both ways.
void write_norm(UnitTraffic& unit, std::size_t o) {
  const Operator& op = unit.kind.operators[o];
  if (op.internals.empty()) return;
  const int statistics = op.internals[internal::kNormStatistics];
  const AxisMask axes =
      axes_that_cut(unit, o, dims_of(unit, op.inputs.front()), dims_of(unit, statistics));
  auto send = [&](std::string_view what, Phase phase) {
    unit.add({.what = what,
              .phase = phase,
              .axes = axes,
              .elements = unit.local.values[at(statistics)],
              .dtype = Dtype::fp32});
  };
  send("norm.statistics", Phase::forward);
  if (unit.starts_again(o)) send("norm.statistics", Phase::backward);
  send("norm.gradient", Phase::backward);
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
  const std::int64_t host = unit_memory(unit.layout, number, recomputed).kept_on_host;
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    unit.add({.what = phase == Phase::forward ? "kept for backward to host"
                                              : "kept for backward from host",
              .collective = Collective::host_copy,
              .phase = phase,
              .elements = host,
              .dtype = Dtype::uint8});
  }
}

}  // namespace

IndexSet indices_in(const std::vector<Dim>& dims) {
  IndexSet set = 0;
  for (const Dim& dim : dims) set |= bit_of(dim.index);
  return set;
}

UnitTraffic::UnitTraffic(const Layout& of, int unit, bool recomputed)
    : layout(of),
      job(*of.job),
      local(of.units[at(unit)]),
      kind(job.model.kinds[at(local.kind)]),
      prepared(of.prepared->kinds[at(local.kind)]),
      plan(recomputed ? prepared.recomputed : prepared.plain),
      number_(unit),
      recomputed_(recomputed) {
  last_needed_ = kind.operators.size();
  if (!job.profile.recompute_stops_early || !plan.whole_unit) return;
  while (last_needed_ > 0 && !keeps_something(kind.operators[last_needed_ - 1])) --last_needed_;
}

bool UnitTraffic::keeps_something(const Operator& op) const {
  const SavedSlots& slots = job.profile.saved[static_cast<std::size_t>(op.kind)];
  const bool frozen =
      is_contraction(op.kind) && !op.parameters.empty() &&
      std::ranges::none_of(op.parameters, [&](int p) { return kind.parameters[at(p)].trainable; });
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
  const auto& modules = plan.modules;
  return op < last_needed_ &&
         std::ranges::find(modules, kind.operators[op].module) != modules.end();
}

bool UnitTraffic::ends_again(std::size_t op) const {
  const bool stops = job.profile.recompute_stops_early && plan.whole_unit;
  return starts_again(op) && (!stops || op + 1 < last_needed_);
}

const How& UnitTraffic::how_for(std::size_t a, std::size_t op) const {
  return how_of(axis(a), prepared.operators[op].classes, std::nullopt);
}

bool UnitTraffic::is_routed(const Operator& op) const {
  return op.kind == OpKind::dispatch || op.kind == OpKind::combine ||
         std::ranges::any_of(op.inputs, [&](int v) { return prepared.values[at(v)].routed; });
}

RoutedAxes UnitTraffic::routed_axes() const {
  RoutedAxes out;
  const auto experts = std::ranges::find_if(
      kind.operators, [](const Operator& op) { return op.kind == OpKind::grouped_linear; });
  if (experts == kind.operators.end()) return out;
  const auto o = static_cast<std::size_t>(experts - kind.operators.begin());
  for (std::size_t a = 0; a < axis_count(); ++a) {
    const How& stream = axis(a).how;
    if (stream.cut == Cut::layer || axis(a).degree == 1) continue;
    const Cut cut = how_for(a, o).cut;
    const bool whole =
        stream.cut == Cut::tensor && stream.modes.activations != Mode::sharded_gather;
    const AxisMask bit = axis_bit(static_cast<int>(a));
    if (whole) {
      out.summed |= bit;
      if (cut != Cut::tensor) out.parted |= bit;
    } else if (cut == Cut::expert) {
      out.exchanged |= bit;
    } else if (cut == Cut::tensor) {
      out.gathered |= bit;
    }
  }
  return out;
}

Dtype UnitTraffic::dtype_of(const Value& value) const {
  return value.type == ValueType::fp32 ? Dtype::fp32 : job.precision.compute;
}

void UnitTraffic::add(const Message& message) {
  const bool host = message.collective == Collective::host_copy;
  if ((message.axes == 0 && !host) || message.elements == 0) return;
  const std::int64_t group = degree_of(job.placement, message.axes);
  if (group <= 1 && !host) return;
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
                             .payload = bytes_of(message.elements, message.dtype),
                             .count = message.count,
                             .group = group},
                    .per_micro_batch = true});
}

void write_operators(UnitTraffic& unit) {
  for (std::size_t o = 0; o < unit.kind.operators.size(); ++o) {
    const OpKind kind = unit.kind.operators[o].kind;
    if (kind == OpKind::attention) AttentionTraffic(unit, o).write();
    if (kind == OpKind::dispatch) RoutingTraffic(unit).write(o, true);
    if (kind == OpKind::combine) RoutingTraffic(unit).write(o, false);
    if (kind == OpKind::loss) write_loss(unit, o);
    if (kind == OpKind::norm) write_norm(unit, o);
  }
  write_kept(unit, unit.number(), unit.recomputed());
}

}  // namespace placet
