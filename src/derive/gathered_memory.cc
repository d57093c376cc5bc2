#include "derive/gathered_memory.h"

#include <algorithm>

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
    : ahead_(static_cast<std::size_t>(prefetch)), in_flight_(in_flight), before_(1) {}

void GatheredChunk::add(GatheredUnit unit) {
  unit = settled(unit);
  // What earlier micro-batches keep to their backward is there as if it were kept over the step.
  const bool always = unit.keep == Keep::step || (unit.keep == Keep::backward && in_flight_);
  Sums sums = before_.back();
  sums.whole += unit.whole;
  if (unit.keep != Keep::none) sums.kept += unit.whole;
  if (always) sums.kept_step += unit.whole;
  sums.parts += unit.parts;
  parts_step_ += unit.parts_step;
  before_.push_back(sums);
}

GatheredBytes GatheredChunk::in_forward(std::size_t position) const {
  const std::size_t units = before_.size() - 1;
  return alive(position, position + 1 + std::min(ahead_, units - position - 1), position);
}

GatheredBytes GatheredChunk::in_backward(std::size_t position) const {
  return alive(position - std::min(position, ahead_), position + 1, position);
}

/// The window [begin, end) is whole. Of the units before it those stay that are kept to backward;
/// of those behind it, those kept over the step, which are there before their first use and after
/// their last. A part is there as long as backward of its unit is to come, the running unit's
/// included.
GatheredBytes GatheredChunk::alive(std::size_t begin, std::size_t end, std::size_t position) const {
  const Sums& all = before_.back();
  const std::int64_t window = before_[end].whole - before_[begin].whole;
  const std::int64_t behind = all.kept_step - before_[end].kept_step;
  const std::int64_t parts = in_flight_ ? all.parts : before_[position + 1].parts;
  return {.whole = window + before_[begin].kept + behind, .parts = parts + parts_step_};
}

GatheredBytes kept_of(const GatheredUnit& unit, bool in_flight) {
  const GatheredUnit own = settled(unit);
  const bool stays = own.keep == Keep::step || (own.keep == Keep::backward && in_flight);
  return {.whole = stays ? own.whole : 0, .parts = own.parts_step + (in_flight ? own.parts : 0)};
}

}  // namespace placet
