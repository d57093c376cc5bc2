#include "derive/caching_pool.h"

#include <algorithm>
#include <bit>

#include "units/error.h"

namespace placet {
namespace {

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;
constexpr std::int64_t kRound = 512;
constexpr std::int64_t kSmall = kMebibyte;
constexpr std::int64_t kSmallSegment = 2 * kMebibyte;
constexpr std::int64_t kMiddle = 10 * kMebibyte;
constexpr std::int64_t kMiddleSegment = 20 * kMebibyte;
constexpr std::int64_t kPage = 2 * kMebibyte;
// Address space of one growing segment: further than any device's memory.
constexpr std::int64_t kSegmentSpan = std::int64_t{1} << 50;

/// A request in the pool's grain.
std::int64_t in_grains(std::int64_t bytes, std::int64_t grain) {
  return (bytes + grain - 1) / grain * grain;
}

/// Where a block is among free ones, or would be.
template <class Blocks>
auto place_among(Blocks& blocks, const FreeBlock& block) {
  return std::lower_bound(blocks.begin(), blocks.end(), block,
                          [](const FreeBlock& a, const FreeBlock& b) {
                            return a.size != b.size ? a.size < b.size : a.address < b.address;
                          });
}

}  // namespace

/// The power of two below `size`, and the two bits after the first.
std::size_t FreeBlocks::bin_of(std::int64_t size) {
  constexpr unsigned kLeast = 10;  // bits of the least size, kRound
  const unsigned width = static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(size)));
  if (width < kLeast) return 0;
  const std::size_t bin =
      std::size_t{4} * (width - kLeast) + static_cast<std::size_t>((size >> (width - 3)) & 3);
  return std::min(bin, kBins - 1);
}

void FreeBlocks::note(std::size_t b) {
  const std::uint64_t bit = std::uint64_t{1} << (b % 64);
  if (bins_[b].empty()) {
    filled_[b / 64] &= ~bit;
  } else {
    filled_[b / 64] |= bit;
  }
}

void FreeBlocks::add(const FreeBlock& block) {
  const std::size_t b = bin_of(block.size);
  bins_[b].insert(place_among(bins_[b], block), block);
  note(b);
}

void FreeBlocks::remove(const FreeBlock& block) {
  const std::size_t b = bin_of(block.size);
  bins_[b].erase(place_among(bins_[b], block));
  note(b);
}

std::vector<FreeBlock> FreeBlocks::all() const {
  std::vector<FreeBlock> out;
  for (const std::vector<FreeBlock>& bin : bins_) out.insert(out.end(), bin.begin(), bin.end());
  return out;
}

std::int64_t FreeBlocks::smallest(std::int64_t size) const {
  const std::size_t own = bin_of(size);
  const auto found = place_among(bins_[own], FreeBlock{.size = size});
  if (found != bins_[own].end()) return found->number;
  for (std::size_t word = (own + 1) / 64, begin = (own + 1) % 64; word < filled_.size();
       ++word, begin = 0) {
    const std::uint64_t left = filled_[word] >> begin << begin;
    if (left == 0) continue;
    return bins_[word * 64 + static_cast<std::size_t>(std::countr_zero(left))].front().number;
  }
  return 0;
}

CachingPool::Handle CachingPool::allocate(std::int64_t bytes) {
  if (bytes <= 0) return 0;
  const std::int64_t size = in_grains(bytes, kRound);
  const Handle number = find_or_make(size, size <= kSmall);
  take(number, size);
  block(number).requested = size;
  room_->alive += size;
  room_->peak_alive = std::max(room_->peak_alive, room_->alive);
  return number;
}

void CachingPool::release(Handle handle) {
  if (handle == 0) return;
  ensure(static_cast<std::size_t>(handle) < blocks_.size() && !block(handle).is_free,
         "a released block is in use");
  room_->alive -= block(handle).requested;
  put_back(handle);
}

FreeBlock CachingPool::as_free(Handle number) const {
  const Block& own = blocks_[static_cast<std::size_t>(number)];
  return {.size = own.size, .address = own.address, .number = number};
}

CachingPool::Handle CachingPool::find_or_make(std::int64_t size, bool is_small) {
  const FreeBlocks& blocks = free_of(is_small);
  if (const Handle found = blocks.smallest(size); found != 0) return found;
  if (room_->wait && size > room_->limit - room_->reserved) {
    room_->wait();
    if (const Handle found = blocks.smallest(size); found != 0) return found;
  }
  if (expandable_) {
    extend(size, is_small);
  } else {
    add_segment(size, is_small);
  }
  return blocks.smallest(size);
}

void CachingPool::add_segment(std::int64_t size, bool is_small) {
  const std::int64_t segment = is_small         ? kSmallSegment
                               : size < kMiddle ? kMiddleSegment
                                                : in_grains(size, kPage);
  reserve_more(segment);
  note_free(add_block(
      {.size = segment, .address = next_address_, .segment_size = segment, .is_small = is_small}));
  next_address_ += segment + kRound;
}

void CachingPool::reserve_more(std::int64_t bytes) {
  if (bytes > room_->limit - room_->reserved) {
    room_->gave_back = true;
    room_->give_back ? room_->give_back() : give_back();
  }
  room_->reserved += bytes;
  room_->peak_reserved = std::max(room_->peak_reserved, room_->reserved);
}

void CachingPool::give_back() {
  give_back(free_small_);
  give_back(free_large_);
}

void CachingPool::give_back(FreeBlocks& blocks) {
  if (expandable_) {
    for (const FreeBlock& free : blocks.all()) give_back_pages(free);
    return;
  }
  blocks.remove_if([this](const FreeBlock& free) { return give_back_segment(free); });
}

/// Whether the block was a whole segment, which is gone now.
bool CachingPool::give_back_segment(const FreeBlock& free) {
  if (free.size != block(free.number).segment_size) return false;
  room_->reserved -= free.size;
  forget(free.number);
  return true;
}

/// The whole pages of a free block of a growing segment go; what is left of it stays. (Where the
/// pages lay, addresses stay unused: a growing segment has more of them than any device memory.)
void CachingPool::give_back_pages(const FreeBlock& free) {
  const std::int64_t pages = free.size / kPage * kPage;
  if (pages == 0) return;
  note_taken(free.number);
  block(free.number).size -= pages;
  room_->reserved -= pages;
  note_free(free.number);
}

/// The last block of the segment that grows, which begins empty.
CachingPool::Handle CachingPool::last_of_growing(bool is_small) {
  Handle& tail = tail_of(is_small);
  if (tail == 0) {
    tail = add_block({.address = is_small ? kSegmentSpan : 1, .is_small = is_small});
    note_free(tail);
  }
  while (block(tail).next != 0) tail = block(tail).next;
  return tail;
}

/// Grows the pool's one segment until its free tail holds `size`.
void CachingPool::extend(std::int64_t size, bool is_small) {
  Handle last = last_of_growing(is_small);
  if (block(last).is_free) {
    note_taken(last);
  } else {
    last = add_after(last, {.is_small = is_small});
  }
  tail_of(is_small) = last;
  const std::int64_t missing = in_grains(std::max<std::int64_t>(0, size - block(last).size), kPage);
  block(last).size += missing;
  reserve_more(missing);
  note_free(last);
}

/// Takes `size` of a free block; what is left of it, if worth keeping, is a free block of its own.
void CachingPool::take(Handle number, std::int64_t size) {
  note_taken(number);
  const bool is_small = block(number).is_small;
  const std::int64_t left = block(number).size - size;
  const bool worth = is_small || expandable_ ? left >= kRound : left > kSmall;
  if (!worth) return;
  block(number).size = size;
  note_free(add_after(
      number, {.size = left, .segment_size = block(number).segment_size, .is_small = is_small}));
}

/// The block after this one, which is free too, becomes a part of it.
void CachingPool::join_next(Handle number) {
  const Handle next = block(number).next;
  Block& own = block(number);
  own.size += block(next).size;
  own.next = block(next).next;
  if (own.next != 0) block(own.next).before = number;
  Handle& tail = tail_of(own.is_small);
  if (tail == next) tail = number;
  forget(next);
}

/// A block is free from now on, one with its free neighbours.
void CachingPool::put_back(Handle number) {
  const Handle next = block(number).next;
  if (next != 0 && block(next).is_free) {
    note_taken(next);
    join_next(number);
  }
  const Handle before = block(number).before;
  if (before != 0 && block(before).is_free) {
    note_taken(before);
    join_next(before);
    number = before;
  }
  note_free(number);
}

CachingPool::Handle CachingPool::add_block(const Block& made) {
  if (unused_.empty()) {
    blocks_.push_back(made);
    return static_cast<Handle>(blocks_.size()) - 1;
  }
  const Handle number = unused_.back();
  unused_.pop_back();
  block(number) = made;
  return number;
}

void CachingPool::forget(Handle number) {
  block(number).is_free = true;
  unused_.push_back(number);
}

/// A block behind another one of its segment.
CachingPool::Handle CachingPool::add_after(Handle number, Block made) {
  made.before = number;
  made.next = block(number).next;
  made.address = block(number).address + block(number).size;
  const Handle added = add_block(made);
  block(number).next = added;
  if (made.next != 0) block(made.next).before = added;
  return added;
}

void CachingPool::note_free(Handle number) {
  block(number).is_free = true;
  free_of(block(number).is_small).add(as_free(number));
}

void CachingPool::note_taken(Handle number) {
  block(number).is_free = false;
  free_of(block(number).is_small).remove(as_free(number));
}

}  // namespace placet
