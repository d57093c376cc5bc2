// States that tests give slice by slice.
#pragma once

#include <utility>
#include <vector>

#include "execute/state.h"

namespace placet::testing {

class GivenState : public execute::StateView {
 public:
  void add(execute::StateSlice slice, execute::EncodedSlice numbers) {
    slices_.push_back(std::move(slice));
    numbers_.push_back(std::move(numbers));
  }
  /// Of floats.
  void add(execute::StateSlice slice, const std::vector<float>& numbers) {
    slice.count = static_cast<std::int64_t>(numbers.size());
    add(slice, execute::encoded(numbers.data(), slice.count, slice.format));
  }
  const std::vector<execute::StateSlice>& slices() const override { return slices_; }
  execute::EncodedSlice numbers(std::size_t slice) const override { return numbers_.at(slice); }

 private:
  std::vector<execute::StateSlice> slices_;
  std::vector<execute::EncodedSlice> numbers_;
};

/// A slice of a matrix 2 x 4 in binary32: all of it, or columns of it.
inline execute::StateSlice columns_of_w(int rank, std::int64_t begin, std::int64_t size) {
  return {.tensor = "w", .whole = {2, 4}, .rank = rank, .begins = {0, begin}, .extents = {2, size}};
}

inline std::vector<float> floats_in(const execute::EncodedSlice& numbers, std::size_t count) {
  std::vector<float> all(count);
  execute::decode(numbers, all.data(), static_cast<std::int64_t>(count));
  return all;
}

}  // namespace placet::testing
