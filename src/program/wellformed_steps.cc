// The grammar of procedures and of what classes execute.
//
// Nothing is opened up: of each body it is known between which values the two variables lie, over
// all of its calls, and an index is a variable plus a constant. So an index is in range for all
// calls if it is for the least and the largest value.
#include <algorithm>
#include <optional>
#include <utility>

#include "program/grammar.h"
#include "program/text.h"
#include "program/text_names.h"

namespace placet {
namespace {

constexpr int kDeepestCalls = 64;

struct Interval {
  std::int64_t least = 0;
  std::int64_t largest = 0;
};

/// Values of a variable; none: it stands for nothing here.
using Values = std::optional<Interval>;

struct Environment {
  Values unit;
  Values micro_batch;
  bool reached = true;  // false: a procedure that nobody calls
};

std::int64_t saturated(std::int64_t a, std::int64_t times) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  return a > kMost / std::max<std::int64_t>(times, 1) ? kMost : std::min(a * times, kMost);
}

class BodyGrammar {
 public:
  explicit BodyGrammar(Grammar& g) : g_(g), p_(g.program()) {}

  void check() {
    g_.go_to("procedures");
    g_.require_names(p_.procedures, "a procedure");
    const std::size_t n = p_.procedures.size();
    sizes_.assign(n, -1);
    heights_.assign(n, 0);
    open_.assign(n, false);
    calls_.assign(n, Environment{.unit = {}, .micro_batch = {}, .reached = false});
    for (std::size_t i = 0; i < n; ++i) measure_procedure(static_cast<int>(i), 0);
    for (std::size_t c = 0; c < p_.classes.size(); ++c) measure_class(static_cast<int>(c));
    for (std::size_t c = 0; c < p_.classes.size(); ++c) {
      enter(true, static_cast<int>(c));
      check_body(p_.classes[c].body, {});
    }
    // Callers stand before what they call.
    for (std::size_t i = order_.size(); i-- > 0;) {
      enter(false, order_[i]);
      check_body(p_.procedures[as_index(order_[i])].body, calls_[as_index(order_[i])]);
    }
  }

 private:
  void enter(bool in_class, int body) { at_ = {.in_class = in_class, .body = body, .step = -1}; }

  void next_step() {
    ++at_.step;
    g_.go_to_step(at_);
  }

  // --- shape and size

  void measure_class(int number) {
    enter(true, number);
    const std::int64_t size = measure(p_.classes[as_index(number)].body, 0, 0).size;
    g_.go_to([&c = p_.classes[as_index(number)]] { return "class '" + cut_short(c.name) + "'"; });
    g_.require(size <= g_.request().most_steps, p_.classes[as_index(number)].name,
               "executes too many instructions",
               [&] { return "at most " + std::to_string(g_.request().most_steps); });
  }

  void measure_procedure(int number, int calls) {
    const std::size_t i = as_index(number);
    if (sizes_[i] >= 0) return;
    g_.require(!open_[i], p_.procedures[i].name, "calls itself");
    g_.require(calls <= kDeepestCalls, p_.procedures[i].name, "is called too deep inside others",
               [&] { return std::to_string(kDeepestCalls) + " at most"; });
    open_[i] = true;
    const StepPosition back = std::exchange(at_, {.in_class = false, .body = number, .step = -1});
    const Measure measured = measure(p_.procedures[i].body, 0, calls);
    at_ = back;
    open_[i] = false;
    sizes_[i] = measured.size;
    heights_[i] = measured.height;
    order_.push_back(number);
  }

  struct Measure {
    std::int64_t size = 0;
    int height = 0;  // of calls
  };

  Measure measure(const std::vector<Step>& body, int depth, int calls) {
    g_.require(depth <= kDeepestLoops, "", "loops stand too deep in each other",
               [&] { return std::to_string(kDeepestLoops) + " at most"; });
    Measure sum;
    for (const Step& step : body) {
      next_step();
      Measure one{.size = 1, .height = 0};
      if (const auto* call = std::get_if<Call>(&step.what)) {
        one = measure_call(*call, calls);
      } else if (const auto* loop = std::get_if<Loop>(&step.what)) {
        one = measure_loop(*loop, depth, calls);
      }
      sum.size = std::min(sum.size + one.size, std::int64_t{1} << 60);
      sum.height = std::max(sum.height, one.height);
    }
    return sum;
  }

  Measure measure_call(const Call& call, int calls) {
    g_.require_number(call.procedure, p_.procedures.size(), "procedure");
    measure_procedure(call.procedure, calls + 1);
    g_.go_to_step(at_);
    const std::size_t i = as_index(call.procedure);
    g_.require(heights_[i] + 1 + calls <= kDeepestCalls, p_.procedures[i].name,
               "is called too deep inside others",
               [&] { return std::to_string(kDeepestCalls) + " at most"; });
    return {.size = sizes_[i] + 1, .height = heights_[i] + 1};
  }

  Measure measure_loop(const Loop& loop, int depth, int calls) {
    for (std::int64_t bound : {loop.first, loop.last}) {
      g_.require(
          bound >= 0 && bound <= kLargestBound, [&] { return std::to_string(bound); },
          "is no bound of a loop", [&] { return "from 0 to " + std::to_string(kLargestBound); });
    }
    g_.require(loop.variable != IndexTerm::Variable::none, "", "a loop has no variable", "u or j");
    const Measure body = measure(loop.body, depth + 1, calls);
    const std::int64_t rounds =
        std::max(loop.first, loop.last) - std::min(loop.first, loop.last) + 1;
    return {.size = saturated(body.size + 1, rounds), .height = body.height};
  }

  // --- what steps say

  void check_body(const std::vector<Step>& body, const Environment& environment) {
    for (const Step& step : body) {
      next_step();
      if (const auto* instruction = std::get_if<Instruction>(&step.what)) {
        check_instruction(g_, *instruction);
        check_indices(*instruction, environment);
      } else if (const auto* call = std::get_if<Call>(&step.what)) {
        check_call(*call, environment);
      } else if (const auto* loop = std::get_if<Loop>(&step.what)) {
        Environment inner = environment;
        (loop->variable == IndexTerm::Variable::unit ? inner.unit : inner.micro_batch) =
            Interval{.least = std::min(loop->first, loop->last),
                     .largest = std::max(loop->first, loop->last)};
        check_body(loop->body, inner);
      }
    }
  }

  /// The values of a term. An environment that nobody reaches has no values.
  Values values_of(const IndexTerm& term, const Environment& environment) const {
    g_.require(
        term.offset >= -kLargestOffset && term.offset <= kLargestOffset,
        [&] { return std::to_string(term.offset); }, "is no index");
    if (term.variable == IndexTerm::Variable::none) return Interval{term.offset, term.offset};
    const bool unit = term.variable == IndexTerm::Variable::unit;
    const Values& values = unit ? environment.unit : environment.micro_batch;
    if (!environment.reached && !values) return std::nullopt;
    g_.require(
        values.has_value(), [&] { return unit ? "u" : "j"; }, "has no value here",
        "a number, or a loop over it");
    const std::int64_t least = values->least + term.offset;
    const std::int64_t largest = values->largest + term.offset;
    g_.require(
        least >= -kLargestOffset && largest <= kLargestOffset, [&] { return unit ? "u" : "j"; },
        "runs out of range");
    return Interval{.least = least, .largest = largest};
  }

  static void widen(Values& values, const Values& by) {
    if (!by) return;
    if (!values) {
      values = by;
      return;
    }
    values->least = std::min(values->least, by->least);
    values->largest = std::max(values->largest, by->largest);
  }

  void check_call(const Call& call, const Environment& environment) {
    const Values unit = values_of(call.unit, environment);
    const Values micro_batch = values_of(call.micro_batch, environment);
    Environment& callee = calls_[as_index(call.procedure)];
    if (!environment.reached) return;
    callee.reached = true;
    widen(callee.unit, unit);
    widen(callee.micro_batch, micro_batch);
  }

  void require_inside(const BufferRef& buffer, const Values& values, std::int64_t count,
                      const std::string& what) const {
    if (!values || (values->least >= 0 && values->largest < count)) return;
    const std::int64_t wrong = values->least < 0 ? values->least : values->largest;
    g_.refuse(to_text(p_, buffer), "is of " + what + " " + std::to_string(wrong),
              count == 0 ? "there is none" : "from 0 to " + std::to_string(count - 1));
  }

  void check_index(const BufferRef& buffer, const Environment& environment) const {
    const Family& family = p_.families[as_index(buffer.family)];
    if (family.by_unit) {
      require_inside(buffer, values_of(buffer.unit, environment),
                     static_cast<std::int64_t>(p_.reference.units.size()), "unit");
    }
    if (family.by_micro_batch) {
      require_inside(buffer, values_of(buffer.micro_batch, environment), p_.axes.back().degree,
                     "micro-batch");
    }
  }

  void check_indices(const Instruction& i, const Environment& environment) const {
    for (const BufferRef& buffer : i.inputs) check_index(buffer, environment);
    for (const BufferRef& buffer : i.outputs) check_index(buffer, environment);
    values_of(i.key.unit, environment);
  }

  Grammar& g_;
  const Program& p_;
  StepPosition at_;  // where in the bodies, whose steps are gone through in the order of the text
  std::vector<std::int64_t> sizes_;  // of procedures, opened up; -1: not known yet
  std::vector<int> heights_;         // calls inside of each other
  std::vector<bool> open_;
  std::vector<int> order_;  // procedures, what is called before who calls
  std::vector<Environment> calls_;
};

}  // namespace

void check_bodies(Grammar& g) { BodyGrammar(g).check(); }

}  // namespace placet
