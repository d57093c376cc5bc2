// What all ranks carry from one step to the next, as slices of the reference's tensors, and their
// numbers as bytes (docs/theory.md §6.11).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "execute/number.h"
#include "program/program.h"
#include "ranks/plan.h"

namespace placet::execute {

/// A part of a tensor that a rank holds between steps: of a box of the tensor, row-major, `count`
/// entries from number `first` on. A rank may hold one part in several formats.
struct StateSlice {
  std::string tensor;
  StateRef::Kind kind = StateRef::Kind::parameter;
  ranks::Extents whole;  // of the tensor
  int rank = 0;
  Dtype format = Dtype::fp32;  // of the buffer
  ranks::Extents begins;       // of the box
  ranks::Extents extents;
  std::int64_t first = 0;
  std::int64_t count = 0;

  /// The same entries of the same tensor in the same format, on whichever rank.
  bool is_replica_of(const StateSlice& other) const;
  friend bool operator==(const StateSlice&, const StateSlice&) = default;
};

/// How numbers stand in bytes, least byte first. fixed: a multiple of 2^-80 as a whole number of
/// 128 bits; long_fixed: that, and four parts of 64 bits below it (execute/number.h).
enum class Encoding : std::uint8_t { fixed, long_fixed, f64, f32, bf16, f16 };
std::int64_t bytes_of(Encoding encoding);

struct EncodedSlice {
  Encoding encoding = Encoding::f32;
  std::vector<std::byte> bytes;
};

/// What can be saved: the slices of all ranks, rank by rank.
class StateView {
 public:
  virtual ~StateView() = default;
  virtual const std::vector<StateSlice>& slices() const = 0;
  virtual EncodedSlice numbers(std::size_t slice) const = 0;
};

/// What a run can begin with.
class StateSource {
 public:
  virtual ~StateSource() = default;
  /// Steps that were made before.
  virtual int steps() const = 0;
  /// Throws InputError where it has no such slice.
  virtual EncodedSlice numbers(const StateSlice& slice) const = 0;
};

/// A slice and where its first entry stands in the memory of all ranks; the others follow.
struct PlacedSlice {
  StateSlice slice;
  std::int64_t address = 0;
  const ranks::Region* region = nullptr;
};
/// The parameters, optimizer states and numbers of the step of all ranks.
std::vector<PlacedSlice> placed_slices(const Program& program, const ranks::ProgramPlan& plan,
                                       const ranks::Mesh& mesh);

/// Numbers in the shortest encoding that loses nothing; floats whose format has 16 bits in these.
EncodedSlice encoded(const Number* numbers, std::int64_t count, Dtype format);
EncodedSlice encoded(const float* numbers, std::int64_t count, Dtype format);
EncodedSlice encoded(const double* numbers, std::int64_t count, Dtype format);

/// Throws InputError where the encoding is of another kind of numbers, or bytes are no number of
/// it. REQUIRES: as many bytes as `count` entries have.
void decode(const EncodedSlice& from, Number* to, std::int64_t count);
void decode(const EncodedSlice& from, float* to, std::int64_t count);
void decode(const EncodedSlice& from, double* to, std::int64_t count);

}  // namespace placet::execute
