// Where the entries of a tensor stand while nested loops go through them (docs/theory.md §6.7).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace placet::ranks {

struct PlaceLoop {
  std::int64_t extent = 1;
  std::int64_t stride = 0;  // how much further the next entry stands
};

/// By entry of the loops, the last of which is the innermost. Without loops: one entry, at 0.
/// Who goes through them one by one needs no more than the loops; who jumps about, a table.
class Places {
 public:
  Places() = default;
  explicit Places(std::vector<PlaceLoop> loops) : loops_(std::move(loops)) {
    for (const PlaceLoop& loop : loops_) size_ *= static_cast<std::size_t>(loop.extent);
  }

  const std::vector<PlaceLoop>& loops() const { return loops_; }
  std::size_t size() const { return size_; }

  /// Makes the table that all below reads.
  void tabulate() {
    table_.assign(1, 0);
    for (const PlaceLoop& loop : loops_) {
      const auto extent = static_cast<std::size_t>(loop.extent);
      std::vector<std::uint32_t> next(table_.size() * extent);
      for (std::size_t k = 0; k < next.size(); ++k) {
        const auto ahead = static_cast<std::int64_t>(k % extent) * loop.stride;
        next[k] = table_[k / extent] + static_cast<std::uint32_t>(ahead);
      }
      table_ = std::move(next);
    }
  }
  std::uint32_t operator[](std::size_t entry) const { return table_[entry]; }
  const std::uint32_t* data() const { return table_.data(); }
  auto begin() const { return table_.begin(); }
  auto end() const { return table_.end(); }

 private:
  std::vector<PlaceLoop> loops_;
  std::size_t size_ = 1;
  std::vector<std::uint32_t> table_;
};

/// Whether compiled kernels have tables of their places, which then are at most kMostPlaces.
enum class Tables : std::uint8_t { none, made };

}  // namespace placet::ranks
