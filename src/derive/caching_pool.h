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

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace placet {

/// A free block of a pool: the smallest comes first, then the lowest address.
struct FreeBlock {
  std::int64_t size = 0;
  std::int64_t address = 0;
  std::int64_t number = 0;
};

/// The free blocks of a pool in their order. A long replay has hundreds of them: they are kept in
/// bins, four to each power of two, so that what changes moves only blocks of about its size.
class FreeBlocks {
 public:
  void add(const FreeBlock& block);
  /// REQUIRES: it was added.
  void remove(const FreeBlock& block);
  /// A copy of all of them, the smallest bins first.
  std::vector<FreeBlock> all() const;
  /// The number of the smallest that holds `size`; 0: none does.
  std::int64_t smallest(std::int64_t size) const;

  /// Takes out those of which gone(block) holds.
  template <class Gone>
  void remove_if(Gone gone) {
    for (std::size_t b = 0; b < kBins; ++b) {
      std::erase_if(bins_[b], gone);
      note(b);
    }
  }

 private:
  static constexpr std::size_t kBins = 192;  // four to a power of two, of 2^9 to 2^57 bytes
  static std::size_t bin_of(std::int64_t size);
  /// Whether bin `b` has blocks.
  void note(std::size_t b);

  std::array<std::vector<FreeBlock>, kBins> bins_;
  std::array<std::uint64_t, kBins / 64> filled_{};  // by bin
};

/// What the pools of one device share: its memory. Sizes in bytes.
struct DeviceRoom {
  std::int64_t limit = INT64_MAX;  // how much all pools together may reserve
  std::int64_t reserved = 0;       // by all of them
  std::int64_t peak_reserved = 0;
  std::int64_t alive = 0;
  std::int64_t peak_alive = 0;
  bool gave_back = false;  // a request found the device full, and cached blocks went back for it
  std::function<void()> wait;       // for the device: what it still read is free then
  std::function<void()> give_back;  // every wholly free segment of every pool

  /// Forgets the peaks so far: they count from what is reserved and alive now.
  void restart_peaks() {
    peak_reserved = reserved;
    peak_alive = alive;
  }
};

/// The pools (small and large) of one stream. Sizes in bytes.
/// Case: allocate 30 MiB, free it, allocate 28 MiB: the block of 30 is split (2 MiB left), reserved
/// stays 30 MiB. Allocate 3 MiB then: 2 MiB do not fit, a segment of 20 MiB is added.
class CachingPool {
 public:
  using Handle = std::int64_t;  // number of a block; 0 is none

  /// `room` is the device's, and outlives the pool. A request beyond its limit first waits for the
  /// device, looks for a block once more, then gives back every segment that is wholly free (of
  /// segments that grow, the whole pages of free blocks); if that is not enough the limit is passed
  /// (the job is out of memory).
  CachingPool(bool expandable, DeviceRoom& room) : expandable_(expandable), room_(&room) {}

  /// Takes a block for `bytes` (0 gives none).
  Handle allocate(std::int64_t bytes);
  /// Gives every wholly free segment back to the device.
  void give_back();
  /// Returns a block to the pool; none is allowed.
  void release(Handle handle);

 private:
  /// A piece of a segment. Neighbours in its segment are known by number, so that splitting and
  /// merging need no search.
  struct Block {
    std::int64_t size = 0;
    std::int64_t requested = 0;
    std::int64_t address = 0;
    std::int64_t segment_size = 0;  // of a segment that does not grow
    Handle before = 0;
    Handle next = 0;
    bool is_free = false;
    bool is_small = false;
  };
  Block& block(Handle number) { return blocks_[static_cast<std::size_t>(number)]; }
  FreeBlock as_free(Handle number) const;
  Handle find_or_make(std::int64_t size, bool is_small);
  void add_segment(std::int64_t size, bool is_small);
  void extend(std::int64_t size, bool is_small);
  Handle last_of_growing(bool is_small);
  void reserve_more(std::int64_t bytes);
  void give_back(FreeBlocks& blocks);
  bool give_back_segment(const FreeBlock& free);
  void give_back_pages(const FreeBlock& free);
  void take(Handle number, std::int64_t size);
  void put_back(Handle number);
  void join_next(Handle number);
  Handle add_block(const Block& made);
  Handle add_after(Handle number, Block made);
  void forget(Handle number);
  void note_free(Handle number);
  void note_taken(Handle number);
  FreeBlocks& free_of(bool is_small) { return is_small ? free_small_ : free_large_; }
  Handle& tail_of(bool is_small) { return is_small ? tail_small_ : tail_large_; }

  bool expandable_;
  DeviceRoom* room_;
  std::vector<Block> blocks_ = std::vector<Block>(1);  // by number; 0 is none
  std::vector<Handle> unused_;                         // numbers
  FreeBlocks free_small_;
  FreeBlocks free_large_;
  std::int64_t next_address_ = 1;
  Handle tail_small_ = 0;  // the last block of the growing segment
  Handle tail_large_ = 0;
};

}  // namespace placet
