#include "derive/gathered_memory.h"

#include <algorithm>
#include <ranges>

namespace placet {
namespace {

/// Nothing is kept in part of what stays whole for as long.
GatheredUnit settled(GatheredUnit unit) {
  if (unit.keep != Keep::none) unit.parts = 0;
  if (unit.keep == Keep::step) unit.parts_step = 0;
  return unit;
}

}  // namespace

GatheredChunk::GatheredChunk(std::int64_t prefetch, bool in_flight)
    : ahead_(static_cast<std::size_t>(prefetch)), in_flight_(in_flight) {}

void GatheredChunk::add(const GatheredUnit& unit, std::int64_t count) {
  const GatheredUnit own = settled(unit);
  // What earlier micro-batches keep to their backward is there as if it were kept over the step.
  const bool always = own.keep == Keep::step || (own.keep == Keep::backward && in_flight_);
  runs_.push_back({.begin = units_,
                   .before = before(units_),
                   .each = {.whole = own.whole,
                            .kept = own.keep != Keep::none ? own.whole : 0,
                            .kept_step = always ? own.whole : 0,
                            .parts = own.parts}});
  parts_step_ += own.parts_step * count;
  units_ += static_cast<std::size_t>(count);
}

/// Sums over the units before a position.
GatheredChunk::Sums GatheredChunk::before(std::size_t position) const {
  for (const Run& run : runs_ | std::views::reverse) {
    if (run.begin > position) continue;
    const auto units = static_cast<std::int64_t>(position - run.begin);
    return {.whole = run.before.whole + units * run.each.whole,
            .kept = run.before.kept + units * run.each.kept,
            .kept_step = run.before.kept_step + units * run.each.kept_step,
            .parts = run.before.parts + units * run.each.parts};
  }
  return {};
}

GatheredBytes GatheredChunk::in_forward(std::size_t position) const {
  return alive(position, position + 1 + std::min(ahead_, units_ - position - 1), position);
}

GatheredBytes GatheredChunk::in_backward(std::size_t position) const {
  return alive(position - std::min(position, ahead_), position + 1, position);
}

/// The window [begin, end) is whole. Of the units before it those stay that are kept to backward;
/// of those behind it, those kept over the step, which are there before their first use and after
/// their last. A part is there as long as backward of its unit is to come, the running unit's
/// included.
GatheredBytes GatheredChunk::alive(std::size_t begin, std::size_t end, std::size_t position) const {
  const Sums all = before(units_);
  const Sums to_begin = before(begin);
  const Sums to_end = before(end);
  const std::int64_t parts = in_flight_ ? all.parts : before(position + 1).parts;
  return {.whole = to_end.whole - to_begin.whole + to_begin.kept + all.kept_step - to_end.kept_step,
          .parts = parts + parts_step_};
}

GatheredBytes kept_of(const GatheredUnit& unit, bool in_flight) {
  const GatheredUnit own = settled(unit);
  const bool stays = own.keep == Keep::step || (own.keep == Keep::backward && in_flight);
  return {.whole = stays ? own.whole : 0, .parts = own.parts_step + (in_flight ? own.parts : 0)};
}

}  // namespace placet
