// When a profile's own fact applies to a job (docs/theory.md §8).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "profile/job.h"

namespace placet {

/// What a condition may ask of one class of devices.
struct StageFacts {
  bool first = true;  // hosts the first virtual stage
  bool last = true;   // hosts the last one
  friend bool operator==(const StageFacts&, const StageFacts&) = default;
};

/// Micro-batches per optimizer step: global / (micro x axes that cut the batch of dense tensors),
/// rounded down, at least 1 (a finding says where it does not divide). An axis with an expert cut
/// counts as one that cuts the batch: dense tensors have no experts.
std::int64_t micro_batches_per_step(const Job& job);

/// Samples that a step works on: the global batch, or what the micro-batches come to where they do
/// not divide it.
std::int64_t samples_per_step(const Job& job);

/// The symbols that a job alone fixes, the same for all devices; none for the others.
std::optional<std::int64_t> value_in_job(Symbol symbol, const Job& job);

/// Whether units are recomputed as a whole, by the recomputation choice or by the mode of the
/// activations.
bool recomputes_whole_units(const Job& job);

/// Whether every part of the condition that is given holds.
bool holds(const When& when, const Job& job, const StageFacts& stage);

/// Parts of a job that may still be open when others are chosen.
enum class JobPart : std::uint8_t {
  micro_batches,  // samples of one, and of a step
  stages,         // schedule, and blocks of each stage
  states,         // along axes that divide samples or tokens, and what is moved off the device
  exchange,       // of attention over a divided sequence
  recomputation
};
using JobParts = std::uint8_t;  // bits

constexpr JobParts bit_of(JobPart part) {
  return static_cast<JobParts>(1U << static_cast<unsigned>(part));
}

inline constexpr JobParts kAllParts = 0x1F;

/// The parts that conditions ask for. All else that they may ask for is the model, how it is
/// trained, the degrees of axes, and what a tensor axis says.
JobParts parts_asked(const std::vector<When>& when);

/// Whether all conditions hold; true for none.
bool all_hold(const std::vector<When>& when, const Job& job, const StageFacts& stage);

}  // namespace placet
