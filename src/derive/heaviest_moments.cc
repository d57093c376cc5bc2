#include "derive/heaviest_moments.h"

#include <algorithm>
#include <utility>

#include "units/at.h"
#include "units/checked.h"

namespace placet {
namespace {

/// Three whole groups and the last one show all moments (docs/theory.md §3.4).
std::int64_t telling_micro_batches(const Schedule& schedule, std::int64_t degree,
                                   std::int64_t device, std::int64_t micro_batches) {
  const std::int64_t group = interleaved_order(schedule, degree, device, micro_batches).group;
  if (group < degree) return micro_batches;  // a finding: such groups do not fill the pipeline
  return std::min(micro_batches, 3 * group + micro_batches % group);
}

/// Work on one chunk after another, of one kind.
struct Stretch {
  std::int64_t chunk = -1;  // -1: left out, on micro-batches beyond the step's
  std::int64_t count = 0;
};

/// The forwards of a device, in order; its backwards go through the same list with the chunks the
/// other way round.
std::vector<Stretch> stretches_of(const InterleavedOrder& order, std::int64_t chunks,
                                  std::int64_t micro_batches) {
  std::vector<Stretch> out;
  for (std::int64_t first = 0; first < order.planned; first += order.group) {
    const std::int64_t planned = std::min(order.group, order.planned - first);
    const std::int64_t real = std::clamp<std::int64_t>(micro_batches - first, 0, planned);
    for (std::int64_t c = 0; c < chunks; ++c) {
      if (real > 0) out.push_back({c, real});
      if (real < planned) out.push_back({-1, planned - real});
    }
  }
  return out;
}

/// A place in a list of stretches.
class Place {
 public:
  explicit Place(const std::vector<Stretch>& stretches) : list_(stretches) {}

  /// What is left of the stretch at hand. REQUIRES: the list has not ended.
  std::int64_t left() const { return list_[next_].count - done_; }
  std::int64_t chunk() const { return list_[next_].chunk; }
  std::int64_t moved() const { return moved_; }

  /// REQUIRES: count <= left().
  void move(std::int64_t count) {
    moved_ += count;
    done_ += count;
    if (left() > 0) return;
    ++next_;
    done_ = 0;
  }

 private:
  const std::vector<Stretch>& list_;
  std::size_t next_ = 0;
  std::int64_t done_ = 0;   // of the stretch at hand
  std::int64_t moved_ = 0;  // of all
};

/// Goes through the work of a device, stretch by stretch. While a forward of one chunk and a
/// backward of another alternate, what is held changes by the same bytes each time and no chunk
/// runs empty before the end (each of these backwards has its own micro-batch), so that the first
/// or the last of them is the heaviest.
class HeaviestMoments {
 public:
  HeaviestMoments(std::int64_t chunks, const std::vector<std::int64_t>& kept)
      : kept_(kept), held_(at(chunks), 0) {}

  /// `count` times a forward of one chunk, then a backward of the other; -1: none.
  void alternate(std::int64_t forward, std::int64_t backward, std::int64_t count) {
    const std::int64_t grows = bytes_of(forward) - bytes_of(backward);
    const std::int64_t heaviest = grows > 0 ? count - 1 : 0;
    change(forward, backward, heaviest);
    if (forward >= 0) look(Work::Kind::forward, forward, 2 * heaviest);
    change(forward, backward, 1);
    if (backward >= 0) look(Work::Kind::backward, backward, 2 * heaviest + 1);
    change(forward, backward, count - heaviest - 1);
    time_ += 2 * count;
  }

  std::vector<WorkMoment> take() {
    std::ranges::sort(found_, {}, &Found::time);
    std::vector<WorkMoment> out;
    out.reserve(found_.size());
    for (Found& found : found_) {
      out.push_back({.kind = found.kind,
                     .chunk = found.chunk,
                     .held = std::move(found.held),
                     .waiting = std::vector<std::int64_t>(held_.size(), 0)});
    }
    return out;
  }

 private:
  struct Found {
    Work::Kind kind = Work::Kind::forward;
    std::int64_t chunk = 0;
    std::uint64_t others = 0;  // chunks beside the running one that hold something
    std::int64_t bytes = 0;
    std::int64_t time = 0;
    std::vector<std::int64_t> held;
  };

  static std::uint64_t bit(std::int64_t chunk) { return std::uint64_t{1} << chunk; }
  std::int64_t bytes_of(std::int64_t chunk) const { return chunk < 0 ? 0 : kept_[at(chunk)]; }

  void change(std::int64_t forward, std::int64_t backward, std::int64_t count) {
    add(forward, count);
    add(backward, -count);
  }

  void add(std::int64_t chunk, std::int64_t count) {
    if (chunk < 0 || count == 0) return;
    std::int64_t& held = held_[at(chunk)];
    held += count;
    bytes_ = checked_add(bytes_, checked_multiply(count, kept_[at(chunk)], "activations"),
                         "activations");
    holding_ = held > 0 ? holding_ | bit(chunk) : holding_ & ~bit(chunk);
  }

  /// Beside a backward its own micro-batch is taken from what is held, beside a forward its own is
  /// not there yet.
  void look(Work::Kind kind, std::int64_t chunk, std::int64_t after) {
    const std::uint64_t others = holding_ & ~bit(chunk);
    const auto known = std::ranges::find_if(found_, [&](const Found& found) {
      return found.others == others && found.chunk == chunk && found.kind == kind;
    });
    if (known == found_.end()) {
      found_.push_back({kind, chunk, others, bytes_, time_ + after, held_});
    } else if (bytes_ > known->bytes) {
      known->bytes = bytes_;
      known->time = time_ + after;
      std::ranges::copy(held_, known->held.begin());
    }
  }

  const std::vector<std::int64_t>& kept_;
  std::vector<std::int64_t> held_;  // by chunk
  std::uint64_t holding_ = 0;       // chunks that hold something
  std::int64_t bytes_ = 0;
  std::int64_t time_ = 0;  // pieces of work so far
  std::vector<Found> found_;
};

}  // namespace

bool arrives_in_turn(const Schedule& schedule, std::int64_t degree) {
  constexpr std::int64_t kMostChunks = 64;  // of a set of them
  return schedule.order == Order::interleaved && schedule.hosting == Hosting::loop && degree > 2 &&
         schedule.chunks <= kMostChunks;
}

std::vector<WorkMoment> heaviest_moments(const Schedule& schedule, std::int64_t degree,
                                         std::int64_t device, std::int64_t micro_batches,
                                         const std::vector<std::int64_t>& kept) {
  const std::int64_t telling = telling_micro_batches(schedule, degree, device, micro_batches);
  const InterleavedOrder order = interleaved_order(schedule, degree, device, telling);
  const std::vector<Stretch> stretches = stretches_of(order, schedule.chunks, telling);
  const std::int64_t all = order.planned * schedule.chunks;
  HeaviestMoments moments(schedule.chunks, kept);
  Place forward(stretches);
  Place backward(stretches);
  const auto back = [&] {
    return backward.chunk() < 0 ? -1 : schedule.chunks - 1 - backward.chunk();
  };
  while (forward.moved() < order.warm_up) {
    const std::int64_t count = std::min(forward.left(), order.warm_up - forward.moved());
    moments.alternate(forward.chunk(), -1, count);
    forward.move(count);
  }
  while (forward.moved() < all) {
    const std::int64_t count = std::min(forward.left(), backward.left());
    moments.alternate(forward.chunk(), back(), count);
    forward.move(count);
    backward.move(count);
  }
  while (backward.moved() < all) {
    const std::int64_t count = backward.left();
    moments.alternate(-1, back(), count);
    backward.move(count);
  }
  return moments.take();
}

}  // namespace placet
