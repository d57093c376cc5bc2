#include "check/check.h"

#include <algorithm>
#include <memory>

#include "check/findings.h"
#include "check/fit.h"
#include "check/held.h"
#include "check/known_reference.h"
#include "check/machine.h"
#include "check/masks.h"
#include "check/order.h"
#include "check/step_comparison.h"
#include "check/suspects.h"
#include "program/walk.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {

std::string_view name_of(Condition condition) {
  switch (condition) {
    case Condition::gradient_integrity:
      return "gradient_integrity";
    case Condition::state_consistency:
      return "state_consistency";
    case Condition::update_integrity:
      return "update_integrity";
    case Condition::input_integrity:
      return "input_integrity";
    case Condition::order:
      return "order";
  }
  fail_internally("every condition has a name");
}

/// Nodes, what makes values of them, and the reference as far as it was worked out.
struct Ground {
  Ground(const Program& program, Nodes begun)
      : nodes(std::move(begun)),
        regions(program),
        kernels(nodes, regions, program.axes.back().degree) {}

  Nodes nodes;
  Regions regions;
  KernelValues kernels;
  std::vector<ReferenceValues::After> known;  // by step
};

namespace {

/// Whether so many steps of a machine end as the reference does. The nodes of the ground are those
/// of the known steps, and perhaps others.
bool ends_right(const Program& program, Ground& ground, Machine& machine,
                std::size_t steps = kCheckedSteps) {
  ReferenceValues reference(program, ground.nodes, ground.kernels, ground.known);
  machine.begin(reference);
  for (std::size_t step = 0; step < steps; ++step) {
    reference.advance();
    if (ground.known.size() == step) ground.known.push_back(reference.after());
    try {
      machine.run_step(reference);
      if (!machine.breaches().empty()) return false;
      if (!StepComparison(program, ground.nodes, machine, reference).holds_all()) return false;
    } catch (const OverflowError&) {
      return false;
    }
  }
  return true;
}

/// Whether it does the same in every step.
bool does_the_same_each_step(const Program& program) {
  bool same = true;
  for (const DeviceClass& c : program.classes) {
    for_each_written_instruction(program, c.body,
                                 [&](const Instruction& i) { same = same && i.step == 0; });
  }
  return same;
}

/// Whether one step ends right whatever the state that it finds, but that parameters, states and
/// numbers are the reference's, and leaves such a state: then every step does (docs/theory.md
/// §6.6).
/// REQUIRES: the machine begins with any state.
bool every_step_ends_right(const Program& program, Ground& ground, Machine& machine) {
  return does_the_same_each_step(program) && ends_right(program, ground, machine, 1) &&
         machine.stands_as_begun();
}

/// Whether all values are right in the end if classes are taken apart along the axes that divide
/// causal masks: they may be where a rule for many devices at once does not say so.
bool ends_right_behind_masks(const Program& program) {
  const std::optional<Program> apart = with_masks_apart(program);
  if (!apart || !find_unheld(*apart).empty()) return false;
  Ground ground(*apart, Nodes(Names::left_out));
  ReferenceValues reference(*apart, ground.nodes, ground.kernels);
  for (std::size_t step = 0; step < kCheckedSteps; ++step) {
    reference.advance();
    ground.known.push_back(reference.after());
  }
  const auto made = static_cast<NodeId>(ground.nodes.size());
  Machine machine(*apart, ground.nodes, ground.regions, ground.kernels,
                  {.tracing = Tracing::off, .memory = nullptr, .masks_behind = made});
  return ends_right(*apart, ground, machine);
}

bool ends_right(const Program& program, Ground& ground, const Machine::Options& options) {
  Machine machine(program, ground.nodes, ground.regions, ground.kernels, options);
  return ends_right(program, ground, machine);
}

bool every_step_ends_right(const Program& program, Ground& ground) {
  Machine machine(program, ground.nodes, ground.regions, ground.kernels,
                  {.tracing = Tracing::off, .memory = nullptr, .beginning = Beginning::any});
  return every_step_ends_right(program, ground, machine);
}

bool has_right_values(const Program& program, Ground& ground) {
  if (!find_unheld(program).empty()) return false;
  return every_step_ends_right(program, ground) ||
         ends_right(program, ground, {.tracing = Tracing::off, .memory = nullptr}) ||
         ends_right_behind_masks(program);
}

}  // namespace

bool is_in_order(const Program& program) {
  return find_races(program).empty() && find_misfits(program).empty();
}

bool is_right(const Program& program) {
  Ground ground(program, Nodes(Names::left_out));
  return is_in_order(program) && has_right_values(program, ground);
}

std::shared_ptr<const KnownReference> known_reference(const Program& program) {
  return std::make_shared<const KnownReference>(program, 1);  // mostly one step says it all
}

bool is_right(const Program& program, const KnownReference& known) {
  return is_in_order(program) && has_right_values(program, known);
}

bool has_right_values(const Program& program, const KnownReference& known) {
  const bool is_known = known.is_of(program);
  Ground ground(program, is_known ? known.nodes() : Nodes(Names::left_out));
  if (is_known) ground.known = known.after();
  return has_right_values(program, ground);
}

struct Judge::Known {
  explicit Known(const Program& judged)
      : program(judged),
        ground(judged, Nodes(Names::left_out)),
        holds_all(find_unheld(judged).empty()) {}

  const Program& program;
  Ground ground;
  bool holds_all;  // and so do others that differ in their steps
  std::shared_ptr<Machine::Memory> memory;
};

namespace {

/// Findings on values that a mask hides: what is broken is the order alone.
void set_masked(Verdict& verdict) {
  for (int condition = 0; condition < kConditionCount; ++condition) {
    if (condition != static_cast<int>(Condition::order)) verdict.holds[at(condition)] = true;
  }
  for (CheckFinding& finding : verdict.findings) {
    finding.masked = finding.condition != Condition::order;
  }
  std::ranges::stable_partition(verdict.findings,
                                [](const CheckFinding& finding) { return !finding.masked; });
}

}  // namespace

FullVerdict judge_in_full(const Program& program) {
  FullVerdict full = find_all(program, false);
  if (full.verdict.equivalent) full = find_all(program, true);
  const auto holds = [&](Condition c) { return full.verdict.holds[at(static_cast<int>(c))]; };
  const bool values_hold = holds(Condition::gradient_integrity) &&
                           holds(Condition::state_consistency) &&
                           holds(Condition::update_integrity) && holds(Condition::input_integrity);
  if (!values_hold && !holds(Condition::order) && ends_right_behind_masks(program)) {
    set_masked(full.verdict);
  }
  return full;
}

Judge::Judge(const Program& program) : known_(std::make_unique<Known>(program)) {}
Judge::~Judge() = default;

std::optional<Verdict> Judge::good_verdict() {
  const Program& program = known_->program;
  Ground& ground = known_->ground;
  if (!known_->holds_all || !is_in_order(program)) return std::nullopt;
  const auto good = [&](Machine& machine) {
    Verdict verdict = verdict_on(program);
    verdict.equivalent = true;
    verdict.steps = kCheckedSteps;
    add_labels(machine, verdict);
    return verdict;
  };
  {
    Machine machine(program, ground.nodes, ground.regions, ground.kernels,
                    {.tracing = Tracing::labels, .memory = nullptr, .beginning = Beginning::any});
    if (every_step_ends_right(program, ground, machine)) return good(machine);
  }
  Machine machine(program, ground.nodes, ground.regions, ground.kernels,
                  {.tracing = Tracing::labels, .memory = nullptr});
  const bool right = ends_right(program, ground, machine) || ends_right_behind_masks(program);
  return right ? std::optional(good(machine)) : std::nullopt;
}

/// Sums of programs that are tried have fewer incomplete parts than others may: the time is taken
/// by those in which parts of what nothing adds up multiply.
constexpr std::size_t kMostPartsTried = 64;

bool Judge::is_right(const Program& program) {
  if (!known_->memory) known_->memory = std::make_shared<Machine::Memory>();
  return known_->holds_all &&
         ends_right(
             program, known_->ground,
             {.tracing = Tracing::off, .memory = known_->memory, .most_parts = kMostPartsTried}) &&
         is_in_order(program);
}

Verdict check(const Program& program) {
  std::optional<Verdict> good = Judge(program).good_verdict();
  return good ? *std::move(good) : judge_in_full(program).verdict;
}

}  // namespace placet
