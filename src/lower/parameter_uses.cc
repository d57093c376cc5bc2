#include "lower/parameter_uses.h"

#include <memory>
#include <string>

#include "units/at.h"
#include "units/error.h"

namespace placet {

/// Rests in part, used whole: gathered before the unit, one message for all of it.
void ParameterUses::gather(bool again) {
  Gathers gathers;
  for (const ParameterPlan& plan : parameters_.plans) {
    if (plan.whole == plan.rest) continue;
    if (plan.keep == Keep::step || (again && plan.keep == Keep::backward)) continue;
    gather(plan, gathers);
  }
  for (auto& [how, instruction] : gathers) w_.add(std::move(instruction));
  drop_parts();
}

void ParameterUses::gather(const ParameterPlan& plan, Gathers& gathers) {
  BufferRef part = buffer_of(plan, plan.materialized ? plan.master : plan.rest);
  part.piece = -1;
  BufferRef whole = buffer_of(plan, plan.whole);
  whole.piece = -1;
  if (!plan.shared_in_flight) w_.make_at(whole, {});
  const bool host = plan.on_host[plan.materialized ? 1 : 0];
  if (plan.gathered.empty()) {
    w_.move(host ? InstructionKind::host_copy : InstructionKind::copy, part, whole);
    return;
  }
  if (host || plan.materialized) {
    const BufferType type =
        parameter_type(plan, plan.gathered, gathered_in(plan, in_.job.precision));
    const int family = w_.family("part." + plan.name, type, Indexing::unit);
    Held copy = w_.make_at(buffer_of(plan, family), {});
    copy.buffer.piece = -1;
    w_.move(host ? InstructionKind::host_copy : InstructionKind::copy, part, copy.buffer);
    part = copy.buffer;
    parts_.push_back(copy);
  }
  Instruction& instruction = gathers[{plan.gathered, gathered_in(plan, in_.job.precision)}];
  instruction.kind = InstructionKind::all_gather;
  instruction.axes = plan.gathered;
  instruction.inputs.push_back(part);
  instruction.outputs.push_back(whole);
  instruction.label = "parameters";
}

void ParameterUses::drop_parts() {
  for (Held& part : parts_) w_.drop(part);
  parts_.clear();
}

void ParameterUses::let_go(bool last) {
  for (const ParameterPlan& plan : parameters_.plans) {
    if (plan.whole == plan.rest || plan.keep == Keep::step || plan.shared_in_flight) continue;
    if (!last && plan.keep == Keep::backward) continue;
    Held whole{.buffer = buffer_of(plan, plan.whole), .spread = {}, .holders = {}};
    whole.buffer.piece = -1;
    whole.holders = std::make_shared<int>(1);
    w_.drop(whole);
  }
}

/// The buffer that takes the gradient of a parameter's piece, made with the first piece.
BufferRef ParameterUses::gradient(int parameter, const Spread& spread, std::vector<int>& finished) {
  const auto& [p, piece] = parameters_.plan_of[at(parameter)];
  const ParameterPlan& plan = parameters_.plans[at(p)];
  ensure(spread.by == plan.spread[at(piece)].by, "a gradient lies as its parameter");
  std::vector<AxisList>& pieces = partial[p];
  pieces.resize(plan.pieces.size());
  pieces[at(piece)] = united(pieces[at(piece)], spread.partial);
  if (!weights_.contains(p)) {
    weights_[p].held = w_.make_at(gradient_buffer(plan, plan.joins && plan.owner < 0), {});
    weights_[p].missing = static_cast<int>(plan.pieces.size());
  }
  if (--weights_[p].missing == 0) finished.push_back(p);
  BufferRef ref = weights_[p].held.buffer;
  if (plan.pieces.size() > 1) ref.piece = piece;
  return ref;
}

/// The gradient of a micro-batch. `own`: beside that of another unit.
BufferRef ParameterUses::gradient_buffer(const ParameterPlan& plan, bool own) {
  const BufferType type = parameter_type(plan, {}, in_.job.precision.compute);
  const std::string name = (own ? "d.own." : "d.") + plan.name;
  BufferRef ref = w_.here(w_.family(name, type, Indexing::unit_and_micro_batch));
  if (plan.owner >= 0) ref.unit = {.variable = IndexTerm::Variable::none, .offset = plan.owner};
  return ref;
}

/// A gradient that is not scattered in this pass goes into the buffer of the step.
void ParameterUses::settle(int p) {
  const ParameterPlan& plan = parameters_.plans[at(p)];
  if (!common(plan.scattered, common_partial(partial[p])).empty()) return;  // at the end
  if (plan.joins && plan.owner >= 0) {
    weights_.erase(p);  // waits for the owner's
    return;
  }
  if (plan.joins) add_waiting(plan, weights_[p].held.buffer);
  add_to_step(plan, weights_[p].held.buffer);
  w_.drop(weights_[p].held);
  weights_.erase(p);
}

/// Adds a gradient of this micro-batch to that of the step, where it rests.
void ParameterUses::add_to_step(const ParameterPlan& plan, const BufferRef& share) {
  BufferRef sum = buffer_of(plan, plan.gradient);
  sum.piece = -1;
  if (!plan.on_host[2]) return w_.move(InstructionKind::accumulate, share, sum);
  const BufferType type = parameter_type(plan, plan.scattered, plan.sums_in);
  const int family = w_.family("host." + plan.name, type, Indexing::unit_and_micro_batch, true);
  Held there = w_.make_at(w_.here(family), {});
  w_.move(InstructionKind::host_copy, share, there.buffer);
  w_.move(InstructionKind::accumulate, there.buffer, sum);
  w_.drop(there);
}

/// Gradients of tensors that an earlier unit owns stay for its backward.
void ParameterUses::leave_waiting() {
  std::erase_if(weights_, [&](const auto& entry) {
    const ParameterPlan& plan = parameters_.plans[at(entry.first)];
    return plan.joins && plan.owner >= 0;
  });
}

/// Adds what a later unit left of the gradient.
void ParameterUses::add_waiting(const ParameterPlan& plan, const BufferRef& sum) {
  Held waiting{
      .buffer = gradient_buffer(plan, false), .spread = {}, .holders = std::make_shared<int>(1)};
  w_.move(InstructionKind::accumulate, waiting.buffer, sum);
  w_.drop(waiting);
}

/// Gradients that go to their owners in each micro-batch: one message for the unit.
void ParameterUses::scatter_gradients() {
  PieceSums pieces;
  for (auto& [p, weight] : weights_) note_pieces(weight.held.buffer, partial[p], pieces);
  reduce_pieces(w_, pieces);
  leave_waiting();
  std::map<AxisList, Instruction> scatters;
  std::map<std::pair<AxisList, AxisList>, std::vector<BufferRef>> sums;
  std::vector<std::pair<int, Held>> own;
  for (auto& [p, weight] : weights_) {
    const ParameterPlan& plan = parameters_.plans[at(p)];
    const AxisList all = common_partial(partial[p]);
    ensure(minus(plan.scattered, all).empty(), "what is scattered is partial");
    if (plan.joins && plan.owner < 0) add_waiting(plan, weight.held.buffer);
    const BufferType type = parameter_type(plan, plan.scattered, in_.job.precision.reduce);
    const int family = w_.family("own." + plan.name, type, Indexing::unit_and_micro_batch);
    own.emplace_back(p, w_.make_at(w_.here(family), {}));
    Instruction& instruction = scatters[plan.scattered];
    instruction.kind = InstructionKind::reduce_scatter;
    instruction.axes = plan.scattered;
    instruction.inputs.push_back(weight.held.buffer);
    instruction.outputs.push_back(own.back().second.buffer);
    instruction.label = "gradients";
    const AxisList more = summed_each(plan, all);
    if (!more.empty()) sums[{more, plan.scattered}].push_back(own.back().second.buffer);
  }
  for (auto& [axes, instruction] : scatters) w_.add(std::move(instruction));
  for (auto& [p, weight] : weights_) w_.drop(weight.held);
  weights_.clear();
  for (auto& [axes, parts] : sums) w_.reduce(parts, axes.first, Combine::sum, "gradients");
  for (auto& [p, held] : own) {
    add_to_step(parameters_.plans[at(p)], held.buffer);
    w_.drop(held);
  }
}

}  // namespace placet
