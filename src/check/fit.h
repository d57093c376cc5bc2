// Whether buffers have room for what instructions put into them (docs/theory.md §6.5). Inside of
// check/.
#pragma once

#include <vector>

#include "check/machine.h"

namespace placet {

/// Instructions that put all entries of one buffer into another one of the same device.
bool moves_whole(InstructionKind kind);

/// The type of a buffer, or of the one tensor of it that is named.
BufferType type_of(const Program& program, const BufferRef& ref);

/// A buffer of a class, and of which micro-batch it is; -1: of each, one after the other.
struct Sized {
  const DeviceClass& device_class;
  const BufferType& type;
  std::int64_t micro_batch = -1;
};
/// Whether a buffer is as large as another class's, on each of its devices and on the one that
/// stands where that does but for the axes `apart`, along which both classes are at one place. Both
/// are of each micro-batch, or each of one.
bool have_one_size(const Program& program, const Sized& one, const Sized& other,
                   const AxisList& apart);

/// Instructions whose buffers do not fit each other: what is put together has another extent than
/// the parts, other dims differ, what is copied, added or reduced has another size. Judged by
/// types, on all groups whose parts may have other lengths; past 4096 of these on those at the ends
/// of an axis.
std::vector<Breach> find_misfits(const Program& program);

}  // namespace placet
