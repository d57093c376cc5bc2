// Sums that lack something, have something too often, or have another scale.
#include <algorithm>

#include "check/mend_changes.h"
#include "program/instruction_form.h"
#include "units/at.h"

namespace placet {
namespace {

/// Movements between a sum and what reads it.
constexpr int kMostHops = 3;

Instruction reduction(const Instruction& near, const std::vector<BufferRef>& buffers,
                      const AxisList& axes) {
  Instruction what = beside(near, InstructionKind::all_reduce);
  what.axes = axes;
  what.inputs = what.outputs = buffers;
  return what;
}

/// The first wait of a queue for what another one recorded behind the writer; null: there is none.
const Instruction* wait_behind(const MendChanges& changes, const Instruction& writer,
                               Stream stream) {
  const auto& [place, steps] = changes.place_of(writer);
  int event = -1;
  for (std::size_t k = place.at + 1; k < steps->size(); ++k) {
    const Instruction* step = instruction_of((*steps)[k]);
    if (step == nullptr) continue;
    const bool records = step->kind == InstructionKind::record && step->stream == writer.stream;
    if (records && event < 0) event = step->event;
    const bool waits = step->kind == InstructionKind::wait && step->event == event;
    if (event >= 0 && waits && step->stream == stream) return step;
  }
  return nullptr;
}

/// Behind the writer and the wait for it, if the queue of the new instruction waits.
void put_in_order(MendChanges& changes, const Instruction& writer, const Instruction& what) {
  if (writer.stream == what.stream) return changes.put_behind(writer, what);
  const Instruction* wait = wait_behind(changes, writer, what.stream);
  if (wait != nullptr) return changes.put_behind(*wait, what);
  Instruction same = what;
  same.stream = writer.stream;
  changes.put_behind(writer, same);
}

/// Behind the last instruction before the reader that writes one of the buffers, which others may
/// read in between; without one, or where that is asked for, before the reader.
void reduce(MendChanges& changes, const Instruction& reader, const std::vector<BufferRef>& buffers,
            const AxisList& axes, MendSide side) {
  const Instruction what = reduction(reader, buffers, axes);
  const Instruction* writer = changes.writer_before(reader, buffers);
  if (writer != nullptr && side == MendSide::behind_writers) {
    return put_in_order(changes, *writer, what);
  }
  changes.put_before(reader, what);
}

/// What instructions that do the same as the first read in one place, if there are several.
void reduce_at_once(MendChanges& changes, const std::vector<const Instruction*>& readers,
                    std::size_t input, const AxisList& axes, MendSide side) {
  const Instruction& first = *readers.front();
  std::vector<BufferRef> all;
  for (const Instruction* reader : readers) {
    const bool alike = reader->kernel == first.kernel && input < reader->inputs.size() &&
                       changes.place_of(*reader).steps == changes.place_of(first).steps;
    if (alike && !names_buffer(all, reader->inputs[input])) all.push_back(reader->inputs[input]);
  }
  if (all.size() > 1) reduce(changes, first, all, axes, side);
}

void reduce_one_by_one(MendChanges& changes, const Instruction& reader, const AxisList& axes,
                       MendSide side) {
  for (const BufferRef& ref : reader.inputs) {
    // What it changes as well is a state rather than a sum.
    if (names_buffer(reader.outputs, ref)) continue;
    reduce(changes, reader, {ref}, axes, side);
  }
  if (!writes(reader)) return;
  for (const BufferRef& ref : reader.outputs) {
    changes.put_behind(reader, reduction(reader, {ref}, axes));
  }
}

/// Whether what it clears may have been written before: in a procedure always.
bool comes_late(const MendChanges& changes, const Instruction& zero) {
  const auto& [place, steps] = changes.place_of(zero);
  const bool in_procedure = at(place.body) < changes.program().procedures.size();
  if (in_procedure || !place.loops.empty()) return true;
  for (std::size_t k = 0; k < place.at; ++k) {
    const Instruction* other = instruction_of((*steps)[k]);
    const bool makes = other != nullptr && other->kind != InstructionKind::zero && writes(*other) &&
                       names_buffer(other->outputs, zero.outputs[0]);
    if (makes) return true;
  }
  return false;
}

/// Families that the suspects read, and those that flow into them without a kernel.
std::set<int> families_flowing_into(const MendChanges& changes,
                                    const std::vector<Suspect>& suspects) {
  std::set<int> families;
  for (const Suspect& s : suspects) {
    for (const BufferRef& ref : s.instruction->inputs) families.insert(ref.family);
  }
  const auto is_one = [&](const BufferRef& ref) { return families.contains(ref.family); };
  for (int hop = 0; hop < kMostHops; ++hop) {
    for (const Instruction* i : changes.instructions()) {
      const bool flows =
          !calls_kernel(i->kind) && writes(*i) && std::ranges::any_of(i->outputs, is_one);
      if (!flows) continue;
      for (const BufferRef& ref : i->inputs) families.insert(ref.family);
    }
  }
  return families;
}

void rescale(MendChanges& changes, const Instruction& i, const Rational& by) {
  if (i.kind == InstructionKind::scale) {
    Instruction what = i;
    what.factor = what.factor * by;
    what.because.clear();
    const bool does_nothing = what.factor == Rational(1) && i.inputs == i.outputs;
    return does_nothing ? changes.remove(i) : changes.replace(i, what);
  }
  if (!writes(i)) return;
  for (const BufferRef& ref : i.outputs) {
    Instruction what = beside(i, InstructionKind::scale);
    what.inputs = what.outputs = {ref};
    what.kernel = changes.multiple();
    what.factor = by;
    changes.put_behind(i, what);
  }
}

}  // namespace

void mend_missing_sums(MendChanges& changes, const std::vector<Suspect>& suspects, MendSide side) {
  std::vector<AxisList> tried;
  for (const Suspect& s : suspects) {
    if (s.missing.empty() || std::ranges::find(tried, s.missing) != tried.end()) continue;
    tried.push_back(s.missing);
    std::vector<const Instruction*> readers;
    for (const Suspect& other : suspects) {
      if (other.missing == s.missing) readers.push_back(other.instruction);
    }
    // All at once, as one bucket is, then one by one.
    for (std::size_t k = 0; k < readers.front()->inputs.size(); ++k) {
      reduce_at_once(changes, readers, k, s.missing, side);
    }
    for (const Instruction* reader : readers) reduce_one_by_one(changes, *reader, s.missing, side);
  }
}

void mend_scale(MendChanges& changes, const Suspect& suspect) {
  if (suspect.scale) rescale(changes, *suspect.instruction, Rational(1) / *suspect.scale);
}

void mend_cleared_sums(MendChanges& changes, const std::vector<Suspect>& suspects) {
  const std::set<int> families = families_flowing_into(changes, suspects);
  for (const Instruction* i : changes.instructions()) {
    const bool clears = i->kind == InstructionKind::zero &&
                        families.contains(i->outputs[0].family) && comes_late(changes, *i);
    if (clears) changes.remove(*i);
  }
}

}  // namespace placet
