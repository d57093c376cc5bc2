// The tensors of a kernel that runs, and what a call of it is told (docs/theory.md §6.11).
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "execute/number.h"
#include "ranks/kernel_code.h"

namespace placet::execute {

using ranks::FunctionCode;
using ranks::KernelCode;
using ranks::OperandCode;
using ranks::ProductCode;
using ranks::StatementCode;

/// Sums are exact, reads are rounded to binary32.
struct CanonicalNumbers {
  using Stored = Number;
};
/// Sums in the order of the loops, in the format of the numbers: what any library does.
template <class Real>
struct PlainNumbers {
  using Stored = Real;
};

/// Deliberate mistakes, for tests of what finds mistakes.
enum class Slip : std::uint8_t {
  none,
  float_sums,  // products are added up in binary64, in the order of the loops
  unread,      // inputs are not rounded when they are read
  reordered    // sums in binary32, backwards
};

/// What a call of a kernel needs beside its tensors.
struct CallContext {
  const std::int64_t* begins = nullptr;  // by dim of the kernel: where its part begins; none: 0
  const std::int64_t* wholes = nullptr;  // likewise: how long the whole is; none: the part is
  std::uint64_t draw = 0;
  std::int64_t step = 1;
  double factor = 1;
  Slip slip = Slip::none;
};

template <class Numbers>
struct KernelTensors {
  using Stored = typename Numbers::Stored;
  static constexpr bool kIsExact = std::is_same_v<Stored, Number>;
  /// What kernels compute with: numbers as they are read.
  using Read = std::conditional_t<kIsExact, double, Stored>;

  std::vector<Stored*> stored;
  std::vector<std::vector<double>> rounded;  // of exact numbers: as they are read
  std::vector<double> most;                  // likewise: the largest in size

  const Read* numbers(int tensor) const {
    if constexpr (kIsExact) {
      return rounded[static_cast<std::size_t>(tensor)].data();
    } else {
      return stored[static_cast<std::size_t>(tensor)];
    }
  }
};

}  // namespace placet::execute
