// Which classes are members of one group, and which stand at the ends of a message.
#include <algorithm>

#include "check/machine.h"
#include "check/places.h"
#include "units/at.h"

namespace placet {

/// How many coordinates along an axis a class has.
std::int64_t Machine::standing(int c, int axis) const {
  return count_of(program_, program_.classes[at(c)], axis);
}

/// How many of them take part in a collective.
std::int64_t Machine::taking_part(int c, int axis, const Instruction& i) const {
  if (i.among.empty()) return standing(c, axis);
  const std::vector<std::int64_t> mine = coordinates_of(program_, program_.classes[at(c)], axis);
  return std::ranges::count_if(
      mine, [&](std::int64_t x) { return std::ranges::find(i.among, x) != i.among.end(); });
}

/// Whether an axis splits a class from others.
bool Machine::splits(int c, int axis) const { return standing(c, axis) < regions_.degree(axis); }

/// Whether two classes have the same coordinates along an axis.
bool Machine::stand_alike(int c, int d, int axis) const {
  if (standing(c, axis) != standing(d, axis)) return false;
  return !splits(c, axis) ||
         program_.classes[at(c)].box[at(axis)] == program_.classes[at(d)].box[at(axis)];
}

/// All devices of the class take part, and the members are the whole group.
void Machine::require_group(int c, const std::vector<int>& members, const Instruction& i) {
  if (!i.among.empty() && taking_part(c, i.axes.at(0), i) != standing(c, i.axes.at(0))) {
    return breach(c, "is a collective of some of the devices that execute it only");
  }
  std::int64_t devices = 0;
  for (int m : members) {
    std::int64_t own = 1;
    for (int axis : i.axes) own *= taking_part(m, axis, i);
    devices += own;
  }
  std::int64_t group = 1;
  for (int axis : i.axes) group *= regions_.degree(axis);
  if (!i.among.empty()) group = static_cast<std::int64_t>(i.among.size());
  if (devices == group) return;
  breach(c, "is a collective of a group that lies in classes which other axes cut differently");
}

/// Whether class `d` takes part in a collective of class `c`: it differs along its axes only.
bool Machine::joins(int c, int d, const Instruction& i) const {
  for (int axis = 0; axis < regions_.micro_axis(); ++axis) {
    if (std::ranges::find(i.axes, axis) != i.axes.end()) {
      if (!i.among.empty() && taking_part(d, axis, i) == 0) return false;
    } else if (!stand_alike(c, d, axis)) {
      return false;
    }
  }
  return true;
}

/// Classes that take part in a collective of class `c`.
std::vector<int> Machine::members_of(int c, const Instruction& i) const {
  std::vector<int> members;
  for (int d = 0; d < static_cast<int>(program_.classes.size()); ++d) {
    if (joins(c, d, i)) members.push_back(d);
  }
  return members;
}

/// The class of the device at another coordinate of one axis; -1: none.
int Machine::class_at(int c, int axis, std::int64_t coordinate) const {
  peers_.resize(program_.classes.size());
  std::vector<Peer>& known = peers_[at(c)];
  for (const Peer& peer : known) {
    if (peer.axis == axis && peer.coordinate == coordinate) return peer.device_class;
  }
  known.push_back(
      {.axis = axis, .coordinate = coordinate, .device_class = find_class_at(c, axis, coordinate)});
  return known.back().device_class;
}

int Machine::find_class_at(int c, int axis, std::int64_t coordinate) const {
  for (int d = 0; d < static_cast<int>(program_.classes.size()); ++d) {
    bool there = stands_at(program_.classes[at(d)], axis, coordinate);
    for (int other = 0; there && other < regions_.micro_axis(); ++other) {
      there = other == axis || stand_alike(c, d, other);
    }
    if (there) return d;
  }
  return -1;
}

/// The class that a message goes to or comes from; -1: there is none, or several devices stand at
/// an end.
int Machine::partner_of(int c, const Instruction& i) {
  const int axis = i.axes.at(0);
  const int other = class_at(c, axis, i.peer);
  if (other < 0) {
    breach(c, "has nobody at the other end");
  } else if (standing(c, axis) > 1 || standing(other, axis) > 1) {
    breach(c, "is a message between groups of devices: one device at either end is required");
    return -1;
  }
  return other;
}

}  // namespace placet
