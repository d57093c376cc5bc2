// Which of the queues of a device goes on when several could (docs/theory.md §6.11).
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "program/program.h"

namespace placet {

/// listed: there are no queues, all ranks run in the order of their listings and in step. early:
/// messages and host copies begin as soon as what they wait for is done. late: not before nothing
/// can be computed without them. seeded: drawn again each time. A program whose order is settled
/// gives the same bits under all of them.
struct QueueOrder {
  enum class Kind : std::uint8_t { listed, early, late, seeded };
  Kind kind = Kind::listed;
  std::uint64_t seed = 1;

  friend bool operator==(const QueueOrder&, const QueueOrder&) = default;
};

/// "listed", "early", "late", "seeded" or "seeded=7". Throws InputError for other words.
QueueOrder queue_order_from(const std::string& text);
std::string text_of(const QueueOrder& order);

namespace execute {

/// Gives the queues, those first that go first.
class QueueChoice {
 public:
  using Queues = std::array<Stream, kStreamCount>;
  explicit QueueChoice(const QueueOrder& order) : order_(order) {}
  const Queues& next();

 private:
  QueueOrder order_;
  std::uint64_t drawn_ = 0;
  Queues queues_{Stream::communication, Stream::to_host, Stream::from_host, Stream::compute};
  bool turned_ = false;
};

}  // namespace execute
}  // namespace placet
