// What a planner may choose from: the ways to carry out each axis of a mesh, where the states may
// live, what may be moved off the device, what may be computed again (docs/theory.md §9). Values
// read from data: whoever searches them knows roles of axes, and no name.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "placement/exchange.h"
#include "placement/placement.h"
#include "profile/training.h"
#include "schedule/schedule.h"

namespace placet {

/// What an axis is there for. replica and batch both cut samples: states that are divided along the
/// second one only are whole along the first.
enum class AxisRole : std::uint8_t { layer, replica, batch, sequence, expert, tensor };
inline constexpr int kAxisRoleCount = 6;
std::string_view name_of(AxisRole role);
constexpr std::size_t at(AxisRole role) { return static_cast<std::size_t>(role); }

/// One way to carry out an axis, as written behind its degree, and what that means.
struct AxisWord {
  std::string text;  // "tp+sp"
  AxisPlacement axis;
  Schedule schedule;            // of the role layer
  AttentionExchange attention;  // of the role sequence

  friend bool operator==(const AxisWord&, const AxisWord&) = default;
};

/// Where the states live along all axes that cut samples or tokens.
struct StateWord {
  std::string text;     // of its terms; "A over B" where replicas have their own
  bool splits = false;  // the role replica is used, with words of its own

  friend bool operator==(const StateWord&, const StateWord&) = default;
};

/// Additional blocks as which embedding and head count where blocks are dealt to stages.
struct StageWeights {
  std::int64_t embedding = 0;
  std::int64_t head = 0;

  friend bool operator==(const StageWeights&, const StageWeights&) = default;
};

/// A recomputation, or a family of them whose count is to be chosen.
struct RecomputeWord {
  std::string text;
  Recompute recompute;
  bool counted = false;

  friend bool operator==(const RecomputeWord&, const RecomputeWord&) = default;
};

/// Axis words stand in one table per role, by (word, state, offload). A role whose words do not
/// depend on the states has one state only.
struct Choices {
  struct Role {
    std::vector<std::string> words;
    std::size_t states = 1;
    std::vector<AxisWord> table;  // words x states x offloads

    friend bool operator==(const Role&, const Role&) = default;
  };
  std::string name;
  std::array<Role, kAxisRoleCount> roles;
  std::vector<std::array<AxisRole, kAxisRoleCount>> orders;  // outermost first; the last three are
                                                             // sequence, expert, tensor
  std::vector<StateWord> states;
  std::vector<std::string> offloads;  // the first is empty: nothing is moved
  std::vector<RecomputeWord> recompute;
  std::vector<StageWeights> stages;

  const AxisWord& word(AxisRole role, std::size_t word, std::size_t state,
                       std::size_t offload) const {
    const Role& own = roles[at(role)];
    const std::size_t s = own.states == 1 ? 0 : state;
    return own.table[(word * own.states + s) * offloads.size() + offload];
  }
  friend bool operator==(const Choices&, const Choices&) = default;
};

}  // namespace placet
