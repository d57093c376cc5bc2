#include "lower/ring.h"

#include <algorithm>

#include "lower/kernel_spread.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {

Ring::Ring(Lowering& in, UnitValues& values, const Applied& a)
    : in_(in),
      w_(in.writer),
      values_(values),
      a_(a),
      kernel_(in.writer.kernel(a.kernel)),
      logical_(kernel_.dims.size(), -1),
      devices_(in.mesh.axes[at(axis())].degree),
      partial_(kernel_.tensors.size()),
      made_(kernel_.tensors.size()) {
  std::optional<KernelRounds> rounds = rounds_over(kernel_, a.ring);
  ensure(rounds.has_value(), "attention is a sum over its keys");
  rounds_ = std::move(*rounds);
  for (std::size_t t = 0; t < a.uses.size(); ++t) {
    const std::vector<int>& dims = kernel_.tensors[t].dims;
    for (std::size_t d = 0; d < dims.size(); ++d) logical_[at(dims[d])] = a.uses[t].tensor[d];
  }
  for (int t = 0; t < kernel_.inputs; ++t) {
    if (travels(t)) pieces_.push_back(t);
  }
  const std::vector<int>& tensors = rounds_.piece.tensors;
  results_.assign(tensors.begin() + kernel_.inputs, tensors.end());
  std::ranges::copy_if(results_, std::back_inserter(gradients_), [&](int t) { return travels(t); });
}

bool Ring::travels(int tensor) const {
  const std::vector<int>& dims = kernel_.tensors[at(tensor)].dims;
  return std::ranges::find(dims, a_.ring) != dims.end();
}

/// How a tensor lies in a round, complete or partial as the rounds leave it.
Spread Ring::spread_of(int tensor, std::int64_t round) const {
  Spread spread{.tensor = {}, .by = {}, .partial = partial_[at(tensor)]};
  for (int d : kernel_.tensors[at(tensor)].dims) {
    spread.tensor.push_back(logical_[at(d)]);
    spread.by.push_back(a_.by[at(d)]);
    if (round % devices_ != 0) spread.shift.push_back(d == a_.ring ? round % devices_ : 0);
  }
  if (!travels(tensor)) spread.shift.clear();
  return spread;
}

std::string Ring::name_of(int tensor) const {
  const auto from = static_cast<int>(a_.from.size());
  if (tensor < from) return "d." + values_.name_of(a_.from[at(tensor)]);
  if (tensor < kernel_.inputs) return values_.name_of(a_.reads[at(tensor - from)]);
  const std::string mark = from > 0 ? "d." : "";
  const auto output = at(tensor - kernel_.inputs);
  if (output < a_.to.size()) return mark + values_.name_of(a_.to[output]);
  return mark + values_.name_of(a_.to[0]) + "." + kernel_.tensors[at(tensor)].name;
}

/// A buffer for a tensor, the one where it still is or a new one: of a value in its format, of what
/// is inside the kernel in fp32.
Held Ring::make(int tensor, std::int64_t round, const std::string& mark) {
  Dtype dtype = Dtype::fp32;
  if (tensor < kernel_.inputs) {
    const auto from = static_cast<int>(a_.from.size());
    dtype = values_.dtype_of(tensor < from ? a_.from[at(tensor)] : a_.reads[at(tensor - from)]);
  } else if (const auto output = at(tensor - kernel_.inputs); output < a_.to.size()) {
    const Held* kept = output < kept_.size() && mark.empty() ? kept_[output] : nullptr;
    if (kept != nullptr && kept->spread == spread_of(tensor, round)) return *kept;
    dtype = values_.dtype_of(a_.to[output]);
  }
  return w_.make(name_of(tensor) + mark, spread_of(tensor, round), dtype);
}

std::vector<Held> Ring::write(const Instruction& call, const std::vector<AxisList>& passed,
                              std::vector<const Held*> kept) {
  call_ = call;
  kept_ = std::move(kept);
  piece_kernel_ = w_.add_kernel(rounds_.piece.kernel);
  std::vector<AxisList> partial = partial_of(rounds_.piece, passed);
  // The sums of pieces are those of the rounds.
  for (AxisList& axes : partial) axes = minus(axes, {axis()});
  for (std::size_t o = 0; o < results_.size(); ++o) partial_[at(results_[o])] = partial[o];
  std::vector<Held> pieces = own_pieces();
  for (std::int64_t round = 0; round < devices_; ++round) {
    const bool last = round + 1 == devices_;
    std::vector<Held> next;
    if (!last) next = passed_on(pieces, pieces_, round + 1);
    work(round, pieces);
    if (!last && round > 0) pass_gradients_on(round + 1);
    for (Held& piece : pieces) w_.drop(piece);
    pieces = std::move(next);
  }
  bring_home();
  finish();
  std::vector<Held> out;
  out.reserve(at(kernel_.outputs));
  for (int o = 0; o < kernel_.outputs; ++o) out.push_back(made_[at(kernel_.inputs + o)]);
  return out;
}

/// The axes along which what a part of the kernel gives is still to be put together, but for sums
/// over the ring's dim.
std::vector<AxisList> Ring::partial_of(const KernelPart& part,
                                       const std::vector<AxisList>& inputs) const {
  std::vector<Division> by;
  by.reserve(part.dims.size());
  for (int d : part.dims) by.push_back(d == a_.ring ? Division{} : a_.by[at(d)]);
  const auto results = results_of(part.kernel, by, inputs);
  ensure(results.has_value(), "complete inputs always have a result");
  std::vector<AxisList> out;
  out.reserve(results->size());
  for (const PartialResult& r : *results) {
    out.push_back(minus(r.axes, {in_.mesh.micro_axis()}));
  }
  return out;
}

/// Round 0 works on what the device has; it stays with those who hold it.
std::vector<Held> Ring::own_pieces() const {
  std::vector<Held> out;
  out.reserve(pieces_.size());
  for (int t : pieces_) {
    out.push_back({.buffer = call_.inputs[at(t)], .spread = spread_of(t, 0), .holders = {}});
  }
  return out;
}

/// What the next device along the ring has, in new buffers.
std::vector<Held> Ring::passed_on(const std::vector<Held>& pieces, const std::vector<int>& tensors,
                                  std::int64_t round) {
  std::vector<Held> next;
  next.reserve(tensors.size());
  for (int t : tensors) next.push_back(make(t, round, ".piece"));
  permute(pieces, next);
  return next;
}

void Ring::permute(const std::vector<Held>& from, const std::vector<Held>& to) {
  Instruction instruction{.kind = InstructionKind::permute};
  for (const Held& held : from) instruction.inputs.push_back(held.buffer);
  for (const Held& held : to) instruction.outputs.push_back(held.buffer);
  instruction.axes = {axis()};
  instruction.shift = 1;
  instruction.label = call_.label;
  w_.add(std::move(instruction));
}

/// One round's call, and what it gives to the sums.
void Ring::work(std::int64_t round, const std::vector<Held>& pieces) {
  Instruction one = call_;
  one.kernel = piece_kernel_;
  for (std::size_t p = 0; p < pieces_.size(); ++p) {
    one.inputs[at(pieces_[p])] = pieces[p].buffer;
  }
  one.positions.clear();
  for (int d : positions_of(rounds_.piece.kernel)) {
    const int original = rounds_.piece.dims[at(d)];
    one.positions.push_back(
        {.dim = d, .by = a_.by[at(original)], .shift = original == a_.ring ? round : 0});
  }
  std::vector<Held> given;
  for (int t : results_) {
    given.push_back(make(t, round, round == 0 ? "" : ".piece"));
    one.outputs.push_back(given.back().buffer);
  }
  w_.add(std::move(one));
  for (std::size_t o = 0; o < results_.size(); ++o) {
    const int t = results_[o];
    if (round == 0) {
      made_[at(t)] = given[o];
    } else if (!travels(t)) {
      add(made_[at(t)], given[o]);
    } else if (round == 1) {
      travelling_.push_back(given[o]);
    } else {
      const auto which = std::ranges::find(gradients_, t) - gradients_.begin();
      add(travelling_[static_cast<std::size_t>(which)], given[o]);
    }
  }
}

void Ring::add(Held& sum, Held& summand) {
  w_.move(InstructionKind::accumulate, summand.buffer, sum.buffer);
  w_.drop(summand);
}

void Ring::pass_gradients_on(std::int64_t round) {
  if (gradients_.empty()) return;
  std::vector<Held> next = passed_on(travelling_, gradients_, round);
  for (Held& held : travelling_) w_.drop(held);
  travelling_ = std::move(next);
}

/// The last step of what goes round ends where it belongs.
void Ring::bring_home() {
  if (travelling_.empty()) return;
  pass_gradients_on(devices_);
  for (std::size_t g = 0; g < gradients_.size(); ++g) {
    add(made_[at(gradients_[g])], travelling_[g]);
  }
  travelling_.clear();
}

/// What follows from the sums over all pieces.
void Ring::finish() {
  if (!rounds_.end) return;
  const KernelPart& end = *rounds_.end;
  const bool again = call_.kind == InstructionKind::recompute;
  Instruction last{.kind = again ? InstructionKind::recompute : InstructionKind::compute};
  last.kernel = w_.add_kernel(end.kernel);
  last.label = call_.label;
  for (int d : positions_of(end.kernel)) {
    last.positions.push_back({.dim = d, .by = a_.by[at(end.dims[at(d)])]});
  }
  std::vector<AxisList> passed;
  for (int i = 0; i < end.kernel.inputs; ++i) {
    const int t = end.tensors[at(i)];
    passed.push_back(partial_[at(t)]);
    last.inputs.push_back(t < kernel_.inputs ? call_.inputs[at(t)] : made_[at(t)].buffer);
  }
  const std::vector<AxisList> partial = partial_of(end, passed);
  for (int o = 0; o < end.kernel.outputs; ++o) {
    const int t = end.tensors[at(end.kernel.inputs + o)];
    partial_[at(t)] = partial[at(o)];
    made_[at(t)] = make(t, 0, "");
    last.outputs.push_back(made_[at(t)].buffer);
  }
  w_.add(std::move(last));
  for (std::size_t t = at(kernel_.inputs + kernel_.outputs); t < made_.size(); ++t) {
    w_.drop(made_[t]);
  }
}

}  // namespace placet
