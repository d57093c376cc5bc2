// Tensors that several stages hold: another unit uses them too (tied embeddings), or all units
// stand on two devices (bidirectional pipelines). Their gradients are partial over the hosts
// (docs/theory.md §4.4). Inside of communication.cc.
#pragma once

#include <cstddef>
#include <vector>

#include "derive/stages.h"

namespace placet {

class SharedTensors {
 public:
  SharedTensors(const Job& job, const Stage& stage);

  /// Whether units of a kind may have tensors that stand on a further device.
  bool may_share(int kind) const;

  /// Whether parameter `p` of the unit at position `unit` stands on a further device, and the stage
  /// counts it here: each device counts a tensor once.
  bool is_elsewhere(int unit, std::size_t p) const;

 private:
  /// A kind of unit that uses another one's tensor.
  struct UsedTensor {
    int user = 0;
    Parameter::Tie owner;
  };

  bool hosts_kind(int kind) const;

  const Job& job_;
  const Stage& stage_;
  bool both_ways_ = false;
  std::vector<UsedTensor> ties_;
};

}  // namespace placet
