// Incomplete factors of products (docs/theory.md §6.5, "Transfer"). Inside of check/.
#pragma once

#include <cstddef>
#include <string>

#include "check/nodes.h"
#include "check/region.h"

namespace placet {

struct PassedShares {
  const Tensor& partial;       // the factor
  const NodeOperand& through;  // it in the product, where that has others
  const Share& own;            // what the product itself sums
  std::size_t most_parts = 0;
};

/// The shares of an incomplete factor become those of the product, which has its summands as often
/// as its name says. Summands with equal shares pass them on once, as the product is linear in
/// their sum. Gives what cannot be right, in words; empty: nothing.
std::string pass_shares(Nodes& nodes, const Regions& regions, const PassedShares& from, Item& item);

}  // namespace placet
