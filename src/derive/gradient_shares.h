// Shares of gradients that cannot be added before a sum over devices is made (docs/theory.md §3.3).
// Inside of derive.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "units/at.h"

namespace placet {

/// The shares of a value's gradient that stand apart until the operator that made the value runs
/// backward: parts of a sum, from operators that a tensor axis cuts, and complete ones.
class GradientShares {
 public:
  explicit GradientShares(std::size_t values) : kinds_(values, 0) {}

  /// A first share appears.
  void make(int value, bool part) { kinds_[at(value)] = kind_of(part); }
  /// Another appears: whether it stays, as none of its kind is there to add it to.
  bool stays(int value, bool part) {
    unsigned char& kinds = kinds_[at(value)];
    if (kinds == 0) kinds = kind_of(false);  // passed on by another value
    const bool fresh = (kinds & kind_of(part)) == 0;
    kinds |= kind_of(part);
    return fresh;
  }
  /// They are put together: whether there were two.
  bool join(int value) { return std::exchange(kinds_[at(value)], kind_of(false)) == kBoth; }

 private:
  static constexpr unsigned char kBoth = 3;
  static unsigned char kind_of(bool part) { return part ? 1 : 2; }

  std::vector<unsigned char> kinds_;  // by value
};

}  // namespace placet
