#include "check/empty.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <ranges>
#include <vector>

#include "check/places.h"
#include "check/tally.h"
#include "units/at.h"

namespace placet {
namespace {

constexpr std::size_t kMostDevices = 4096;

/// Cuts as a division, level by level; nothing: they are none of open parts alone.
std::optional<Division> division_of(const Splits& cuts) {
  Division out;
  int joint = 0;
  for (const Split& split : cuts) {
    const bool inside = split.joint != 0 && split.joint == joint;
    const bool moved = split.shift < 0 || (split.shift != 0 && split.joint != 0);
    const bool again = std::ranges::count(cuts, split.axis, &Split::axis) > 1;
    if (!split.open || moved || again) return std::nullopt;
    if (inside) {
      out.back().push_back(split.axis);
    } else {
      out.push_back({split.axis});
    }
    joint = split.joint;
  }
  return out;
}

class Entries {
 public:
  Entries(const Program& program, const DeviceClass& device_class, const Content& shape)
      : program_(program), class_(device_class), shape_(shape), flat_(division_of(shape.flat)) {
    for (const Tensor& t : shape.pieces) {
      std::vector<std::optional<Division>>& cuts = cuts_.emplace_back(t.cuts.size());
      std::ranges::transform(t.cuts, cuts.begin(), division_of);
    }
  }

  bool none(std::size_t piece) const {
    if (!is_known() || !has_none(first_of(program_, class_), piece)) return false;
    const std::vector<ProgramCoordinates> devices = all_devices(dividing());
    return !devices.empty() && std::ranges::all_of(devices, [&](const ProgramCoordinates& device) {
      return has_none(device, piece);
    });
  }

  /// Whether all devices have as much of every tensor, dim by dim, as of `other`'s.
  bool is_as_long_as(const Entries& other, const MicroBatchPair& which) const {
    return agrees_with(other, which, [](const Entries& entries, const ProgramCoordinates& device) {
      return entries.lengths(device);
    });
  }

  /// Whether all devices have the same entries of every tensor as of `other`'s, which are tensors
  /// of the same dims.
  bool is_same_as(const Entries& other) const {
    if (!is_known() || !other.is_known() || flat_->empty() != other.flat_->empty()) return false;
    if (!flat_->empty() && !are_cut_alike(other)) return false;
    return agrees_with(other, {}, [](const Entries& entries, const ProgramCoordinates& device) {
      return entries.places(device);
    });
  }

  /// Of a shape of one tensor: whether the parts of its dims are so on all devices.
  template <class Are>
  bool parts_are(std::int64_t extent, Are are) const {
    if (!is_known()) return false;
    const std::vector<ProgramCoordinates> devices = all_devices(dividing());
    const std::vector<Splits>& cuts = shape_.pieces[0].cuts;
    return !devices.empty() && std::ranges::all_of(devices, [&](const ProgramCoordinates& device) {
      std::vector<Part> parts;
      for (std::size_t d = 0; d < cuts.size(); ++d) {
        parts.push_back(part(extent, cuts[d], *cuts_[0][d], device));
      }
      return are(parts);
    });
  }

 private:
  /// Whether all cuts are divisions, and of rows all entries are stored (program/sizes.h).
  bool is_known() const {
    const auto is_division = [](const auto& one) { return one.has_value(); };
    const auto are_divisions = [&](const auto& cuts) {
      return std::ranges::all_of(cuts, is_division);
    };
    const auto is_stored = [&](const Tensor& t) {
      return std::ranges::all_of(t.dims | std::views::drop(1), [&](int d) {
        const LogicalDim& dim = program_.dims[at(d)];
        return dim.chosen == 0 || dim.chosen == dim.extent;
      });
    };
    return flat_ && std::ranges::all_of(cuts_, are_divisions) &&
           (flat_->empty() || std::ranges::all_of(shape_.pieces, is_stored));
  }

  bool are_cut_alike(const Entries& other) const {
    const auto cut_alike = [](const Tensor& a, const Tensor& b) { return a.cuts == b.cuts; };
    return std::ranges::equal(shape_.pieces, other.shape_.pieces, cut_alike);
  }

  std::vector<bool> dividing() const {
    std::vector<bool> found(program_.axes.size(), false);
    const auto mark = [&](const Splits& cuts) {
      for (const Split& split : cuts) found[at(split.axis)] = true;
    };
    mark(shape_.flat);
    for (const Tensor& t : shape_.pieces) std::ranges::for_each(t.cuts, mark);
    return found;
  }

  static ProgramCoordinates in(std::int64_t micro_batch, ProgramCoordinates device) {
    if (micro_batch >= 0) device.back() = micro_batch;
    return device;
  }

  /// Whether it says the same of both on all devices.
  template <class Says>
  bool agrees_with(const Entries& other, const MicroBatchPair& which, Says says) const {
    if (!is_known() || !other.is_known()) return false;
    std::vector<bool> tells = dividing();
    const std::vector<bool> also = other.dividing();
    for (std::size_t a = 0; a < tells.size(); ++a) tells[a] = tells[a] || also[a];
    if (which.of_type >= 0) tells.back() = false;
    const std::vector<ProgramCoordinates> devices = all_devices(tells);
    return !devices.empty() && std::ranges::all_of(devices, [&](const ProgramCoordinates& device) {
      return says(*this, in(which.of_type, device)) == says(other, in(which.of_given, device));
    });
  }

  /// Those that differ along these axes; none: too many.
  std::vector<ProgramCoordinates> all_devices(const std::vector<bool>& tells) const {
    std::vector<ProgramCoordinates> devices{ProgramCoordinates(program_.axes.size(), 0)};
    for (int axis = 0; axis < static_cast<int>(tells.size()); ++axis) {
      if (!tells[at(axis)]) continue;
      const std::vector<std::int64_t> all = coordinates_of(program_, class_, axis);
      if (devices.size() * all.size() > kMostDevices) return {};
      devices = spread(devices, axis, all);
    }
    return devices;
  }

  Part part(std::int64_t length, const Splits& cuts, const Division& division,
            ProgramCoordinates device) const {
    for (const Split& split : cuts) {
      const std::int64_t degree = program_.axes[at(split.axis)].degree;
      std::int64_t& c = device[at(split.axis)];
      c = ((c + split.shift) % degree + degree) % degree;
    }
    return part_of(length, division, program_.axes, device);
  }

  /// Of a tensor the part of each dim.
  std::vector<Part> parts(std::size_t piece, const ProgramCoordinates& device) const {
    const Tensor& t = shape_.pieces[piece];
    std::vector<Part> out;
    for (std::size_t d = 0; d < t.dims.size(); ++d) {
      const std::int64_t extent = program_.dims[at(t.dims[d])].extent;
      out.push_back(part(extent, t.cuts[d], *cuts_[piece][d], device));
    }
    return out;
  }

  std::int64_t entries(std::size_t piece, const ProgramCoordinates& device) const {
    std::int64_t product = 1;
    for (const Part& one : parts(piece, device)) product *= one.size;
    return product;
  }

  Part part_of_row(const ProgramCoordinates& device) const {
    return part(row_of(device), shape_.flat, *flat_, device);
  }

  /// Of each tensor the length of each dim, or of a row that is divided that of its part.
  std::vector<std::vector<std::int64_t>> lengths(const ProgramCoordinates& device) const {
    if (!flat_->empty()) return {{part_of_row(device).size}};
    std::vector<std::vector<std::int64_t>> out(shape_.pieces.size());
    for (std::size_t p = 0; p < out.size(); ++p) {
      for (const Part& one : parts(p, device)) out[p].push_back(one.size);
    }
    return out;
  }

  /// Of each tensor the part of each dim, or of a row that is divided its part; where that has no
  /// entry, it begins nowhere.
  std::vector<Part> places(const ProgramCoordinates& device) const {
    std::vector<Part> out;
    if (!flat_->empty()) out.push_back(part_of_row(device));
    for (std::size_t p = 0; p < shape_.pieces.size() && flat_->empty(); ++p) {
      std::ranges::copy(parts(p, device), std::back_inserter(out));
    }
    for (Part& one : out) one.begin = one.size == 0 ? 0 : one.begin;
    return out;
  }

  /// All elements of a row.
  std::int64_t row_of(const ProgramCoordinates& device) const {
    std::int64_t row = 0;
    for (std::size_t p = 0; p < shape_.pieces.size(); ++p) row += entries(p, device);
    return row;
  }

  bool has_none(const ProgramCoordinates& device, std::size_t piece) const {
    if (flat_->empty()) return entries(piece, device) == 0;
    std::int64_t before = 0;
    std::int64_t row = 0;
    for (std::size_t p = 0; p < shape_.pieces.size(); ++p) {
      if (p == piece) before = row;
      row += entries(p, device);
    }
    const std::int64_t mine = entries(piece, device);
    const Part own = part(row, shape_.flat, *flat_, device);
    return std::min(own.begin + own.size, before + mine) <= std::max(own.begin, before);
  }

  const Program& program_;
  const DeviceClass& class_;
  const Content& shape_;
  std::optional<Division> flat_;                            // of the row
  std::vector<std::vector<std::optional<Division>>> cuts_;  // by piece and dim
};

/// A tensor whose dims are divided like these.
Content shape_of(const std::vector<Splits>& cuts) {
  return {.pieces = {{.dims = std::vector<int>(cuts.size(), 0), .cuts = cuts, .items = {}}},
          .flat = {}};
}

}  // namespace

bool begin_alike(const Program& program, const DeviceClass& device_class, std::int64_t extent,
                 const Splits& one, const Splits& other) {
  const Content both = shape_of({one, other});
  return Entries(program, device_class, both).parts_are(extent, [](const std::vector<Part>& p) {
    return p[0].begin == p[1].begin;
  });
}

bool lies_behind(const Program& program, const DeviceClass& device_class, std::int64_t extent,
                 const Splits& behind, const Splits& before) {
  const Content both = shape_of({behind, before});
  return Entries(program, device_class, both).parts_are(extent, [](const std::vector<Part>& p) {
    return p[0].begin >= p[1].begin + p[1].size;
  });
}

bool begin_as_far_apart(const Program& program, const DeviceClass& device_class,
                        std::int64_t extent, const PartsOfTwo& one, const PartsOfTwo& other) {
  const Content all = shape_of({one.first, one.second, other.first, other.second});
  return Entries(program, device_class, all).parts_are(extent, [](const std::vector<Part>& p) {
    return p[0].begin - p[1].begin == p[2].begin - p[3].begin;
  });
}

bool has_room(const Where& where, const Content& type, int piece, const Content& given) {
  Content shape = type;
  if (piece >= 0) {
    if (!type.flat.empty() || at(piece) >= type.pieces.size()) return false;
    shape.pieces = {type.pieces[at(piece)]};
  }
  const Entries room(where.program, where.device_class, shape);
  return room.is_as_long_as(Entries(where.program, where.device_class, given), where.micro_batches);
}

bool is_same_part(const Program& program, const DeviceClass& device_class, const Content& one,
                  const Content& other) {
  const Entries entries(program, device_class, one);
  return entries.is_same_as(Entries(program, device_class, other));
}

bool has_no_entries(const Program& program, const DeviceClass& device_class, const Content& shape,
                    std::size_t piece) {
  return Entries(program, device_class, shape).none(piece);
}

}  // namespace placet
