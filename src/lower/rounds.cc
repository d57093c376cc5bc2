#include "lower/rounds.h"

#include <algorithm>

#include "units/at.h"

namespace placet {
namespace {

/// Fewer rounds are written one by one, so that each micro-batch of a small step has a place of its
/// own in the text.
constexpr std::int64_t kFewestRounds = 8;

bool is_later(const StageMessage& a, StageMessage b, std::int64_t by) {
  b.micro_batch -= by;
  return a == b;
}

/// Whether `b` is `a`, of a micro-batch so much later.
bool is_later(const Turn& a, const Turn& b, std::int64_t by) {
  Work work = b.work;
  work.micro_batch -= by;
  const auto later = [by](const StageMessage& x, const StageMessage& y) {
    return is_later(x, y, by);
  };
  return a.work == work && a.begun == b.begun && a.ended == b.ended &&
         std::ranges::equal(a.received, b.received, later) &&
         a.sent.has_value() == b.sent.has_value() && (!a.sent || later(*a.sent, *b.sent));
}

/// Which of the turns a piece of work is: each is done once.
class Places {
 public:
  explicit Places(const std::vector<Turn>& turns) : none_(turns.size()) {
    for (const Turn& turn : turns) {
      chunks_ = std::max(chunks_, turn.work.chunk + 1);
      micro_batches_ = std::max(micro_batches_, turn.work.micro_batch + 1);
    }
    places_.assign(at(kWorkKinds * chunks_ * micro_batches_), none_);
    for (std::size_t t = 0; t < turns.size(); ++t) places_[number_of(turns[t].work)] = t;
  }

  /// As many as there are turns: none.
  std::size_t of(const Work& work) const {
    const bool there = work.micro_batch >= 0 && work.micro_batch < micro_batches_;
    return there ? places_[number_of(work)] : none_;
  }

 private:
  static constexpr std::int64_t kWorkKinds = 4;

  std::size_t number_of(const Work& work) const {
    const auto kind = static_cast<std::int64_t>(work.kind);
    return at((kind * chunks_ + work.chunk) * micro_batches_ + work.micro_batch);
  }

  std::size_t none_ = 0;
  std::int64_t chunks_ = 0;
  std::int64_t micro_batches_ = 0;
  std::vector<std::size_t> places_;
};

/// How many turns behind each stands the same one of the next micro-batch, or of the one before; 0:
/// none that is alike.
class Distances {
 public:
  Distances(const std::vector<Turn>& turns, std::int64_t by) : by_(by), far_(turns.size(), 0) {
    const Places places(turns);
    for (std::size_t t = 0; t < turns.size(); ++t) {
      Work next = turns[t].work;
      next.micro_batch += by;
      const std::size_t place = places.of(next);
      if (place <= t || place == turns.size()) continue;
      if (is_later(turns[t], turns[place], by)) far_[t] = place - t;
    }
  }

  /// The longest part of [first, last) that repeats itself; one round: none does often enough.
  Rounds longest(std::size_t first, std::size_t last) const {
    Rounds best{.first = first, .by = by_};
    std::size_t end = first;
    for (std::size_t t = first; t < last; t = end) {
      const std::size_t period = far_[t];
      end = t + 1;
      if (period == 0 || t + period >= last) continue;
      while (end + period < last && far_[end] == period) ++end;
      // Each of [t, end) comes again a period later.
      const auto rounds = static_cast<std::int64_t>((end - t) / period) + 1;
      const bool more = turns_of(rounds, period) > turns_of(best.rounds, best.period);
      if (rounds < kFewestRounds || !more) continue;
      best = {.first = t, .period = period, .rounds = rounds, .by = by_};
    }
    return best;
  }

  static std::size_t turns_of(std::int64_t rounds, std::size_t period) {
    return rounds == 1 ? 0 : static_cast<std::size_t>(rounds) * period;
  }

 private:
  std::int64_t by_ = 1;
  std::vector<std::size_t> far_;
};

class Finder {
 public:
  explicit Finder(const std::vector<Turn>& turns) : later_(turns, 1), earlier_(turns, -1) {}

  void find(std::size_t first, std::size_t last, std::vector<Rounds>& out) const {
    const Rounds up = later_.longest(first, last);
    const Rounds down = earlier_.longest(first, last);
    const bool upwards =
        Distances::turns_of(up.rounds, up.period) >= Distances::turns_of(down.rounds, down.period);
    const Rounds& found = upwards ? up : down;
    if (found.rounds == 1) {
      for (std::size_t t = first; t < last; ++t) out.push_back({.first = t});
      return;
    }
    const std::size_t end = found.first + Distances::turns_of(found.rounds, found.period);
    find(first, found.first, out);
    out.push_back(found);
    find(end, last, out);
  }

 private:
  Distances later_;
  Distances earlier_;
};

}  // namespace

std::vector<Rounds> rounds_of(const std::vector<Turn>& turns) {
  std::vector<Rounds> out;
  Finder(turns).find(0, turns.size(), out);
  return out;
}

}  // namespace placet
