// Where an operator's index list leaves partial sums, forward and backward (docs/theory.md §4.2).
// Inside of derive.
#pragma once

#include <vector>

#include "model/model.h"

namespace placet {

/// Operators that sum over an index of their weights: matrices, experts' matrices, lookups.
bool is_contraction(OpKind kind);

/// Operators that are linear in their activation inputs: a partial sum may pass through them.
bool passes_partial(OpKind kind);

/// Indices that a contraction sums over: those of its weights and of its input that the output has
/// not; a lookup sums over the rows of its table. Empty for other operators.
IndexSet contracted_indices(const UnitKind& kind, const Operator& op, int output);

/// Whether an operator is a linear step that a usual tensor cut leaves whole: the gradient of its
/// output may stay partial until it reaches the stream, or the weights of such steps.
bool is_whole_linear_step(const UnitKind& kind, const Operator& op);

/// By parameter: indices of which a tensor cut leaves the parameter's gradient partial where it
/// does not cut the parameter itself. Of the operators of parallel regions that use it: their own
/// index lists; those whose contraction left their input partial; those of the users whose gradient
/// comes back partial over steps that are linear and whole.
/// Case: the bias of a query projection [head, head_size] has {sample, token}: whole under a cut of
/// `hidden`. The weight of a norm over each head [head_size]: {sample, token, head}. LoRA's A
/// [rank, hidden] under B [head x head_size, rank]: {sample, token, head, head_size}.
std::vector<IndexSet> partial_gradient_indices(const UnitKind& kind);

}  // namespace placet
