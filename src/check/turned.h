// Values whose dims stand in another order (docs/theory.md §6.5). Inside of check/.
//
// A kernel may keep what it makes on the way with its dims in any order. Such a value is the node
// that has them in the order of the reference, turned: a product of that node alone, which sums
// nothing.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "check/nodes.h"

namespace placet {

/// Whether a dim is one of these.
inline bool contains(const std::vector<int>& dims, int dim) {
  return std::ranges::find(dims, dim) != dims.end();
}

/// What a node is turned from: dim d of that stands at the place `dims[d]` of the node's. None: it
/// is no turned one.
/// Case: t[b a c] = x[a b c]: x with 1, 0, 2.
std::optional<NodeOperand> turned_from(const Nodes& nodes, NodeId node);

/// Whether two lists of dims are one in two orders.
bool is_turn(const std::vector<int>& from, const std::vector<int>& to);

/// A node whose dims are named `from`, with its dims in the order `to`.
/// Case: x with a b as b a, and that as a b: x.
NodeId turned(Nodes& nodes, NodeId node, const std::vector<int>& from, const std::vector<int>& to);

/// The same of a value, each summand by itself.
Tensor turned(Nodes& nodes, const Tensor& value, const std::vector<int>& from,
              const std::vector<int>& to);

/// An operand that is turned, as what it is turned from; of a sum, if all terms are turned alike.
NodeOperand unturned(Nodes& nodes, NodeOperand operand);

/// The node that a product or a function is if its result has its dims in another order, where
/// there is such a node: that one, and the places of its dims in the result. Values of many dims
/// are not tried, nor functions that see vectors.
/// Case: p[o i] of the reference, for q[i o] with the same factors: p with 1, 0.
std::optional<NodeOperand> known_turned(const Nodes& nodes, const Node& made);

/// The node of what a statement makes, and the one that its sums stand at: another one only where
/// the program has the dims of the result in its own order.
struct MadeNode {
  NodeId node = 0;
  NodeId summed_at = 0;
};

/// Adds a product or a function, and notes where it is zero.
MadeNode add_turned(Nodes& nodes, Node node, NodeMaker maker);

}  // namespace placet
