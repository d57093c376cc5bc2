#include "lower/writer.h"

#include <algorithm>

#include "program/kernel_text.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

/// A division without some axes; levels that become empty vanish.
Division without(Division division, const AxisList& axes) {
  for (AxisList& level : division) level = minus(level, axes);
  std::erase_if(division, [](const AxisList& level) { return level.empty(); });
  return division;
}

}  // namespace

bool has(const AxisList& axes, int axis) { return std::ranges::find(axes, axis) != axes.end(); }

AxisList minus(const AxisList& a, const AxisList& b) {
  AxisList out;
  std::ranges::copy_if(a, std::back_inserter(out), [&](int x) { return !has(b, x); });
  return out;
}

AxisList common(const AxisList& a, const AxisList& b) {
  AxisList out;
  std::ranges::copy_if(a, std::back_inserter(out), [&](int x) { return has(b, x); });
  return out;
}

AxisList united(const AxisList& a, const AxisList& b) {
  AxisList out = a;
  for (int x : b) {
    if (!has(out, x)) out.push_back(x);
  }
  std::ranges::sort(out);
  return out;
}

AxisList axes_of(const Division& division) {
  AxisList out;
  for (const AxisList& level : division) out.insert(out.end(), level.begin(), level.end());
  return out;
}

BufferType type_of(const Spread& spread, Dtype dtype) {
  BufferType type{.dtype = dtype, .pieces = {{}}, .flat = {}};
  for (std::size_t d = 0; d < spread.tensor.size(); ++d) {
    type.pieces[0].dims.push_back({.dim = spread.tensor[d],
                                   .by = spread.by[d],
                                   .shift = spread.shift.empty() ? 0 : spread.shift[d]});
  }
  return type;
}

int Writer::add_kernel(const Kernel& kernel) {
  const auto [found, fresh] =
      kernels_.try_emplace(to_text(kernel), static_cast<int>(program_.kernels.size()));
  if (!fresh) return found->second;
  Kernel named = kernel;
  int number = 1;
  while (std::ranges::any_of(program_.kernels,
                             [&](const Kernel& k) { return k.name == named.name; })) {
    named.name = kernel.name + "." + std::to_string(++number);
  }
  program_.kernels.push_back(std::move(named));
  return found->second;
}

int Writer::family(const std::string& name, const BufferType& type, Indexing indexing,
                   bool on_host) {
  const bool unit = indexing == Indexing::unit || indexing == Indexing::unit_and_micro_batch;
  const bool micro =
      indexing == Indexing::micro_batch || indexing == Indexing::unit_and_micro_batch;
  Family family{
      .name = name, .type = type, .by_unit = unit, .by_micro_batch = micro, .on_host = on_host};
  for (int number = 1;; ++number) {
    if (number > 1) family.name = name + "." + std::to_string(number);
    const auto [found, fresh] =
        families_.try_emplace(family.name, static_cast<int>(program_.families.size()));
    if (fresh) program_.families.push_back(family);
    if (program_.families[at(found->second)] == family) return found->second;
  }
}

BufferRef Writer::here(int family) const {
  const Family& f = family_at(family);
  BufferRef ref{.family = family};
  if (f.by_unit) ref.unit.variable = IndexTerm::Variable::unit;
  if (f.by_micro_batch) ref.micro_batch.variable = IndexTerm::Variable::micro_batch;
  return ref;
}

Held Writer::make(const std::string& name, const Spread& spread, Dtype dtype, Indexing indexing) {
  return make_unused(name, spread, dtype, indexing, false);
}

Held Writer::make_on_host(const std::string& name, const Spread& spread, Dtype dtype) {
  return make_unused(name, spread, dtype, Indexing::unit_and_micro_batch, true);
}

Held Writer::make_unused(const std::string& name, const Spread& spread, Dtype dtype,
                         Indexing indexing, bool on_host) {
  std::string unused = name;
  for (int number = 2;; ++number) {
    const BufferRef ref = here(family(unused, type_of(spread, dtype), indexing, on_host));
    if (std::ranges::find(alive_, ref) == alive_.end()) return make_at(ref, spread);
    unused = name + "." + std::to_string(number);
  }
}

Held Writer::make_at(const BufferRef& ref, const Spread& spread) {
  alloc(ref);
  alive_.push_back(ref);
  return {.buffer = ref, .spread = spread, .holders = std::make_shared<int>(1)};
}

void Writer::drop(Held& held) {
  if (!held.holders) return;
  if (--*held.holders == 0) {
    free(held.buffer);
    std::erase(alive_, held.buffer);
  }
  held.holders.reset();
}

Instruction& Writer::add(Instruction instruction) {
  instruction.phase = phase_;
  body_->push_back({std::move(instruction)});
  return std::get<Instruction>(body_->back().what);
}

void Writer::alloc(const BufferRef& ref) {
  Instruction instruction{.kind = InstructionKind::alloc};
  instruction.outputs = {ref};
  add(std::move(instruction));
}

void Writer::free(const BufferRef& ref) {
  Instruction instruction{.kind = InstructionKind::free};
  instruction.inputs = {ref};
  add(std::move(instruction));
}

void Writer::zero(const BufferRef& ref) {
  Instruction instruction{.kind = InstructionKind::zero};
  instruction.outputs = {ref};
  add(std::move(instruction));
}

void Writer::move(InstructionKind kind, const BufferRef& from, const BufferRef& to) {
  Instruction instruction{.kind = kind};
  instruction.inputs = {from};
  instruction.outputs = {to};
  add(std::move(instruction));
}

void Writer::reduce(std::vector<BufferRef> buffers, const AxisList& axes, Combine op,
                    const std::string& label, const std::vector<std::int64_t>& among) {
  if (axes.empty() || buffers.empty()) return;
  Instruction instruction{.kind = InstructionKind::all_reduce};
  instruction.inputs = buffers;
  instruction.outputs = std::move(buffers);
  instruction.axes = axes;
  instruction.op = op;
  instruction.label = label;
  instruction.among = among;
  add(std::move(instruction));
}

/// What must happen along which axes, dim by dim.
struct Writer::Moves {
  struct Step {
    InstructionKind kind = InstructionKind::all_gather;
    AxisList axes;
    int dim = kFlat;   // along which parts are taken or put together
    int into = kFlat;  // all-to-all

    /// How a value lies after the step on its way to the divisions `by`.
    Spread applied(Spread spread, const std::vector<Division>& by) const {
      Division& own = spread.by[at(dim)];
      if (kind == InstructionKind::reduce_scatter) spread.partial = minus(spread.partial, axes);
      if (kind == InstructionKind::all_gather) {
        own = without(own, axes);
        return spread;
      }
      if (kind == InstructionKind::all_to_all) {
        spread.by[at(into)] = without(spread.by[at(into)], axes);
      }
      own.push_back(axes);
      const AxisList wanted = axes_of(by[at(dim)]);
      const AxisList got = axes_of(own);
      const bool arrived = minus(wanted, got).empty() && minus(got, wanted).empty();
      if (arrived) own = by[at(dim)];
      return spread;
    }
  };
  AxisList reduced;
  std::vector<Step> scatters, slices, exchanges, gathers;
  std::vector<Step> early;  // exchanges that come before the scatters
  std::vector<Step> first;  // gathers that come before the other exchanges

  /// Divides a dim along an axis, which sums are still partial along, or which another dim loses
  /// to it (-1: none does).
  void divide(int axis, int dim, int other) {
    if (has(reduced, axis)) {
      note(scatters, InstructionKind::reduce_scatter, axis, dim, kFlat);
      std::erase(reduced, axis);
    } else if (other >= 0) {
      note(exchanges, InstructionKind::all_to_all, axis, dim, other);
    } else {
      note(slices, InstructionKind::slice, axis, dim, kFlat);
    }
  }

  static void note(std::vector<Step>& steps, InstructionKind kind, int axis, int dim, int into) {
    for (Step& s : steps) {
      if (s.dim == dim && s.into == into) return s.axes.push_back(axis);
    }
    steps.push_back({.kind = kind, .axes = {axis}, .dim = dim, .into = into});
  }
};

namespace {

/// The dim that an axis divides before and not after; -1: none.
int dim_that_loses(const Spread& from, const std::vector<Division>& by, int axis) {
  for (std::size_t d = 0; d < by.size(); ++d) {
    if (has(axes_of(from.by[d]), axis) && !has(axes_of(by[d]), axis)) return static_cast<int>(d);
  }
  return -1;
}

}  // namespace

Writer::Moves Writer::moves_between(const Spread& from, const std::vector<Division>& by) const {
  Moves moves;
  moves.reduced = from.partial;
  AxisList exchanged;
  for (std::size_t d = 0; d < by.size(); ++d) {
    for (int a : minus(axes_of(by[d]), axes_of(from.by[d]))) {
      const int other = has(from.partial, a) ? -1 : dim_that_loses(from, by, a);
      moves.divide(a, static_cast<int>(d), other);
      if (other >= 0) exchanged.push_back(a);
    }
  }
  for (std::size_t d = 0; d < by.size(); ++d) {
    for (int a : minus(minus(axes_of(from.by[d]), axes_of(by[d])), exchanged)) {
      Moves::note(moves.gathers, InstructionKind::all_gather, a, static_cast<int>(d), kFlat);
    }
  }
  return moves;
}

/// What is put together along one dim is so from its innermost division outwards, what is divided
/// from the outermost inwards.
void Writer::put_in_order(Moves& moves, const Spread& from, const std::vector<Division>& by) {
  const auto place = [](const Division& division, int axis) {
    const AxisList axes = axes_of(division);
    return std::ranges::find(axes, axis) - axes.begin();
  };
  std::ranges::stable_sort(moves.exchanges, [&](const Moves::Step& a, const Moves::Step& b) {
    if (a.dim == b.dim) {
      return place(by[at(a.dim)], a.axes[0]) < place(by[at(a.dim)], b.axes[0]);
    }
    if (a.into != b.into) return a.into < b.into;
    return place(from.by[at(a.into)], a.axes[0]) > place(from.by[at(a.into)], b.axes[0]);
  });
  std::erase_if(moves.gathers, [&](const Moves::Step& gather) {
    const bool inside = std::ranges::any_of(moves.exchanges, [&](const Moves::Step& exchange) {
      const Division& division = from.by[at(gather.dim)];
      return exchange.into == gather.dim &&
             place(division, gather.axes[0]) > place(division, exchange.axes[0]);
    });
    if (inside) moves.first.push_back(gather);
    return inside;
  });
  std::erase_if(moves.exchanges, [&](const Moves::Step& exchange) {
    const bool outside = std::ranges::any_of(moves.scatters, [&](const Moves::Step& scatter) {
      const Division& division = by[at(scatter.dim)];
      return exchange.dim == scatter.dim &&
             place(division, exchange.axes[0]) < place(division, scatter.axes[0]);
    });
    if (outside) moves.early.push_back(exchange);
    return outside;
  });
}

Held Writer::result_of(const Held& from, const Spread& spread, const std::string& name,
                       const BufferRef* into) {
  if (into != nullptr) return make_at(*into, spread);
  const Family& source = family_at(from.buffer.family);
  const bool unit = source.by_unit;
  const bool micro = source.by_micro_batch;
  const Indexing indexing = unit && micro ? Indexing::unit_and_micro_batch
                            : unit        ? Indexing::unit
                            : micro       ? Indexing::micro_batch
                                          : Indexing::none;
  Held made = make(name, spread, source.type.dtype, indexing);
  return made;
}

Held Writer::brought(const Held& from, const std::vector<Division>& by, const std::string& name,
                     const BufferRef* into) {
  return move_all(from, by, name, into, true);
}

Held Writer::divided(const Held& from, const std::vector<Division>& by, const std::string& name) {
  return move_all(from, by, name, nullptr, false);
}

Held Writer::move_all(const Held& from, const std::vector<Division>& by, const std::string& name,
                      const BufferRef* into, bool sums) {
  Moves moves = moves_between(from.spread, by);
  const AxisList left = sums ? AxisList{} : moves.reduced;
  if (!sums) moves.reduced.clear();
  put_in_order(moves, from.spread, by);
  std::vector<Moves::Step> steps = moves.early;
  steps.insert(steps.end(), moves.scatters.begin(), moves.scatters.end());
  const std::size_t reduced_after = steps.size();
  for (const auto* list : {&moves.slices, &moves.first, &moves.exchanges, &moves.gathers}) {
    steps.insert(steps.end(), list->begin(), list->end());
  }
  Held now = from;
  if (now.holders) ++*now.holders;
  const auto reduce_rest = [&] {
    if (moves.reduced.empty()) return;
    reduce({now.buffer}, moves.reduced, now.spread.op, name);
    now.spread.partial.clear();
  };
  if (reduced_after == 0) reduce_rest();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Moves::Step& step = steps[i];
    const bool last = i + 1 == steps.size();
    Held next = result_of(now, step.applied(now.spread, by), name, last ? into : nullptr);
    Instruction instruction{.kind = step.kind};
    instruction.inputs = {now.buffer};
    instruction.outputs = {next.buffer};
    instruction.axes = step.axes;
    instruction.dim = step.dim;
    instruction.into = step.into;
    instruction.op = now.spread.op;
    instruction.label = name;
    add(std::move(instruction));
    drop(now);
    now = next;
    if (i + 1 == reduced_after) reduce_rest();
  }
  if (steps.empty() && into != nullptr && !(now.buffer == *into)) {
    Held next = make_at(*into, now.spread);
    move(InstructionKind::copy, now.buffer, next.buffer);
    drop(now);
    now = next;
  }
  now.spread.partial = left;
  return now;
}

}  // namespace placet
