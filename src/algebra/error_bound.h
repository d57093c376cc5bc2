// How likely it is that two different steps agree by chance (docs/theory.md §6.7).
#pragma once

#include "algebra/machine.h"

namespace placet::algebra {

/// What the bound of the error is made of, for one run of a list.
///
/// Hashes are taken for random functions, so that a value is a polynomial in fresh random numbers:
/// initial state, inputs, values of hashes, exponentials (uniform among q squares), and inverses
/// y = 1/b of which each stands for itself. `degree` bounds the degree of a checked value in all of
/// them. With the denominators of the M inverses multiplied out it is a polynomial of degree at
/// most degree * (1 + M w), where w bounds the degree of a b (in which inverses that come before
/// are multiplied out likewise). Two that differ agree with probability at most that over q in one
/// entry (Schwartz, Zippel), and a hash gives equal values to different arguments with at most 2/p.
/// What is not covered: programs that differ only where other choices are made (the largest of
/// several numbers, chosen experts, ids). Those are as random as the seed makes them.
struct ErrorTerms {
  double degree = 0;
  double inverse_degree = 0;  // w
  double inversions = 0;      // M
  double hashes = 0;          // N
};

/// Follows the degrees through `steps` runs of the list from memory of degree 1.
ErrorTerms error_terms(const OperationList& list, int steps);

/// The probability that one seed takes a wrong program for right, with so many entries compared.
double error_probability(const ErrorTerms& reference, const ErrorTerms& program, double entries);

}  // namespace placet::algebra
