// What an engine keeps: values from forward to backward, gradients until they are added, its own
// buffers (docs/theory.md §3.2, §3.5).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"
#include "profile/amounts.h"

namespace placet {

/// Which values an operator kind keeps for its backward: bit i of a mask is input, output or
/// internal i (see Operator in model/model.h).
struct SavedSlots {
  std::uint16_t inputs = 0;
  std::uint16_t outputs = 0;
  std::uint16_t internals = 0;
  friend bool operator==(const SavedSlots&, const SavedSlots&) = default;
};
using SavedTable = std::array<SavedSlots, kOpKindCount>;

/// Which slots the plain theory keeps: what the backward formula of each operator needs, with an
/// attention kernel that recomputes probabilities (logsumexp kept) and unfused elementwise work.
SavedTable plain_saved_table();

/// Where the whole input of a column-cut operator is kept from forward to backward.
enum class GatheredInput : std::uint8_t { shard /* gathered again */, whole };

/// How long a weight's gradient of one micro-batch lives before it is added to the resting
/// gradient: the operator that makes it, its unit, or the whole backward of the micro-batch.
enum class GradientHold : std::uint8_t { op, unit, micro_batch };

/// When a gradient buffer exists. resting: allocated once, lives on. growing: each tensor appears
/// in backward and is freed after the update.
enum class GradientLife : std::uint8_t { resting, growing };

/// One step of the loss as the engine's kernels run it: a buffer of so many bytes per logit
/// appears, or vanishes. What is alive between the steps is the workspace of the loss.
struct LossStep {
  std::string buffer;
  bool appears = true;
  std::int64_t bytes_per_logit = 4;
  friend bool operator==(const LossStep&, const LossStep&) = default;
};

/// A selective recomputation by name: blocks are recomputed but for their input and what these
/// operators leave; of contractions one in `every` counts, the first of a block among them.
struct RecomputePolicy {
  std::string name;
  SavedTable keeps{};
  std::int64_t every = 1;
  bool keeps_unread = true;  // also results that backward never reads
  friend bool operator==(const RecomputePolicy&, const RecomputePolicy&) = default;
};

/// The instants of a step at which memory is counted (docs/theory.md §3).
/// start: before the first step, while the engine sets up; only the replay of requests sees it.
enum class Instant : std::uint8_t { forward, loss, backward, reduction, update, start };
inline constexpr int kInstantCount = 6;
using InstantSet = std::uint8_t;
constexpr InstantSet bit_of(Instant i) {
  return static_cast<InstantSet>(1U << static_cast<unsigned>(i));
}
std::string_view name_of(Instant instant);
/// The instants of a step: all but start.
inline constexpr InstantSet kEveryInstant = 0x1F;

/// What a memory term counts as; the keys of the report's bytes. The first four are the states.
enum class MemoryCategory : std::uint8_t {
  parameters,
  optimizer,
  gradients,
  activations,
  transient,
  overhead
};
inline constexpr int kMemoryCategoryCount = 6;
std::string_view name_of(MemoryCategory category);

/// A memory term that the theory does not imply but the engine has: its own buffers, workspaces,
/// contexts.
struct EngineMemory {
  std::string what;
  MemoryCategory category = MemoryCategory::overhead;
  InstantSet instants = 0;
  Amount bytes;
  Amount blocks;  // equal allocations that the bytes come in (1 unless said)
  std::vector<When> when;
  bool in_reserved = true;  // seen by figures of reserved memory (contexts are not)
  std::string source;
  friend bool operator==(const EngineMemory&, const EngineMemory&) = default;
};

}  // namespace placet
