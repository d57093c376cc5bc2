// Inverses of single numbers, which move out of every linear statement (docs/theory.md §6.5).
// Inside of check/.
#pragma once

#include <vector>

#include "check/nodes.h"

namespace placet {

/// Whether a value is the inverse of a single complete number, or a multiple of it. That of one
/// device's count is none: those of all devices would be one factor (docs/theory.md §6.5).
/// Case: i[] = inv(n[]), n the number of tokens of the step.
bool is_scale(const Nodes& nodes, const Tensor& value);

/// A node times scales: one node, wherever they stood. Case: (w i) f and (w f) i.
NodeId scaled(Nodes& nodes, NodeId node, const std::vector<NodeId>& scales);

/// Multiplies a value that is not zero by more scales.
void multiply(Tensor& value, const std::vector<NodeId>& scales);

/// a += b where both have the same dims and cuts, whatever their scales (`add_to`).
bool add(Nodes& nodes, Tensor& a, const Tensor& b);

/// An operand over its scales, which are added to `scales`. One that is turned has none outside.
NodeOperand bare(const Nodes& nodes, NodeOperand operand, std::vector<NodeId>& scales);

}  // namespace placet
