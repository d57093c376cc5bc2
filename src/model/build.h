// From the description of a transformer to the model that is trained: unit kinds with parameters,
// values and operators (docs/theory.md §1).
//
// The operators stand at the granularity at which tensors are kept for backward. In the order of an
// ordinary block, with the region in brackets:
//
//   [residual] norm -> [parallel] linear q, k, v, their biases, q and k norms, rotary, attention
//   core, linear o -> [residual] bias, dropout, residual_add, norm -> [parallel] linear gate and
//   up, gated_activation, linear down -> [residual] residual_add
//
// Choices that the rules rely on:
// - A checkpoint tensor is one parameter and one linear operator. A fused tensor's operator has as
//   many outputs as there are parts (query, key, value; gate, up).
// - A fused q/k/v tensor has the index `head` if there are as many kv heads as heads, else
//   `kv_head`, and segments: query rows are cut by heads, key and value rows by kv heads, as the
//   three tensors apart would be.
// - Latent down-projections and their norms, routers, shared-expert gates and row-cut biases stand
//   in the residual region.
// - A router's rows have the index `other`: no cut divides them, every device scores all experts.
// - A norm over all heads together has statistics [sample, token]; one per head, [sample, token,
//   head]: a cut of the heads tears only the first apart.
// - Branches of one sublayer whose results are partial at the same time are added in the parallel
//   region, so that they are reduced once.
// - The embedding stands in the parallel region (a contraction over the vocabulary).
// - Added to the internals documented at Operator: rotary has a second one, the keys (the first is
//   the queries).
#pragma once

#include <cstdint>

#include "model/architecture.h"
#include "model/model.h"

namespace placet {

/// The model. Equal blocks share a kind; kind 0 is the embedding, then the block kinds in order of
/// first use, the head, and the multi-token-prediction kind. Throws InputError if a size exceeds
/// the range of 64-bit integers, InternalError if the description contradicts itself (a size of
/// zero, a block number out of range).
Model build_model(const Architecture& architecture);

/// Units that a model may have at most.
inline constexpr std::int64_t kMostUnits = 1'000'000;

/// A model of which only the number of parameters is known: `units` units that share `parameters`
/// as evenly as whole numbers allow, the first ones larger, each a single tensor without operators.
/// Case: 7 parameters in 3 units are 3, 2 and 2. Throws InputError unless
/// 1 <= units <= parameters and units <= kMostUnits.
Model bare_model(std::int64_t parameters, std::int64_t units);

}  // namespace placet
