// A kernel that sums over a dim, as rounds over pieces of the dim and an end (docs/theory.md §6.4,
// "Keys round a ring").
#pragma once

#include <optional>
#include <vector>

#include "program/kernel.h"

namespace placet {

/// Some statements of a kernel as a kernel of its own.
struct KernelPart {
  Kernel kernel;
  std::vector<int> tensors;  // by input and output, the tensor of the original
  std::vector<int> dims;     // by dim, that of the original
};

/// Some statements as a kernel, with these tensors of the original as inputs and outputs.
KernelPart part_of_kernel(const Kernel& kernel, const std::vector<Statement>& statements,
                          const std::vector<int>& inputs, const std::vector<int>& outputs);

/// What is done with one piece of the dim, and what is done once with the sums over all pieces.
struct KernelRounds {
  /// Inputs are those of the original. Outputs are its outputs that have the dim, of which each
  /// piece gives a piece, and the sums over the dim, of which each piece gives a summand.
  KernelPart piece;
  std::optional<KernelPart> end;  // none: the sums are all that is asked for
};

/// Splits a kernel at its sums over `dim`: what comes before them belongs to the pieces, what
/// follows from them to the end. None: a piece alone does not give a summand or a piece of every
/// result, as where a function sees whole vectors along the dim, a maximum is taken, or what
/// follows from a sum has the dim again.
///
/// Case: w[t u] = f(q[t], k[u]); l[t] = w[t u]; n[t] = w[t u] * v[u]; o[t] = ratio(n[t], l[t]) over
/// u: pieces (q, k, v) -> (l, n), end (n, l) -> (o).
std::optional<KernelRounds> rounds_over(const Kernel& kernel, int dim);

}  // namespace placet
