// The two judges side by side.
#include <algorithm>
#include <set>

#include "algebra/verify.h"
#include "check/check.h"
#include "mutation/mutants.h"
#include "program/walk.h"
#include "program/wellformed.h"
#include "units/at.h"
#include "units/error.h"

namespace placet::testing {
namespace {

/// As the checker names an instruction, without unit, micro-batch and step.
std::string place_of(const Program& program, const Instruction& i) {
  std::string text(name_of(i.kind));
  if (!i.label.empty()) text += " " + i.label;
  for (std::size_t a = 0; a < i.axes.size(); ++a) {
    text += (a == 0 ? " over " : ", ") + program.axes[at(i.axes[a])].name;
  }
  const auto& refs = i.outputs.empty() ? i.inputs : i.outputs;
  if (!refs.empty()) text += " -> " + program.families[at(refs[0].family)].name;
  return text;
}

using Listed = std::pair<const Instruction*, Arguments>;

std::vector<Listed> listed(const Program& program, std::size_t c) {
  std::vector<Listed> list;
  for_each_instruction(program, program.classes[c].body, {},
                       [&](const Instruction& i, const Arguments& a) { list.emplace_back(&i, a); });
  return list;
}

bool same(const Listed& a, const Listed& b) { return *a.first == *b.first && a.second == b.second; }

/// The class of the program before the fault that a class of the mutant came from: names grow at
/// their ends.
std::size_t origin_of(const Program& before, const std::string& name) {
  std::size_t best = 0;
  std::size_t length = 0;
  for (std::size_t c = 0; c < before.classes.size(); ++c) {
    const std::string& other = before.classes[c].name;
    if (!name.starts_with(other) || other.size() < length) continue;
    best = c;
    length = other.size();
  }
  return best;
}

/// A record or a wait stands for what runs before the record: whatever that reads and writes.
void add_guarded(const std::vector<Listed>& list, std::size_t k, std::set<int>& families) {
  const Instruction& i = *list[k].first;
  if (i.kind != InstructionKind::record && i.kind != InstructionKind::wait) return;
  for (std::size_t r = 1; r < list.size(); ++r) {
    const Instruction& record = *list[r].first;
    if (record.kind != InstructionKind::record || record.event != i.event) continue;
    for (const BufferRef& ref : list[r - 1].first->inputs) families.insert(ref.family);
    for (const BufferRef& ref : list[r - 1].first->outputs) families.insert(ref.family);
  }
}

/// Where instructions differ, and whatever touches buffers that those touch.
std::set<std::string> places_near(const Program& before, const Program& after) {
  std::set<std::string> places;
  std::set<int> families;
  for (std::size_t c = 0; c < after.classes.size(); ++c) {
    const auto a = listed(before, origin_of(before, after.classes[c].name));
    const auto b = listed(after, c);
    std::size_t front = 0;
    while (front < a.size() && front < b.size() && same(a[front], b[front])) ++front;
    std::size_t back = 0;
    while (back < a.size() - front && back < b.size() - front &&
           same(a[a.size() - 1 - back], b[b.size() - 1 - back])) {
      ++back;
    }
    const auto note = [&](const std::vector<Listed>& list, std::size_t k) {
      places.insert(place_of(after, *list[k].first));
      add_guarded(list, k, families);
      for (const BufferRef& r : list[k].first->outputs) families.insert(r.family);
      const auto& inputs = list[k].first->inputs;
      if (list[k].first->outputs.empty() && !inputs.empty()) families.insert(inputs[0].family);
    };
    // Only the ends of what differs: a move changes the places between as little as a deletion.
    if (front < a.size() - back) {
      note(a, front);
      note(a, a.size() - back - 1);
    }
    if (front < b.size() - back) {
      note(b, front);
      note(b, b.size() - back - 1);
    }
  }
  for (std::size_t c = 0; c < after.classes.size(); ++c) {
    for (const Listed& l : listed(after, c)) {
      const auto touches = [&](const std::vector<BufferRef>& refs) {
        return std::ranges::any_of(refs,
                                   [&](const BufferRef& r) { return families.contains(r.family); });
      };
      if (touches(l.first->inputs) || touches(l.first->outputs)) {
        places.insert(place_of(after, *l.first));
      }
    }
  }
  return places;
}

bool is_near(const std::set<std::string>& places, const std::string& finding) {
  return places.contains(finding.substr(0, finding.rfind(" (unit")));
}

/// Whether some entry is wrong on one device and not, or otherwise, on another that holds it too.
/// Entries of one tensor that several devices report in the same way count as held by all alike.
bool replicas_differ(const Verification& run) {
  std::map<std::pair<std::string, std::vector<std::int64_t>>, std::set<std::uint64_t>> found;
  std::map<std::string, std::set<int>> ranks;
  for (const Witness& w : run.witness) {
    found[{w.tensor, w.index}].insert(w.found);
    ranks[w.tensor].insert(w.rank);
  }
  return std::ranges::any_of(found, [](const auto& entry) { return entry.second.size() > 1; });
}

void ask_oracle(const Program& mutant, Judgement& out) {
  try {
    const Verification run = verify(mutant, {.seeds = 2});
    out.differs = !run.equal;
    out.stuck = run.stuck.has_value();
    out.replicas_differ = replicas_differ(run);
    out.first_step = run.witness.empty() ? 0 : run.witness[0].step;
  } catch (const InputError&) {
    out.refused = true;
  }
}

void ask_checker(const Program& program, const Program& mutant, Judgement& out) {
  const Verdict verdict = check(mutant);
  out.broken = !verdict.equivalent;
  if (verdict.findings.empty()) return;
  const CheckFinding& first = verdict.findings.front();
  out.finding = std::string(name_of(first.condition)) + ": " + first.tensor + " at " + first.at +
                ": " + first.difference;
  out.race_only = std::ranges::all_of(verdict.findings, [](const CheckFinding& f) {
    return f.condition == Condition::order && f.difference.find("may") != std::string::npos;
  });
  const std::set<std::string> places = places_near(program, mutant);
  out.located = std::ranges::any_of(verdict.findings, [&](const CheckFinding& f) {
    return is_near(places, f.at) || std::ranges::any_of(f.chain, [&](const std::string& link) {
             return is_near(places, link);
           });
  });
}

}  // namespace

Judgement judge(const Program& program, const Fault& fault) {
  Judgement out{.fault = fault, .finding = {}};
  out.kind = fault.kinds.empty() ? InstructionKind::compute : fault.kinds[0];
  Program mutant;
  try {
    const std::vector<FaultMatch> matches = list_matches(program, fault);
    if (!matches.empty()) out.phase = matches[0].phase;
    mutant = with_faults(program, {fault});
    require_wellformed(mutant, {.where = "mutant"});
  } catch (const InputError&) {
    out.refused = true;
    return out;
  }
  ask_oracle(mutant, out);
  if (!out.refused) ask_checker(program, mutant, out);
  return out;
}

}  // namespace placet::testing
