// An instruction written otherwise, or standing elsewhere.
#include <algorithm>
#include <array>
#include <optional>

#include "check/mend_changes.h"
#include "program/instruction_form.h"

namespace placet {
namespace {

/// How far an instruction is moved.
constexpr std::size_t kFarthestMove = 16;

bool shares_buffer(const Instruction& a, const Instruction& b) {
  const auto any_of_b = [&](const BufferRef& r) {
    return names_buffer(b.inputs, r) || names_buffer(b.outputs, r);
  };
  return std::ranges::any_of(a.inputs, any_of_b) || std::ranges::any_of(a.outputs, any_of_b);
}

void clear_before(MendChanges& changes, const Instruction& i) {
  if (i.kind != InstructionKind::accumulate && !is_collective(i.kind)) return;
  for (const BufferRef& ref : i.outputs) {
    Instruction zero = beside(i, InstructionKind::zero);
    zero.outputs = {ref};
    changes.put_before(i, zero);
  }
}

void combine(MendChanges& changes, const Instruction& i) {
  if (!form_of(i.kind).op) return;
  Instruction what = i;
  what.op = i.op == Combine::sum ? Combine::max : Combine::sum;
  changes.replace(i, what);
}

/// The kind that does another thing to the same buffers; none: there is none.
std::optional<InstructionKind> other_kind(InstructionKind kind) {
  using Kind = InstructionKind;
  constexpr std::array<std::pair<Kind, Kind>, 3> kPairs = {{{Kind::all_reduce, Kind::broadcast},
                                                            {Kind::reduce_scatter, Kind::slice},
                                                            {Kind::accumulate, Kind::copy}}};
  for (const auto& [one, other] : kPairs) {
    if (kind == one) return other;
    if (kind == other) return one;
  }
  return std::nullopt;
}

void change_kind(MendChanges& changes, const Instruction& i) {
  const std::optional<InstructionKind> kind = other_kind(i.kind);
  if (!kind || i.inputs.size() != i.outputs.size()) return;
  const bool one_pair = form_of(*kind).buffers == InstructionForm::Buffers::pair;
  if (one_pair && i.inputs.size() != 1) return;
  Instruction what = beside(i, *kind);
  what.inputs = i.inputs;
  what.outputs = i.outputs;
  what.axes = i.axes;
  what.dim = i.dim;
  what.label = i.label;
  changes.replace(i, what);
}

/// Its own part rather than that of another device.
void take_own(MendChanges& changes, const Instruction& i) {
  if (i.shift == 0) return;
  Instruction what = i;
  what.shift = 0;
  changes.replace(i, what);
}

/// Random numbers drawn for what the others that draw are drawn for.
void rekey(MendChanges& changes, const Instruction& i) {
  if (i.key.name.empty()) return;
  for (const Instruction* other : changes.instructions()) {
    if (other->key.name.empty() || other->key == i.key) continue;
    Instruction what = i;
    what.key = other->key;
    changes.replace(i, what);
  }
}

}  // namespace

void mend_groups(MendChanges& changes, const Instruction& i) {
  if (!form_of(i.kind).axes) return;
  const AxisList& axes = changes.axes();
  for (std::size_t set = 1; set < std::size_t{1} << axes.size(); ++set) {
    Instruction what = i;
    what.axes.clear();
    for (std::size_t a = 0; a < axes.size(); ++a) {
      if ((set >> a & 1U) != 0) what.axes.push_back(axes[a]);
    }
    if (form_of(i.kind).one_axis && what.axes.size() > 1) continue;
    if (what.axes != i.axes) what.among.clear();
    changes.replace(i, what);
  }
}

void mend_variations(MendChanges& changes, const Instruction& i) {
  clear_before(changes, i);
  mend_groups(changes, i);
  combine(changes, i);
  change_kind(changes, i);
  take_own(changes, i);
  rekey(changes, i);
}

void mend_waits(MendChanges& changes, const Instruction& i) {
  const auto& [place, steps] = changes.place_of(i);
  for (std::size_t k = place.at; k-- > 0;) {
    const Instruction* other = instruction_of((*steps)[k]);
    if (other == nullptr) continue;
    if (other->kind != InstructionKind::record || other->stream == i.stream) continue;
    Instruction what = beside(i, InstructionKind::wait);
    what.event = other->event;
    return changes.put_before(i, what);
  }
}

void mend_records(MendChanges& changes, const Instruction& i) {
  const auto& [place, steps] = changes.place_of(i);
  const Instruction* writer = changes.writer_before(i, i.inputs);
  // What a loop or a call before it writes, the first queue has made.
  Instruction what{.kind = InstructionKind::record};
  if (writer != nullptr) what = beside(*writer, InstructionKind::record);
  if (what.stream == i.stream) return;
  const std::size_t first = writer == nullptr ? 0 : changes.place_of(*writer).place.at;
  for (std::size_t k = place.at; k-- > first;) {
    const Instruction* other = instruction_of((*steps)[k]);
    if (other == nullptr || other->kind != InstructionKind::wait) continue;
    if (other->stream != i.stream) continue;
    what.event = other->event;
    return changes.put_before(*other, what);
  }
}

namespace {

/// Before and behind a step that uses one of its buffers; exchanged with one of its kind; and a
/// record or wait of its queue next to it.
void mend_order_with(MendChanges& changes, const Instruction& i, std::size_t k) {
  const auto& [place, steps] = changes.place_of(i);
  const Instruction* other = instruction_of((*steps)[k]);
  if (other == nullptr || k == place.at) return;
  const bool shared = shares_buffer(i, *other);
  const bool orders = form_of(other->kind).event && other->stream == i.stream;
  if (shared) {
    changes.move(i, k);
    changes.move(i, k + 1);
  }
  if (shared || orders) changes.move(*other, k < place.at ? place.at + 1 : place.at);
  if (i.kind == other->kind) changes.exchange(i, *other);
}

}  // namespace

void mend_order(MendChanges& changes, const Instruction& i) {
  const auto& [place, steps] = changes.place_of(i);
  const std::size_t first = place.at < kFarthestMove ? 0 : place.at - kFarthestMove;
  const std::size_t last = std::min(steps->size(), place.at + kFarthestMove + 1);
  for (std::size_t k = first; k < last; ++k) mend_order_with(changes, i, k);
}

}  // namespace placet
