// What holds for every job, whatever its placement (docs/theory.md §2 to §4): each property is a
// function that a test calls on one job after another.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "derive/derivation.h"
#include "derive/derive.h"
#include "derive/random_jobs.h"

namespace placet::testing {

using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

/// Totals are the sums of the named terms, and what a term sends follows from its payload by the
/// table of transitions.
AssertionResult terms_add_up(const Job& job, const Derivation& derivation);

/// Both derivations hold the same figures, term by term.
AssertionResult same_figures(const Derivation& a, const Derivation& b);

/// Of a parameter's state, by the job's formats and optimizer.
std::int64_t bits_per_element(const Job& job, const Parameter& parameter, State state);

/// Dividing one more state along one more axis leaves no device with more bytes at rest. Picks an
/// axis or class and a state in mode R at random; true where there is none. Only without padding.
AssertionResult refining_never_raises(Job& job, const Prepared& prepared, const Derivation& whole,
                                      RandomJobs& random);

/// An axis of degree n1 x n2 and two axes of n1 and n2 with the same placement are the same: bytes
/// at rest, peaks and collectives. Picks an axis at random; true where none can be split.
AssertionResult splitting_changes_nothing(Job& job, const Prepared& prepared,
                                          const Derivation& whole, RandomJobs& random);

/// Bytes at rest of one state over all devices, device and host memory together, counted from the
/// tensors of the model: each parameter's bytes times the devices that hold each of its elements.
/// Only for optimizers whose state is one number per element, and without padding.
std::int64_t counted_bytes(const Job& job, State state);

/// The same figure from resting_bytes, rank by rank.
std::array<std::int64_t, 3> summed_resting_bytes(const Job& job);

/// Whether the replay and the derivation make the same simplifications for such a job: one stage,
/// no prediction modules, a stream that is whole along tensor axes, nothing kept on the host,
/// nothing gathered ahead, gradients that rest whole, recomputation of whole units or none.
bool replay_covers(const Job& job);

/// Whether some parameter stays gathered along some of its axes only, which the replay leaves out.
bool keeps_parts(const Job& job, const Prepared& prepared);

/// The most bytes alive in the replay are the derivation's peak, up to what rounding each request
/// to 512 bytes may add.
AssertionResult replay_agrees(const Job& job, const Prepared& prepared, const Derivation& whole);

/// Derives `per_model` random placements of every fourth model, beginning with model `shard`, and
/// checks every property above; gives the number of jobs.
int check_placements(std::uint32_t seed, int per_model, std::size_t shard);

}  // namespace placet::testing
