#include "derive/unit_replay.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "derive/unit_sizes.h"
#include "units/at.h"

namespace placet {
namespace {

bool runs_again(const UnitFacts& unit, const Operator& op) {
  return std::ranges::find(unit.plan->modules, op.module) != unit.plan->modules.end();
}

/// Bytes of value v where it is whole along the axes that divide the residual stream.
std::int64_t whole_size(const UnitFacts& unit, std::size_t v) {
  return unit.sizes[v] / unit.local->values[v] * unit.local->gathered[v];
}

}  // namespace

UnitFacts unit_facts(const Layout& layout, int unit, bool recomputed) {
  UnitFacts facts{.number = unit, .recomputed = recomputed};
  facts.local = &layout.units[at(unit)];
  facts.kind = &layout.job->model.kinds[at(facts.local->kind)];
  facts.prepared = &layout.prepared->kinds[at(facts.local->kind)];
  facts.plan = recomputed ? &facts.prepared->recomputed : &facts.prepared->plain;
  ValueBytes bytes = value_bytes(layout, unit, recomputed);
  facts.sizes = std::move(bytes.once);
  facts.held = std::move(bytes.held);
  facts.memory = unit_memory(layout, unit, recomputed);
  const UnitView view(layout, unit, recomputed);
  facts.routed = routed_exchange(view);
  facts.off_device = kept_off_device(view);
  facts.divides_input = recomputed && !facts.sizes.empty() &&
                        bytes_of_value(view, 0, facts.local->values[0]) > facts.sizes[0];
  return facts;
}

UnitReplay::UnitReplay(const Job& job, const Layout& layout, DevicePools& pools)
    : job_(job),
      profile_(job.profile),
      layout_(layout),
      pools_(pools),
      hands_over_late_(job.profile.collective_buffers_return_late && job.host_runs_ahead &&
                       layout.split_residual_axes != 0) {}

UnitReplay::Handle UnitReplay::forward(const UnitFacts& unit, UnitBuffers& buffers, Handle input) {
  buffers.values.assign(unit.sizes.size(), 0);
  if (unit.sizes.empty()) return input;
  if (unit.prepared->values[0].producer < 0) {
    buffers.values[0] = input != 0 ? input : pools_.main().allocate(unit.sizes[0]);
  }
  for (std::size_t o = 0; o < unit.kind->operators.size(); ++o) run_forward(unit, o, buffers);
  if (unit.prepared->output < 0) return 0;
  const std::size_t out = at(unit.prepared->output);
  const Handle output = buffers.values[out];
  if (!unit.plan->is_kept[out]) buffers.values[out] = 0;
  put_away(unit, buffers);
  return output;
}

/// What the unit keeps, once it has run: parts in host memory leave the device, and of an input
/// that is divided among neighbours the own part stays.
void UnitReplay::put_away(const UnitFacts& unit, UnitBuffers& buffers) {
  const bool leaves = unit.off_device > Rational(0);
  if (!leaves && !unit.divides_input) return;
  for (int v : unit.plan->kept) {
    if (buffers.values[at(v)] == 0 || (!leaves && v != 0)) continue;
    const Bytes size = bytes(unit.held[at(v)]);
    release(buffers, v);
    buffers.values[at(v)] =
        pools_.main().allocate(in_bytes(size - part_rounded_up(size, unit.off_device)));
  }
}

/// Before its backward: what is in host memory is copied back.
void UnitReplay::bring_back(const UnitFacts& unit, UnitBuffers& buffers) {
  if (unit.off_device == Rational(0)) return;
  for (int v : unit.plan->kept) {
    release(buffers, v);
    allocate(unit, buffers, v);
  }
}

void UnitReplay::run_forward(const UnitFacts& unit, std::size_t o, UnitBuffers& buffers) {
  const Operator& op = unit.kind->operators[o];
  const PreparedOperator& facts = unit.prepared->operators[o];
  exchange(unit.routed.before_forward(*unit.kind, o));
  borrow(unit, op, Pass::forward);
  for (int v : facts.made) allocate(unit, buffers, v);
  for (int v : op.internals) {
    if (unit.plan->is_kept[at(v)]) allocate(unit, buffers, v);
  }
  if (op.kind == OpKind::loss) run_loss(unit, op, buffers);
  release_all(borrowed_);
  launch(unit);
  for (int v : facts.dead_after) drop_after(unit, v, buffers);
}

void UnitReplay::drop_after(const UnitFacts& unit, int v, UnitBuffers& buffers) {
  if (unit.plan->is_kept[at(v)]) return;
  if (casting_operator(*unit.kind, v)) {
    passing_.push_back(std::exchange(buffers.values[at(v)], 0));
    return;
  }
  if (!hands_over_late_ || !unit.prepared->values[at(v)].leaves_parallel) {
    release(buffers, v);
    return;
  }
  pools_.release_late(buffers.values[at(v)]);
  buffers.values[at(v)] = 0;
}

/// The second forward: what backward needs stays, the rest passes by.
void UnitReplay::run_again(const UnitFacts& unit, UnitBuffers& buffers) {
  std::vector<bool> stays = unit.plan->is_kept;
  for (int v : unit.plan->rebuilt) stays[at(v)] = true;
  for (std::size_t o = 0; o < unit.kind->operators.size(); ++o) {
    if (runs_again(unit, unit.kind->operators[o])) run_again(unit, o, stays, buffers);
  }
  if (unit.prepared->output >= 0) release(buffers, unit.prepared->output);
}

void UnitReplay::run_again(const UnitFacts& unit, std::size_t o, const std::vector<bool>& stays,
                           UnitBuffers& buffers) {
  const Operator& op = unit.kind->operators[o];
  exchange(unit.routed.before_forward(*unit.kind, o));
  borrow(unit, op, Pass::forward);
  for (int v : unit.prepared->operators[o].made) allocate(unit, buffers, v);
  for (int v : op.internals) {
    if (stays[at(v)] && !unit.plan->is_kept[at(v)]) allocate(unit, buffers, v);
  }
  release_all(borrowed_);
  for (int v : unit.plan->dead_again[o]) {
    if (!stays[at(v)]) release(buffers, v);
  }
}

/// The steps of the loss; what is left afterwards (the logits' gradient) stays until backward.
void UnitReplay::run_loss(const UnitFacts& unit, const Operator& op, UnitBuffers& buffers) {
  if (profile_.fuses_output_and_loss) return;
  const std::int64_t logits = unit.local->values[at(op.inputs.front())];
  std::map<std::string_view, Handle> named;
  for (const LossStep& step : steps_of_loss(layout_)) {
    if (step.appears) {
      named[step.buffer] = pools_.main().allocate(step.bytes_per_logit * logits);
    } else if (step.buffer == "logits") {
      release(buffers, op.inputs.front());
      release_all(passing_);
    } else {
      pools_.main().release(named[step.buffer]);
      named.erase(step.buffer);
    }
  }
  for (const auto& [name, handle] : named) buffers.loss.push_back(handle);
}

void UnitReplay::make_again(const UnitFacts& unit, UnitBuffers& buffers) {
  if (!unit.plan->rebuilt.empty()) run_again(unit, buffers);
  // A product that does not run again makes the copy of what does.
  for (int v : unit.plan->rebuilt) {
    if (is_copy(*unit.kind, v)) allocate(unit, buffers, v);
  }
  if (!profile_.parts_stand_apart) return;
  for (int v : unit.plan->only_again) release(buffers, v);
}

void UnitReplay::release_values(UnitBuffers& buffers) {
  for (std::size_t v = 0; v < buffers.values.size(); ++v) release(buffers, static_cast<int>(v));
}

UnitReplay::Handle UnitReplay::backward(const UnitFacts& unit, UnitBuffers& buffers,
                                        Handle incoming, std::vector<Handle>& held) {
  release_all(passing_);
  if (unit.sizes.empty()) return incoming;
  if (!unit.prepared->gradients.backward) {
    release_values(buffers);
    return incoming;
  }
  std::vector<Handle> adjoints(unit.sizes.size(), 0);
  if (unit.prepared->output >= 0) {
    const std::size_t out = at(unit.prepared->output);
    adjoints[out] = incoming != 0 ? incoming : pools_.main().allocate(unit.sizes[out]);
  }
  bring_back(unit, buffers);
  make_again(unit, buffers);
  shares_ = GradientShares(unit.sizes.size());
  second_shares_.assign(unit.sizes.size(), 0);
  for (std::size_t o = unit.kind->operators.size(); o-- > 0;) {
    if (!unit.prepared->operators[o].backward) continue;
    run_backward(unit, o, adjoints, held);
    end_backward(unit, o, buffers, held);
  }
  release_values(buffers);
  release_all(buffers.loss);
  release_all(second_shares_);
  const Handle out = std::exchange(adjoints[at(unit.prepared->input_gradient)], 0);
  release_all(adjoints);
  return out;
}

/// What goes once an operator's backward has run.
void UnitReplay::end_backward(const UnitFacts& unit, std::size_t o, UnitBuffers& buffers,
                              std::vector<Handle>& held) {
  const Operator& op = unit.kind->operators[o];
  const bool second = has_second_summand(unit, o);
  // Beside a second summand what the operator read is there, but not what it had for itself.
  const auto stays = [&](int v) {
    return second && std::ranges::find(op.internals, v) == op.internals.end();
  };
  for (int v : unit.plan->done[o]) {
    if (!stays(v)) release(buffers, v);
  }
  const bool at_once =
      profile_.gradient_hold == GradientHold::op && unit.memory.gradient_whole == 0;
  if (at_once && op.kind != OpKind::loss) release_all(held);
  if (second) add_second_summand(unit, o);
  for (int v : unit.plan->done[o]) release(buffers, v);
}

/// Whether the gradient of a norm's input comes in two, with no other to add them to.
bool UnitReplay::has_second_summand(const UnitFacts& unit, std::size_t o) const {
  return profile_.parts_stand_apart && unit.kind->operators[o].kind == OpKind::norm &&
         !unit.prepared->operators[o].adjoints_made.empty();
}

void UnitReplay::add_second_summand(const UnitFacts& unit, std::size_t o) {
  const PreparedOperator& facts = unit.prepared->operators[o];
  for (const std::vector<int>* values : {&facts.inner_gradients, &facts.adjoints_made}) {
    for (int v : *values) temporary_.push_back(pools_.main().allocate(unit.sizes[at(v)]));
  }
  release_all(temporary_);
}

/// Gradients of keys and values that are made whole become the device's parts afterwards.
bool UnitReplay::comes_after(const UnitFacts& unit, const Operator& op, int v) const {
  if (!profile_.parts_stand_apart || op.kind != OpKind::attention) return false;
  if (exchange_bytes(layout_, *unit.local, op, Pass::backward).sums == 0) return false;
  return v == exchanged_value(op, AttentionTensor::keys, profile_) ||
         v == exchanged_value(op, AttentionTensor::values, profile_);
}

void UnitReplay::run_backward(const UnitFacts& unit, std::size_t o, std::vector<Handle>& adjoints,
                              std::vector<Handle>& held) {
  const Operator& op = unit.kind->operators[o];
  const PreparedOperator& facts = unit.prepared->operators[o];
  for (int v : op.outputs) join_shares(v);
  exchange(unit.routed.before_backward(*unit.kind, o));
  borrow(unit, op, Pass::backward);
  make_gradients(unit, o, adjoints);
  for (int v : facts.inner_gradients) {
    temporary_.push_back(pools_.main().allocate(unit.sizes[at(v)]));
  }
  weigh(unit, op, held);
  release_all(temporary_);
  release_all(borrowed_);
  for (int v : facts.adjoints_made) {
    if (comes_after(unit, op, v)) adjoints[at(v)] = pools_.main().allocate(unit.sizes[at(v)]);
  }
  launch(unit);
  if (hands_over_late_) scatter_gradients(unit, facts);
  for (int v : facts.adjoints_dead) {
    pools_.main().release(adjoints[at(v)]);
    adjoints[at(v)] = 0;
  }
}

/// Gradients that an operator's backward makes, and what it adds to others.
void UnitReplay::make_gradients(const UnitFacts& unit, std::size_t o,
                                std::vector<Handle>& adjoints) {
  const Operator& op = unit.kind->operators[o];
  const PreparedOperator& facts = unit.prepared->operators[o];
  const bool parts = UnitView(layout_, unit.number, unit.recomputed).gives_parts(op);
  for (int v : facts.adjoints_made) {
    shares_.make(v, parts);
    if (!comes_after(unit, op, v)) adjoints[at(v)] = pools_.main().allocate(unit.sizes[at(v)]);
  }
  for (int v : facts.adjoints_added) {
    if (comes_after(unit, op, v)) continue;
    const Handle share = pools_.main().allocate(unit.sizes[at(v)]);
    if (shares_.stays(v, parts)) {
      second_shares_[at(v)] = share;
    } else {
      temporary_.push_back(share);
    }
  }
}

/// A gradient is to be complete: what stood apart of it is added up.
void UnitReplay::join_shares(int v) {
  if (shares_.join(v)) pools_.main().release(std::exchange(second_shares_[at(v)], 0));
}

/// Gradients of the operator's weights, in compute format.
void UnitReplay::weigh(const UnitFacts& unit, const Operator& op, std::vector<Handle>& held) {
  if (profile_.fuses_weight_gradient) return;
  for (int p : op.parameters) {
    const LocalParameter& parameter = unit.local->parameters[at(p)];
    if (!parameter.trainable) continue;
    const Bytes size = bytes_of(parameter.elements, job_.precision.compute);
    held.push_back(pools_.main().allocate(in_bytes(size)));
  }
}

/// Whole gradients of inputs that came from the divided stream, on their way to be scattered.
void UnitReplay::scatter_gradients(const UnitFacts& unit, const PreparedOperator& facts) {
  for (int v : facts.adjoints_made) {
    if (!unit.prepared->values[at(v)].enters_parallel || unit.local->values[at(v)] == 0) continue;
    pools_.release_late(pools_.main().allocate(whole_size(unit, at(v))));
  }
}

/// One operator's part of the launches of a block, forward or backward.
void UnitReplay::launch(const UnitFacts& unit) {
  if (!hands_over_late_) return;
  const auto both_ways = static_cast<double>(2 * unit.kind->operators.size());
  pools_.launch(static_cast<double>(profile_.launches_per_block) / both_ways);
}

/// Whole copies of divided inputs, unless a resting buffer of the engine takes them.
void UnitReplay::gather_inputs(const UnitFacts& unit, const Operator& op) {
  if (layout_.cuts_both_sides) {
    const UnitView view(layout_, unit.number, unit.recomputed);
    for_each_whole_operand(view, op, [&](int v, std::int64_t elements) {
      borrowed_.push_back(pools_.main().allocate(bytes_of_value(view, at(v), elements)));
    });
    return;
  }
  if (op.region != Region::parallel || profile_.gathered_input_has_buffer) return;
  for (int v : op.inputs) {
    const std::size_t i = at(v);
    const std::int64_t part = unit.local->values[i];
    const bool divided =
        unit.prepared->values[i].enters_parallel && part != 0 && unit.local->gathered[i] != part;
    if (!divided) continue;
    const UnitView view(layout_, unit.number, unit.recomputed);
    const std::size_t taken = taken_by(view, op, i);
    const std::int64_t whole = bytes_of_value(view, taken, unit.local->gathered[i]);
    if (whole != unit.sizes[taken]) borrowed_.push_back(pools_.main().allocate(whole));
  }
}

/// Copies of tokens, or their gradients, while they change devices.
void UnitReplay::exchange(std::int64_t bytes) {
  if (bytes > 0) pools_.main().release(pools_.main().allocate(bytes));
}

/// What lives while one operator runs, and only then.
void UnitReplay::borrow(const UnitFacts& unit, const Operator& op, Pass pass) {
  gather_inputs(unit, op);
  if (layout_.sequence_axes == 0 || op.kind != OpKind::attention) return;
  const ExchangeBytes exchange = exchange_bytes(layout_, *unit.local, op, pass);
  for (const std::int64_t size :
       {exchange.gathered, exchange.sums, exchange.pieces, exchange.message}) {
    if (size > 0) borrowed_.push_back(pools_.main().allocate(size));
  }
}

void UnitReplay::allocate(const UnitFacts& unit, UnitBuffers& buffers, int v) {
  if (buffers.values[at(v)] == 0) {
    buffers.values[at(v)] = pools_.main().allocate(unit.held[at(v)]);
  }
}

void UnitReplay::release(UnitBuffers& buffers, int v) {
  pools_.main().release(buffers.values[at(v)]);
  buffers.values[at(v)] = 0;
}

void UnitReplay::release_all(std::vector<Handle>& handles) {
  for (Handle handle : handles) pools_.main().release(handle);
  handles.clear();
}

}  // namespace placet
