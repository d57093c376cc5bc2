// The axes of a step program, and how each dim of the reference is divided by them.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/job.h"
#include "program/model_reference.h"
#include "program/program.h"

namespace placet {

/// Where an operator works, as far as divisions are concerned.
/// stream: on the residual stream; parallel: between cut work, with whole tokens; routed: among
/// experts; edge: where tokens leave for experts and come back, divided as the stream is; core: the
/// attention core, where axes that exchange heads divide heads in place of tokens.
enum class Place : std::uint8_t { stream, parallel, routed, edge, core };

struct Mesh {
  std::vector<ProgramAxis> axes;  // the last one counts micro-batches
  std::vector<AxisList> parts;    // by axis of the placement: its axes here, outermost first
  std::int64_t micro_batches = 1;
  int micro_axis() const { return static_cast<int>(axes.size()) - 1; }
};

/// Whether an axis of the placement cuts tokens, and heads in their place inside attention.
bool exchanges_heads(const Job& job, std::size_t axis);

/// Whether an axis of the placement cuts tokens, and keys and values go round it in pieces.
bool goes_round(const Job& job, std::size_t axis);

/// Axes of the placement as axes of the program. An axis that divides heads is split where the key
/// and value heads of some kind are fewer than the devices. Throws InputError where heads and
/// devices have no common refinement.
Mesh mesh_of(const Job& job, const ModelReference& model);

/// Divisions of dims for one job.
class Layouts {
 public:
  Layouts(const Job& job, const ModelReference& model, const Mesh& mesh)
      : job_(job), model_(model), mesh_(mesh) {}

  /// How a dim is divided where an operator works.
  Division division(int dim, Place place) const;
  /// How the keys are divided that attention works on at a time: by the axis of their ring, or not
  /// at all.
  Division keys() const;
  /// Leaves to each cut the first dim of a parameter that has one of its indices. `by`: the
  /// divisions of its dims, in their order.
  void leave_to_first(const std::vector<int>& dims, Place place,
                      const std::vector<Division*>& by) const;
  /// Whether all these axes are of cuts of some of the dims, as where several devices hold a head.
  bool are_of_cuts(const AxisList& axes, const std::vector<int>& dims, Place place) const;
  /// How the dims of a parameter are divided: by the cuts of its classes.
  std::vector<Division> parameter_divisions(const std::vector<int>& dims, ClassSet classes) const;

  /// Axes of the program, of those of the placement for which the condition holds, without axes of
  /// one device.
  template <class Condition>
  AxisList axes_where(Condition condition) const {
    AxisList list;
    for (std::size_t a = 0; a < job_.placement.axes.size(); ++a) {
      if (!condition(a)) continue;
      for (int part : mesh_.parts[a]) {
        if (mesh_.axes[static_cast<std::size_t>(part)].degree > 1) list.push_back(part);
      }
    }
    return list;
  }

  const AxisPlacement& axis(std::size_t a) const { return job_.placement.axes[a]; }
  /// How routed experts see an axis.
  const How& experts(std::size_t a) const;
  bool is_batch(std::size_t a) const;
  /// Whether an axis divides the residual stream by tokens although it cuts tensors.
  bool splits_stream(std::size_t a) const;

 private:
  /// How an operator sees an axis.
  const How& how_at(std::size_t a, Place place) const;
  std::vector<Index> indices_of(const std::vector<int>& dims) const;
  AxisList axes_cutting(Index index, Place place) const;
  Division samples(Place place) const;
  Division tokens(Place place) const;
  Division cut(int dim, Place place) const;
  Division heads(int dim) const;
  AxisList heads_part(int dim, const AxisList& axes) const;

  const Job& job_;
  const ModelReference& model_;
  const Mesh& mesh_;
};

}  // namespace placet
