// Activations tensor by tensor: what each unit of a device keeps from forward to backward, and how
// many of each there are (docs/theory.md §3.2, §3.4). For a person who looks for what to recompute;
// the terms of a derivation hold the sums only.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "derive/derivation.h"

namespace placet {

/// What a tensor is kept as: a value for backward; the input from which a unit is made again;
/// between the two parts of a split backward, a value or a gradient of one, for gradients of
/// weights.
enum class KeptAs : std::uint8_t { value, checkpoint, waiting, waiting_gradient };

/// Values of one name that units of one kind keep. Views into the job's model.
struct KeptTensor {
  std::string_view unit;  // unit kind
  std::string what;       // the value: "attention.query"; of units that are recomputed, their input
  KeptAs as = KeptAs::value;
  Bytes each;              // one unit, one micro-batch; its part on the device
  std::int64_t times = 0;  // units x micro-batches in flight
  Bytes bytes;             // each x times
};

/// Of the device that `memory` describes, the most bytes first. Their sum is its activations at
/// rest: what the micro-batches in flight keep at most. Case: 10 blocks that keep 4 bytes of "x"
/// each, 3 micro-batches in flight: 30 times 4 bytes.
std::vector<KeptTensor> kept_tensors(const Job& job, const MemoryClass& memory);

}  // namespace placet
