// Bytes that ranks send, as their communicators count them, by collective and axes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "execute/kept_blocks.h"
#include "execute/run.h"
#include "ranks/groups.h"

namespace placet::execute {

/// As the derivation calls it; empty: nothing is sent.
std::string collective_of(InstructionKind kind);

/// As the keys of ledgers have them.
inline AxisList in_order(AxisList axes) {
  std::ranges::sort(axes);
  return axes;
}

/// What one message is part of, for counting.
struct Cargo {
  std::string collective;  // `collective_of`
  AxisList axes;           // in ascending order
  std::size_t stage = 0;   // 1: of a sum for all, the way back
  std::int64_t bits = 0;   // of its numbers, in the formats of the buffers
};

/// Of one rank.
class Ledger {
 public:
  struct Key {
    std::string collective;
    AxisList axes;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Sum {
    std::int64_t calls = 0;
    std::array<std::int64_t, 2> bits{};  // by stage
    friend bool operator==(const Sum&, const Sum&) = default;
  };

  /// Says that the next messages are of one more collective.
  void begin_call(const std::string& collective, const AxisList& axes);
  void add(const Cargo& cargo);

  std::map<Key, Sum> sums;
};

/// For other processes, and back. Throws InternalError for other bytes.
Kept<std::byte> bytes_of(const Ledger& ledger);
Ledger ledger_from(const Kept<std::byte>& bytes);

/// What the rank that sends most sends, of equals the first. A collective is as long as its member
/// that sends most, which need not be the same in both stages of a sum for all: each stage is
/// counted there.
/// Case: one number summed over 2 ranks: one sends it, the other sends the sum back: 2 numbers.
std::vector<SentBytes> sent_bytes(const Program& program, const ranks::Mesh& mesh,
                                  const std::vector<Ledger>& by_rank);

}  // namespace placet::execute
