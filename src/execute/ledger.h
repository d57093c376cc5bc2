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

/// Of entries of a buffer, or of their bits, what is stored and sent: where tokens stand before
/// experts, what the chosen ones get (program/sizes.h). The others' entries are zeros, which only
/// this machine holds.
std::int64_t chosen_of(const Program& program, const BufferType& type, std::int64_t amount);
/// Of bits of a message, in the format of what they become.
std::int64_t chosen_of(const Program& program, const Instruction& what, std::int64_t bits);

/// What one message is part of, for counting.
struct Cargo {
  std::string collective;                // `collective_of`
  AxisList axes;                         // in ascending order
  std::vector<std::int64_t> among = {};  // coordinates that take part; empty: all
  std::size_t stage = 0;                 // 1: of a sum for all, the way back
  std::int64_t bits = 0;                 // of its numbers, in the formats of the buffers
};

/// What messages of an instruction are part of, no bits yet.
Cargo cargo_of(const Instruction& what);

/// Of one rank.
class Ledger {
 public:
  struct Key {
    std::string collective;
    AxisList axes;
    std::vector<std::int64_t> among = {};
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Sum {
    std::int64_t calls = 0;
    std::array<std::int64_t, 2> bits{};  // by stage
    friend bool operator==(const Sum&, const Sum&) = default;
  };

  /// Says that the next messages are of one more collective.
  void begin_call(const Cargo& cargo);
  void add(const Cargo& cargo);

  std::map<Key, Sum> sums;
};

/// For other processes, and back. Throws InternalError for other bytes.
Kept<std::byte> bytes_of(const Ledger& ledger);
Ledger ledger_from(const Kept<std::byte>& bytes);

/// What each rank sends. A collective is as long as its member that sends most, which need not be
/// the same in both stages of a sum for all: each stage is counted there. What goes from one rank
/// to another is its sender's alone.
/// Case: one number summed over 2 ranks: one sends it, the other sends the sum back: 2 numbers.
std::vector<std::vector<SentBytes>> sent_by_rank(const Program& program, const ranks::Mesh& mesh,
                                                 const std::vector<Ledger>& by_rank);

/// Of these the one that sends most; of equals the first.
std::vector<SentBytes> busiest_of(const std::vector<std::vector<SentBytes>>& by_rank);

}  // namespace placet::execute
