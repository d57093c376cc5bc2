#include "derive/parameter_layout.h"

#include <algorithm>
#include <array>

#include "derive/whole_operands.h"
#include "units/at.h"
#include "units/checked.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr std::size_t kMostDims = 8;

/// Whether the state's mode divides its bytes at rest along an axis that cuts no part of the
/// tensor.
bool divides(State state, Mode mode) {
  switch (mode) {
    case Mode::replicated:
    case Mode::materialized:
      return false;
    case Mode::sharded:
    case Mode::sharded_gather:
      return true;
    case Mode::offloaded:
      return state != State::activations;
  }
  return false;
}

/// What one axis moves off the device.
void read_media(const How& how, LocalParameter& out) {
  for (State state : {State::parameters, State::optimizer, State::gradients}) {
    const auto s = static_cast<std::size_t>(state);
    if (how.modes[state] == Mode::offloaded) out.on_host[s] = Rational(1);
    if (!how.offload[s]) continue;
    out.on_host[s] = std::max(out.on_host[s], how.offload[s]->fraction);
    if (how.offload[s]->medium == Medium::nvme) out.on_nvme[s] = true;
  }
  if (how.update) out.update = how.update;
}

class ParameterPlacer {
 public:
  explicit ParameterPlacer(const PlacedMesh& mesh) : mesh_(mesh), job_(*mesh.layout.job) {}

  LocalParameter place(const Parameter& parameter, const PreparedParameter& prepared,
                       std::optional<std::int64_t> block) const {
    Placing placing{.parameter = parameter, .prepared = prepared, .block = block};
    ensure(parameter.dims.size() <= placing.by_dim.size(), "a tensor has few dims");
    placing.out.trainable = parameter.trainable;
    for (std::size_t a = 0; a < axis_count(); ++a) place_along(a, placing);
    measure(placing);
    settle(placing);
    return placing.out;
  }

 private:
  /// One parameter on its way through the axes.
  struct Placing {
    const Parameter& parameter;
    const PreparedParameter& prepared;
    std::optional<std::int64_t> block;
    std::array<AxisMask, kMostDims> by_dim{};  // axes that cut each dim
    LocalParameter out;
  };

  const AxisPlacement& axis(std::size_t a) const { return job_.placement.axes[a]; }
  std::size_t axis_count() const { return job_.placement.axes.size(); }

  /// Elements, padding and shape from the axes that cut each dim.
  void measure(Placing& placing) const {
    LocalParameter& out = placing.out;
    const Parameter& parameter = placing.parameter;
    const auto& by_dim = placing.by_dim;
    out.elements = 1;
    std::int64_t unpadded = 1;
    std::array<std::int64_t, kMostDims> lengths{};
    const int segmented = segmented_dim(parameter);
    CutDim heads;
    for (std::size_t d = 0; d < parameter.dims.size(); ++d) {
      const Dim& dim = parameter.dims[d];
      const CutDim cut = static_cast<int>(d) == segmented
                             ? mesh_.cutter.cut(parameter.segments, by_dim[d])
                             : mesh_.cutter.cut(mesh_.cutter.padded(dim), by_dim[d]);
      const bool pads = dim.index == Index::vocab;
      unpadded = checked_multiply(
          unpadded, pads ? mesh_.cutter.cut(dim, by_dim[d]).length : cut.length, "elements");
      lengths[d] = cut.length;
      out.elements = checked_multiply(out.elements, cut.length, "elements");
      if (cut.replicas == 1) continue;
      heads = cut;
      out.replicas = cut.replicas;
      out.replica_axes = innermost_axes(by_dim[d], cut.replicas);
    }
    if (out.replicas > 1) out.replicated = out.elements / heads.length * heads.replicated;
    out.padding = out.elements - unpadded;
    out.cut = 0;
    for (AxisMask mask : by_dim) out.cut |= mask;
    read_shape(placing, lengths);
  }

  /// The innermost of the axes in `mask` over which so many neighbours lie.
  AxisMask innermost_axes(AxisMask mask, std::int64_t neighbours) const {
    AxisMask inner = 0;
    for (std::size_t a = axis_count(); a-- > 0;) {
      if (degree_of(job_.placement, inner) >= neighbours) break;
      inner |= mask & axis_bit(static_cast<int>(a));
    }
    return inner;
  }

  /// What the plan and sizes change about how the parameter rests.
  void settle(Placing& placing) const {
    LocalParameter& out = placing.out;
    if (out.materialized != 0) out.rests_in_part = 0;  // it rests nowhere
    // One device gathers and scatters nothing.
    out.rests_in_part = real_axes(job_.placement, out.rests_in_part);
    out.scattered_each = real_axes(job_.placement, out.scattered_each);
    const StepPlan& plan = mesh_.layout.plan;
    if (out.elements < plan.gathers.whole_below) stay_gathered(out);
    settle_keep(out);
    if (plan.gathers.once_a_step) keep_for_step(out);
    if (plan.reductions.once_a_step) defer_scatter(out);
    read_rest(out);
    if (plan.reductions.tables_whole) keep_table_whole(placing);
  }

  /// The gradient of a table whose rows are divided is made whole.
  static void keep_table_whole(Placing& placing) {
    LocalParameter& out = placing.out;
    const Parameter& table = placing.parameter;
    const bool rows = contains(table.classes, TensorClass::embedding) && table.dims.size() > 1 &&
                      table.dims.front().index == Index::vocab && placing.by_dim.front() != 0;
    if (!rows || out.scattered_each != 0 || out.consumed != 0) return;
    const std::int64_t whole = checked_multiply(
        table.dims.front().size, out.elements / std::max<std::int64_t>(1, out.rows), "gradients");
    out.rest[static_cast<std::size_t>(State::gradients)] = whole;
  }

  /// Elements at rest of Θ, Ω and G.
  void read_rest(LocalParameter& out) const {
    const bool by_rows = grain_of(job_.profile, out) == ShardGrain::row;
    for (std::size_t s = 0; s < out.rest.size(); ++s) {
      const AxisMask mask = out.divided[s];
      // A device whose share of the tensor is nothing has no rows.
      out.rest[s] = by_rows && mask != 0 && out.rows > 0
                        ? mesh_.divider.share(out.rows, mask) * (out.elements / out.rows)
                        : mesh_.divider.share(out.elements, mask, row_order(out));
    }
    if (out.materialized != 0) out.rest[0] = 0;
    if (out.consumed != 0) out.rest[2] = 0;
  }

  static void keep_for_step(LocalParameter& out) {
    out.keep = Keep::step;
    out.kept = out.rests_in_part | out.materialized;
    out.kept_step = out.kept;
  }

  /// Gradients stay whole until the last micro-batch.
  void defer_scatter(LocalParameter& out) const {
    if (out.scattered_each == 0) return;
    out.waits_in = mesh_.layout.plan.reductions.waits_in;
    out.divided[static_cast<std::size_t>(State::gradients)] &= ~out.scattered_each;
    out.deferred |= out.scattered_each;
    out.scattered_each = 0;
  }

  /// A small tensor that is not worth gathering: whole at rest, brought up to date after the
  /// update.
  static void stay_gathered(LocalParameter& out) {
    out.divided[static_cast<std::size_t>(State::parameters)] &= ~out.rests_in_part;
    out.persistent = out.rests_in_part;
    out.rests_in_part = 0;
  }

  /// A gather over several axes is whole again only where none of them frees it.
  static void settle_keep(LocalParameter& out) {
    const AxisMask gathered = out.rests_in_part | out.materialized;
    out.kept &= gathered;
    out.kept_step &= gathered;
    const bool all = gathered != 0 && out.kept == gathered;
    out.keep = all ? Keep::backward : Keep::none;
    if (all && out.kept_step == gathered) out.keep = Keep::step;
  }

  /// Local lengths of the dims that shards and optimizers speak of.
  void read_shape(Placing& placing, const std::array<std::int64_t, kMostDims>& lengths) const {
    const std::size_t dims = placing.parameter.dims.size();
    if (dims == 0) return;
    LocalParameter& out = placing.out;
    out.matrix_columns = lengths[dims - 1];
    out.cut_columns = placing.by_dim[dims - 1];
    out.rows = lengths.front();
    if (dims < 2) return;
    const bool stacked = placing.parameter.dims.front().index == Index::expert;
    const std::int64_t shards = degree_of(job_.placement, out.divided[0]);
    const bool inside = job_.profile.cuts_inside_few_experts && stacked && out.rows < shards;
    if (inside) out.rows = lengths[1];
    out.matrix_rows = lengths[dims - 2];
    out.cut_rows = placing.by_dim[dims - 2];
  }

  /// Reads one axis's How for one parameter.
  void place_along(std::size_t a, Placing& placing) const {
    const How& how = how_of(axis(a), placing.parameter.classes, placing.block);
    const AxisMask bit = axis_bit(static_cast<int>(a));
    LocalParameter& out = placing.out;
    read_media(how, out);
    // To backward: of a unit without one, no longer than its forward.
    if (how.keep == Keep::step) out.kept_step |= bit;
    if (how.keep == Keep::step || (how.keep != Keep::none && placing.prepared.backward)) {
      out.kept |= bit;
    }
    // Nothing of it rests, whatever the axis cuts.
    if (how.modes.gradients == Mode::materialized) out.consumed |= bit;
    switch (how.cut) {
      case Cut::layer:
        return;
      case Cut::tensor:
        return cut_tensor(how, bit, placing);
      case Cut::expert:
        return cut_experts(bit, placing);
      case Cut::batch:
      case Cut::sequence:
        return cut_data(a, how, placing);
    }
  }

  static void cut_tensor(const How& how, AxisMask bit, Placing& placing) {
    const int dim = cut_dim(placing.parameter, how.tensor_indices);
    if (dim >= 0) {
      placing.by_dim[at(dim)] |= bit;
      return;
    }
    // Where the axis cuts none of these, its devices do the same work on the same tokens.
    const bool summed_over = (placing.prepared.partial & how.tensor_indices) != 0;
    if (summed_over || how.modes.activations == Mode::sharded_gather) {
      placing.out.partial |= bit;
      placing.out.shared |= bit;
    }
  }

  static void cut_experts(AxisMask bit, Placing& placing) {
    const Parameter& parameter = placing.parameter;
    const auto experts = std::ranges::find(parameter.dims, Index::expert, &Dim::index);
    if (experts != parameter.dims.end() && contains(parameter.classes, TensorClass::experts)) {
      placing.by_dim[static_cast<std::size_t>(experts - parameter.dims.begin())] |= bit;
      return;
    }
    // A dense tensor under an expert cut: the axis divides its samples, and cannot cut it.
    if (contains(placing.prepared.summed, Index::sample)) placing.out.partial |= bit;
  }

  /// Along a batch or sequence cut.
  void cut_data(std::size_t a, const How& how, Placing& placing) const {
    const AxisMask bit = axis_bit(static_cast<int>(a));
    const How& dense = axis(a).how;
    // Routed work cut by tokens on an axis whose stream is whole: each device takes a part.
    const bool parted = placing.prepared.routed && dense.cut == Cut::tensor &&
                        dense.modes.activations != Mode::sharded_gather;
    const Index index = how.cut == Cut::sequence ? Index::token : Index::sample;
    if (parted || contains(placing.prepared.summed, index)) placing.out.partial |= bit;
    read_storage(how, bit, placing.out);
  }

  static void read_storage(const How& how, AxisMask bit, LocalParameter& out) {
    for (State state : {State::parameters, State::optimizer, State::gradients}) {
      if (divides(state, how.modes[state])) out.divided[static_cast<std::size_t>(state)] |= bit;
    }
    switch (how.modes.parameters) {
      case Mode::sharded_gather:
      case Mode::offloaded:
        out.rests_in_part |= bit;
        break;
      case Mode::materialized:
        out.materialized |= bit;
        break;
      case Mode::replicated:
      case Mode::sharded:
        break;
    }
    switch (how.modes.gradients) {
      case Mode::sharded:
      case Mode::offloaded:
        out.scattered_each |= bit;
        break;
      case Mode::materialized:
      case Mode::replicated:
      case Mode::sharded_gather:
        break;
    }
    switch (how.modes.optimizer) {
      case Mode::sharded:
      case Mode::offloaded:
        out.owned |= bit;
        break;
      case Mode::sharded_gather:
        out.regathered |= bit;
        break;
      case Mode::replicated:
      case Mode::materialized:
        break;
    }
  }

  const PlacedMesh& mesh_;
  const Job& job_;
};

}  // namespace

LocalParameter place_parameter(const PlacedMesh& mesh, const Parameter& parameter,
                               const PreparedParameter& prepared,
                               std::optional<std::int64_t> block) {
  return ParameterPlacer(mesh).place(parameter, prepared, block);
}

void place_moved(const Placement& placement, const Parameter& parameter,
                 std::optional<std::int64_t> block, LocalParameter& out) {
  out.on_host = {};
  out.on_nvme = {};
  out.update = std::nullopt;
  for (const AxisPlacement& axis : placement.axes) {
    read_media(how_of(axis, parameter.classes, block), out);
  }
}

}  // namespace placet
