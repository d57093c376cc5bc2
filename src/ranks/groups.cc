#include "ranks/groups.h"

#include <algorithm>

#include "units/checked.h"
#include "units/error.h"

namespace placet::ranks {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

bool in_box(const DeviceClass& device_class, const ProgramCoordinates& at) {
  for (std::size_t a = 0; a < device_class.box.size() && a < at.size(); ++a) {
    const auto& allowed = device_class.box[a];
    if (!allowed.empty() && std::ranges::find(allowed, at[a]) == allowed.end()) return false;
  }
  return true;
}

}  // namespace

Mesh::Mesh(const Program& program, std::int64_t most) : program_(program) {
  if (program.axes.empty()) refuse("program", "axes", "do not count the micro-batches");
  std::int64_t ranks = 1;
  strides_.assign(program.axes.size(), 0);
  for (std::size_t a = program.axes.size() - 1; a-- > 0;) {
    if (program.axes[a].degree < 1) refuse("program", program.axes[a].name, "has no device");
    strides_[a] = static_cast<int>(ranks);
    ranks = checked_multiply(ranks, program.axes[a].degree, "ranks");
    if (ranks > most) {
      refuse("program", "mesh", "has too many ranks to run them all",
             "at most " + std::to_string(most) + " (placet check takes any number)");
    }
  }
  ranks_ = static_cast<int>(ranks);
  for (int r = 0; r < ranks_; ++r) {
    ProgramCoordinates at(program.axes.size(), 0);
    for (std::size_t a = 0; a + 1 < program.axes.size(); ++a) {
      at[a] = r / strides_[a] % program.axes[a].degree;
    }
    at_.push_back(std::move(at));
  }
}

const std::vector<int>* Mesh::group(int rank, const Instruction& instruction) {
  AxisList order = instruction.axes;
  if (!std::ranges::all_of(order, [&](int a) { return is_mesh_axis(a); })) return nullptr;
  if (instruction.dim != kFlat) {
    // Along a dim, axes with shares divide first (`part_of`); a row is divided in order.
    std::ranges::stable_partition(order,
                                  [&](int a) { return !program_.axes[index(a)].shares.empty(); });
  }
  const auto [found, fresh] = groups_.try_emplace({order, instruction.among});
  if (fresh) {
    for (int r = 0; r < ranks_; ++r) {
      found->second.push_back(make_group(r, order, instruction.among));
    }
  }
  return &found->second[index(rank)];
}

std::vector<int> Mesh::make_group(int rank, const AxisList& order,
                                  const std::vector<std::int64_t>& among) const {
  std::vector<int> members{rank};
  for (int a : order) {
    std::vector<int> next;
    for (int member : members) {
      for (int other : along(member, a, among)) next.push_back(other);
    }
    members = std::move(next);
  }
  return members;
}

/// The ranks that differ from this one along the axis only, itself included.
std::vector<int> Mesh::along(int rank, int axis, const std::vector<std::int64_t>& among) const {
  const auto own = static_cast<int>(at(rank)[index(axis)]);
  std::vector<int> ranks;
  for (int c = 0; c < program_.axes[index(axis)].degree; ++c) {
    if (!among.empty() && std::ranges::find(among, c) == among.end()) continue;
    ranks.push_back(rank + (c - own) * strides_[index(axis)]);
  }
  return ranks;
}

int Mesh::peer(int rank, const AxisList& axes, std::int64_t coordinate) const {
  if (axes.size() != 1 || !is_mesh_axis(axes[0])) return -1;
  const std::size_t a = index(axes[0]);
  if (coordinate < 0 || coordinate >= program_.axes[a].degree) return -1;
  return rank + static_cast<int>(coordinate - at(rank)[a]) * strides_[a];
}

std::vector<int> classes_of(const Program& program, const Mesh& mesh) {
  std::vector<int> classes;
  for (int r = 0; r < mesh.ranks(); ++r) {
    int found = -1;
    for (std::size_t c = 0; c < program.classes.size(); ++c) {
      if (!in_box(program.classes[c], mesh.at(r))) continue;
      if (found >= 0) refuse("program", "rank " + std::to_string(r), "is of two device classes");
      found = static_cast<int>(c);
    }
    if (found < 0) refuse("program", "rank " + std::to_string(r), "is of no device class");
    classes.push_back(found);
  }
  return classes;
}

}  // namespace placet::ranks
