#include "check/fit.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "check/places.h"
#include "check/tally.h"
#include "program/sizes.h"
#include "units/at.h"
#include "units/checked.h"

namespace placet {
namespace {

using Extents = std::vector<std::int64_t>;

/// The extents of a buffer on the devices of a group, one after the other.
using OnDevices = std::vector<Extents>;

/// Past so many groups of one collective, or devices of one slice, only those at the ends of each
/// axis are looked at. What a slice makes is asked once more whether its buffer has the room for it
/// (`Machine::require_room`), unless it cannot be right anyway.
constexpr std::int64_t kMostGroups = 4096;

/// Collectives that leave every buffer as large as it was, on all devices of a group.
bool keeps_size(InstructionKind kind) {
  return kind == InstructionKind::all_reduce || kind == InstructionKind::broadcast;
}

bool moves_parts(InstructionKind kind) {
  return kind == InstructionKind::all_gather || kind == InstructionKind::reduce_scatter ||
         kind == InstructionKind::slice || kind == InstructionKind::all_to_all ||
         kind == InstructionKind::permute;
}

/// Whether both have the same tensors, divided alike, in any format.
bool are_divided_alike(const BufferType& a, const BufferType& b) {
  return a.pieces == b.pieces && a.flat == b.flat;
}

/// A device of a class, and its micro-batch, for each length that one of two buffers may have along
/// other axes than these; past `kMostGroups` those at the ends of an axis.
std::vector<ProgramCoordinates> beginnings(const Program& program, const Sized& one,
                                           const BufferType& other, const AxisList& apart) {
  std::vector<bool> tells = dividing_axes(program, one.type);
  const std::vector<bool> also = dividing_axes(program, other);
  for (std::size_t a = 0; a < tells.size(); ++a) tells[a] = tells[a] || also[a];
  for (const int axis : apart) tells[at(axis)] = false;
  std::vector<ProgramCoordinates> devices{first_of(program, one.device_class)};
  if (one.micro_batch >= 0) {
    tells.back() = false;
    devices[0].back() = one.micro_batch;
  }
  for (int axis = 0; axis < static_cast<int>(tells.size()); ++axis) {
    if (!tells[at(axis)]) continue;
    std::vector<std::int64_t> all = coordinates_of(program, one.device_class, axis);
    const auto count = static_cast<std::int64_t>(devices.size() * all.size());
    if (count > kMostGroups && all.size() > 2) all = {all.front(), all.back()};
    devices = spread(devices, axis, all);
  }
  return devices;
}

class Fit {
 public:
  Fit(const Program& program, const DeviceClass& device_class)
      : program_(program), class_(device_class), first_(first_of(program, device_class)) {}

  bool holds(const Instruction& i) {
    if (!moves_parts(i.kind) && !keeps_size(i.kind) && !moves_whole(i.kind)) return true;
    for (std::size_t b = 0; b < i.inputs.size() && b < i.outputs.size(); ++b) {
      const BufferType from = type_of(program_, i.inputs[b]);
      const BufferType to = type_of(program_, i.outputs[b]);
      if (moves_whole(i.kind) && are_of_two(i.inputs[b], i.outputs[b], from, to)) continue;
      const bool seen = std::ranges::any_of(fitting_, [&](const Fitting& f) {
        return f.kind == i.kind && f.axes == i.axes && f.dim == i.dim && f.into == i.into &&
               f.shift == i.shift && f.from == from && f.to == to;
      });
      if (seen) continue;
      if (!fits_everywhere(i, from, to)) return false;
      fitting_.push_back({i.kind, i.axes, i.dim, i.into, i.shift, from, to});
    }
    return true;
  }

 private:
  /// Types that were seen to fit: layers repeat them.
  struct Fitting {
    InstructionKind kind = InstructionKind::all_gather;
    AxisList axes;
    int dim = 0;
    int into = 0;
    std::int64_t shift = 0;
    BufferType from, to;
  };

  /// Elements of two micro-batches, whose lengths may differ, are asked for where their numbers are
  /// known (`Machine::require_room_between`).
  bool are_of_two(const BufferRef& from, const BufferRef& to, const BufferType& held,
                  const BufferType& given) const {
    if (from.micro_batch == to.micro_batch) return false;
    return dividing_axes(program_, held).back() || dividing_axes(program_, given).back();
  }

  bool fits_everywhere(const Instruction& i, const BufferType& from, const BufferType& to) const {
    if (i.kind == InstructionKind::slice) return is_sliced_everywhere(i, from, to);
    if (moves_whole(i.kind)) return are_divided_alike(from, to) || is_moved_everywhere(from, to);
    if (keeps_size(i.kind) && are_divided_alike(from, to) && !is_cut_along(i.axes, from))
      return true;
    return std::ranges::all_of(
        beginnings(i.axes, from, to), [&](const ProgramCoordinates& beginning) {
          const std::vector<ProgramCoordinates> group = group_of(i, beginning);
          const int dim = keeps_size(i.kind) ? kFlat : i.dim;
          return fits(i, group, extents_of(from, dim, group), extents_of(to, dim, group));
        });
  }

  bool is_cut_along(const AxisList& axes, const BufferType& type) const {
    const std::vector<bool> cut = dividing_axes(program_, type);
    return std::ranges::any_of(axes, [&](int axis) { return cut[at(axis)]; });
  }

  bool is_moved_everywhere(const BufferType& from, const BufferType& to) const {
    return std::ranges::all_of(beginnings({}, from, to), [&](const ProgramCoordinates& device) {
      return stored_entries(program_, from, device) == stored_entries(program_, to, device);
    });
  }

  /// A slice moves nothing: each device of the class has room for the part that it takes.
  bool is_sliced_everywhere(const Instruction& i, const BufferType& from,
                            const BufferType& to) const {
    std::vector<ProgramCoordinates> devices = beginnings(i.axes, from, to);
    auto count = static_cast<std::int64_t>(devices.size());
    for (const int axis : i.axes) {
      count = checked_multiply(count, program_.axes[at(axis)].degree, "devices");
    }
    for (const int axis : i.axes) {
      devices = spread(devices, axis, coordinates(axis, count > kMostGroups));
    }
    return std::ranges::all_of(devices, [&](const ProgramCoordinates& device) {
      return is_part_of(i, device, extents_of(from, i.dim, {device})[0],
                        extents_of(to, i.dim, {device})[0]);
    });
  }

  /// Whether a tensor with extents `part` is what an instruction takes of one with `whole`.
  bool is_part_of(const Instruction& i, const ProgramCoordinates& device, const Extents& whole,
                  const Extents& part) const {
    const std::size_t dim = position(i.dim);
    if (dim >= whole.size()) return false;
    const Division by = i.dim == kFlat ? one_by_one(i.axes) : Division{i.axes};
    Extents taken = whole;
    taken[dim] = placet::part_of(whole[dim], by, program_.axes, owner_of(i, device)).size;
    return taken == part;
  }

  /// The device so many places further on in the group, the last axis fastest, whose part is taken.
  ProgramCoordinates owner_of(const Instruction& i, ProgramCoordinates device) const {
    std::int64_t further = i.shift;
    for (std::size_t k = i.axes.size(); k-- > 0;) {
      const std::int64_t degree = program_.axes[at(i.axes[k])].degree;
      std::int64_t& own = device[at(i.axes[k])];
      const std::int64_t moved = own + further;
      own = ((moved % degree) + degree) % degree;
      further = (moved - own) / degree;
    }
    return device;
  }

  /// A device of each group whose parts may have other lengths.
  std::vector<ProgramCoordinates> beginnings(const AxisList& axes, const BufferType& from,
                                             const BufferType& to) const {
    return placet::beginnings(program_, {class_, from}, to, axes);
  }

  /// Coordinates of the class along an axis.
  std::vector<std::int64_t> coordinates(int axis, bool ends_only) const {
    std::vector<std::int64_t> all = coordinates_of(program_, class_, axis);
    if (ends_only && all.size() > 2) all = {all.front(), all.back()};
    return all;
  }

  static std::size_t position(int dim) { return dim == kFlat ? std::size_t{0} : at(dim); }

  bool fits(const Instruction& i, const std::vector<ProgramCoordinates>& group,
            const OnDevices& from, const OnDevices& to) const {
    if (keeps_size(i.kind)) {
      return from == to && std::ranges::adjacent_find(to, std::not_equal_to<>()) == to.end();
    }
    if (i.kind == InstructionKind::permute) return is_passed_on(i.shift, from, to);
    const std::size_t dim = position(i.dim);
    const auto are_parts = [&](const OnDevices& parts, const OnDevices& whole) {
      if (!is_whole_of(parts, whole, dim, dim)) return false;
      for (std::size_t k = 0; k < group.size(); ++k) {
        if (!is_part_of(i, group[k], whole[k], parts[k])) return false;
      }
      return true;
    };
    if (i.kind == InstructionKind::reduce_scatter) return are_parts(to, from);
    if (i.kind == InstructionKind::all_gather) return are_parts(from, to);
    const std::size_t into = position(i.into);
    if (dim == into) return from == to;
    return is_whole_of(to, from, dim, into) && is_whole_of(from, to, into, dim);
  }

  /// Whether each device has room for what the one so many places further on has.
  static bool is_passed_on(std::int64_t shift, const OnDevices& from, const OnDevices& to) {
    const auto n = static_cast<std::int64_t>(to.size());
    for (std::int64_t k = 0; k < n; ++k) {
      const auto there = static_cast<std::size_t>(((k + shift) % n + n) % n);
      if (to[static_cast<std::size_t>(k)] != from[there]) return false;
    }
    return true;
  }

  /// Devices that differ from one along the axes of a collective only, the last axis fastest.
  std::vector<ProgramCoordinates> group_of(const Instruction& i,
                                           const ProgramCoordinates& device) const {
    std::vector<ProgramCoordinates> group{device};
    for (int axis : i.axes) {
      group = spread(group, axis, i.among.empty() ? coordinates_along(program_, axis) : i.among);
    }
    return group;
  }

  /// Of a buffer that is one tensor its extents; of others, and where no dim is named, the number
  /// of entries.
  OnDevices extents_of(const BufferType& type, int dim,
                       const std::vector<ProgramCoordinates>& group) const {
    OnDevices out(group.size());
    std::ranges::transform(group, out.begin(), [&](const ProgramCoordinates& device) -> Extents {
      if (dim == kFlat) return {stored_entries(program_, type, device)};
      return local_extents(program_, type.pieces[0], device);
    });
    return out;
  }

  /// Whether every device's `whole` has along `dim` the sum of all `parts`, and along all other
  /// dims but `other` what the parts have.
  static bool is_whole_of(const OnDevices& parts, const OnDevices& whole, std::size_t dim,
                          std::size_t other) {
    const std::size_t dims = whole[0].size();
    if (parts[0].size() != dims || dim >= dims || other >= dims) return false;
    const std::int64_t sum =
        std::accumulate(parts.begin(), parts.end(), std::int64_t{0},
                        [&](std::int64_t before, const Extents& e) { return before + e[dim]; });
    for (std::size_t k = 0; k < parts.size(); ++k) {
      if (whole[k][dim] != sum) return false;
      for (std::size_t d = 0; d < dims; ++d) {
        if (d != dim && d != other && parts[k][d] != whole[k][d]) return false;
      }
    }
    return true;
  }

  const Program& program_;
  const DeviceClass& class_;
  ProgramCoordinates first_;
  std::vector<Fitting> fitting_;
};

/// Axes that divide some buffer, or the parts that are taken of one.
std::vector<bool> dividing_axes(const Program& program) {
  std::vector<bool> found(program.axes.size(), false);
  for (const Family& family : program.families) {
    const std::vector<bool> divides = dividing_axes(program, family.type);
    for (std::size_t a = 0; a < found.size(); ++a) found[a] = found[a] || divides[a];
  }
  for (const DeviceClass& c : program.classes) {
    for_each_written_instruction(program, c.body, [&](const Instruction& i) {
      if (i.kind != InstructionKind::slice) return;
      for (const int axis : i.axes) found[at(axis)] = true;
    });
  }
  return found;
}

/// Where a class stands along some axes.
std::vector<std::vector<std::int64_t>> standing_of(const DeviceClass& device_class,
                                                   const std::vector<bool>& axes) {
  std::vector<std::vector<std::int64_t>> box = device_class.box;
  for (std::size_t a = 0; a < box.size(); ++a) {
    if (!axes[a]) box[a].clear();
  }
  return box;
}

}  // namespace

bool moves_whole(InstructionKind kind) {
  return kind == InstructionKind::copy || kind == InstructionKind::host_copy ||
         kind == InstructionKind::accumulate;
}

BufferType type_of(const Program& program, const BufferRef& ref) {
  BufferType type = program.families[at(ref.family)].type;
  if (ref.piece >= 0) type.pieces = {type.pieces[at(ref.piece)]};
  return type;
}

bool have_one_size(const Program& program, const Sized& one, const Sized& other,
                   const AxisList& apart) {
  const ProgramCoordinates there = first_of(program, other.device_class);
  return std::ranges::all_of(beginnings(program, one, other.type, apart),
                             [&](const ProgramCoordinates& device) {
                               ProgramCoordinates its = device;
                               for (const int axis : apart) its[at(axis)] = there[at(axis)];
                               if (other.micro_batch >= 0) its.back() = other.micro_batch;
                               return stored_entries(program, one.type, device) ==
                                      stored_entries(program, other.type, its);
                             });
}

std::vector<Breach> find_misfits(const Program& program) {
  std::vector<Breach> misfits;
  const std::vector<bool> dividing = dividing_axes(program);
  // Classes that stand alike along these have the same parts of every type.
  std::map<std::vector<std::vector<std::int64_t>>, Fit> fits;
  for (int c = 0; c < static_cast<int>(program.classes.size()); ++c) {
    const DeviceClass& device_class = program.classes[at(c)];
    Fit& fit =
        fits.try_emplace(standing_of(device_class, dividing), program, device_class).first->second;
    for_each_written_instruction(program, device_class.body, [&](const Instruction& i) {
      if (fit.holds(i)) return;
      misfits.push_back({.what = "its buffers do not fit each other",
                         .origin = {.device_class = c, .instruction = &i, .arguments = {}}});
    });
  }
  return misfits;
}

}  // namespace placet
