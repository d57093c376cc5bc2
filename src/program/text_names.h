// Names of a program's parts by number, for the writers of this folder.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "program/program.h"
#include "program/tokens.h"

namespace placet {

/// The usual name of the last axis.
inline constexpr std::string_view kMicroBatch = "micro-batch";

inline std::size_t as_index(int i) { return static_cast<std::size_t>(i); }

/// What stands for the name of a number that is out of range.
inline std::string unknown_name(int number) { return "?" + std::to_string(number); }

/// The name of one of several, as the text form spells it.
template <class Named>
std::string name_at(const std::vector<Named>& all, int number) {
  if (number < 0 || as_index(number) >= all.size()) return unknown_name(number);
  return spelled(all[as_index(number)].name);
}

/// "parameter wq", "state m of wq", "input ids", "zero" or "loss"; without the unit.
std::string state_text(const Program& program, const StateRef& state);

}  // namespace placet
