// Numbers on their way between ranks, as bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "execute/communicator.h"
#include "execute/machine.h"

namespace placet::execute {

/// Numbers with their levels, and how long they are along the dim that the collective is about, by
/// tensor.
template <class Stored>
struct Parcel {
  std::vector<std::int64_t> lengths;
  Kept<Stored> numbers;
  std::vector<Level> levels;
};

/// Canonical numbers without parts take 16 bytes each, others 48; levels that are all alike one
/// byte. For machines of the same order of bytes.
template <class Stored>
Bytes packed(const Parcel<Stored>& parcel);
/// Throws InternalError for bytes that `packed` does not make.
template <class Stored>
Parcel<Stored> unpacked(const Bytes& bytes);

extern template Bytes packed(const Parcel<Number>&);
extern template Bytes packed(const Parcel<float>&);
extern template Bytes packed(const Parcel<double>&);
extern template Parcel<Number> unpacked(const Bytes&);
extern template Parcel<float> unpacked(const Bytes&);
extern template Parcel<double> unpacked(const Bytes&);

}  // namespace placet::execute
