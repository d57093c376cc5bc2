#include "ranks/buffer_states.h"

#include <algorithm>

#include "units/at.h"

namespace placet::ranks {

BufferStates::BufferStates(const Program& program, const Listing& listing)
    : program_(program), listing_(listing), alive_(listing.slots.size(), 0) {
  std::size_t pieces = 0;
  for (const Slot& slot : listing.slots) {
    first_.push_back(pieces);
    pieces += program.families[at(slot.family)].type.pieces.size();
  }
  first_.push_back(pieces);
  written_.assign(pieces, 0);
}

template <class Visit>
void BufferStates::for_each_piece(const ListedRef& ref, Visit visit) const {
  const std::size_t first = first_[at(ref.slot)];
  if (ref.piece >= 0) return visit(first + at(ref.piece));
  for (std::size_t p = first; p < first_[at(ref.slot) + 1]; ++p) visit(p);
}

std::string BufferStates::name_of(const ListedRef& ref) const {
  const Slot& slot = listing_.slots[at(ref.slot)];
  const Family& family = program_.families[at(slot.family)];
  std::string name = "the buffer '" + family.name + "'";
  if (family.by_unit) name += " of unit " + std::to_string(slot.unit);
  if (family.by_micro_batch) name += " of micro-batch " + std::to_string(slot.micro_batch);
  return name;
}

void BufferStates::begin_with(const ListedRef& ref) {
  alive_[at(ref.slot)] = 1;
  for_each_piece(ref, [&](std::size_t p) { written_[p] = 1; });
}

std::string BufferStates::reads(const ListedRef& ref) const {
  if (alive_[at(ref.slot)] == 0) return name_of(ref) + " is read, but not alive";
  bool all = true;
  for_each_piece(ref, [&](std::size_t p) { all = all && written_[p] != 0; });
  return all ? "" : name_of(ref) + " is read, but was never written";
}

std::string BufferStates::writes(const ListedRef& ref) {
  if (alive_[at(ref.slot)] == 0) return name_of(ref) + " is written, but not alive";
  for_each_piece(ref, [&](std::size_t p) { written_[p] = 1; });
  return "";
}

std::string BufferStates::start_or_end(const ListedRef& ref, bool ends) {
  const bool is_alive = alive_[at(ref.slot)] != 0;
  if (ends && !is_alive) return name_of(ref) + " is freed, but not alive";
  if (!ends && is_alive) return name_of(ref) + " is allocated, but alive already";
  alive_[at(ref.slot)] = ends ? 0 : 1;
  for_each_piece({.slot = ref.slot}, [&](std::size_t p) { written_[p] = 0; });
  return "";
}

std::string BufferStates::run(const ListedInstruction& instruction, bool gives) {
  const InstructionKind kind = instruction.what->kind;
  const bool ends = kind == InstructionKind::free;
  std::string problem;
  const auto take_all = [&](const std::vector<ListedRef>& refs, auto&& what_of) {
    for (std::size_t i = 0; i < refs.size() && problem.empty(); ++i) problem = what_of(refs[i]);
  };
  if (ends || kind == InstructionKind::alloc) {
    const auto change = [&](const ListedRef& ref) { return start_or_end(ref, ends); };
    take_all(instruction.inputs, change);
    take_all(instruction.outputs, change);
    return problem;
  }
  const auto read = [&](const ListedRef& ref) { return reads(ref); };
  const bool reads_inputs =
      kind != InstructionKind::zero && (kind != InstructionKind::broadcast || gives);
  if (reads_inputs) take_all(instruction.inputs, read);
  if (kind == InstructionKind::accumulate) take_all(instruction.outputs, read);
  take_all(instruction.outputs, [&](const ListedRef& ref) { return writes(ref); });
  return problem;
}

}  // namespace placet::ranks
