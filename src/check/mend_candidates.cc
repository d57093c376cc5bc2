#include "check/mend_candidates.h"

#include <algorithm>
#include <span>

#include "check/mend_changes.h"
#include "units/at.h"

namespace placet {
namespace {

/// Suspects, the nearest to the cause, of which everything is tried before what is thought of the
/// others.
constexpr std::size_t kNearest = 4;

/// The suspects, then what made what the nearest of them read.
std::vector<Suspect> with_makers(const MendChanges& changes, const std::vector<Suspect>& suspects) {
  std::vector<Suspect> all = suspects;
  for (std::size_t s = 0; s < std::min(kNearest, suspects.size()); ++s) {
    const Instruction& i = *suspects[s].instruction;
    for (const BufferRef& ref : i.inputs) {
      const Instruction* maker = changes.writer_before(i, {ref});
      const bool known =
          maker == nullptr || std::ranges::find(all, maker, &Suspect::instruction) != all.end();
      if (!known) all.push_back({.instruction = maker, .scale = suspects[s].scale, .missing = {}});
    }
  }
  return all;
}

/// What an instruction needs to stand where it does, or another place for it.
void mend_place(MendChanges& changes, const Instruction& i) {
  mend_beginnings(changes, i);
  mend_waits(changes, i);
  mend_records(changes, i);
  mend_order(changes, i);
}

/// Changes at some of the suspects, the likeliest kind first.
void mend_one_by_one(MendChanges& changes, const std::vector<Suspect>& suspects,
                     std::span<const Suspect> some) {
  for (const Suspect& s : some) {
    // What is done twice is rather left out than divided by two.
    if (s.scale) changes.remove(*s.instruction);
    // A group of another size is another factor.
    if (s.scale) mend_groups(changes, *s.instruction);
    mend_scale(changes, s);
  }
  for (const Suspect& s : some) changes.remove(*s.instruction);
  for (const Suspect& s : some) mend_variations(changes, *s.instruction);
  for (const Suspect& s : some) mend_supply(changes, *s.instruction);
  mend_cleared_sums(changes, suspects);
  for (const Suspect& s : some) mend_place(changes, *s.instruction);
}

}  // namespace

std::vector<MendCandidate> mend_candidates(const Program& program, const std::vector<Suspect>& told,
                                           int multiple) {
  MendChanges changes(program, multiple);
  const std::vector<Suspect> suspects = with_makers(changes, told);
  const std::span<const Suspect> nearest(suspects.data(), std::min(kNearest, suspects.size()));
  mend_like_other_bodies(changes);
  mend_unwritten(changes);
  for (const Suspect& s : nearest) {
    if (s.comes_late) mend_missing_members(changes, *s.instruction);
  }
  // First what the findings say, then what might be; of the nearest before all.
  for (const Suspect& s : nearest) {
    if (s.comes_late) mend_place(changes, *s.instruction);
  }
  mend_missing_sums(changes, suspects, MendSide::behind_writers);
  mend_one_by_one(changes, suspects, nearest);
  mend_one_by_one(changes, suspects, suspects);
  mend_missing_sums(changes, suspects, MendSide::before_readers);
  return changes.take();
}

const std::vector<Step>& body_of(const Program& program, int body) {
  const std::size_t procedures = program.procedures.size();
  return at(body) < procedures ? program.procedures[at(body)].body
                               : program.classes[at(body) - procedures].body;
}

std::vector<Step>& steps_at(Program& program, const MendPlace& place) {
  const std::size_t procedures = program.procedures.size();
  const std::size_t body = at(place.body);
  std::vector<Step>* steps =
      body < procedures ? &program.procedures[body].body : &program.classes[body - procedures].body;
  for (const std::size_t loop : place.loops) steps = &std::get<Loop>((*steps)[loop].what).body;
  return *steps;
}

std::string body_name(const Program& program, const MendPlace& place) {
  const std::size_t procedures = program.procedures.size();
  const std::size_t body = at(place.body);
  if (body < procedures) return "procedure " + program.procedures[body].name;
  return "class " + program.classes[body - procedures].name;
}

}  // namespace placet
