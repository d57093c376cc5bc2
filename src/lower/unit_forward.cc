#include "lower/unit_forward.h"

#include <algorithm>
#include <map>

#include "lower/kernel_spread.h"
#include "lower/ring.h"
#include "program/kernel_text.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {

UnitForward::UnitForward(Lowering& in, const UnitApplications& applications, UnitValues& values,
                         int kind)
    : in_(in),
      w_(in.writer),
      applications_(applications),
      values_(values),
      kind_(in.model.reference.kinds[at(kind)]),
      source_(in.job.model.kinds[at(kind)]),
      map_(in.model.kinds[at(kind)]) {}

void UnitForward::write() {
  if (kind_.stream_in >= 0) {
    values_.hold(kind_.stream_in, {.buffer = stream_buffer(in_, false, 0),
                                   .spread = stream_spread(in_),
                                   .holders = std::make_shared<int>(1)});
  }
  const std::vector<bool> all(applications_.forward.size(), true);
  run_all(all, applications_.kept, Pass::first);
  if (kind_.stream_out >= 0) hand_on();
}

void UnitForward::write_again(const std::set<int>& keep) {
  run_all(applications_.made_again, keep, Pass::again);
}

/// By value, the last application that reads it; of what none reads, the one that makes it.
std::map<int, std::size_t> UnitForward::last_uses(const std::vector<bool>& runs) const {
  const std::vector<Applied>& all = applications_.forward;
  std::map<int, std::size_t> last;
  for (std::size_t a = 0; a < all.size(); ++a) {
    if (!runs[a]) continue;
    for (int v : all[a].reads) last[v] = a;
    for (int v : all[a].to) last.try_emplace(v, a);
  }
  return last;
}

/// A second forward has the messages of the first, also for what it makes for others.
void UnitForward::put_together_again(int v) {
  const auto known = put_together_.find(v);
  if (values_.has(v) && known != put_together_.end()) values_.value(v, known->second);
}

/// Runs applications in order, letting go of values after their last use but for those to keep.
void UnitForward::run_all(const std::vector<bool>& runs, const std::set<int>& keep, Pass pass) {
  const std::vector<Applied>& all = applications_.forward;
  const std::map<int, std::size_t> last = last_uses(runs);
  for (std::size_t a = 0; a < all.size(); ++a) {
    if (!runs[a]) continue;
    run(all[a], pass);
    const std::vector<int>& made = all[a].to;
    for (int v : made) {
      if (pass == Pass::again && last.at(v) == a) put_together_again(v);
    }
    if (pass == Pass::first && std::ranges::find(made, kind_.loss) != made.end()) add_loss();
    finish_after(a, last, keep, pass);
  }
}

void UnitForward::finish_after(std::size_t a, const std::map<int, std::size_t>& last,
                               const std::set<int>& keep, Pass pass) {
  for (const auto& [v, when] : last) {
    const bool handed_on = v == kind_.stream_out && pass == Pass::first;
    if (when == a && !handed_on) values_.finish(v, keep);
  }
}

std::vector<AxisList> UnitForward::left_partial(const Applied& a,
                                                const std::vector<const Spread*>& inputs) const {
  std::vector<AxisList> partial(inputs.size());
  if (a.place == Place::stream) return partial;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr || inputs[i]->op != Combine::sum) continue;
    if (inputs[i]->by == a.uses[i].by) partial[i] = inputs[i]->partial;
  }
  if (!results_of(w_.kernel(a.kernel), a.by, partial)) partial.assign(inputs.size(), {});
  return partial;
}

InstructionKind UnitForward::kind_of(const Kernel& kernel, InstructionKind plain) const {
  for (const Statement& s : kernel.statements) {
    if (plain == InstructionKind::recompute) break;
    if (draws(s.function)) return InstructionKind::random;
    if (s.function.starts_with("route") || s.function.starts_with("chosen")) {
      return InstructionKind::route;
    }
  }
  return plain;
}

Instruction UnitForward::call(const Applied& a, InstructionKind plain) const {
  const Kernel& kernel = w_.kernel(a.kernel);
  Instruction out{.kind = kind_of(kernel, plain)};
  out.kernel = a.kernel;
  out.label = word_of(source_.operators[at(map_.operator_of[at(a.application)])].name);
  for (int d : positions_of(kernel)) out.positions.push_back({.dim = d, .by = a.by[at(d)]});
  if (!a.key.empty()) {
    out.key = {.name = a.key, .unit = {.variable = IndexTerm::Variable::unit, .offset = 0}};
  }
  return out;
}

void UnitForward::run(const Applied& a, Pass pass) {
  Instruction instruction =
      call(a, pass == Pass::first ? InstructionKind::compute : InstructionKind::recompute);
  if (a.place == Place::edge) divide_inputs(a);
  for (int v : a.reads) {
    const auto there = applications_.exchanged.find(v);
    if (there == applications_.exchanged.end()) continue;
    if (values_.held(v).spread.partial.empty()) values_.bring(v, there->second);
  }
  std::vector<const Spread*> spreads;
  for (int v : a.reads) {
    const bool lies = values_.has(v) && !values_.is_parameter(v);
    spreads.push_back(lies ? &values_.held(v).spread : nullptr);
  }
  std::vector<AxisList> passed = left_partial(a, spreads);
  // What is turned by positions is read by others too: its sum does not wait.
  if (!positions_of(w_.kernel(a.kernel)).empty()) passed.assign(passed.size(), {});
  for (std::size_t i = 0; i < a.reads.size(); ++i) {
    instruction.inputs.push_back(input_of(a, i, !passed[i].empty(), pass));
  }
  if (a.ring >= 0) return run_rounds(a, instruction, passed, pass);
  add_outputs(a, std::move(instruction), passed, pass);
}

/// Parts of sums travel between tokens and experts as they are, where their sum may wait.
void UnitForward::divide_inputs(const Applied& a) {
  std::vector<Spread> there(a.reads.size());
  std::vector<const Spread*> spreads;
  for (std::size_t i = 0; i < a.reads.size(); ++i) {
    const int v = a.reads[i];
    if (values_.has(v) && !values_.is_parameter(v)) there[i] = values_.held(v).spread;
    there[i].by = a.uses[i].by;
    spreads.push_back(&there[i]);
  }
  const std::vector<AxisList> passed = left_partial(a, spreads);
  for (std::size_t i = 0; i < a.reads.size(); ++i) {
    if (!passed[i].empty()) values_.divide(a.reads[i], a.uses[i].by);
  }
}

/// What an application reads where it lies, or brought there; `partial`: as the sum it is part of.
BufferRef UnitForward::input_of(const Applied& a, std::size_t i, bool partial, Pass pass) {
  const int v = a.reads[i];
  if (values_.is_parameter(v)) return values_.parameter_buffer(v);
  if (partial) return values_.held(v).buffer;
  const bool sums = values_.has(v) && !values_.held(v).spread.partial.empty();
  if (pass == Pass::first && sums) put_together_[v] = a.uses[i].by;
  return values_.value(v, a.uses[i].by).buffer;
}

/// Gives the call its outputs, and adds it.
void UnitForward::add_outputs(const Applied& a, Instruction instruction,
                              const std::vector<AxisList>& passed, Pass pass) {
  const auto partial = results_of(w_.kernel(a.kernel), a.by, passed);
  ensure(partial.has_value(), "complete inputs always have a result");
  std::vector<Held> unused;  // made again, but kept in another layout
  for (std::size_t i = 0; i < a.to.size(); ++i) {
    Spread spread = a.uses[a.reads.size() + i];
    spread.partial = minus((*partial)[i].axes, {in_.mesh.micro_axis()});
    if (is_local(a.to[i])) spread.partial = minus(spread.partial, sample_axes());
    spread.op = (*partial)[i].op;
    const bool kept = pass == Pass::again && values_.has(a.to[i]);
    if (kept && !(values_.held(a.to[i]).spread == spread)) {
      unused.push_back(values_.make(a.to[i], spread));
      instruction.outputs.push_back(unused.back().buffer);
      continue;
    }
    if (!kept) values_.hold(a.to[i], made(a.to[i], spread, pass));
    instruction.outputs.push_back(values_.held(a.to[i]).buffer);
  }
  w_.add(std::move(instruction));
  for (Held& held : unused) w_.drop(held);
}

/// What is kept is made again where it is.
void UnitForward::run_rounds(const Applied& a, const Instruction& instruction,
                             const std::vector<AxisList>& passed, Pass pass) {
  std::vector<const Held*> kept;
  kept.reserve(a.to.size());
  for (int v : a.to) {
    kept.push_back(pass == Pass::again && values_.has(v) ? &values_.held(v) : nullptr);
  }
  std::vector<Held> made = Ring(in_, values_, a).write(instruction, passed, kept);
  for (std::size_t i = 0; i < a.to.size(); ++i) {
    if (kept[i] == nullptr) {
      values_.hold(a.to[i], made[i]);
    } else if (!(made[i].buffer == kept[i]->buffer)) {
      w_.drop(made[i]);
    }
  }
}

/// Sums over samples, which are the loads of experts: where their balance is that of each device's
/// micro-batch, they are left as they are.
bool UnitForward::is_local(int v) const {
  if (in_.job.balance != BalanceScope::micro_batch) return false;
  return std::ranges::none_of(kind_.values[at(v)].dims,
                              [&](int d) { return in_.model.indices[at(d)] == Index::sample; });
}

AxisList UnitForward::sample_axes() const {
  return in_.layouts.axes_where([&](std::size_t a) { return in_.layouts.is_batch(a); });
}

Held UnitForward::made(int v, const Spread& spread, Pass pass) {
  if (v == kind_.stream_out && pass == Pass::first && spread.by == stream_spread(in_).by) {
    return w_.make_at(stream_buffer(in_, false, 1), spread);
  }
  return values_.make(v, spread);
}

/// The loss of the step: each token's, weighted.
void UnitForward::add_loss() {
  const BufferType scalar{.dtype = Dtype::fp32, .pieces = {{}}, .flat = {}};
  const BufferRef part = {.family = w_.family("loss.part", scalar, Indexing::none)};
  Held held = w_.make_at(part, {});
  Instruction instruction{.kind = InstructionKind::compute};
  instruction.kernel =
      w_.add_kernel(kernel_from("kernel weighted(y[s t], w[s t], n[]) -> (l[]) {\n i[] = "
                                "inv(n[])\n d[s t] = w[s t] * i[]\n "
                                "l[] = y[s t] * d[s t]\n}"));
  const BufferRef loss = values_.value(kind_.loss, values_.whole_loss().by).buffer;
  instruction.inputs = {loss, input_buffer(in_, in_.model.reference.weights), count_buffer(in_)};
  instruction.outputs = {part};
  instruction.label = "loss";
  w_.add(std::move(instruction));
  w_.move(InstructionKind::accumulate, part, loss_buffer(in_));
  w_.drop(held);
}

void UnitForward::hand_on() {
  const int v = kind_.stream_out;
  Held own = values_.held(v);
  const BufferRef target = stream_buffer(in_, false, 1);
  const Spread stream = stream_spread(in_);
  if (own.buffer == target && own.spread.partial.empty()) return;
  w_.brought(own, stream.by, values_.name_of(v), own.buffer == target ? nullptr : &target);
  if (applications_.kept.contains(v)) return;
  w_.drop(own);
  values_.forget(v);
}

}  // namespace placet
