// What an instruction needs and nothing before it makes.
#include <algorithm>

#include "check/mend_changes.h"
#include "program/instruction_form.h"
#include "program/tensor.h"
#include "units/at.h"

namespace placet {
namespace {

/// One instruction that makes a buffer from another, whose parts lie otherwise along one dim or the
/// row: a gather, or a scatter or a slice.
void bring_along(MendChanges& changes, const Instruction& i, Instruction what, const Division& from,
                 const Division& to) {
  const bool gathers = from.size() > to.size();
  const Division& longer = gathers ? from : to;
  const Division& shorter = gathers ? to : from;
  const auto rest = longer.begin() + static_cast<std::ptrdiff_t>(shorter.size());
  if (!std::ranges::equal(shorter, Division(longer.begin(), rest))) return;
  for (auto level = rest; level != longer.end(); ++level) {
    what.axes.insert(what.axes.end(), level->begin(), level->end());
  }
  if (gathers) {
    what.kind = InstructionKind::all_gather;
    return changes.put_before(i, what);
  }
  what.kind = InstructionKind::reduce_scatter;
  changes.put_before(i, what);
  what.kind = InstructionKind::slice;
  changes.put_before(i, what);
}

/// One instruction that makes `to` from `from`, as their types say.
void bring(MendChanges& changes, const Instruction& i, const BufferRef& from, const BufferRef& to) {
  const std::vector<Family>& families = changes.program().families;
  const BufferType& mine = families[at(from.family)].type;
  const BufferType& theirs = families[at(to.family)].type;
  Instruction what = beside(i, InstructionKind::copy);
  what.inputs = {from};
  what.outputs = {to};
  if (mine.pieces == theirs.pieces && mine.flat == theirs.flat) return changes.put_before(i, what);
  if (mine.pieces == theirs.pieces) {
    what.dim = kFlat;
    return bring_along(changes, i, what, one_by_one(mine.flat), one_by_one(theirs.flat));
  }
  if (mine.pieces.size() != 1 || theirs.pieces.size() != 1) return;
  const std::vector<DividedDim>& a = mine.pieces[0].dims;
  const std::vector<DividedDim>& b = theirs.pieces[0].dims;
  if (!std::ranges::equal(a, b, {}, &DividedDim::dim, &DividedDim::dim)) return;
  for (std::size_t d = 0; d < a.size(); ++d) {
    what.dim = static_cast<int>(d);
    if (a[d].by != b[d].by) bring_along(changes, i, what, a[d].by, b[d].by);
  }
}

/// A sum that lacks what is never read: each sum of the program with that type.
void add_up(MendChanges& changes, const Instruction& source, const BufferRef& from) {
  const std::vector<Family>& families = changes.program().families;
  std::set<int> tried;
  for (const Instruction* other : changes.instructions()) {
    if (other->kind != InstructionKind::accumulate) continue;
    const BufferRef& sum = other->outputs[0];
    const bool fits = families[at(sum.family)].type.pieces == families[at(from.family)].type.pieces;
    if (!fits || !tried.insert(sum.family).second) continue;
    Instruction what = *other;
    what.inputs = {from};
    changes.put_behind(source, what);
  }
}

/// What is written before the instruction and never read, moved to where it reads.
void bring_unread(MendChanges& changes, const Instruction& i) {
  const auto& [place, steps] = changes.place_of(i);
  for (std::size_t k = place.at; k-- > 0;) {
    const Instruction* source = instruction_of((*steps)[k]);
    if (source == nullptr || !writes(*source)) continue;
    for (const BufferRef& from : source->outputs) {
      if (changes.is_read(from.family)) continue;
      for (const BufferRef& to : i.inputs) bring(changes, i, from, to);
      add_up(changes, *source, from);
    }
  }
}

/// Fields as another instruction has them that does the same to the same buffers, or elsewhere.
void like_others(MendChanges& changes, const Instruction& i) {
  for (const Instruction* other : changes.instructions()) {
    const bool same = other->kind == i.kind && other->kernel == i.kernel &&
                      other->inputs.size() == i.inputs.size() &&
                      other->outputs.size() == i.outputs.size();
    if (!same || other == &i || other->outputs != i.outputs) continue;
    Instruction what = *other;
    what.inputs = i.inputs;
    what.stream = i.stream;
    what.label = i.label;
    what.line = i.line;
    changes.replace(i, what);
  }
}

bool is_there_from_the_start(const Program& program, int family) {
  return std::ranges::any_of(program.classes, [&](const DeviceClass& c) {
    return std::ranges::any_of(
        c.initial, [&](const Initial& initial) { return initial.buffer.family == family; });
  });
}

}  // namespace

void mend_beginnings(MendChanges& changes, const Instruction& i) {
  const auto& [place, steps] = changes.place_of(i);
  const auto begins = [&](const BufferRef& ref) {
    return std::any_of(steps->begin(), steps->begin() + static_cast<std::ptrdiff_t>(place.at),
                       [&](const Step& step) {
                         const Instruction* other = instruction_of(step);
                         return other != nullptr && other->kind == InstructionKind::alloc &&
                                names_buffer(other->outputs, ref);
                       });
  };
  for (const std::vector<BufferRef>* list : {&i.outputs, &i.inputs}) {
    for (const BufferRef& ref : *list) {
      if (begins(ref) || is_there_from_the_start(changes.program(), ref.family)) continue;
      Instruction what = beside(i, InstructionKind::alloc);
      what.outputs = {ref};
      what.outputs[0].piece = -1;
      changes.put_before(i, what);
    }
  }
}

void mend_supply(MendChanges& changes, const Instruction& i) {
  bring_unread(changes, i);
  like_others(changes, i);
}

}  // namespace placet
