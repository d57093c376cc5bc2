// The proof that a step program is the training step it claims to be, or the counterexample
// (docs/theory.md §6.6).
//
// All classes are run at once over values that say, for every device, what a buffer holds in terms
// of the reference. Nothing is sampled and no device is singled out: a verdict holds for all
// numbers and for any size of the mesh. Nothing here knows where the program came from.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "program/program.h"

namespace placet {

/// The five conditions under which a step equals the reference.
enum class Condition : std::uint8_t {
  gradient_integrity,
  state_consistency,
  update_integrity,
  input_integrity,
  order
};
inline constexpr int kConditionCount = 5;
std::string_view name_of(Condition condition);

/// A counterexample: where the program first departs from the reference.
struct CheckFinding {
  Condition condition = Condition::gradient_integrity;
  std::string tensor;  // of the reference
  std::string ranks;   // the devices: names of classes
  std::string at;      // the instruction where it began
  std::string expected;
  std::string found;
  std::string difference;
  std::vector<std::string> chain;  // instructions from where it shows to where it began
  std::string before;  // of a sum that nothing completes: what made it, its last message
  std::string fix;
  bool masked = false;  // does not show in what is trained

  friend bool operator==(const CheckFinding&, const CheckFinding&) = default;
};

/// A change to one instruction after which the program is right, as far as it was searched for
/// (mend.h).
struct Cure {
  std::string body;    // where: "procedure backward.block", "class stage-0"
  std::string change;  // "put 'all_reduce sum g over dp' before 'update ...'"; empty: none found
  int tried = 0;       // changes that were applied and judged
  bool cut_short = false;  // others were left, for the bound on the work
  /// What it was found in, where that stands for the program: the same job made small.
  std::string found_in;

  friend bool operator==(const Cure&, const Cure&) = default;
};

struct Verdict {
  bool equivalent = false;
  int steps = 0;
  std::int64_t devices = 0;
  std::array<bool, kConditionCount> holds{};
  std::vector<std::string> reference;  // its choices
  std::vector<CheckFinding> findings;
  /// Buffers whose types say another part than they hold: no condition is broken by that, but sizes
  /// that are read off types are wrong.
  std::vector<std::string> labels;
  std::optional<Cure> cure;  // where it was searched for
};

/// Judges two steps of a well-formed program.
Verdict check(const Program& program);

/// Whether the verdict on a well-formed program is good. By the same rules and on the same
/// instructions, but nothing is kept from which findings are told, and the first one ends it.
bool is_right(const Program& program);

/// The reference of a program worked out once, for other programs that claim to be the same. Asked
/// of a program with another reference, `is_right` does not use it.
class KnownReference;
std::shared_ptr<const KnownReference> known_reference(const Program& program);
bool is_right(const Program& program, const KnownReference& known);

/// The two halves of `is_right`, which share nothing: that every device does things in an order
/// that holds however fast its queues are, in buffers of the right size, and that the values are
/// right then.
bool is_in_order(const Program& program);
bool has_right_values(const Program& program, const KnownReference& known);

}  // namespace placet
