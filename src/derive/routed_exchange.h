// Tokens copied for their experts: between which devices they change, and what they take on each
// side (docs/theory.md §3.7, §4.3). Inside of derive.
#pragma once

#include <cstdint>

#include "derive/unit_view.h"

namespace placet {

/// Axes around routed work, by what happens to tokens and results there.
struct RoutedAxes {
  AxisMask exchanged = 0;  // devices own different experts and hold different tokens: all-to-all
  AxisMask gathered = 0;   // experts are cut, tokens differ: tokens are made whole first
  AxisMask summed = 0;     // the stream is whole: each device contributes a part of every result
  AxisMask parted = 0;     // of these: because it has a part of the experts, or of the tokens
};

/// Whether experts are cut along the columns of the stream and no other dim: their tokens need not
/// come together, and what their matrices sum is summed like that of others.
bool cuts_columns_alone(const How& how);

/// What happens around the unit's routed experts.
RoutedAxes routed_axes(const UnitView& unit);

/// Elements of value `v` that a device sends to experts: of its own tokens, once per choice; of
/// those whose experts stand in its part of the axes that share its tokens.
std::int64_t sent_elements(const UnitView& unit, const RoutedAxes& axes, int v);

/// Copies of tokens that change devices, of one unit. While they do they stand on a device twice,
/// as they were and as they become.
struct RoutedExchange {
  int sent = -1;                    // the value that goes to experts; -1: none changes devices
  int returned = -1;                // the value that comes back
  int sent_to = -1;                 // the first operator that reads what was sent
  int returned_by = -1;             // the operator that makes what comes back
  std::int64_t with_tokens = 0;     // bytes of either where the tokens are
  std::int64_t returned_there = 0;  // bytes of what comes back, where the experts are

  /// Bytes that are there once more, as they were or as they become, before operator `o` runs: of
  /// what its forward reads.
  std::int64_t before_forward(const UnitKind& kind, std::size_t o) const;
  /// And of the gradients that its backward works on.
  std::int64_t before_backward(const UnitKind& kind, std::size_t o) const;
};

/// None for engines that gather tokens instead. Case: 2 devices with 4 tokens of 8 bytes each and 2
/// choices: 64 bytes with the tokens, 64 with the experts, 128 while they change.
RoutedExchange routed_exchange(const UnitView& unit);

}  // namespace placet
