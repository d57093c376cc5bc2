// Segments of the machine: each is worked out once for equal contents, and what it left is put in
// place again where it meets these a second time.
#include <algorithm>

#include "check/machine.h"

#include "units/at.h"

namespace placet {
namespace {

/// The micro-batch that a content which depends on one is of where another one's was recorded.
std::int64_t renamed(std::int64_t recorded, std::int64_t micro_batch) {
  return recorded < 0 ? recorded : micro_batch;
}

bool adds_to_sum(const Segment& segment, const Instruction& i) {
  BufferRef all = i.outputs[0];
  all.piece = -1;
  const auto found = std::ranges::find(segment.touched, all, &Touched::buffer);
  return found != segment.touched.end() && found->sum;
}

}  // namespace

/// Whether a class executes it without waiting for others.
bool Machine::is_local(int c, const Instruction& i) const {
  if (i.kind == InstructionKind::send || i.kind == InstructionKind::receive) return false;
  return !is_collective(i.kind) ||
         std::ranges::none_of(i.axes, [&](int axis) { return splits(c, axis); });
}

void Machine::run(int c, const Segment& segment, const Arguments& a) {
  key_.clear();
  const std::optional<std::int64_t> micro_batch = key_of(c, segment, a, key_);
  Effects& effects = effects_[&segment];
  const auto known = micro_batch ? effects.find(key_) : effects.end();
  if (known != effects.end()) {
    return repeat(c, segment, a, *micro_batch, known->second);
  }
  Effect effect = run_in_full(c, segment, a, micro_batch.value_or(-1));
  if (micro_batch && effect.repeats) effects.insert_or_assign(key_, std::move(effect));
}

/// Two runs with equal keys are alike but for their micro-batch, which is told: -1, none of the
/// contents that it needs is of one; nothing: they are of several, or what begins in it is there.
std::optional<std::int64_t> Machine::key_of(int c, const Segment& segment, const Arguments& a,
                                            std::vector<int>& key) {
  for (const IndexTerm& term : segment.keys) key.push_back(static_cast<int>(value_of(term, a)));
  if (!segment.keys.empty()) key.push_back(step_);
  const auto& slots = runners_[at(c)].slots;
  const auto is_there = [&](const BufferRef& ref) {
    return !slots.has_none(ref.family) && slots.find(ref, a) != nullptr;
  };
  if (std::ranges::any_of(segment.within, is_there)) return std::nullopt;
  std::int64_t micro_batch = -1;
  for (const Touched& t : segment.touched) {
    if (t.sum) continue;
    const Slot* slot = slots.find(t.buffer, a);
    const std::int64_t mine = add_to_key(slot, t.needed, key);
    if (mine >= 0 && micro_batch >= 0 && micro_batch != mine) return std::nullopt;
    if (mine >= 0) micro_batch = mine;
  }
  // Where the code believes to be goes by its call, or by constants.
  if (!segment.follows_call) key.push_back(static_cast<int>(a.micro_batch));
  if (micro_batch >= 0) key.push_back(static_cast<int>(micro_batch - a.micro_batch));
  return micro_batch;
}

/// What a run depends on of a buffer; the micro-batch that it is of, if it is needed, else -1.
std::int64_t Machine::add_to_key(const Slot* slot, bool needed, std::vector<int>& key) {
  const bool alive = slot != nullptr && slot->alive;
  key.push_back(alive ? 1 : 0);
  if (!alive || !needed) return -1;
  const Numbered& value = slot->value;
  key.push_back(slot->written ? value.number : -2);
  key.push_back(value.micro_batch < 0 ? 0 : 1);
  return value.micro_batch;
}

/// Instruction by instruction; notes what comes of it.
Machine::Effect Machine::run_in_full(int c, const Segment& segment, const Arguments& a,
                                     std::int64_t micro_batch) {
  const std::int64_t breached = breached_;
  added_.clear();
  is_own_ = false;
  Effect effect{.repeats = true, .left = {}, .added = {}};
  for (const Instruction* i : segment.instructions) {
    stand_at(c, *i, a);
    const std::size_t before = nodes_.size();
    names_micro_batch_ = false;
    if (is_collective(i->kind)) {
      exchange(c, *i, a);
    } else {
      execute(c, *i, a);
    }
    note_nodes(before, c, *i, a);
    if (names_micro_batch_ && !adds_to_sum(segment, *i)) effect.repeats = false;
  }
  effect.repeats = effect.repeats && !is_own_ && breached == breached_ &&
                   note_left(c, segment, a, micro_batch, effect);
  return effect;
}

/// False: something that is left is of another micro-batch.
bool Machine::note_left(int c, const Segment& segment, const Arguments& a, std::int64_t micro_batch,
                        Effect& effect) {
  const auto& slots = runners_[at(c)].slots;
  const auto fits = [&](const Numbered& value) {
    return value.micro_batch < 0 || value.micro_batch == micro_batch;
  };
  for (const Touched& t : segment.touched) {
    Left& left = effect.left.emplace_back();
    if (t.sum) continue;
    const Slot* slot = slots.find(t.buffer, a);
    left.gone = slot == nullptr;
    if (left.gone || !t.changes) continue;
    left.written = slot->written;
    left.value = slot->value;
    left.writer = slot->writer.instruction;
    if (!fits(left.value)) return false;
  }
  for (const auto& [instruction, value] : added_) {
    if (!adds_to_sum(segment, *instruction)) continue;
    if (!fits(value)) return false;
    effect.added.emplace_back(instruction, value);
  }
  return true;
}

void Machine::repeat(int c, const Segment& segment, const Arguments& a, std::int64_t micro_batch,
                     const Effect& effect) {
  for (std::size_t t = 0; t < segment.touched.size(); ++t) {
    const Touched& touched = segment.touched[t];
    if (touched.sum) continue;
    if (effect.left[t].gone) {
      runners_[at(c)].slots.erase(touched.buffer, a);
    } else {
      leave(c, touched, effect.left[t], a, micro_batch);
    }
  }
  for (const auto& [instruction, recorded] : effect.added) {
    stand_at(c, *instruction, a);
    Numbered source = recorded;
    source.micro_batch = renamed(recorded.micro_batch, micro_batch);
    reads_.push_back(source.number);
    accumulate(c, *instruction, a, source);
  }
}

/// A buffer as a run leaves it.
void Machine::leave(int c, const Touched& touched, const Left& left, const Arguments& a,
                    std::int64_t micro_batch) {
  const auto from = [&](const Instruction* i) {
    return Origin{
        .device_class = c, .instruction = i, .arguments = a, .step = step_, .time = time_};
  };
  Slot& slot = runners_[at(c)].slots.get(touched.buffer, a);
  if (touched.begins) slot = {.alive = true};
  const bool first = slot.reader.instruction == nullptr || slot.reader.step != step_;
  if (touched.reader != nullptr && first) slot.reader = from(touched.reader);
  if (!touched.changes) return;
  slot.written = left.written;
  if (slot.value.content != left.value.content) slot.value.content = left.value.content;
  slot.value.number = left.value.number;
  slot.value.micro_batch = renamed(left.value.micro_batch, micro_batch);
  if (left.writer != nullptr) slot.writer = from(left.writer);
}

}  // namespace placet
