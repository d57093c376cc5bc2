// Memory for numbers on their way: nothing is written into it first, and large blocks are kept for
// the next message, as the system clears every page that it gives.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace placet::execute {

/// Blocks of a thread that nobody uses, by the power of two that is their size in bytes: at most
/// eight of each, so at most sixteen times the largest message.
class KeptBlocks {
 public:
  static constexpr std::size_t kLeast = std::size_t{1} << 16U;  // smaller ones are not kept

  KeptBlocks() = default;
  KeptBlocks(const KeptBlocks&) = delete;
  KeptBlocks& operator=(const KeptBlocks&) = delete;
  ~KeptBlocks() {
    for (std::vector<void*>& blocks : free_) {
      for (void* block : blocks) ::operator delete(block);
    }
  }

  /// At least so many bytes.
  void* take(std::size_t size) {
    if (size < kLeast) return ::operator new(size);
    std::vector<void*>& blocks = of(size);
    if (blocks.empty()) return ::operator new(std::bit_ceil(size));
    void* block = blocks.back();
    blocks.pop_back();
    return block;
  }

  /// A block that was taken for as many bytes, by whichever thread.
  void give_back(void* block, std::size_t size) noexcept {
    if (size < kLeast || of(size).size() == kKept) {
      ::operator delete(block);
    } else {
      of(size).push_back(block);
    }
  }

 private:
  static constexpr std::size_t kKept = 8;  // of a size
  using Blocks = std::array<std::vector<void*>, 64>;

  static Blocks with_room() {
    Blocks blocks;
    for (std::vector<void*>& one : blocks) one.reserve(kKept);
    return blocks;
  }
  std::vector<void*>& of(std::size_t size) {
    return free_[static_cast<std::size_t>(std::bit_width(size - 1))];
  }

  Blocks free_ = with_room();
};

inline KeptBlocks& kept_blocks() {
  thread_local KeptBlocks blocks;
  return blocks;
}

template <class T>
class KeptAllocator {
 public:
  using value_type = T;  // NOLINT(readability-identifier-naming)
  KeptAllocator() = default;
  template <class Other>
  KeptAllocator(const KeptAllocator<Other>&) noexcept {}  // NOLINT(google-explicit-constructor)

  T* allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(-1) / 2 / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(kept_blocks().take(count * sizeof(T)));
  }
  void deallocate(T* block, std::size_t count) noexcept {
    kept_blocks().give_back(block, count * sizeof(T));
  }
  /// Numbers that are given no value have none.
  template <class Other>
  void construct(Other* place) noexcept(std::is_nothrow_default_constructible_v<Other>) {
    ::new (static_cast<void*>(place)) Other;
  }
  template <class Other, class... Values>
  void construct(Other* place, Values&&... values) {
    ::new (static_cast<void*>(place)) Other(std::forward<Values>(values)...);
  }

  friend bool operator==(const KeptAllocator&, const KeptAllocator&) { return true; }
};

/// A vector whose new entries have no value.
template <class T>
using Kept = std::vector<T, KeptAllocator<T>>;

}  // namespace placet::execute
