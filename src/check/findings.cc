#include "check/findings.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <ranges>
#include <set>
#include <span>

#include "check/explain.h"
#include "check/fit.h"
#include "check/held.h"
#include "check/order.h"
#include "check/step_comparison.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr std::size_t kMostFindings = 20;
constexpr std::size_t kMostOfOneStanding = 6;
constexpr std::size_t kMostExplained = 400;
constexpr std::size_t kMostSuspects = 100;

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// What a finding is among the others: causes stand before what follows from them.
enum class Standing : std::uint8_t {
  order,  // what breaks the order stands where it is broken
  waits,  // for what another wait stands in the way of
  cause,  // a wrong value
  /// What a device that waits for ever has of old; what is wrong only by the factor that limits all
  /// gradients.
  follows
};

struct Found {
  CheckFinding finding;
  Standing standing = Standing::cause;
  std::int64_t time = 0;  // when the instruction began at which it stands
  std::vector<Suspect> suspects;
};

/// The judgement of a program with all that findings are told from.
class Check {
 public:
  Check(const Program& program, bool forgets)
      : program_(program),
        regions_(program),
        kernels_(nodes_, regions_, program.axes.back().degree),
        reference_(program, nodes_, kernels_),
        machine_(program, nodes_, regions_, kernels_,
                 {.tracing = Tracing::on, .memory = nullptr, .forgets = forgets}),
        verdict_(verdict_on(program)) {}

  FullVerdict run() {
    run_steps();
    report_breaches(machine_.breaches());
    report_breaches(find_races(program_));
    report_breaches(find_misfits(program_));
    report_unheld();
    take_findings();
    add_labels(machine_, verdict_);
    verdict_.equivalent = verdict_.findings.empty();
    return {.verdict = std::move(verdict_), .suspects = std::move(suspects_)};
  }

 private:
  /// Both, or up to the first that ends wrong.
  void run_steps() {
    machine_.begin(reference_);
    for (int step = 0; step < kCheckedSteps && found_.empty(); ++step) {
      reference_.advance();
      ++verdict_.steps;
      try {
        machine_.run_step(reference_);
        compare();
      } catch (const OverflowError&) {
        return report_overflow();
      }
    }
  }

  /// A scale that grows with every layer. What the reference has stays below.
  void report_overflow() {
    const Origin origin = machine_.begun_last();
    Explained explained;
    CheckFinding& finding = explained.finding;
    const bool updates =
        origin.instruction != nullptr && origin.instruction->phase == StepPhase::update;
    finding.condition = updates ? Condition::update_integrity : Condition::gradient_integrity;
    finding.ranks = program_.classes[at(origin.device_class)].name;
    finding.expected = "the scale that training on one device has";
    finding.found = "one that passes 2^63, or the inverse of such";
    finding.difference = "the scale of what is made here grows beyond what is told apart";
    finding.fix = "see where it begins: the same factor is applied again and again";
    if (origin.instruction != nullptr) {
      finding.at = machine_.describe(origin);
      finding.chain.push_back(finding.at);
      explained.chain.push_back(origin);
    }
    add(std::move(explained));
  }

  StepComparison comparison() { return {program_, nodes_, machine_, reference_}; }

  /// A tensor that some buffer is to hold after the step, and does not.
  struct Wrong {
    int device_class = 0;
    const Initial* buffer = nullptr;
    std::size_t piece = 0;
  };

  void compare() {
    std::vector<Wrong> wrong;
    for (int c = 0; c < static_cast<int>(program_.classes.size()); ++c) {
      for (const Initial& initial : program_.classes[at(c)].initial) compare(c, initial, wrong);
      for (const Initial& result : program_.classes[at(c)].results) compare(c, result, wrong);
    }
    // What is wrong with a state of the optimizer mostly is with its parameter.
    const auto states = std::ranges::stable_partition(wrong, [](const Wrong& one) {
      return one.buffer->pieces[one.piece].kind != StateRef::Kind::state;
    });
    report(std::span(wrong.begin(), states.begin()));
    report(states);
  }

  /// All of them; of many, some of every place that they stand at.
  void report(std::span<const Wrong> wrong) {
    const std::size_t told = std::min(wrong.size(), kMostExplained);
    for (std::size_t k = 0; k < told; ++k) report(wrong[k * wrong.size() / told]);
  }

  void compare(int c, const Initial& initial, std::vector<Wrong>& wrong) {
    const Content& typed = machine_.type_of(initial.buffer.family);
    for (std::size_t p = 0; p < initial.pieces.size(); ++p) {
      if (!comparison().holds(c, initial, p, typed)) wrong.push_back({c, &initial, p});
    }
  }

  void report(const Wrong& wrong) {
    const auto& [c, initial, p] = wrong;
    if (initial->pieces[p].kind == StateRef::Kind::zero) return report_remains(c, *initial);
    const Content* content = machine_.content_of(c, initial->buffer);
    const bool there = content != nullptr && p < content->pieces.size();
    const Content& typed = machine_.type_of(initial->buffer.family);
    const bool telling =
        StepComparison::is_placed(content, typed, p) || (there && has_odd(content->pieces[p]));
    report(c, *initial, p, reference_.value_of(initial->pieces[p]),
           telling ? &content->pieces[p] : nullptr);
  }

  /// Whether something in it cannot be right, which says more than that it is not in its place.
  bool has_odd(const Tensor& tensor) const {
    return std::ranges::any_of(tensor.items, [&](const Item& item) {
      return nodes_.at(item.node).kind == Node::Kind::odd;
    });
  }

  /// Parameters and states that some part of is nowhere, which no step can bring up to date.
  void report_unheld() {
    const std::vector<Unheld> unheld = find_unheld(program_);
    for (std::size_t k = 0; k < std::min(unheld.size(), kMostFindings); ++k) {
      Found& one = found_.emplace_back();
      one.finding = finding_on(program_, unheld[k]);
      one.finding.tensor = reference_.name_of(unheld[k].state);
      one.standing = Standing::cause;
      one.time = 0;
    }
  }

  /// What began the step as zero ends it otherwise: no step after it is this one over again.
  void report_remains(int c, const Initial& initial) {
    Explained explained;
    CheckFinding& finding = explained.finding;
    finding.condition = Condition::state_consistency;
    finding.tensor = program_.families[at(initial.buffer.family)].name;
    finding.ranks = program_.classes[at(c)].name;
    finding.expected = "zero, with which the step began";
    finding.found = "something else";
    finding.difference = "the next step begins with what this one left";
    if (const Origin* touch = machine_.touch_of(c, initial.buffer)) {
      finding.at = machine_.describe(*touch);
      explained.chain.push_back(*touch);
    }
    add(std::move(explained));
  }

  void report(int c, const Initial& initial, std::size_t piece, NodeId expected,
              const Tensor* found) {
    const StateRef& ref = initial.pieces[piece];
    const bool there = machine_.content_of(c, initial.buffer) != nullptr;
    Explained explained;
    CheckFinding& finding = explained.finding;
    if (found == nullptr) {
      finding.condition = Condition::state_consistency;
      finding.expected = "the part that it held before the step, brought up to date";
      finding.found = there ? "another part of it" : "nothing";
      finding.difference = "the device does not hold its part after the step";
    } else {
      explained = explain(nodes_, machine_, program_, expected, *found);
      if (nodes_.is_odd(expected)) finding.difference = "the reference itself has no value for it";
      trace(c, initial.buffer, explained);
      tell_past(c, initial.buffer, explained);
    }
    finding.tensor = reference_.name_of(ref);
    finding.ranks = program_.classes[at(c)].name;
    const Origin* touch = finding.at.empty() ? machine_.touch_of(c, initial.buffer) : nullptr;
    if (touch != nullptr) {
      finding.at = machine_.describe(*touch);
      explained.chain.push_back(*touch);
    }
    add(std::move(explained));
  }

  /// It stands where it began, which the chain leads to.
  void add(Explained explained) {
    CheckFinding& finding = explained.finding;
    if (!finding.chain.empty()) finding.at = finding.chain.back();
    if (!causes_.insert(finding.at + finding.difference).second) return;
    Found& one = found_.emplace_back();
    one.standing = explained.follows || machine_.is_stuck() ? Standing::follows : Standing::cause;
    one.time = explained.chain.empty() ? kNever : explained.chain.back().time;
    // From where it began to where it shows.
    for (const Origin& link : std::views::reverse(explained.chain)) {
      const bool divides = explained.divides && explained.scale && explained.ending == link;
      one.suspects.push_back({.instruction = link.instruction,
                              .scale = divides ? Rational(1) / *explained.scale : explained.scale,
                              .missing = explained.missing});
    }
    for (const Origin& link : std::views::reverse(explained.past)) {
      one.suspects.push_back({.instruction = link.instruction, .scale = {}, .missing = {}});
    }
    one.finding = std::move(explained.finding);
  }

  /// Leads the chain to where the content began to be wrong.
  void trace(int c, const BufferRef& buffer, Explained& explained) const {
    if (explained.kind == Explained::Kind::version) {
      for (const Origin& origin : machine_.movements_to(c, buffer)) lead_to(origin, explained);
      return;
    }
    const Origin* origin = machine_.beginning_of(c, buffer, explained.scale);
    const bool earlier = origin != nullptr &&
                         (explained.chain.empty() || origin->time < explained.chain.back().time);
    if (earlier) lead_to(*origin, explained);
    if (explained.kind == Explained::Kind::terms) {
      if (const Origin* mixing = machine_.mixing_of(explained.terms)) lead_to(*mixing, explained);
    }
    if (explained.kind != Explained::Kind::other) {
      for (const Origin& nothing : machine_.beginnings_of_nothing()) lead_to(nothing, explained);
    }
    if (explained.ending) lead_to(Origin(*explained.ending), explained);
    if (explained.kind == Explained::Kind::incomplete) trace_unevenness(c, buffer, explained);
  }

  /// Of a sum over micro-batches of which one counts otherwise than the others.
  void trace_unevenness(int c, const BufferRef& buffer, Explained& explained) const {
    if (!explained.missing.empty()) return;
    const auto uneven = machine_.unevenness_of(c, buffer);
    if (!uneven) return;
    lead_to(uneven->origin, explained);
    if (explained.tells_gaps) return;
    explained.finding.difference += ": micro-batch " + std::to_string(uneven->micro_batch) +
                                    " counts " + to_string(uneven->factor) + " times";
  }

  /// Of a sum that nothing completes: what made it, and the last that might have completed it.
  void tell_past(int c, const BufferRef& buffer, Explained& explained) const {
    if (explained.missing.empty()) return;
    const SumPast past = machine_.past_of_sum(c, buffer, explained.missing);
    if (past.maker == nullptr) return;
    std::string& text = explained.finding.before;
    text = "made by " + machine_.describe(*past.maker);
    explained.past.push_back(*past.maker);
    if (past.message != nullptr && past.message != past.maker) {
      text += "; the last message that it went through is " + machine_.describe(*past.message);
      explained.past.push_back(*past.message);
    }
    text += "; nothing before sums it over ";
    for (const int axis : explained.missing) {
      text += (axis == explained.missing.front() ? "" : ", ") + program_.axes[at(axis)].name;
    }
  }

  void lead_to(const Origin& origin, Explained& explained) const {
    const std::string text = machine_.describe(origin);
    std::erase(explained.finding.chain, text);
    std::erase(explained.chain, origin);
    explained.finding.chain.push_back(text);
    explained.chain.push_back(origin);
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
      if (breach.other.instruction != nullptr) {
        finding.chain = {finding.at, machine_.describe(breach.other)};
      }
      if (!seen.insert(finding.at + breach.what).second) continue;
      Found& one = found_.emplace_back();
      one.finding = std::move(finding);
      one.standing = breach.follows ? Standing::waits : Standing::order;
      one.time = breach.origin.time;
      for (const Origin* origin : {&breach.origin, &breach.other}) {
        one.suspects.push_back(
            {.instruction = origin->instruction, .scale = {}, .missing = {}, .comes_late = true});
      }
    }
  }

  /// Causes before what follows from them, and what began earlier before the rest. Many of one
  /// standing leave room for the others.
  void take_findings() {
    std::ranges::stable_sort(found_, [](const Found& a, const Found& b) {
      return a.standing != b.standing ? a.standing < b.standing : a.time < b.time;
    });
    std::map<Standing, std::size_t> taken;
    std::vector<CheckFinding> rest;
    for (Found& one : found_) {
      verdict_.holds[at(static_cast<int>(one.finding.condition))] = false;
      for (const Suspect& s : one.suspects) suspect(s);
      auto& list = ++taken[one.standing] > kMostOfOneStanding ? rest : verdict_.findings;
      list.push_back(std::move(one.finding));
    }
    std::ranges::move(rest, std::back_inserter(verdict_.findings));
    if (verdict_.findings.size() > kMostFindings) verdict_.findings.resize(kMostFindings);
  }

  /// For the search of a mending change.
  void suspect(const Suspect& one) {
    const auto& known = suspects_;
    const bool told =
        std::ranges::find(known, one.instruction, &Suspect::instruction) != known.end();
    if (one.instruction == nullptr || told || known.size() >= kMostSuspects) return;
    suspects_.push_back(one);
  }

  const Program& program_;
  Nodes nodes_;
  Regions regions_;
  KernelValues kernels_;
  ReferenceValues reference_;
  Machine machine_;
  Verdict verdict_;
  std::set<std::string> causes_;
  std::vector<Found> found_;
  std::vector<Suspect> suspects_;
};
}  // namespace

Verdict verdict_on(const Program& program) {
  Verdict verdict;
  verdict.devices = 1;
  for (std::size_t a = 0; a + 1 < program.axes.size(); ++a) {
    verdict.devices *= program.axes[a].degree;
  }
  verdict.reference = program.reference.choices;
  verdict.holds.fill(true);
  return verdict;
}

void add_labels(const Machine& machine, Verdict& verdict) {
  for (const Breach& label : machine.labels()) {
    verdict.labels.push_back(machine.describe(label.origin) + ": " + label.what);
  }
}

FullVerdict find_all(const Program& program, bool forgets) { return Check(program, forgets).run(); }

}  // namespace placet
