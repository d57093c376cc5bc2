// Micro-batches that the machine need not run: where a period of all classes leaves behind what the
// one before it left, of later micro-batches, so do those that follow (docs/theory.md §6.5).
#include <algorithm>
#include <limits>
#include <numeric>

#include "check/machine.h"
#include "units/at.h"

namespace placet {
namespace {

/// Cuts that are compared before it is given up.
constexpr int kMostCuts = 6;

std::int64_t later(std::int64_t micro_batch, std::int64_t by) {
  return micro_batch < 0 ? micro_batch : micro_batch + by;
}

}  // namespace

/// What is compared of a buffer.
struct Machine::Held {
  bool there = false;
  bool alive = false;
  bool written = false;
  int number = -1;
  std::int64_t micro_batch = -1;

  /// Whether the other is this one, `by` micro-batches later.
  bool is_before(const Held& other, std::int64_t by) const {
    return there == other.there && alive == other.alive && written == other.written &&
           number == other.number && later(micro_batch, by) == other.micro_batch;
  }
};

/// Where all classes stand, and what they hold of what they touch in the period that begins there.
struct Machine::Cut {
  struct OfClass {
    std::size_t next = 0;
    std::size_t items = 0;  // of the period
    Tracks tracks;
    std::vector<std::vector<Held>> held;  // by track, by micro-batch from its first
  };
  std::vector<OfClass> classes;
  std::map<std::pair<int, int>, std::deque<Message>> messages;
  std::int64_t named = 0;
};

/// What of each class's list repeats itself.
void Machine::find_stretches() {
  // Whether a buffer has room for what another micro-batch makes goes by their numbers then.
  if (has_uneven_micro_batches()) return;
  for (int c = 0; c < static_cast<int>(runners_.size()); ++c) {
    Runner& runner = runners_[at(c)];
    std::vector<Passage> passages;
    passages.reserve(runner.list.size());
    for (std::size_t k = 0; k < runner.list.size(); ++k) {
      passages.push_back(passage_of(c, runner.list[k]));
    }
    runner.stretch = stretch_of(program_, passages);
  }
}

/// Collectives of several classes are no part of a period: each would have to stand at its own.
Passage Machine::passage_of(int c, const SegmentOrInstruction& s) const {
  Passage out{.whole = s.segment, .instruction = s.instruction, .arguments = s.arguments};
  if (s.segment != nullptr) {
    out.follows = s.segment->follows_call;
  } else {
    const InstructionKind kind = s.instruction->kind;
    out.follows = kind == InstructionKind::send || kind == InstructionKind::receive ||
                  is_local(c, *s.instruction);
  }
  return out;
}

/// The micro-batches by which one period of all classes is later than the one before; none: not all
/// have periods.
std::optional<std::int64_t> Machine::shift_of_periods() const {
  std::int64_t shift = 1;
  for (const Runner& runner : runners_) {
    if (!runner.stretch) return std::nullopt;
    shift = std::lcm(shift, runner.stretch->shift);
  }
  return shift;
}

void Machine::leave_out_periods() {
  if (step_ == 0) find_stretches();
  const std::optional<std::int64_t> shift = shift_of_periods();
  if (!shift) return;
  std::size_t target = runners_[0].stretch->begin;
  std::optional<Cut> before;
  watches_ = true;
  for (int k = 0; k < kMostCuts && breached_ == 0; ++k) {
    std::vector<bool> waiting(runners_.size(), false);
    if (!bring_to(0, target, waiting)) break;
    if (before && leave_out_after(*before, *shift)) break;
    before = cut(*shift);
    target = before ? before->classes[0].next + before->classes[0].items
                    : target + runners_[0].stretch->period;
  }
  watches_ = false;
}

/// Whether periods like the one that began at the cut are left out, or none is left.
bool Machine::leave_out_after(const Cut& before, std::int64_t shift) {
  if (!stand_alike(before)) return false;
  const Periods periods{.shift = shift, .more = periods_left(before)};
  if (periods.more <= 0) return true;
  if (!is_repeated(before, periods)) return false;
  leave_out(before, periods);
  return true;
}

/// Runs a class up to an item, and of the others what it waits for. False: it never comes there.
bool Machine::bring_to(int c, std::size_t target, std::vector<bool>& waiting) {
  Runner& runner = runners_[at(c)];
  while (runner.next < target) {
    if (breached_ > 0 || runner.next >= runner.list.size()) return false;
    if (advance(c)) continue;
    waiting[at(c)] = true;
    if (!bring_what_is_missing(c, waiting)) return false;
    waiting[at(c)] = false;
  }
  return true;
}

bool Machine::bring_what_is_missing(int c, std::vector<bool>& waiting) {
  const Instruction& i = *runners_[at(c)].instruction;
  const auto one_more = [&](int d) {
    return !waiting[at(d)] && bring_to(d, runners_[at(d)].next + 1, waiting);
  };
  if (i.kind == InstructionKind::receive) {
    const int from = partner_of(c, i);
    return from >= 0 && one_more(from);
  }
  // A collective: whoever is not there comes nearer.
  bool moved = false;
  for (const int d : members_of(c, i)) {
    if (d != c && !runners_[at(d)].waits) moved = one_more(d) || moved;
  }
  return moved;
}

/// Whether each class stands where the period that began at the cut ends.
bool Machine::stand_alike(const Cut& cut) const {
  for (std::size_t c = 0; c < runners_.size(); ++c) {
    if (runners_[c].next != cut.classes[c].next + cut.classes[c].items) return false;
  }
  return true;
}

Tracks Machine::touched_in(int c, std::size_t first, std::size_t last) const {
  Tracks out(program_);
  for (std::size_t k = first; k < last; ++k) {
    const auto& [segment, instruction, a] = runners_[at(c)].list[k];
    if (segment != nullptr) {
      for (const Touched& t : segment->touched) out.touch(t.buffer, a, t.sum);
      for (const BufferRef& ref : segment->within) out.touch(ref, a, false);
      continue;
    }
    const bool adds = instruction->kind == InstructionKind::accumulate;
    for (const BufferRef& ref : instruction->inputs) out.touch(ref, a, false);
    for (const BufferRef& ref : instruction->outputs) out.touch(ref, a, adds);
  }
  return out;
}

Machine::Held Machine::held(int c, const Track& track, std::int64_t micro_batch) const {
  const Slot* slot = runners_[at(c)].slots.find(track.at(micro_batch), {});
  if (slot == nullptr) return {};
  return {.there = true,
          .alive = slot->alive,
          .written = slot->written,
          .number = slot->value.number,
          .micro_batch = slot->value.micro_batch};
}

/// By family, when the period that touches these is through.
std::vector<Elsewhere> Machine::elsewhere(int c, const Tracks& tracks, std::int64_t shift) const {
  const Slots& slots = runners_[at(c)].slots;
  std::vector<std::size_t> within(program_.families.size(), 0);
  for (const auto& [name, track] : tracks.all()) {
    for (std::int64_t m = track.first + shift; m <= track.last; ++m) {
      if (slots.find(track.at(m), {}) != nullptr) ++within[at(track.buffer.family)];
    }
  }
  std::vector<Elsewhere> out;
  out.reserve(within.size());
  for (std::size_t f = 0; f < within.size(); ++f) {
    const bool none = slots.count(static_cast<int>(f)) == within[f];
    out.push_back(none ? Elsewhere::nothing : Elsewhere::something);
  }
  return out;
}

/// Where the classes stand; none: not all at the beginning of a period.
std::optional<Machine::Cut> Machine::cut(std::int64_t shift) {
  Cut out{.classes = {}, .messages = messages_, .named = named_};
  added_to_.clear();
  for (int c = 0; c < static_cast<int>(runners_.size()); ++c) {
    const Runner& runner = runners_[at(c)];
    const Stretch& s = *runner.stretch;
    const std::size_t items = s.period * static_cast<std::size_t>(shift / s.shift);
    if (runner.next < s.begin || runner.next + items > s.end) return std::nullopt;
    Cut::OfClass& own = out.classes.emplace_back(
        Cut::OfClass{.next = runner.next,
                     .items = items,
                     .tracks = touched_in(c, runner.next, runner.next + items),
                     .held = {}});
    for (const auto& [name, track] : own.tracks.all()) {
      std::vector<Held>& list = own.held.emplace_back();
      for (std::int64_t m = track.first; m <= track.last; ++m) list.push_back(held(c, track, m));
    }
  }
  return out;
}

/// Periods that all classes have after the one that began at the cut, but for one: that sums are
/// not complete.
std::int64_t Machine::periods_left(const Cut& cut) const {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::size_t c = 0; c < runners_.size(); ++c) {
    const Cut::OfClass& own = cut.classes[c];
    const std::size_t left = runners_[c].stretch->end - own.next;
    least = std::min(least, static_cast<std::int64_t>(left / own.items) - 2);
  }
  return least;
}

/// Whether the period that began at the cut left everything as it found it, of later micro-batches.
bool Machine::is_repeated(const Cut& before, const Periods& periods) const {
  if (named_ != before.named || !have_messages_repeated(before, periods.shift)) return false;
  for (int c = 0; c < static_cast<int>(runners_.size()); ++c) {
    const Cut::OfClass& own = before.classes[at(c)];
    const std::vector<Elsewhere> others = elsewhere(c, own.tracks, periods.shift);
    auto was = own.held.begin();
    for (const auto& [name, track] : own.tracks.all()) {
      Periods its = periods;
      its.elsewhere = others[at(track.buffer.family)];
      if (!is_repeated(c, track, *was++, its)) return false;
    }
  }
  return true;
}

bool Machine::is_repeated(int c, const Track& track, const std::vector<Held>& was,
                          const Periods& periods) const {
  if (is_extended(c, track, periods.shift)) return true;
  return repeats(
      track, periods, was, [&](std::int64_t m) { return held(c, track, m); },
      [&](const Held& a, const Held& b) { return a.is_before(b, periods.shift); });
}

/// Whether all that happened to a buffer is that a sum took so many more micro-batches.
bool Machine::is_extended(int c, const Track& track, std::int64_t by) const {
  if (!track.only_added_to) return false;
  const auto found = added_to_.find({c, track.buffer.family, track.buffer.unit.offset});
  return found != added_to_.end() && found->second.longer == by && !found->second.otherwise;
}

bool Machine::have_messages_repeated(const Cut& before, std::int64_t shift) const {
  const auto is_before = [&](const Numbered& a, const Numbered& b) {
    return a.number == b.number && later(a.micro_batch, shift) == b.micro_batch;
  };
  return std::ranges::equal(before.messages, messages_, [&](const auto& one, const auto& other) {
    return one.first == other.first &&
           std::ranges::equal(one.second, other.second, [&](const Message& a, const Message& b) {
             return std::ranges::equal(a.contents, b.contents, is_before);
           });
  });
}

void Machine::leave_out(const Cut& cut, const Periods& periods) {
  left_out_ += periods.more;
  for (int c = 0; c < static_cast<int>(runners_.size()); ++c) {
    const Cut::OfClass& own = cut.classes[at(c)];
    const std::vector<Elsewhere> others = elsewhere(c, own.tracks, periods.shift);
    for (const auto& [name, track] : own.tracks.all()) {
      Periods its = periods;
      its.elsewhere = others[at(track.buffer.family)];
      leave_out(c, track, its);
    }
    runners_[at(c)].next += own.items * static_cast<std::size_t>(periods.more);
  }
  for (auto& [ends, queue] : messages_) rename(queue, periods.shift * periods.more);
}

void Machine::rename(std::deque<Message>& queue, std::int64_t by) {
  for (Message& message : queue) {
    for (Numbered& value : message.contents) value.micro_batch = later(value.micro_batch, by);
  }
}

void Machine::leave_out(int c, const Track& track, const Periods& periods) {
  if (is_extended(c, track, periods.shift)) {
    return extend_by(c, track, periods.shift * periods.more);
  }
  Slots& slots = runners_[at(c)].slots;
  const auto read = [&](std::int64_t m) -> std::optional<Slot> {
    const Slot* slot = slots.find(track.at(m), {});
    return slot == nullptr ? std::nullopt : std::optional<Slot>(*slot);
  };
  const auto write = [&](std::int64_t m, const std::optional<Slot>& state, std::int64_t times) {
    if (!state) return slots.erase(track.at(m), {});
    Slot& slot = slots.get(track.at(m), {});
    slot = *state;
    slot.value.micro_batch = later(slot.value.micro_batch, times * periods.shift);
  };
  placet::leave_out(track, periods, read, write);
}

/// A sum takes so many more micro-batches.
void Machine::extend_by(int c, const Track& track, std::int64_t by) {
  Slot& slot = *runners_[at(c)].slots.find(track.buffer, {});
  auto sum = std::make_shared<Content>(*slot.value.content);
  for (Tensor& t : sum->pieces) extend(t, by);
  slot.value.content = std::move(sum);
  slot.value.number = memory_->numbers++;
}

}  // namespace placet
