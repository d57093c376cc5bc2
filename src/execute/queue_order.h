// Which of the queues of a device goes on when several could (docs/theory.md §6.11).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "program/program.h"

namespace placet {

/// listed: there are no queues, all ranks run in the order of their listings and in step. early:
/// messages and host copies begin as soon as what they wait for is done. late: not before nothing
/// can be computed without them. seeded: always the first that can, in an order of all
/// queues of all ranks that is drawn, and in which at a few drawn moments the one that goes on
/// becomes the last. A program whose order is settled gives the same bits under all of them.
/// Source of `seeded`: Burckhardt, Kothari, Musuvathi, Nagarakatte, "A randomized scheduler with
/// probabilistic guarantees of finding bugs", ASPLOS 2010: with n queues and k instructions, what
/// shows where m pairs of them have a certain order shows with a probability of at least
/// 1/(n k^(m-1)).
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

/// A queue of a rank.
struct QueueOfRank {
  int rank = 0;
  Stream stream = Stream::compute;

  friend bool operator==(const QueueOfRank&, const QueueOfRank&) = default;
};

/// By kind, those first that go first: of `early` and `late`.
std::array<Stream, kStreamCount> queues_in_order(QueueOrder::Kind kind);

/// All queues, those first that go first: of `seeded`.
class DrawnOrder {
 public:
  DrawnOrder(std::uint64_t seed, int ranks);
  /// Draws the moments of a step of so many instructions.
  void begin_step(std::size_t instructions);
  const std::vector<QueueOfRank>& queues() const { return queues_; }
  /// Told that this queue, by its place, went on.
  void went_on(std::size_t place);

 private:
  static constexpr std::size_t kMoments = 3;
  std::uint64_t draw(std::uint64_t below);

  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
  std::vector<QueueOfRank> queues_;
  std::array<std::uint64_t, kMoments> moments_{};
  std::uint64_t done_ = 0;
};

}  // namespace execute
}  // namespace placet
