#include "check/fit.h"

#include <algorithm>
#include <numeric>

#include "check/tally.h"
#include "program/sizes.h"

namespace placet {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

using Extents = std::vector<std::int64_t>;

/// The extents of a buffer on the devices of a group, one after the other.
using OnDevices = std::vector<Extents>;

class Fit {
 public:
  Fit(const Program& program, const DeviceClass& device_class)
      : program_(program), first_(first_of(program, device_class)) {}

  bool holds(const Instruction& i) const {
    const bool moves = i.kind == InstructionKind::all_gather || divides(i.kind) ||
                       i.kind == InstructionKind::all_to_all;
    if (!moves) return true;
    const std::vector<ProgramCoordinates> group = group_of(i.axes);
    for (std::size_t b = 0; b < i.inputs.size(); ++b) {
      const OnDevices from = extents_of(i.inputs[b], i.dim, group);
      const OnDevices to = extents_of(i.outputs[b], i.dim, group);
      if (!fits(i, from, to)) return false;
    }
    return true;
  }

 private:
  static bool divides(InstructionKind kind) {
    return kind == InstructionKind::reduce_scatter || kind == InstructionKind::slice;
  }

  static bool fits(const Instruction& i, const OnDevices& from, const OnDevices& to) {
    const auto position = [](int dim) { return dim == kFlat ? std::size_t{0} : at(dim); };
    const std::size_t dim = position(i.dim);
    if (divides(i.kind)) return is_whole_of(to, from, dim, dim);
    if (i.kind == InstructionKind::all_gather) return is_whole_of(from, to, dim, dim);
    const std::size_t into = position(i.into);
    if (dim == into) return from == to;
    return is_whole_of(to, from, dim, into) && is_whole_of(from, to, into, dim);
  }

  /// Devices that differ from the class's first along these axes only, the last axis fastest.
  std::vector<ProgramCoordinates> group_of(const AxisList& axes) const {
    std::vector<ProgramCoordinates> group{first_};
    for (int axis : axes) group = spread(group, axis);
    return group;
  }

  /// Each device at all coordinates of an axis.
  std::vector<ProgramCoordinates> spread(const std::vector<ProgramCoordinates>& group,
                                         int axis) const {
    std::vector<ProgramCoordinates> out;
    for (const ProgramCoordinates& device : group) {
      for (std::int64_t x = 0; x < program_.axes[at(axis)].degree; ++x) {
        out.push_back(device);
        out.back()[at(axis)] = x;
      }
    }
    return out;
  }

  /// Of a buffer that is one tensor its extents; of others, and where no dim is named, the number
  /// of entries.
  OnDevices extents_of(const BufferRef& ref, int dim,
                       const std::vector<ProgramCoordinates>& group) const {
    BufferType type = program_.families[at(ref.family)].type;
    if (ref.piece >= 0) type.pieces = {type.pieces[at(ref.piece)]};
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
  ProgramCoordinates first_;
};

}  // namespace

std::vector<Breach> find_misfits(const Program& program) {
  std::vector<Breach> misfits;
  for (int c = 0; c < static_cast<int>(program.classes.size()); ++c) {
    const DeviceClass& device_class = program.classes[at(c)];
    const Fit fit(program, device_class);
    for_each_written_instruction(program, device_class.body, [&](const Instruction& i) {
      if (fit.holds(i)) return;
      misfits.push_back({.what = "its buffers do not fit each other",
                         .origin = {.device_class = c, .instruction = &i, .arguments = {}}});
    });
  }
  return misfits;
}

}  // namespace placet
