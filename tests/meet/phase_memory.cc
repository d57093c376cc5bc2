#include <algorithm>
#include <utility>

#include "meet/meeting.h"
#include "program/sizes.h"
#include "program/walk.h"
#include "units/at.h"

namespace placet::testing {
namespace {

bool is_number(const Family& family) {
  return family.type.flat.empty() &&
         std::ranges::all_of(family.type.pieces, [](const PieceType& p) { return p.dims.empty(); });
}

/// Bytes of one element of each family; none of what is not counted.
std::vector<std::int64_t> sizes_of(const Program& program, const DeviceClass& own,
                                   const ProgramCoordinates& where) {
  std::vector<std::int64_t> sizes;
  for (const Family& family : program.families) {
    const bool counts = !family.on_host && !is_number(family);
    sizes.push_back(counts ? in_bytes(stored_bytes(program, family.type, where)) : 0);
  }
  for (const Initial& initial : own.initial) {
    const bool sample = initial.pieces.front().kind == StateRef::Kind::input;
    if (sample) sizes[at(initial.buffer.family)] = 0;
  }
  return sizes;
}

class PhaseCount {
 public:
  explicit PhaseCount(std::vector<std::int64_t> sizes)
      : sizes_(std::move(sizes)), alive_(sizes_.size(), 0) {}

  void add(const BufferRef& ref, std::int64_t sign) {
    alive_[at(ref.family)] += sign;
    now_ += sign * sizes_[at(ref.family)];
  }

  void look(StepPhase phase) {
    if (phase == StepPhase::reduce) phase = StepPhase::update;
    const auto p = static_cast<std::size_t>(phase);
    if (now_ <= most_[p]) return;
    most_[p] = now_;
    snapshot_[p] = alive_;
  }

  std::array<PhaseMemory, 4> take() const {
    std::array<PhaseMemory, 4> out;
    for (std::size_t p = 0; p < out.size(); ++p) {
      out[p].bytes = bytes(most_[p]);
      for (std::size_t f = 0; f < snapshot_[p].size(); ++f) {
        const std::int64_t own = snapshot_[p][f] * sizes_[f];
        if (own > 0)
          out[p].families.push_back({.family = static_cast<int>(f), .bytes = bytes(own)});
      }
    }
    return out;
  }

 private:
  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> alive_;  // elements by family
  std::int64_t now_ = 0;
  std::array<std::int64_t, 4> most_{};
  std::array<std::vector<std::int64_t>, 4> snapshot_;
};

}  // namespace

std::array<PhaseMemory, 4> phase_memory(const Program& program, int device_class,
                                        const ProgramCoordinates& where) {
  const DeviceClass& own = program.classes[at(device_class)];
  PhaseCount count(sizes_of(program, own, where));
  for (const Initial& initial : own.initial) count.add(initial.buffer, 1);
  for_each_instruction(program, own.body, {}, [&](const Instruction& i, const Arguments&) {
    if (i.kind == InstructionKind::alloc) {
      for (const BufferRef& ref : i.outputs) count.add(ref, 1);
      return;
    }
    count.look(i.phase);
    if (i.kind != InstructionKind::free) return;
    for (const BufferRef& ref : i.inputs) count.add(ref, -1);
  });
  return count.take();
}

}  // namespace placet::testing
