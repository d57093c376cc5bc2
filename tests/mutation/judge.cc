// The two judges side by side.
#include <algorithm>
#include <set>

#include "algebra/verify.h"
#include "check/check.h"
#include "check/disguise.h"
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

/// A record or a wait stands for what runs on the queue of the record since the one before it:
/// whatever that reads and writes.
void add_guarded(const std::vector<Listed>& list, std::size_t k, std::set<int>& families) {
  const Instruction& i = *list[k].first;
  if (i.kind != InstructionKind::record && i.kind != InstructionKind::wait) return;
  for (std::size_t r = 0; r < list.size(); ++r) {
    const Instruction& record = *list[r].first;
    if (record.kind != InstructionKind::record || record.event != i.event) continue;
    for (std::size_t g = r; g-- > 0;) {
      const Instruction& guarded = *list[g].first;
      if (guarded.stream != record.stream) continue;
      if (guarded.kind == InstructionKind::record) break;
      for (const BufferRef& ref : guarded.inputs) families.insert(ref.family);
      for (const BufferRef& ref : guarded.outputs) families.insert(ref.family);
    }
  }
}

/// What takes a message: whatever the class at its other end receives over the same axis. Where one
/// message less is sent, or one more, those behind it are taken for each other.
void add_receives(const Program& program, std::size_t c, const Instruction& send,
                  std::set<std::string>& places) {
  if (send.kind != InstructionKind::send) return;
  for (std::size_t d = 0; d < program.classes.size(); ++d) {
    if (d == c) continue;
    for_each_written_instruction(program, program.classes[d].body, [&](const Instruction& i) {
      const bool takes = i.kind == InstructionKind::receive && i.axes == send.axes;
      const auto& along = program.classes[c].box[at(send.axes[0])];
      const bool from = std::ranges::find(along, i.peer) != along.end();
      if (takes && from) places.insert(place_of(program, i));
    });
  }
}

/// Positions in [front, list.size() - back) of what the other list has not, or fewer times there;
/// of none, as after a move, the ends.
std::vector<std::size_t> positions_changed(const std::vector<Listed>& list,
                                           const std::vector<Listed>& other, std::size_t front,
                                           std::size_t back) {
  std::vector<std::size_t> out;
  if (front >= list.size() - back) return out;
  std::vector<bool> taken(other.size(), false);
  for (std::size_t k = front; k < list.size() - back; ++k) {
    std::size_t twin = front;
    while (twin < other.size() - back && (taken[twin] || !same(list[k], other[twin]))) ++twin;
    if (twin < other.size() - back) {
      taken[twin] = true;
    } else {
      out.push_back(k);
    }
  }
  if (out.empty()) out = {front, list.size() - back - 1};
  return out;
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
      add_receives(after, c, *list[k].first, places);
      add_guarded(list, k, families);
      for (const BufferRef& r : list[k].first->outputs) families.insert(r.family);
      const auto& inputs = list[k].first->inputs;
      if (list[k].first->outputs.empty() && !inputs.empty()) families.insert(inputs[0].family);
    };
    for (std::size_t k : positions_changed(a, b, front, back)) note(a, k);
    for (std::size_t k : positions_changed(b, a, front, back)) note(b, k);
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

/// What the algebraic run says, and what those see who only watch a run: its loss against one that
/// is right, or replicas against each other. What cannot run is seen by all.
void ask_oracle(const Program& mutant, int seeds, Judgement& out) {
  try {
    const Verification run = verify(mutant, {.seeds = seeds, .in_full = true});
    out.differs = !run.equal;
    const bool stuck = run.stuck.has_value();
    out.replicas_differ = stuck || !run.replicas_agree;
    const auto loss_differs_in = [&](int step) {
      return stuck || std::ranges::any_of(run.witness, [&](const Witness& w) {
               return w.step == step && w.tensor == "loss";
             });
    };
    out.first_loss_differs = loss_differs_in(1);
    out.second_loss_differs = out.first_loss_differs || loss_differs_in(2);
  } catch (const InputError&) {
    out.refused = true;
  }
}

void ask_checker(const Program& program, const Program& mutant, Judgement& out) {
  const Verdict verdict = check(mutant);
  out.broken = !verdict.equivalent;
  const Verdict other = check(disguised(mutant));
  out.disguised = other.equivalent != verdict.equivalent;
  out.reordered = other.holds != verdict.holds;
  if (verdict.findings.empty()) return;
  const CheckFinding& first = verdict.findings.front();
  out.finding = std::string(name_of(first.condition)) + ": " + first.tensor + " at " + first.at +
                ": " + first.difference;
  for (const std::string& link : first.chain) out.finding += " <- " + link;
  out.race_only = std::ranges::all_of(verdict.findings, [](const CheckFinding& f) {
    const bool may_race =
        f.condition == Condition::order && f.difference.find("may") != std::string::npos;
    return may_race || f.masked;
  });
  const std::set<std::string> places = places_near(program, mutant);
  out.named = is_near(places, first.at);
  out.located = std::ranges::any_of(verdict.findings,
                                    [&](const CheckFinding& f) { return is_near(places, f.at); });
  out.in_chain = out.located || std::ranges::any_of(verdict.findings, [&](const CheckFinding& f) {
                   return std::ranges::any_of(
                       f.chain, [&](const std::string& link) { return is_near(places, link); });
                 });
}

}  // namespace

std::optional<Program> wellformed_mutant(const Program& program, const Fault& fault) {
  try {
    Program mutant = with_faults(program, {fault});
    require_wellformed(mutant, {.where = "mutant"});
    return mutant;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

Judgement judge(const Program& program, const Fault& fault) {
  Judgement out{.fault = fault, .finding = {}};
  out.kind = fault.kinds.empty() ? InstructionKind::compute : fault.kinds[0];
  const std::optional<Program> mutant = wellformed_mutant(program, fault);
  out.refused = !mutant;
  if (mutant) ask_oracle(*mutant, 2, out);
  if (out.refused) return out;
  ask_checker(program, *mutant, out);
  // The least of a few numbers may by chance be their sum.
  if (out.broken && !out.differs) ask_oracle(*mutant, 8, out);
  out.types_disagree = !type_error(*mutant).empty();
  return out;
}

}  // namespace placet::testing
