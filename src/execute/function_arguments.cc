// How many operands and positions the meaning of a function speaks of.
#include <algorithm>
#include <array>

#include "execute/meanings.h"
#include "units/at.h"
#include "units/error.h"

namespace placet::execute {
namespace {

/// The fewest operands and positions that a function has.
struct Arguments {
  std::size_t operands = 0;
  std::size_t positions = 0;
};

Arguments fewest_of_recurrence(Function function) {
  if (function == Function::linear_attention) return {.operands = 1, .positions = 1};
  if (function == Function::convolution) return {.operands = 2};
  if (function == Function::delta_rule) return {.operands = 4};
  if (function == Function::head_scan) return {.operands = 5};
  return {.operands = function == Function::selective_scan ? std::size_t{6} : std::size_t{7}};
}

Arguments fewest_of(const Meanings& m, const MeantFunction& f) {
  switch (f.function) {
    case Function::act:
    case Function::silu:
    case Function::sigmoid:
    case Function::power:
    case Function::entry:
    case Function::identity:
    case Function::capped:
    case Function::exp:
    case Function::log:
    case Function::inverse:
    case Function::limited:
    case Function::nonfinite:
    case Function::route:
    case Function::chosen:
    case Function::affinity:
    case Function::orthogonal:
    case Function::compressed:
    case Function::masked:
      return {.operands = 1};
    case Function::normal:
    case Function::ratio:
    case Function::exp_shift:
    case Function::moment:
    case Function::direction:
    case Function::counted:
      return {.operands = 2};
    case Function::rescaled:
    case Function::unless:
      return {.operands = 3};
    case Function::convolution:
    case Function::selective_scan:
    case Function::head_scan:
    case Function::delta_rule:
    case Function::channel_delta_rule:
    case Function::linear_attention:
      return fewest_of_recurrence(f.function);
    case Function::stepped:
      return {.operands = m.updates.at(at(f.rule)) == Meanings::Update::adam ? std::size_t{3}
                                                                             : std::size_t{2}};
    case Function::power_of_head:
    case Function::onehot:
      return {.operands = 1, .positions = 1};
    case Function::normal_of_head:
      return {.operands = 2, .positions = 1};
    case Function::exp_seen:
      return {.operands = 1, .positions = 2};
    case Function::exp_dot:
      return {.operands = 2, .positions = 2};
    case Function::position:
    case Function::rotation:
      return {.positions = 2};
    case Function::attention_scale:
    case Function::kept:
    case Function::balance_weight:
    case Function::prediction_weight:
      return {};
  }
  fail_internally("every function is known");
}

bool has_derivative(Function function) {
  constexpr std::array kSmooth = {Function::act,     Function::silu,  Function::sigmoid,
                                  Function::power,   Function::entry, Function::exp,
                                  Function::capped,  Function::log,   Function::identity,
                                  Function::inverse, Function::ratio, Function::exp_shift,
                                  Function::moment,  Function::normal};
  if (function == Function::orthogonal) return false;
  return sees_vectors(function) || std::ranges::find(kSmooth, function) != kSmooth.end();
}

}  // namespace

void require_arguments(const Meanings& m, const MeantFunction& f, std::size_t operands,
                       std::size_t positions) {
  const Arguments fewest = fewest_of(m, f);
  const auto refuse = [&](const std::string& problem, const std::string& allowed) {
    throw InputError({.where = "program", .value = f.name, .problem = problem, .allowed = allowed});
  };
  if (operands < fewest.operands || positions < fewest.positions) {
    refuse("has too few operands or positions",
           "at least " + std::to_string(fewest.operands) + " operands and " +
               std::to_string(fewest.positions) + " positions");
  }
  if (!sees_vectors(f.function) && operands > kMostFunctionOperands) {
    refuse("has too many operands", "at most " + std::to_string(kMostFunctionOperands));
  }
  if (f.derivative < 0) return;
  if (!has_derivative(f.function) || static_cast<std::size_t>(f.derivative) >= operands) {
    refuse("is a derivative that has no meaning on real numbers here",
           "those of smooth functions by one of their operands");
  }
}

}  // namespace placet::execute
