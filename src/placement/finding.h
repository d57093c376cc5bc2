// A judgement about a job: a broken rule, a doubt, or an advice, with its reason and a cure.
#pragma once

#include <string>
#include <vector>

namespace placet {

enum class Severity : unsigned char { error, warning, advice };

/// Findings are values, never exceptions: an empty list is a good job.
struct Finding {
  std::string rule;  // stable short name: "divisibility"
  Severity severity = Severity::error;
  std::string where;    // "axis tp", "axis tp, class experts", "model.layers.{}.mlp.up_proj"
  std::string message;  // what is wrong, with the values
  std::string cure;     // the smallest change that mends it, in the words of the placement grammar

  friend bool operator==(const Finding&, const Finding&) = default;
};

}  // namespace placet
