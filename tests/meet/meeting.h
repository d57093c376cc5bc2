// Where two derivations of one job meet, and where they part: the closed forms of derive() and the
// sums of the step program that lower() makes, figure by figure (docs/theory.md §6.10).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "check/tally.h"
#include "derive/derive.h"
#include "profile/job.h"

namespace placet::testing {

/// Bytes that a device has alive at the fullest moment of a phase, and of which buffers.
struct PhaseMemory {
  Bytes bytes;
  std::vector<FamilyBytes> families;
};

/// One device over one step, by StepPhase: its instructions run one after the other, and their
/// allocations and frees are added up. Reductions count as update. Without samples, which rest
/// beside the states, and single numbers.
std::array<PhaseMemory, 4> phase_memory(const Program& program, int device_class,
                                        const ProgramCoordinates& where);

/// What is compared.
enum class Figure : std::uint8_t { messages, rest, peak };

/// A figure on which the two do not agree.
struct Difference {
  Figure figure = Figure::messages;
  std::string of;            // class and term
  std::int64_t derived = 0;  // messages: calls per step; else bytes
  std::int64_t counted = 0;
};

/// "stage 0: all_reduce over dp, 1024 bytes of bf16 in reduce: derived 1, counted 2".
std::string text_of(const Difference& difference);

/// All differences of a job, class by class.
std::vector<Difference> differences(const Job& job, const Derivation& derivation,
                                    const Program& program);

}  // namespace placet::testing
