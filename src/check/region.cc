#include "check/region.h"

#include <algorithm>

#include "units/hash.h"

namespace placet {

std::uint64_t hash_of(const Splits& cuts) {
  std::uint64_t hash = cuts.size();
  for (const Split& c : cuts) {
    hash = mixed(hash, static_cast<std::uint64_t>(c.axis) * 2 + (c.open ? 1 : 0));
    hash = mixed(hash, static_cast<std::uint64_t>(c.shift) ^ static_cast<std::uint64_t>(c.joint));
  }
  return hash;
}

bool shift_all(Splits& cuts, int axis, std::int64_t by, const Regions& regions) {
  const std::int64_t n = regions.degree(axis);
  for (Split& c : cuts) {
    if (c.axis != axis || !c.open) continue;
    if (c.shift < 0) return false;
    c.shift = ((c.shift + by) % n + n) % n;
  }
  return true;
}

void trim(Splits& cuts) {
  while (!cuts.empty() && !cuts.back().open) {
    const int joint = cuts.back().joint;
    if (joint == kSummedMicroBatches) return;
    const bool others = joint != 0 && std::ranges::any_of(cuts, [&](const Split& c) {
                          return c.joint == joint && c.open;
                        });
    if (others) return;
    cuts.pop_back();
  }
}

void forget_micro_batches(Splits& cuts) {
  for (Split& c : cuts) {
    if (c.joint == kSummedMicroBatches) c.joint = 0;
  }
  trim(cuts);
}

bool is_whole(const Splits& cuts) {
  return std::ranges::none_of(
      cuts, [](const Split& c) { return c.open || c.joint == kSummedMicroBatches; });
}

std::int64_t length_of(std::int64_t extent, const Splits& cuts, const Regions& regions) {
  for (const Split& c : cuts) {
    if (!c.open) continue;
    const std::int64_t n = regions.degree(c.axis);
    extent = extent / n + (extent % n != 0 ? 1 : 0);
  }
  return extent;
}

int Regions::joint_number(const AxisList& axes, std::int64_t length) {
  for (std::size_t i = 0; i < joints_.size(); ++i) {
    if (joints_[i].first == axes && joints_[i].second == length) return static_cast<int>(i) + 1;
  }
  joints_.emplace_back(axes, length);
  return static_cast<int>(joints_.size());
}

AxisList Regions::level_order(AxisList axes) const {
  std::erase_if(axes, [&](int a) { return degree(a) == 1; });
  std::ranges::stable_partition(axes, [&](int a) { return !is_even(a); });
  return axes;
}

bool Regions::have_one_length(std::int64_t extent, const Splits& cuts) const {
  for (const Split& c : cuts) {
    if (!c.open) continue;
    if (!is_even(c.axis) || extent % degree(c.axis) != 0) return false;
    extent /= degree(c.axis);
  }
  return true;
}

Splits Regions::divided(Splits cuts, std::int64_t extent, const AxisList& axes,
                        std::int64_t shift) {
  const AxisList order = level_order(axes);
  const auto begin = std::ranges::find_if(order, [&](int a) { return is_even(a); });
  for (auto a = order.begin(); a != begin; ++a) {
    cuts.push_back({.axis = *a, .open = true, .shift = 0, .joint = 0});
  }
  const AxisList several(begin, order.end());
  const std::int64_t length = length_of(extent, cuts, *this);
  std::int64_t product = 1;
  for (int a : several) product *= degree(a);
  const bool nest = several.size() < 2 || (have_one_length(extent, cuts) && length % product == 0);
  const int joint = nest ? 0 : joint_number(several, length);
  for (int a : several) cuts.push_back({.axis = a, .open = true, .shift = 0, .joint = joint});
  if (!order.empty()) cuts.back().shift = shift_along(order, shift);
  return cuts;
}

std::int64_t Regions::shift_along(const AxisList& axes, std::int64_t shift) const {
  std::int64_t devices = 1;
  std::size_t dividing = 0;
  for (int a : axes) {
    devices *= degree(a);
    if (degree(a) > 1) ++dividing;
  }
  const std::int64_t places = (shift % devices + devices) % devices;
  return dividing < 2 ? places : -places;
}

Splits Regions::row_divided(Splits cuts, std::int64_t extent, const AxisList& axes,
                            std::int64_t shift) {
  const std::size_t before = cuts.size();
  for (const AxisList& level : one_by_one(axes)) cuts = divided(std::move(cuts), extent, level, 0);
  if (cuts.size() > before) cuts.back().shift = shift_along(axes, shift);
  return cuts;
}

Splits Regions::cuts_of(std::int64_t extent, const Division& division, std::int64_t shift) {
  Splits cuts;
  for (std::size_t l = 0; l < division.size(); ++l) {
    const bool last = l + 1 == division.size();
    cuts = divided(std::move(cuts), extent, division[l], last ? shift : 0);
  }
  return cuts;
}

bool Regions::gathered(Splits& cuts, const AxisList& axes) const {
  AxisList several = axes;
  std::erase_if(several, [&](int a) { return degree(a) == 1; });
  std::size_t i = cuts.size();
  for (std::size_t k = several.size(); k-- > 0;) {
    while (i > 0 && !cuts[i - 1].open) --i;
    if (i == 0 || cuts[i - 1].axis != several[k] || cuts[i - 1].shift != 0) return false;
    cuts[--i].open = false;
  }
  trim(cuts);
  return true;
}

}  // namespace placet
