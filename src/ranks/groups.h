// The ranks of a program's mesh and the groups that collectives run over.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "program/program.h"

namespace placet::ranks {

/// All devices, numbered row-major over the mesh, outermost axis first.
class Mesh {
 public:
  /// Throws InputError without the axis of micro-batches, or with more ranks than `most`.
  Mesh(const Program& program, std::int64_t most);

  int ranks() const { return ranks_; }
  /// Coordinates along the mesh, then a 0 for the micro-batch.
  const ProgramCoordinates& at(int rank) const { return at_[static_cast<std::size_t>(rank)]; }

  /// The ranks that differ from this one only along the instruction's axes and, of a single axis,
  /// have one of the coordinates `among` (empty: any), in the order in which they have their parts
  /// of what it divides. Null: an axis is not of the mesh.
  const std::vector<int>* group(int rank, const Instruction& instruction);

  /// The rank that has `coordinate` on the axis and is like this one elsewhere; -1: there is none.
  int peer(int rank, const AxisList& axes, std::int64_t coordinate) const;

 private:
  std::vector<int> make_group(int rank, const AxisList& order,
                              const std::vector<std::int64_t>& among) const;
  std::vector<int> along(int rank, int axis, const std::vector<std::int64_t>& among) const;
  bool is_mesh_axis(int axis) const {
    return axis >= 0 && static_cast<std::size_t>(axis) + 1 < program_.axes.size();
  }

  const Program& program_;
  int ranks_ = 1;
  std::vector<int> strides_;
  std::vector<ProgramCoordinates> at_;
  using Key = std::pair<AxisList, std::vector<std::int64_t>>;
  std::map<Key, std::vector<std::vector<int>>> groups_;
};

/// The position of the class that each rank is of. Throws InputError where it is none or several.
std::vector<int> classes_of(const Program& program, const Mesh& mesh);

}  // namespace placet::ranks
