// Buckets: how an engine puts whole tensors together into messages while backward goes on
// (docs/theory.md §4.4).
#pragma once

#include <cstdint>
#include <vector>

#include "profile/profile.h"

namespace placet {

/// Tensors that travel in buckets, in the order of the model: those of one unit, and how many such
/// units follow each other.
struct BucketTensors {
  std::vector<std::int64_t> bytes;
  std::int64_t units = 1;
};

/// When a bucket is full. Sizes in bytes.
struct BucketRule {
  std::int64_t size = 0;
  std::int64_t first = 0;  // of the first bucket, where it has another one; 0: as the others
  BucketEnd end = BucketEnd::before;
  bool from_first = false;  // in the order of the model, as forward takes them
};

/// Buckets of one size.
struct BucketCount {
  std::int64_t bytes = 0;
  std::int64_t count = 0;
  friend bool operator==(const BucketCount&, const BucketCount&) = default;
};

/// Fills buckets with whole tensors from the last of the model to the first, as backward makes
/// their gradients, or from the first on; buckets of one size are counted together, in the order in
/// which the sizes come up. A tensor larger than a bucket is never torn. Case: tensors of 5, 7 and
/// 4 bytes, buckets of 8. after: 4 + 7, then 5. before: 4, then 7, then 5.
std::vector<BucketCount> fill_buckets(const std::vector<BucketTensors>& tensors,
                                      const BucketRule& rule);

}  // namespace placet
