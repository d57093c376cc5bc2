// Buffers of attention over a cut sequence: what a device holds of other devices' keys, values,
// heads and gradients while the core runs, read from the exchange's movements (docs/theory.md
// §3.7, §4.3).
#pragma once

#include <array>
#include <cstdint>

#include "derive/layout.h"
#include "derive/state_bytes.h"

namespace placet {

/// Position in UnitKind::values of what an exchange moves for one tensor of the attention core. An
/// engine that repeats keys and values for all heads moves what it has repeated.
int exchanged_value(const Operator& op, AttentionTensor tensor, const Profile& profile);

/// Elements of a value along whole sequences, where `part` of it stands on a device and the axes in
/// `mask` exchange it.
std::int64_t along_whole_sequence(const Layout& layout, AxisMask mask, std::int64_t part);

/// Whether some axis cuts the sequence and exchanges heads for tokens before the core.
bool exchanges_heads(const Job& job);

/// Of a value with kv heads that axes exchange for tokens: on how many devices each head stands
/// then. Fewer heads than devices are shared. Case: 8 heads over 16 devices: 2.
std::int64_t copies_of_heads(const Layout& layout, const LocalUnit& unit, int value);

/// The same of a dim of kv heads that tensor axes have cut, over `degree` devices.
std::int64_t copies_of_heads(const Placement& placement, const Dim& heads, AxisMask cut,
                             std::int64_t degree);

enum class Pass : std::uint8_t { forward, backward };

/// Bytes beside the device's own parts.
struct ExchangeBytes {
  std::int64_t gathered = 0;  // tensors whole along the sequence
  std::int64_t sums = 0;      // whole gradients before they are reduced and scattered
  std::int64_t pieces = 0;    // of other devices: the one worked on and the one on its way
  std::int64_t message = 0;   // what changes its layout, as it was or as it becomes

  std::int64_t total() const { return gathered + sums + pieces + message; }
};

/// Its parts, named as terms.
std::array<NamedBytes, 4> named_parts(const ExchangeBytes& exchange);

/// Of one attention operator in one pass. Case: 4 of 16 tokens on each of 4 devices, 2 x 64 bytes
/// of keys and values: gathered 512 in forward; in backward 512, and 512 of sums. Round a ring 256
/// in forward, 512 in backward.
ExchangeBytes exchange_bytes(const Layout& layout, const LocalUnit& unit, const Operator& op,
                             Pass pass);

}  // namespace placet
