// A matrix with its singular values near one, as Muon steps along (docs/theory.md §6.11).
#pragma once

#include <cstddef>
#include <vector>

namespace placet::execute {

/// Five iterations of Newton and Schulz on a matrix of `rows` rows, scaled for a step as long as
/// one of AdamW: 0.2 times the root of the longer side. Jordan et al., Muon: An optimizer for
/// hidden layers in neural networks, 2024, NewtonSchulz5 (its coefficients, and the norm that a
/// matrix is divided by first); Liu et al., arXiv:2502.16982, section 2.2 (the scale). All sums are
/// made in one order, so that equal matrices give equal bits.
std::vector<double> orthogonal(const std::vector<double>& matrix, std::size_t rows);

}  // namespace placet::execute
