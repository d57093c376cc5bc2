// Lists of what a class executes, in which the body of a loop stands once (docs/theory.md §6.5).
// Inside of check/.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "program/walk.h"

namespace placet {

/// Items in order, each with its `arguments`. A part that is repeated takes the room of one round.
/// Case: items x and y with the micro-batches 3 and 0, by 1 later each, three rounds: x3 y0 x4 y1
/// x5 y2.
template <class Item>
class Repeating {
 public:
  std::size_t size() const { return size_; }

  void add(const Item& item) {
    if (parts_.empty() || parts_.back().rounds > 1) parts_.push_back({.begin = size_});
    parts_.back().items.push_back(item);
    ++size_;
  }

  /// Rounds of items, of which the first two are given.
  /// REQUIRES: both have the same items but for their arguments; two rounds or more.
  void add_rounds(std::vector<Item> first, const std::vector<Item>& second, std::int64_t rounds) {
    if (first.empty()) return;
    Part part{
        .begin = size_, .items = std::move(first), .rounds = static_cast<std::size_t>(rounds)};
    part.by.reserve(part.items.size());
    for (std::size_t k = 0; k < part.items.size(); ++k) {
      const Arguments& from = part.items[k].arguments;
      const Arguments& to = second[k].arguments;
      part.by.push_back(
          {.unit = to.unit - from.unit, .micro_batch = to.micro_batch - from.micro_batch});
    }
    size_ += part.items.size() * part.rounds;
    parts_.push_back(std::move(part));
  }

  /// REQUIRES: k < size().
  Item operator[](std::size_t k) const {
    const auto behind = std::ranges::upper_bound(parts_, k, {}, &Part::begin);
    const Part& part = *(behind - 1);
    const std::size_t inside = k - part.begin;
    if (part.rounds == 1) return part.items[inside];
    const std::size_t number = inside % part.items.size();
    const auto round = static_cast<std::int64_t>(inside / part.items.size());
    Item out = part.items[number];
    out.arguments.unit += round * part.by[number].unit;
    out.arguments.micro_batch += round * part.by[number].micro_batch;
    return out;
  }

 private:
  struct Part {
    std::size_t begin = 0;
    std::vector<Item> items;    // of the first round
    std::vector<Arguments> by;  // how much larger those of the next round are; empty: one round
    std::size_t rounds = 1;
  };

  std::vector<Part> parts_;
  std::size_t size_ = 0;
};

/// Whether the body of a loop stands once in such a list. Loops over units go round the layers of
/// one stage, and are written out.
inline bool repeats_in_list(const Loop& loop) {
  return loop.variable == IndexTerm::Variable::micro_batch && loop.first != loop.last;
}

/// Rounds of a loop.
inline std::int64_t rounds_of(const Loop& loop) {
  return (loop.last < loop.first ? loop.first - loop.last : loop.last - loop.first) + 1;
}

}  // namespace placet
