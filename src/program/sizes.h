// How large buffers are on a device (docs/theory.md §6.1): the local extents of their tensors, the
// entries and bytes that they store.
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.h"
#include "units/quantity.h"

namespace placet {

/// By axis, whether it divides a buffer of that type.
std::vector<bool> dividing_axes(const Program& program, const BufferType& type);

/// Extents of a tensor on the device at `at`, before a flat division.
/// Case: [hidden 7/tp, ffn 6] over tp = 2: 4 6 at tp 0, 3 6 at tp 1.
std::vector<std::int64_t> local_extents(const Program& program, const PieceType& piece,
                                        const ProgramCoordinates& at);

/// Entries that the device at `at` stores of a buffer: those of its tensors one after the other, of
/// which it has its part of the flat division. Of a tensor in which dims stand before a dim of
/// experts, only those of the chosen experts are stored: chosen/extent of its entries, rounded up.
/// Case: [token 8, expert 4/ep chosen 2, ffn 3] over ep = 2: 8 x 2 x 3 entries, of which 24 are
/// stored. Throws InputError past 2^63.
std::int64_t stored_entries(const Program& program, const BufferType& type,
                            const ProgramCoordinates& at);

/// The same in bytes.
Bytes stored_bytes(const Program& program, const BufferType& type, const ProgramCoordinates& at);

/// The most bytes that a device of the class stores of one element of such a buffer, over all
/// devices of the class and all micro-batches. Where all axes are even, the first device has the
/// largest parts; along axes with shares all coordinates are tried.
Bytes largest_bytes(const Program& program, const BufferType& type,
                    const DeviceClass& device_class);

}  // namespace placet
