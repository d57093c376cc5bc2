// Messages of quantised numbers (docs/theory.md §4.4): what a block of numbers with one constant
// each adds to them, and in which steps quantised gradients are summed. Inside of
// parameter_traffic.
#pragma once

#include <cstdint>
#include <vector>

#include "derive/layout.h"

namespace placet {

/// Blocks that a quantiser makes of `elements` numbers: the fewest equal ones of at most `block`
/// numbers each whose lengths are multiples of 8; where there are none, blocks as full as can be.
/// Case: 65536 numbers by 8000 would be 9 blocks; 8192 eights divide by 16.
std::int64_t equal_blocks(std::int64_t elements, std::int64_t block);

/// One exchange of a gradient: every device sends each other of the group its part of `elements`
/// numbers in `blocks` blocks, and sums what it gets.
struct GradientExchange {
  AxisMask axes = 0;
  std::int64_t group = 1;     // may be a part of the axes
  std::int64_t apart = 1;     // of these every `apart`th
  std::int64_t elements = 0;  // of the send buffer
  std::int64_t blocks = 0;

  friend bool operator==(const GradientExchange&, const GradientExchange&) = default;
};

/// The exchanges that bring a whole gradient to its owners along `axes`: among those on one host,
/// then across hosts, each device with what the first left it; without a cluster all are one host.
/// Blocks are the larger of the matrix's first two dims, and at least one per device.
/// Case: 512 x 1024 on dp=16, hosts of 8: 524288 numbers in 1024 blocks among 8, 65536 in 128
/// among 2.
std::vector<GradientExchange> gradient_exchanges(const Job& job, const LocalParameter& parameter,
                                                 AxisMask axes);

/// Whether the gradient can go that way: it is a matrix, and divides by twice the devices.
bool can_be_exchanged(const Placement& placement, const LocalParameter& parameter, AxisMask axes);

}  // namespace placet
