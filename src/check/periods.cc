#include "check/periods.h"

#include <algorithm>

#include "units/at.h"

namespace placet {
namespace {

using Variable = IndexTerm::Variable;

/// Fewer are not worth leaving any out.
constexpr std::size_t kFewestPeriods = 4;
/// A part of the list as long as this is not a repetition within a period.
constexpr std::size_t kLongPart = 4;
/// How many later items of its kind the middle one is compared with.
constexpr int kMostTried = 16;

/// How much later an item is than another one that is alike; none: it is of no micro-batch.
struct Likeness {
  bool alike = false;
  std::optional<std::int64_t> shift;

  static Likeness none() { return {}; }
};

class Likenesses {
 public:
  explicit Likenesses(const Program& program) : program_(program) {}

  Likeness of(const Passage& a, const Passage& b) const {
    if (a.whole != b.whole) return Likeness::none();
    if (a.whole == nullptr) return of_instructions(a, b);
    if (!a.follows || a.arguments.unit != b.arguments.unit) return Likeness::none();
    return {.alike = true, .shift = b.arguments.micro_batch - a.arguments.micro_batch};
  }

 private:
  Likeness of_instructions(const Passage& a, const Passage& b) const {
    const Instruction& one = *a.instruction;
    const Instruction& other = *b.instruction;
    const bool same = a.follows && one.step == 0 && a.event == b.event &&
                      is_same_work(one, other) &&
                      value_of(one.key.unit, a.arguments) == value_of(other.key.unit, b.arguments);
    if (!same) return Likeness::none();
    Likeness out{.alike = true, .shift = std::nullopt};
    compare(one.inputs, a.arguments, other.inputs, b.arguments, out);
    compare(one.outputs, a.arguments, other.outputs, b.arguments, out);
    return out;
  }

  /// But for the buffers and what is drawn for.
  static bool is_same_work(const Instruction& a, const Instruction& b) {
    if (&a == &b) return true;
    return a.kind == b.kind && a.stream == b.stream && a.kernel == b.kernel &&
           a.positions == b.positions && a.key.name == b.key.name && a.factor == b.factor &&
           a.axes == b.axes && a.op == b.op && a.dim == b.dim && a.into == b.into &&
           a.shift == b.shift && a.peer == b.peer && a.among == b.among && a.step == b.step &&
           a.inputs.size() == b.inputs.size() && a.outputs.size() == b.outputs.size();
  }

  void compare(const std::vector<BufferRef>& one, const Arguments& a,
               const std::vector<BufferRef>& other, const Arguments& b, Likeness& out) const {
    for (std::size_t r = 0; r < one.size() && out.alike; ++r) {
      const Family& family = program_.families[at(one[r].family)];
      out.alike = one[r].family == other[r].family && one[r].piece == other[r].piece &&
                  (!family.by_unit || value_of(one[r].unit, a) == value_of(other[r].unit, b));
      if (!family.by_micro_batch) continue;
      const std::int64_t shift =
          value_of(other[r].micro_batch, b) - value_of(one[r].micro_batch, a);
      out.alike = out.alike && out.shift.value_or(shift) == shift;
      out.shift = shift;
    }
  }

  const Program& program_;
};

/// The part around an item that repeats with the period.
class StretchSearch {
 public:
  StretchSearch(const Program& program, const std::vector<Passage>& list)
      : likenesses_(program), list_(list) {}

  std::optional<Stretch> around(std::size_t middle) const {
    std::optional<Stretch> best;
    int tried = 0;
    for (std::size_t k = middle + 1; k < list_.size() && tried < kMostTried; ++k) {
      const Likeness one = likenesses_.of(list_[middle], list_[k]);
      if (!one.alike || one.shift.value_or(0) <= 0) continue;
      ++tried;
      const Stretch found = grown(middle, k - middle, *one.shift);
      const std::size_t length = found.end - found.begin;
      const bool longer = !best || length > best->end - best->begin;
      if (longer && length >= kFewestPeriods * found.period) best = found;
      if (best && length >= list_.size() / kLongPart) break;
    }
    return best;
  }

 private:
  bool repeats(std::size_t first, const Stretch& s) const {
    const Likeness one = likenesses_.of(list_[first], list_[first + s.period]);
    return one.alike && one.shift.value_or(s.shift) == s.shift;
  }

  Stretch grown(std::size_t middle, std::size_t period, std::int64_t shift) const {
    Stretch s{.begin = middle, .end = middle + period, .period = period, .shift = shift};
    while (s.end < list_.size() && repeats(s.end - period, s)) ++s.end;
    while (s.begin > 0 && repeats(s.begin - 1, s)) --s.begin;
    return s;
  }

  Likenesses likenesses_;
  const std::vector<Passage>& list_;
};

}  // namespace

bool follows_call(const Program& program, const BufferRef& ref) {
  const Family& family = program.families[at(ref.family)];
  const bool unit = !family.by_unit || ref.unit.variable != Variable::micro_batch;
  return unit && (!family.by_micro_batch || ref.micro_batch.variable == Variable::micro_batch);
}

std::optional<Stretch> stretch_of(const Program& program, const std::vector<Passage>& list) {
  // Any item of a long part will do that names a micro-batch.
  const StretchSearch search(program, list);
  for (std::size_t k = list.size() / 2; k < list.size() && k < list.size() / 2 + 8; ++k) {
    if (auto found = search.around(k)) return found;
  }
  return std::nullopt;
}

void Tracks::touch(const BufferRef& ref, const Arguments& a, bool only_added_to) {
  const Family& family = program_.families[at(ref.family)];
  const std::int64_t unit = family.by_unit ? value_of(ref.unit, a) : 0;
  const std::int64_t m = family.by_micro_batch ? value_of(ref.micro_batch, a) : 0;
  const auto [found, fresh] = all_.try_emplace({ref.family, unit});
  Track& track = found->second;
  if (fresh) {
    track.buffer = {.family = ref.family, .unit = {.offset = unit}, .micro_batch = {}};
    track.by_micro_batch = family.by_micro_batch;
    track.first = track.last = m;
  }
  track.first = std::min(track.first, m);
  track.last = std::max(track.last, m);
  track.only_added_to = track.only_added_to && only_added_to;
}

}  // namespace placet
