// Bytes between processes of one machine, through memory that they share.
//
// The memory has no name: processes have it from the one that made it and forked them, and the
// system takes it back with the last of them, however they end. Between each two ends there are two
// rings, each with one writer and one reader, so that no lock can be left held by one that died.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace placet::execute {

class SharedRings {
 public:
  /// Throws InputError if the system does not give the memory.
  explicit SharedRings(int ends);
  ~SharedRings();
  SharedRings(const SharedRings&) = delete;
  SharedRings& operator=(const SharedRings&) = delete;

  /// As much as fits now; gives how much.
  std::size_t write(int from, int to, const std::byte* bytes, std::size_t size);
  /// As much as is there now, at most `size`; gives how much.
  std::size_t read(int from, int to, std::byte* bytes, std::size_t size);

  /// A number that changes with all that is written to an end or read of what it wrote.
  std::uint32_t changes(int end) const;
  /// Sleeps until they are other than these, or so long.
  void sleep(int end, std::uint32_t changes, std::chrono::milliseconds most);

  /// Why an end cannot go on. wrong: what it computes; broken: it itself.
  enum class Trouble : std::uint32_t { none, wrong, broken };
  void tell(int end, Trouble trouble, const std::string& why);
  Trouble trouble(int end) const;
  std::string why(int end) const;

 private:
  struct Ring;
  struct End;
  Ring& ring(int from, int to) const;
  End& end(int e) const;
  void wake(int e);

  int ends_;
  std::size_t capacity_;  // bytes of a ring
  std::size_t size_ = 0;
  std::byte* memory_ = nullptr;
};

}  // namespace placet::execute
