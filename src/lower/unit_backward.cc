#include "lower/unit_backward.h"

#include <algorithm>
#include <memory>

#include "lower/kernel_spread.h"
#include "lower/ring.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {

UnitBackward::UnitBackward(Lowering& in, const UnitApplications& applications, UnitValues& values,
                           UnitForward& forward, ParameterUses& uses)
    : in_(in),
      w_(in.writer),
      applications_(applications),
      values_(values),
      forward_(forward),
      uses_(uses),
      kind_(applications.kind()) {
  for (const Applied& a : applications_.backward) {
    const bool gives = std::ranges::find(a.to, kind_.stream_in) != a.to.end();
    if (gives) last_to_stream_ = a.application;
  }
  for (const Applied& a : applications_.for_weights) {
    for (int v : a.reads) {
      weights_use_parameters_ = weights_use_parameters_ || values_.is_parameter(v);
      if (!values_.is_parameter(v)) weights_read_.insert(v);
    }
  }
}

void UnitBackward::write(const std::map<int, std::vector<Held>>& left) {
  uses_.gather(true);
  begin(left);
  for (std::size_t b = 0; b < applications_.backward.size(); ++b) run(b);
  if (applications_.hands_back) hand_back();
  finish_values({});
  values_.drop_gradients_except(kind_.stream_in);
  uses_.scatter_gradients();
  uses_.let_go(true);
}

void UnitBackward::write_inputs(const std::map<int, std::vector<Held>>& left) {
  uses_.gather(true);
  begin(left);
  for (std::size_t b = 0; b < applications_.for_inputs.size(); ++b) run_inputs(b);
  if (applications_.hands_back) hand_back();
  for (int v : weights_read_) {
    if (kind_.values[at(v)].input >= 0) continue;
    values_.drop_copies(v);
    waiting_[v] = values_.all_of(v);
  }
  finish_values(weights_read_);
  values_.drop_gradients_except(kind_.stream_in);
  uses_.let_go(!weights_use_parameters_);
}

void UnitBackward::write_weights() {
  if (weights_use_parameters_) uses_.gather(true);
  for (const auto& [v, all] : waiting_) values_.hold_again(v, all);
  for (const auto& [b, all] : carried_) {
    for (const Held& held : all) w_.note_alive(held.buffer);
  }
  for (std::size_t b = 0; b < applications_.for_weights.size(); ++b) run_weights(b);
  uses_.scatter_gradients();
  if (weights_use_parameters_) uses_.let_go(true);
}

/// What forward left: the same buffers under the same names; and what is made again from it.
void UnitBackward::begin(const std::map<int, std::vector<Held>>& left) {
  for (int v : applications_.kept) {
    values_.hold_again(v, left.at(v));
  }
  for (int v : applications_.kept) {
    if (applications_.kept_on_host) values_.move_to(Medium::device, v);
    if (applications_.is_checkpoint(v)) values_.bring(v, stream_spread(in_).by);
  }
  std::set<int> keep = applications_.read;
  if (kind_.stream_in >= 0) keep.insert(kind_.stream_in);
  forward_.write_again(keep);
  begin_gradients();
}

void UnitBackward::begin_gradients() {
  if (kind_.stream_out >= 0) {
    values_.hold_gradient(kind_.stream_out, {.buffer = stream_buffer(in_, true, 1),
                                             .spread = stream_spread(in_),
                                             .holders = std::make_shared<int>(1)});
  }
  if (kind_.loss < 0) return;
  const Reference& reference = in_.model.reference;
  Held seed = w_.make("d.loss", values_.whole_loss(), Dtype::fp32);
  Instruction instruction{.kind = InstructionKind::compute};
  instruction.kernel = w_.add_kernel(in_.model.kernels[at(reference.seed_kernel)]);
  instruction.inputs = {input_buffer(in_, reference.weights), count_buffer(in_)};
  instruction.outputs = {seed.buffer};
  instruction.label = "loss-weight";
  w_.add(std::move(instruction));
  if (!reference.numbers.empty()) scale_loss(seed.buffer);
  values_.hold_gradient(kind_.loss, seed);
}

void UnitBackward::scale_loss(const BufferRef& seed) {
  Instruction scale{.kind = InstructionKind::compute};
  scale.kernel = w_.add_kernel(in_.model.kernels[at(in_.model.reference.scale_kernel)]);
  scale.inputs = {seed, number_buffer(in_, 0)};
  scale.outputs = {seed};
  scale.label = "loss-scale";
  w_.add(std::move(scale));
}

/// Lets go of all that backward reads but for what is kept.
void UnitBackward::finish_values(const std::set<int>& keep) {
  for (int v : applications_.read) {
    if (keep.contains(v)) {
      values_.drop_copies(v);
    } else {
      values_.finish(v, {});
    }
  }
  const int v = kind_.stream_in;
  if (v >= 0 && !keep.contains(v)) values_.finish(v, {});
}

void UnitBackward::run(std::size_t b) {
  const Applied& a = applications_.backward[b];
  const std::vector<AxisList> passed = gather_gradients(a);
  pass_gradients(b);
  if (a.kernel >= 0) add_call(a, passed, incoming_of(a, passed));
  drop_gradients_of(a.application);
  for (int v : last_read_at(applications_.backward, b)) values_.finish(v, {});
}

void UnitBackward::carry(std::size_t b, const std::vector<AxisList>& passed) {
  const Applied& whole = applications_.backward[b];
  for (std::size_t i = 0; i < whole.from.size(); ++i) {
    Held& own = values_.gradient(whole.from[i], whole.uses[i].by, !passed[i].empty());
    ++*own.holders;
    carried_[b].push_back(own);
  }
}

void UnitBackward::run_inputs(std::size_t b) {
  const Applied& whole = applications_.backward[b];
  const std::vector<AxisList> passed = gather_gradients(whole);
  pass_gradients(b);
  if (whole.kernel >= 0) {
    const Applied& a = applications_.for_inputs[b];
    const std::vector<BufferRef> incoming = incoming_of(whole, passed);
    if (a.kernel >= 0) add_call(a, passed, incoming);
    if (applications_.for_weights[b].kernel >= 0) carry(b, passed);
  }
  drop_gradients_of(whole.application);
  for (int v : last_read_at(applications_.for_inputs, b)) {
    if (!weights_read_.contains(v)) values_.finish(v, {});
  }
}

void UnitBackward::run_weights(std::size_t b) {
  const Applied& a = applications_.for_weights[b];
  if (a.kernel < 0) return;
  std::vector<AxisList> passed;
  std::vector<BufferRef> incoming;
  for (const Held& held : carried_.at(b)) {
    passed.push_back(held.spread.partial);
    incoming.push_back(held.buffer);
  }
  add_call(a, passed, incoming);
  for (Held& held : carried_.at(b)) w_.drop(held);
  for (int v : last_read_at(applications_.for_weights, b)) values_.finish(v, {});
}

/// Brings together what is needed complete, once, also for those to whom it is passed on. Gives the
/// axes along which incoming gradients stay partial.
std::vector<AxisList> UnitBackward::gather_gradients(const Applied& a) {
  if (a.kernel < 0) return {};
  for (int v : a.from) values_.divide_gradient(v, a);
  std::vector<const Spread*> spreads;
  for (int v : a.from) {
    const std::vector<Held>& all = values_.gradients(v);
    spreads.push_back(all.size() == 1 ? &all.front().spread : nullptr);
  }
  spreads.resize(a.from.size() + a.reads.size(), nullptr);
  std::vector<AxisList> passed = forward_.left_partial(a, spreads);
  passed.resize(a.from.size());
  for (std::size_t i = 0; i < a.from.size() && a.completes; ++i) {
    const std::vector<int>& dims = kind_.values[at(a.from[i])].dims;
    if (!in_.layouts.are_of_cuts(passed[i], dims, a.place)) passed[i].clear();
  }
  for (std::size_t i = 0; i < a.from.size(); ++i) {
    if (passed[i].empty()) values_.gradient(a.from[i], a.uses[i].by, false);
  }
  return passed;
}

std::vector<BufferRef> UnitBackward::incoming_of(const Applied& a,
                                                 const std::vector<AxisList>& passed) {
  std::vector<BufferRef> out;
  for (std::size_t i = 0; i < a.from.size(); ++i) {
    out.push_back(values_.gradient(a.from[i], a.uses[i].by, !passed[i].empty()).buffer);
  }
  return out;
}

/// Inputs whose gradient is an output's as it stands share its buffer.
void UnitBackward::pass_gradients(std::size_t b) {
  for (const auto& [to, from] : applications_.passes[b]) {
    const Place place = applications_.backward[b].place;
    const bool moves = place == Place::stream || place == Place::parallel;
    if (moves && !values_.gradients(from).empty()) {
      values_.gradient(from, values_.divisions_at(from, place), place == Place::parallel);
    }
    for (const Held& h : values_.gradients(from)) {
      if (values_.is_parameter(to)) continue;
      Held share = h;
      ++*share.holders;
      values_.give(to, share);
    }
  }
}

void UnitBackward::drop_gradients_of(int application) {
  for (int v : kind_.applications[at(application)].outputs) values_.drop_gradient(v);
}

/// By input of the call, the axes along which it stays partial: incoming gradients as they are, and
/// what forward left as parts of sums, if with both all is linear.
std::vector<AxisList> UnitBackward::with_partial_reads(const Applied& a,
                                                       const std::vector<AxisList>& passed) const {
  std::vector<AxisList> complete = passed;
  complete.resize(a.from.size() + a.reads.size());
  if (a.ring >= 0) return complete;
  std::vector<AxisList> all = complete;
  for (std::size_t i = 0; i < a.reads.size(); ++i) {
    const int v = a.reads[i];
    if (values_.is_parameter(v) || !values_.has(v)) continue;
    const Spread& spread = values_.held(v).spread;
    const bool lies = spread.by == a.uses[a.from.size() + i].by;
    if (lies && spread.op == Combine::sum) all[a.from.size() + i] = spread.partial;
  }
  return results_of(w_.kernel(a.kernel), a.by, all) ? all : complete;
}

/// Calls the application: incoming gradients, what it reads, and the gradients that it makes.
void UnitBackward::add_call(const Applied& a, const std::vector<AxisList>& passed,
                            const std::vector<BufferRef>& incoming) {
  Instruction instruction = forward_.call(a, InstructionKind::compute);
  instruction.inputs = incoming;
  const std::vector<AxisList> all = with_partial_reads(a, passed);
  for (std::size_t i = 0; i < a.reads.size(); ++i) {
    const int v = a.reads[i];
    const std::size_t tensor = a.from.size() + i;
    if (values_.is_parameter(v)) {
      instruction.inputs.push_back(values_.parameter_buffer(v));
    } else if (!all[tensor].empty()) {
      instruction.inputs.push_back(values_.held(v).buffer);
    } else {
      instruction.inputs.push_back(values_.value(v, a.uses[tensor].by).buffer);
    }
  }
  if (a.ring >= 0) {
    give_of_ring(a, Ring(in_, values_, a).write(instruction, all));
    return;
  }
  const auto partial = results_of(w_.kernel(a.kernel), a.by, all);
  ensure(partial.has_value(), "complete inputs always have a result");
  std::vector<std::pair<int, Held>> made;
  std::vector<int> finished;
  for (std::size_t i = 0; i < a.to.size(); ++i) {
    Spread spread = a.uses[a.from.size() + a.reads.size() + i];
    spread.partial = minus((*partial)[i].axes, {in_.mesh.micro_axis()});
    const int v = a.to[i];
    if (values_.is_parameter(v)) {
      instruction.outputs.push_back(
          uses_.gradient(kind_.values[at(v)].parameter, spread, finished));
      continue;
    }
    made.emplace_back(v, gradient_made(a, v, spread));
    instruction.outputs.push_back(made.back().second.buffer);
  }
  w_.add(std::move(instruction));
  for (auto& [v, held] : made) values_.give(v, held, goes_back(a, v));
  for (int plan : finished) uses_.settle(plan);
}

/// What the rounds made: a parameter that stands behind their sums has its gradient from their end.
void UnitBackward::give_of_ring(const Applied& a, std::vector<Held> made) {
  std::vector<int> finished;
  for (std::size_t i = 0; i < a.to.size(); ++i) {
    if (!values_.is_parameter(a.to[i])) {
      values_.give(a.to[i], made[i]);
      continue;
    }
    const int parameter = kind_.values[at(a.to[i])].parameter;
    w_.move(InstructionKind::copy, made[i].buffer,
            uses_.gradient(parameter, made[i].spread, finished));
    w_.drop(made[i]);
  }
  for (int plan : finished) uses_.settle(plan);
}

/// Whether that is the last share of the gradient that the unit hands back.
bool UnitBackward::goes_back(const Applied& a, int v) const {
  return v == kind_.stream_in && a.application == last_to_stream_;
}

/// A new buffer for a gradient; the last share of the one that is handed back is made where it is
/// handed over.
Held UnitBackward::gradient_made(const Applied& a, int v, const Spread& spread) {
  if (goes_back(a, v) && spread == stream_spread(in_)) {
    return w_.make_at(stream_buffer(in_, true, 0), spread);
  }
  return w_.make("d." + values_.name_of(v), spread, values_.dtype_of(v));
}

/// Values that this application reads and no later one of the list.
std::vector<int> UnitBackward::last_read_at(const std::vector<Applied>& all, std::size_t b) const {
  std::vector<int> out;
  for (int v : all[b].reads) {
    bool later = values_.is_parameter(v) || !values_.has(v);
    for (std::size_t c = b + 1; c < all.size(); ++c) {
      later = later || std::ranges::find(all[c].reads, v) != all[c].reads.end();
    }
    if (!later && std::ranges::find(out, v) == out.end()) out.push_back(v);
  }
  return out;
}

void UnitBackward::hand_back() {
  const int v = kind_.stream_in;
  const BufferRef target = stream_buffer(in_, true, 0);
  Held& own = values_.gradient(v, stream_spread(in_).by, false);
  if (own.buffer == target) return;
  w_.make_at(target, stream_spread(in_));
  w_.move(InstructionKind::copy, own.buffer, target);
  values_.drop_gradient(v);
}

}  // namespace placet
