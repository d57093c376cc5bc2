// Changes of one instruction each, as they are gathered (docs/theory.md §6.5). Inside of check/.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "check/mend_candidates.h"

namespace placet {

/// The steps of a program with their places, and the changes that were thought of, each once.
class MendChanges {
 public:
  /// A list of steps: a body, or that of a loop in it. Of an instruction: where it stands.
  struct Listed {
    MendPlace place;
    const std::vector<Step>* steps = nullptr;
  };

  MendChanges(const Program& program, int multiple);

  const Program& program() const { return program_; }
  /// The number of a kernel y = x.
  int multiple() const { return multiple_; }
  /// Axes of the mesh that groups are made of.
  const AxisList& axes() const { return axes_; }
  const std::vector<Listed>& lists() const { return lists_; }
  const std::vector<const Instruction*>& instructions() const { return all_; }
  const Listed& place_of(const Instruction& i) const { return places_.at(&i); }
  /// Whether some instruction reads a buffer of the family.
  bool is_read(int family) const { return read_.contains(family); }
  /// The last instruction before another one in the same steps that writes one of the buffers, more
  /// than a clear; null: there is none.
  const Instruction* writer_before(const Instruction& i,
                                   const std::vector<BufferRef>& buffers) const;

  void put_before(const Instruction& i, const Instruction& what);
  void put_behind(const Instruction& i, const Instruction& what);
  /// Before the step at a place, which may be one past the end.
  void put_at(const MendPlace& place, const Instruction& what);
  void replace(const Instruction& i, const Instruction& what);
  void remove(const Instruction& i);
  /// Before the step that is at `to` now.
  void move(const Instruction& i, std::size_t to);
  /// Each in the other's place, of two in the same steps.
  void exchange(const Instruction& i, const Instruction& other);

  std::vector<MendCandidate> take() { return std::move(out_); }

 private:
  void add_places(const MendPlace& around, const std::vector<Step>& steps);
  std::string quoted(const Instruction& i) const;
  void add(const MendPlace& place, std::vector<Splice> splices, std::string change);

  const Program& program_;
  int multiple_ = 0;
  std::vector<Listed> lists_;
  std::map<const Instruction*, Listed> places_;
  std::vector<const Instruction*> all_;
  std::set<int> read_;  // families
  AxisList axes_;
  std::set<std::string> known_;
  std::vector<MendCandidate> out_;
};

/// The instruction that a step is; null: a call or a loop.
const Instruction* instruction_of(const Step& step);

/// Whether it puts numbers into its outputs.
bool writes(const Instruction& i);

/// An instruction on the same queue with nothing else said.
Instruction beside(const Instruction& i, InstructionKind kind);

// --- what might mend, by where the thought comes from

/// Bodies that are alike but for one step, or but for the place of one.
void mend_like_other_bodies(MendChanges& changes);

/// Where a new instruction goes that makes up for something: behind what writes its buffers, or
/// before what reads them.
enum class MendSide : std::uint8_t { behind_writers, before_readers };

/// Sums over the axes along which parts are missing, of what the suspects read.
void mend_missing_sums(MendChanges& changes, const std::vector<Suspect>& suspects, MendSide side);
/// What an instruction makes divided by what is too much.
void mend_scale(MendChanges& changes, const Suspect& suspect);
/// Clears of what flows into the suspects that come too often.
void mend_cleared_sums(MendChanges& changes, const std::vector<Suspect>& suspects);

/// A collective that other devices of its group do not come to, for those, too.
void mend_missing_members(MendChanges& changes, const Instruction& i);

/// What is read and never written, from what is written and never read.
void mend_unwritten(MendChanges& changes);

/// What an instruction reads and nothing before it makes: brought there, added up, or as another
/// instruction has it that does the same elsewhere.
void mend_supply(MendChanges& changes, const Instruction& i);
/// Allocations of buffers that an instruction uses and nothing before it begins.
void mend_beginnings(MendChanges& changes, const Instruction& i);

/// The instruction with another group, operation, kind, key or part, or a clear before it.
void mend_variations(MendChanges& changes, const Instruction& i);
/// The instruction over other groups.
void mend_groups(MendChanges& changes, const Instruction& i);
/// A wait before the instruction for what is recorded before it.
void mend_waits(MendChanges& changes, const Instruction& i);
/// A record behind what makes its inputs, for a wait that stands between the two.
void mend_records(MendChanges& changes, const Instruction& i);
/// The instruction at another place near by, or what records and waits near by next to it.
void mend_order(MendChanges& changes, const Instruction& i);

}  // namespace placet
