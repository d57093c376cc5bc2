// The backward pass of a kernel, by the rules of differentiation (docs/theory.md §6.3).
#pragma once

#include <optional>
#include <vector>

#include "program/kernel.h"

namespace placet {

/// Which tensors of the original kernel the backward kernel reads and makes gradients of, by
/// number. Inputs of the backward kernel: gradients of `from`, then the original tensors `reads`.
/// Outputs: gradients of `to`.
struct Adjoint {
  Kernel kernel;
  std::vector<int> from;   // outputs of the original whose gradients come in
  std::vector<int> reads;  // inputs and outputs of the original that the formulas use
  std::vector<int> to;     // inputs of the original whose gradients go out

  friend bool operator==(const Adjoint&, const Adjoint&) = default;
};

/// The gradients of the inputs `to` of a kernel, given those of its outputs `from`; others have
/// none. Tensors inside the kernel are computed again from its inputs and outputs. Rules:
///   products: the other factors times the gradient of the result;
///   a function: its derivative f'i with respect to operand i, a function of the same operands,
///     with one more index for each dim of that operand that it sees whole, after its own. Case:
///     y[t c] = f(x[t], w[c]; whole t c) has f'0[t c t'] and f'1[t c c'];
///   exp_dot(q, k, c; whole e): w itself times the other two, as the exponential's derivative is
///     itself; exp(x), exp_seen(x): likewise; exp_shift(z, m): likewise for z, and none for m, of
///     which softmax is independent;
///   functions that give choices (`is_constant`): none.
/// None: no gradient of `from` reaches any of `to`.
std::optional<Adjoint> adjoint_of(const Kernel& kernel, const std::vector<int>& from,
                                  const std::vector<int>& to);

/// Whether a function's value does not change with small changes of its operands, or has none.
bool is_constant(std::string_view function);

}  // namespace placet
