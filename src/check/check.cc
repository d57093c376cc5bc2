#include "check/check.h"

#include <algorithm>
#include <set>

#include "check/explain.h"
#include "check/fit.h"
#include "check/machine.h"
#include "check/order.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr int kSteps = 2;
constexpr std::size_t kMostFindings = 20;
constexpr std::size_t kMostExplained = 100;

class Check {
 public:
  explicit Check(const Program& program)
      : program_(program),
        regions_(program),
        kernels_(nodes_, regions_, program.axes.back().degree),
        reference_(program, nodes_, kernels_),
        machine_(program, nodes_, regions_, kernels_) {}

  Verdict run() {
    verdict_.devices = 1;
    for (std::size_t a = 0; a + 1 < program_.axes.size(); ++a) {
      verdict_.devices *= program_.axes[a].degree;
    }
    verdict_.reference = program_.reference.choices;
    verdict_.holds.fill(true);
    machine_.begin(reference_);
    for (int step = 0; step < kSteps; ++step) {
      reference_.advance();
      machine_.run_step(reference_);
      ++verdict_.steps;
      compare();
      if (!verdict_.findings.empty()) break;
    }
    report_breaches(machine_.breaches());
    report_breaches(find_races(program_));
    report_breaches(find_misfits(program_));
    for (const Breach& label : machine_.labels()) {
      verdict_.labels.push_back(machine_.describe(label.origin) + ": " + label.what);
    }
    for (const CheckFinding& f : verdict_.findings)
      verdict_.holds[at(static_cast<int>(f.condition))] = false;
    verdict_.equivalent = verdict_.findings.empty();
    return std::move(verdict_);
  }

 private:
  void compare() {
    for (int c = 0; c < static_cast<int>(program_.classes.size()); ++c) {
      for (const Initial& initial : program_.classes[at(c)].initial) {
        compare(c, initial);
      }
      for (const Initial& result : program_.classes[at(c)].results) compare(c, result);
    }
  }

  void compare(int c, const Initial& initial) {
    const Content* content = machine_.content_of(c, initial.buffer);
    for (std::size_t p = 0; p < initial.pieces.size(); ++p) {
      const StateRef& ref = initial.pieces[p];
      if (ref.kind == StateRef::Kind::input || ref.kind == StateRef::Kind::zero) continue;
      const NodeId expected = reference_.value_of(ref);
      const Content typed = machine_.typed(initial.buffer, {});
      const bool there = content != nullptr && p < content->pieces.size();
      const bool placed = there && content->flat == typed.flat &&
                          content->pieces[p].dims == typed.pieces[p].dims &&
                          content->pieces[p].cuts == typed.pieces[p].cuts;
      const bool right = placed && is_complete(content->pieces[p]) &&
                         nodes_.node_of(content->pieces[p]) == expected;
      if (right) continue;
      const bool telling = placed || (there && has_odd(content->pieces[p]));
      report(c, initial, p, expected, telling ? &content->pieces[p] : nullptr);
    }
  }

  /// Whether something in it cannot be right, which says more than that it is not in its place.
  bool has_odd(const Tensor& tensor) const {
    return std::ranges::any_of(tensor.items, [&](const Item& item) {
      return nodes_.at(item.node).kind == Node::Kind::odd;
    });
  }

  void report(int c, const Initial& initial, std::size_t piece, NodeId expected,
              const Tensor* found) {
    if (++reported_ > kMostExplained) return;
    const StateRef& ref = initial.pieces[piece];
    const bool there = machine_.content_of(c, initial.buffer) != nullptr;
    CheckFinding finding;
    if (found == nullptr) {
      finding.condition = Condition::state_consistency;
      finding.expected = "the part that it held before the step, brought up to date";
      finding.found = there ? "another part of it" : "nothing";
      finding.difference = "the device does not hold its part after the step";
    } else {
      finding = explain(nodes_, machine_, program_, expected, *found);
    }
    finding.tensor = reference_.name_of(ref);
    finding.ranks = program_.classes[at(c)].name;
    const Origin* touch = finding.at.empty() ? machine_.touch_of(c, initial.buffer) : nullptr;
    if (touch != nullptr) finding.at = machine_.describe(*touch);
    const std::string cause = finding.at + finding.difference;
    if (!causes_.insert(cause).second) return;
    if (verdict_.findings.size() < kMostFindings) verdict_.findings.push_back(std::move(finding));
  }

  void report_breaches(const std::vector<Breach>& breaches) {
    std::set<std::string> seen;
    for (const Breach& breach : breaches) {
      CheckFinding finding{.condition = Condition::order};
      finding.at = machine_.describe(breach.origin);
      finding.ranks = program_.classes[at(breach.origin.device_class)].name;
      finding.difference = breach.what;
      finding.expected = "an order in which everything is made before it is used";
      finding.found = breach.what;
      if (seen.insert(finding.at + breach.what).second) {
        verdict_.findings.push_back(std::move(finding));
      }
    }
  }

  const Program& program_;
  Nodes nodes_;
  Regions regions_;
  KernelValues kernels_;
  ReferenceValues reference_;
  Machine machine_;
  Verdict verdict_;
  std::set<std::string> causes_;
  std::size_t reported_ = 0;
};

}  // namespace

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

Verdict check(const Program& program) { return Check(program).run(); }

}  // namespace placet
