#include "derive/caching_pool.h"

#include <algorithm>
#include <iterator>

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

}  // namespace

CachingPool::Handle CachingPool::allocate(std::int64_t bytes) {
  if (bytes <= 0) return 0;
  const std::int64_t size = in_grains(bytes, kRound);
  const bool is_small = size <= kSmall;
  auto block = find_block(size, is_small);
  if (block == blocks_.end()) block = find_when_full(size, is_small);
  if (block == blocks_.end()) {
    block = expandable_ ? extend(size, is_small) : add_segment(size, is_small);
  }
  free_of(is_small).erase({block->second.size, block->first});
  split(block, size);
  block->second.is_free = false;
  block->second.requested = size;
  alive_ += size;
  peak_alive_ = std::max(peak_alive_, alive_);
  return block->first;
}

void CachingPool::release(Handle handle) {
  if (handle == 0) return;
  const auto block = blocks_.find(handle);
  ensure(block != blocks_.end() && !block->second.is_free, "a released block is in use");
  alive_ -= block->second.requested;
  block->second.is_free = true;
  merge(block);
}

CachingPool::Blocks::iterator CachingPool::find_block(std::int64_t size, bool is_small) {
  const Free& blocks = free_of(is_small);
  const auto found = blocks.lower_bound({size, 0});
  return found == blocks.end() ? blocks_.end() : blocks_.find(found->second);
}

CachingPool::Blocks::iterator CachingPool::find_when_full(std::int64_t size, bool is_small) {
  if (!when_full_ || size <= limit_ - reserved_) return blocks_.end();
  when_full_();
  return find_block(size, is_small);
}

CachingPool::Blocks::iterator CachingPool::add_segment(std::int64_t size, bool is_small) {
  std::int64_t segment = is_small         ? kSmallSegment
                         : size < kMiddle ? kMiddleSegment
                                          : in_grains(size, kPage);
  reserve_more(segment);
  const std::int64_t address = next_address_;
  next_address_ += segment + kRound;
  const Block block{.size = segment,
                    .segment = next_segment_++,
                    .segment_size = segment,
                    .is_free = true,
                    .is_small = is_small};
  free_of(is_small).insert({segment, address});
  return blocks_.emplace(address, block).first;
}

void CachingPool::reserve_more(std::int64_t bytes) {
  if (bytes > limit_ - reserved_) give_back_free_segments();
  reserved_ += bytes;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
}

void CachingPool::give_back_free_segments() {
  for (auto block = blocks_.begin(); block != blocks_.end();) {
    const Block& b = block->second;
    if (!b.is_free || b.size != b.segment_size) {
      ++block;
      continue;
    }
    reserved_ -= b.size;
    free_of(b.is_small).erase({b.size, block->first});
    block = blocks_.erase(block);
  }
}

/// Grows the pool's one segment until its free tail holds `size`.
CachingPool::Blocks::iterator CachingPool::extend(std::int64_t size, bool is_small) {
  std::int64_t& tail = is_small ? tail_small_ : tail_large_;
  if (tail == 0) {
    tail = is_small ? kSegmentSpan : 1;
    blocks_.emplace(tail,
                    Block{.segment = is_small ? -1 : -2, .is_free = true, .is_small = is_small});
  }
  auto last = blocks_.find(tail);
  while (true) {
    const auto next = std::next(last);
    if (next == blocks_.end() || next->second.segment != last->second.segment) break;
    last = next;
  }
  if (!last->second.is_free) {
    const std::int64_t address = last->first + last->second.size;
    last =
        blocks_
            .emplace(address,
                     Block{.segment = last->second.segment, .is_free = true, .is_small = is_small})
            .first;
  } else {
    free_of(is_small).erase({last->second.size, last->first});
  }
  tail = last->first;
  const std::int64_t missing =
      in_grains(std::max<std::int64_t>(0, size - last->second.size), kPage);
  last->second.size += missing;
  reserve_more(missing);
  free_of(is_small).insert({last->second.size, last->first});
  return last;
}

void CachingPool::split(Blocks::iterator block, std::int64_t size) {
  const std::int64_t left = block->second.size - size;
  const bool worth = block->second.is_small || expandable_ ? left >= kRound : left > kSmall;
  if (!worth) return;
  Block rest = block->second;
  rest.size = left;
  rest.is_free = true;
  block->second.size = size;
  blocks_.emplace(block->first + size, rest);
  free_of(rest.is_small).insert({left, block->first + size});
}

void CachingPool::merge(Blocks::iterator block) {
  Free& blocks = free_of(block->second.is_small);
  const auto next = std::next(block);
  if (next != blocks_.end() && next->second.is_free &&
      next->second.segment == block->second.segment) {
    blocks.erase({next->second.size, next->first});
    block->second.size += next->second.size;
    blocks_.erase(next);
  }
  if (block != blocks_.begin()) {
    const auto before = std::prev(block);
    if (before->second.is_free && before->second.segment == block->second.segment) {
      blocks.erase({before->second.size, before->first});
      before->second.size += block->second.size;
      blocks_.erase(block);
      block = before;
    }
  }
  if (tail_large_ > block->first && tail_large_ < block->first + block->second.size) {
    tail_large_ = block->first;
  }
  if (tail_small_ > block->first && tail_small_ < block->first + block->second.size) {
    tail_small_ = block->first;
  }
  blocks.insert({block->second.size, block->first});
}

}  // namespace placet
