// Bodies that do the same for later and later micro-batches (docs/theory.md §6.5): how long a part
// of a list repeats itself, and what a state is after as many repetitions. Inside of check/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "program/walk.h"

namespace placet {

/// An item of what a class executes.
struct Passage {
  const void* whole = nullptr;  // a list of instructions that is known elsewhere; null: only one
  bool follows = true;          // what `whole` names follows the micro-batch that it is called for
  const Instruction* instruction = nullptr;  // null: `whole`
  /// Of a wait, where events matter: how many items before it stands what it waits for.
  std::int64_t event = 0;
  Arguments arguments;
};

/// Whether what a buffer's indices name moves with the micro-batch of a call and with nothing else.
bool follows_call(const Program& program, const BufferRef& ref);

/// A part of a list each of whose items is the one a period before, of micro-batches `shift` later.
struct Stretch {
  std::size_t begin = 0;
  std::size_t end = 0;     // past the last
  std::size_t period = 0;  // items
  std::int64_t shift = 0;  // micro-batches, above 0

  friend bool operator==(const Stretch&, const Stretch&) = default;
};

/// A long such part around the middle of a list; none: fewer than four periods.
/// Case: of f0 | f1 b0 | f2 b1 | f3 b2 | f4 b3 | b4, begin 1, end 9, period 2, shift 1.
std::optional<Stretch> stretch_of(const Program& program, const std::vector<Passage>& list);

/// The buffers of a family and unit that a period touches: of micro-batches from `first` to `last`.
struct Track {
  BufferRef buffer;  // constants, of no micro-batch
  bool by_micro_batch = false;
  std::int64_t first = 0;
  std::int64_t last = 0;
  bool only_added_to = true;

  BufferRef at(std::int64_t micro_batch) const {
    BufferRef out = buffer;
    out.micro_batch.offset = micro_batch;
    return out;
  }
};

/// What the items of a period touch.
class Tracks {
 public:
  explicit Tracks(const Program& program) : program_(program) {}

  void touch(const BufferRef& ref, const Arguments& a, bool only_added_to);

  using All = std::map<std::pair<int, std::int64_t>, Track>;  // by family, unit
  const All& all() const { return all_; }

 private:
  const Program& program_;
  All all_;
};

/// Whether all that is there of a family, when a period from `first` to `last` is through, is of
/// micro-batches from `first + shift` to `last`: what later periods come to is not there yet, and
/// nothing is left behind.
enum class Elsewhere : std::uint8_t { nothing, something };

/// What is to be left out.
struct Periods {
  std::int64_t shift = 0;  // micro-batches from one to the next
  std::int64_t more = 0;   // how many
  Elsewhere elsewhere = Elsewhere::something;
};

/// Whether the state of a track at a cut is that at the cut before, of micro-batches `shift` later,
/// and so for the buffers that later periods come to, which are not looked at if nothing is
/// elsewhere. `before` are the states at the cut before from `first` to `last`, read(m) those at
/// this one; is_later(a, b): b is a, so much later.
template <class State, class Read, class IsLater>
bool repeats(const Track& t, const Periods& p, const std::vector<State>& before, Read read,
             IsLater is_later) {
  for (std::int64_t m = t.first; m <= t.last; ++m) {
    const std::int64_t later = t.by_micro_batch ? m + p.shift : m;
    if (!is_later(before[static_cast<std::size_t>(m - t.first)], read(later))) return false;
  }
  if (!t.by_micro_batch || p.elsewhere == Elsewhere::nothing) return true;
  for (std::int64_t m = t.last + 1; m <= t.last + p.shift * p.more; ++m) {
    if (!is_later(read(m), read(m + p.shift))) return false;
  }
  return true;
}

/// Leaves periods out: what is touched last in each of them is as the first of them left it, what
/// is still under way as at the cut, so many micro-batches later. write(m, state, times) puts a
/// state in its place, `times` periods later.
template <class Read, class Write>
void leave_out(const Track& t, const Periods& p, Read read, Write write) {
  if (!t.by_micro_batch) return write(0, read(0), p.more);
  std::vector<std::decay_t<decltype(read(0))>> window;
  for (std::int64_t m = t.first; m <= t.last + p.shift; ++m) window.push_back(read(m));
  const std::int64_t begin = t.first + p.shift;
  const std::int64_t end = t.last + p.shift;
  const std::int64_t under_way = begin + p.shift * p.more;
  for (std::int64_t m = begin; m <= end + p.shift * p.more; ++m) {
    // Where nothing is left behind, there is nothing between what was and what is under way.
    if (p.elsewhere == Elsewhere::nothing && m > end && m < under_way) m = under_way;
    const std::int64_t times = m >= under_way ? p.more : (m - t.first) / p.shift;
    const std::int64_t from = m - times * p.shift;
    write(m, window[static_cast<std::size_t>(from - t.first)], times);
  }
}

}  // namespace placet
