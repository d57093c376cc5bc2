// The algebraic reading of a step program: all ranks are run over a finite field, and what they
// hold is compared with the reference (docs/theory.md §6.7).
//
// Of functions such as norms, activations and the optimizer's root nothing is used but that equal
// arguments give equal values; sums, products, quotients and the softmax are exact. A program that
// is equal here is equal to the reference over the reals whatever those functions are, but for the
// error probability. Nothing is concluded from names, kinds of instructions or streams.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "program/program.h"
#include "ranks/limits.h"

namespace placet {

struct VerifyOptions {
  int steps = 2;  // one after the other, from what the step before left
  int seeds = 2;
  ranks::RunLimits limits;
  /// All steps and all witnesses, and whether replicas agree, where the first wrong step would do.
  bool in_full = false;
};

/// One entry of what a rank holds after a step that is not what the reference says.
struct Witness {
  std::string tensor;  // "layers.0.mlp.up.weight", "loss"
  int rank = 0;
  std::vector<std::int64_t> index;  // in the whole tensor
  std::uint64_t expected = 0;       // elements of the field
  std::uint64_t found = 0;
  int step = 1;  // counted from 1

  friend bool operator==(const Witness&, const Witness&) = default;
};

struct Verification {
  /// Every parameter, optimizer state and result of every rank after every step, for every seed.
  bool equal = false;
  int steps = 0;
  int seeds = 0;
  int ranks = 0;
  std::string field;  // "F_p, p = 2305843009213690799"
  /// Of an equal program: the probability that one that is not equal passes all seeds. Of others 0,
  /// as a witness is certain.
  double error_probability = 0;
  std::int64_t compared = 0;  // entries, of one seed
  /// The first wrong entry of each tensor and rank after the first step that is wrong; at most
  /// kMostWitnesses. In full: of every step, all of them.
  std::vector<Witness> witness;
  /// In full only: whether ranks that hold the same entry held the same number after every step.
  bool replicas_agree = true;
  /// Why and where the program cannot run: a buffer that is not alive or was never written, shapes
  /// that do not fit, a collective that the members of its group do not come to, a division by
  /// zero whatever the numbers.
  std::optional<std::string> stuck;
};

inline constexpr std::size_t kMostWitnesses = 64;

/// Runs the program and its reference. The same program gives the same result in every run. Throws
/// InputError for programs beyond the limits, and where parts of it refer to what does not exist.
Verification verify(const Program& program, const VerifyOptions& options = {});

}  // namespace placet
