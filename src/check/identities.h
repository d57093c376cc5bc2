// Sums that are zero whatever the numbers are (docs/theory.md §6.5). Inside of check/.
//
// A softmax does not change if one number is added to all its scores. So the gradients of its
// scores, w_u = exp(z_u), sum to zero: with l = Σ_u w_u, n_e = Σ_u w_u v_ue, o = n / l,
//   dz_u = (Σ_e dn_e v_ue + dl) w_u,   dn = do / l,   dl = - Σ_e do_e o_e / l,
//   Σ_u dz_u = Σ_e do_e n_e / l - Σ_e do_e o_e l / l = 0.
// Nothing is used of w but that the same w stands in all three sums. What follows: the gradient of
// what is added to all keys of a query, as a bias of keys is, is zero.
#pragma once

#include <vector>

#include "check/nodes.h"

namespace placet {

/// Notes the dims for which a product that sums one factor is zero (`Nodes::zero_dims`).
/// Case: db = Σ_u dk_u, dk_u = Σ_t dz_tu q_t: the dim u.
void note_zeros(Nodes& nodes, NodeId product);

/// Takes such products out of tensors: complete ones, and those of which only parts of other sums
/// are missing.
void drop_zeros(const Nodes& nodes, std::vector<Tensor>& tensors);

}  // namespace placet
