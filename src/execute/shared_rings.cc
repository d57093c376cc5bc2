#include "execute/shared_rings.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>

#include "units/at.h"
#include "units/error.h"

namespace placet::execute {
namespace {

constexpr std::size_t kLine = 64;  // bytes that processors exchange at once
constexpr std::size_t kSmallRing = std::size_t{1} << 16U;
constexpr std::size_t kLargeRing = std::size_t{1} << 20U;
constexpr int kFewEnds = 12;
constexpr std::size_t kWords = 2048;

}  // namespace

/// `written` and `taken` only grow; the bytes stand behind.
struct SharedRings::Ring {
  alignas(kLine) std::atomic<std::uint64_t> written{0};
  alignas(kLine) std::atomic<std::uint64_t> taken{0};

  std::byte* bytes() { return reinterpret_cast<std::byte*>(this + 1); }
};

struct SharedRings::End {
  alignas(kLine) std::atomic<std::uint32_t> changes{0};
  std::atomic<std::uint32_t> sleeps{0};
  std::atomic<std::uint32_t> trouble{0};
  std::array<char, kWords> words{};
};

SharedRings::SharedRings(int ends)
    : ends_(ends), capacity_(ends > kFewEnds ? kSmallRing : kLargeRing) {
  const std::size_t n = at(ends);
  size_ = n * sizeof(End) + n * n * (sizeof(Ring) + capacity_);
  void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw InputError({.where = "--ranks process",
                      .problem = "the memory that " + std::to_string(ends) +
                                 " processes share cannot be had: " + std::strerror(errno),
                      .allowed = "more memory, fewer ranks, or --ranks virtual"});
  }
  memory_ = static_cast<std::byte*>(memory);
  for (int e = 0; e < ends; ++e) new (&end(e)) End;
  for (int from = 0; from < ends; ++from) {
    for (int to = 0; to < ends; ++to) new (&ring(from, to)) Ring;
  }
}

SharedRings::~SharedRings() { munmap(memory_, size_); }

SharedRings::End& SharedRings::end(int e) const {
  return *reinterpret_cast<End*>(memory_ + at(e) * sizeof(End));
}

SharedRings::Ring& SharedRings::ring(int from, int to) const {
  const std::size_t number = at(from) * at(ends_) + at(to);
  std::byte* first = memory_ + at(ends_) * sizeof(End);
  return *reinterpret_cast<Ring*>(first + number * (sizeof(Ring) + capacity_));
}

void SharedRings::wake(int e) {
  End& other = end(e);
  other.changes.fetch_add(1);
  if (other.sleeps.load() != 0) {
    syscall(SYS_futex, &other.changes, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
}

std::size_t SharedRings::write(int from, int to, const std::byte* bytes, std::size_t size) {
  Ring& one = ring(from, to);
  const std::uint64_t begin = one.written.load(std::memory_order_relaxed);
  const std::size_t room = capacity_ - (begin - one.taken.load(std::memory_order_acquire));
  const std::size_t count = std::min(size, room);
  if (count == 0) return 0;
  const std::size_t place = begin % capacity_;
  const std::size_t first = std::min(count, capacity_ - place);
  std::memcpy(one.bytes() + place, bytes, first);
  std::memcpy(one.bytes(), bytes + first, count - first);
  one.written.store(begin + count, std::memory_order_release);
  wake(to);
  return count;
}

std::size_t SharedRings::read(int from, int to, std::byte* bytes, std::size_t size) {
  Ring& one = ring(from, to);
  const std::uint64_t begin = one.taken.load(std::memory_order_relaxed);
  const std::size_t there = one.written.load(std::memory_order_acquire) - begin;
  const std::size_t count = std::min(size, there);
  if (count == 0) return 0;
  const std::size_t place = begin % capacity_;
  const std::size_t first = std::min(count, capacity_ - place);
  std::memcpy(bytes, one.bytes() + place, first);
  std::memcpy(bytes + first, one.bytes(), count - first);
  one.taken.store(begin + count, std::memory_order_release);
  wake(from);
  return count;
}

std::uint32_t SharedRings::changes(int e) const { return end(e).changes.load(); }

void SharedRings::sleep(int e, std::uint32_t changes, std::chrono::milliseconds most) {
  constexpr long kMillion = 1'000'000;
  End& own = end(e);
  const timespec limit{.tv_sec = most.count() / 1000, .tv_nsec = most.count() % 1000 * kMillion};
  own.sleeps.store(1);
  if (own.changes.load() == changes) {
    syscall(SYS_futex, &own.changes, FUTEX_WAIT, changes, &limit, nullptr, 0);
  }
  own.sleeps.store(0);
}

void SharedRings::tell(int e, Trouble trouble, const std::string& why) {
  End& own = end(e);
  const std::size_t length = std::min(why.size(), own.words.size() - 1);
  std::memcpy(own.words.data(), why.data(), length);
  own.words[length] = '\0';
  own.trouble.store(static_cast<std::uint32_t>(trouble));
}

SharedRings::Trouble SharedRings::trouble(int e) const {
  return static_cast<Trouble>(end(e).trouble.load());
}

std::string SharedRings::why(int e) const { return end(e).words.data(); }

}  // namespace placet::execute
