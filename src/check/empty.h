// Parts without entries (docs/theory.md §6.5): a tensor that is shorter than the number of devices
// along an axis leaves some of them nothing. What such a device is said to have is the same as
// anything else there. Inside of check/.
#pragma once

#include <cstddef>
#include <cstdint>

#include "check/content.h"
#include "program/program.h"

namespace placet {

/// Whether no device of the class has an entry of the tensor `piece` of a buffer that is divided
/// like `shape`, in no micro-batch. No is the answer where it is not worked out: past 4096 devices
/// that differ, and for parts put together or moved along several axes.
/// Case: [sample 2/dp] over dp = 3: yes for a class of the device at dp 2 alone.
bool has_no_entries(const Program& program, const DeviceClass& device_class, const Content& shape,
                    std::size_t piece);

/// Whether two parts of a dim begin at the same place on every device of the class, in every
/// micro-batch; no where it is not worked out.
/// Case: 4/dp and the whole dim, for a class of the device at dp 0 alone: yes.
bool begin_alike(const Program& program, const DeviceClass& device_class, std::int64_t extent,
                 const Splits& one, const Splits& other);

/// Whether on every device of the class, in every micro-batch, the part `behind` of a dim begins
/// where the part `before` ends, or later; no where it is not worked out.
/// Case: 4/cp, and that of the next device, for a class of the device at cp 0 alone: yes.
bool lies_behind(const Program& program, const DeviceClass& device_class, std::int64_t extent,
                 const Splits& behind, const Splits& before);

/// Parts of two dims of one extent.
struct PartsOfTwo {
  const Splits& first;
  const Splits& second;
};
/// Whether on every device of the class, in every micro-batch, two parts begin as far from each
/// other as two others do; no where it is not worked out.
/// Case: 4/cp and 4/cp, and the whole dim twice, for a class of all devices: yes.
bool begin_as_far_apart(const Program& program, const DeviceClass& device_class,
                        std::int64_t extent, const PartsOfTwo& one, const PartsOfTwo& other);

/// Whether on every device of the class, in every micro-batch, two divisions of the same tensors
/// give the same entries; no where it is not worked out.
/// Case: [hidden 2] / x and [hidden 2] / (x dp), for a class of the device at x 1, dp 0: yes.
bool is_same_part(const Program& program, const DeviceClass& device_class, const Content& one,
                  const Content& other);

/// Of which micro-batch a buffer's type and what it is given are; -1: both of each.
struct MicroBatchPair {
  std::int64_t of_type = -1;
  std::int64_t of_given = -1;
};

struct Where {
  const Program& program;
  const DeviceClass& device_class;
  MicroBatchPair micro_batches;
};

/// Whether a buffer of that type, or one tensor of it (-1: all), has on every device of the class
/// the extents of what it is given; rows of elements their number. No where it is not worked out.
/// Case: [out/dp] is given [out] over dp = 2: no, over dp = 1: yes.
bool has_room(const Where& where, const Content& type, int piece, const Content& given);

}  // namespace placet
