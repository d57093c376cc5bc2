// The rules by which a caching allocator turns requests into reserved device memory (docs/theory.md
// §3.6). Freed blocks stay reserved and are used again where they fit; what does not fit makes a
// new segment, so that reserved memory is above what is alive by the holes.
//
// Source of the rules: c10/cuda/CUDACachingAllocator.cpp (2.1 to 2.5): requests are
// rounded to 512 bytes; up to 1 MiB they come from segments of 2 MiB; below 10 MiB from segments of
// 20 MiB; else from segments of their own, rounded to 2 MiB. The smallest free block that fits is
// taken, the lowest address first; what is left of it is split off if it is above 1 MiB (512 bytes
// for small requests). Free neighbours of one segment merge. With expandable segments there is one
// segment per pool that grows by pages of 2 MiB (small: one page), its free tail used first.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace placet {

/// The pools (small and large) of one stream. Sizes in bytes.
/// Case: allocate 30 MiB, free it, allocate 28 MiB: the block of 30 is split (2 MiB left), reserved
/// stays 30 MiB. Allocate 3 MiB then: 2 MiB do not fit, a segment of 20 MiB is added.
class CachingPool {
 public:
  using Handle = std::int64_t;  // address of a block; 0 is none

  explicit CachingPool(bool expandable) : expandable_(expandable) {}

  /// Sets how much the pool may reserve. A request beyond it first calls `when_full` (which may
  /// release blocks), looks for a block once more, then gives back every segment that is wholly
  /// free; if that is not enough the limit is passed (the job is out of memory).
  void limit(std::int64_t bytes, std::function<void()> when_full = {}) {
    limit_ = bytes;
    when_full_ = std::move(when_full);
  }

  /// Takes a block for `bytes` (0 gives none).
  Handle allocate(std::int64_t bytes);
  /// Gives every wholly free segment back to the device.
  void give_back() { give_back_free_segments(); }
  /// Forgets the peaks so far: they count from what is reserved and alive now.
  void restart_peaks() {
    peak_reserved_ = reserved_;
    peak_alive_ = alive_;
  }
  /// Returns a block to the pool; none is allowed.
  void release(Handle handle);

  /// Most bytes reserved at any time.
  std::int64_t reserved() const { return peak_reserved_; }
  std::int64_t peak_alive() const { return peak_alive_; }
  std::int64_t alive() const { return alive_; }

 private:
  struct Block {
    std::int64_t size = 0;
    std::int64_t requested = 0;
    std::int64_t segment = 0;
    std::int64_t segment_size = 0;  // of a segment that does not grow
    bool is_free = false;
    bool is_small = false;
  };
  using Blocks = std::map<std::int64_t, Block>;                  // by address
  using Free = std::set<std::pair<std::int64_t, std::int64_t>>;  // (size, address)

  Blocks::iterator find_block(std::int64_t size, bool is_small);
  Blocks::iterator find_when_full(std::int64_t size, bool is_small);
  Blocks::iterator add_segment(std::int64_t size, bool is_small);
  Blocks::iterator extend(std::int64_t size, bool is_small);
  void reserve_more(std::int64_t bytes);
  void give_back_free_segments();
  void split(Blocks::iterator block, std::int64_t size);
  void merge(Blocks::iterator block);
  Free& free_of(bool is_small) { return is_small ? free_small_ : free_large_; }

  bool expandable_;
  Blocks blocks_;
  Free free_small_;
  Free free_large_;
  std::int64_t next_address_ = 1;
  std::int64_t next_segment_ = 1;
  std::int64_t tail_small_ = 0;  // address of the last block of the growing segment
  std::int64_t tail_large_ = 0;
  std::int64_t limit_ = INT64_MAX;
  std::function<void()> when_full_;
  std::int64_t reserved_ = 0;
  std::int64_t peak_reserved_ = 0;
  std::int64_t alive_ = 0;
  std::int64_t peak_alive_ = 0;
};

}  // namespace placet
