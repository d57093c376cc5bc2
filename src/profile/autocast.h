// Formats of values where the engine chooses them operator by operator while it computes
// (torch.autocast), and what is cast for a product (docs/theory.md §3.2).
#pragma once

#include "profile/job.h"

namespace placet {

/// Whether a parameter, where products use it, is still in more bits than these multiply in.
bool is_wide_in_use(const Job& job, const Parameter& parameter);

/// Whether the engine casts what the operator takes to the format of computation.
bool is_cast(const Profile& profile, const Operator& op);

/// Sets the formats of the model's values where the engine chooses formats while it runs, and does
/// nothing elsewhere. Operators that are cast give the format of computation; layer norms give
/// fp32; all else gives fp32 if something that goes into it is so wide, the parameters included,
/// and the format of computation otherwise.
/// Case: fp32 weights: embedding, residual sums and norms fp32, so that a block's input is, too;
/// queries, the inside of the MLP and logits bf16. Weights of a frozen base in bf16: all bf16 but
/// the results of layer norms.
void set_formats(Job& job);

}  // namespace placet
