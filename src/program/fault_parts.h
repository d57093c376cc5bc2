// What the parts of fault injection share. Inside of this folder.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program/fault.h"
#include "program/walk.h"

namespace placet {

/// A change to one body, at a step of it as it was before.
struct Change {
  enum class Kind : std::uint8_t { remove, replace, before, after };
  Kind kind = Kind::remove;
  std::size_t at = 0;
  Instruction what;              // not of remove
  std::optional<Kernel> kernel;  // that it calls, if it is one of its own
};

/// The kernel y = f(x), entry by entry; without a name of f, y = x.
Kernel entrywise(const std::string& name, const std::string& function);

/// What an instruction of a body is changed to; nothing: the fault makes no sense there.
std::optional<std::vector<Change>> changes_for(const Program& program, const Fault& fault,
                                               const std::vector<Step>& body, std::size_t at);

/// The body after the changes, which hold in one step only if `step` is not 0.
std::vector<Step> changed(const std::vector<Step>& body, const std::vector<Change>& changes,
                          std::int64_t step);

/// What is known of buffers from how they are used, for the choice of instructions.
struct FaultTables {
  std::vector<std::set<std::string>> names;  // by family: parameters that it is about
  std::set<int> norms;                       // families that a norm flows through
  std::set<int> counts;                      // families that the count of tokens flows through
  std::set<std::string> shared;              // parameters that several units use
  std::set<std::int64_t> users;              // units that use another one's parameter
  std::set<int> apart;                       // axes along which classes differ
};
FaultTables tables_of(const Program& program);

/// Whether all keys but `nth` fit an execution of an instruction.
bool fits(const Program& program, const FaultTables& tables, const Fault& fault,
          const Instruction& instruction, const Arguments& arguments);

/// Whether `text` fits a pattern with * and ?.
bool fits_glob(std::string_view pattern, std::string_view text);

/// The value of a product of axis names, m, tokens and integers: "tp*2", "1/ep". Nothing: an axis
/// of that name does not exist.
std::optional<Rational> value_of_product(const Program& program, const std::string& text);
/// Axes by name: "dp*tp". Nothing: one does not exist.
std::optional<AxisList> axes_named(const Program& program, const std::string& text);

/// The program with classes split so that each is chosen as a whole or not at all, and which are.
std::pair<Program, std::vector<bool>> split_classes(Program program, const RankChoice& choice);

}  // namespace placet
