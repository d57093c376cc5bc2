#include "derive/layout.h"

#include <algorithm>

#include "derive/divider.h"
#include "units/checked.h"
#include "units/error.h"
#include "units/shares.h"

namespace placet {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

bool has_dim(const std::vector<Dim>& dims, Index index) {
  return std::ranges::any_of(dims, [&](const Dim& d) { return d.index == index; });
}

/// The dim of a tensor that a tensor cut with these indices divides; none: nothing to cut. A dim of
/// segments is divided where all of them are.
int cut_dim(const Parameter& parameter, IndexSet indices) {
  const int segmented = segmented_dim(parameter);
  for (int d = 0; d < static_cast<int>(parameter.dims.size()); ++d) {
    const bool cut = d == segmented ? std::ranges::all_of(parameter.segments,
                                                          [&](const Dim& segment) {
                                                            return contains(indices, segment.index);
                                                          })
                                    : contains(indices, parameter.dims[at(d)].index);
    if (cut) return d;
  }
  return -1;
}

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

/// A real number of elements cut off to a whole one.
std::int64_t skewed_elements(double elements) {
  if (elements >= static_cast<double>(INT64_MAX)) throw_overflow("routed tokens", "product");
  return static_cast<std::int64_t>(elements);
}

class LayoutBuilder {
 public:
  LayoutBuilder(const Job& job, const Prepared& prepared, const Coordinates& coordinates)
      : job_(job), prepared_(prepared), divider_(job.placement, coordinates) {
    layout_.job = &job;
    layout_.prepared = &prepared;
  }

  Layout build() {
    read_axes();
    place_units();
    return std::move(layout_);
  }

 private:
  const AxisPlacement& axis(std::size_t a) const { return job_.placement.axes[a]; }
  std::size_t axis_count() const { return job_.placement.axes.size(); }

  void read_axes() {
    for (std::size_t a = 0; a < axis_count(); ++a) {
      const AxisMask bit = axis_bit(static_cast<int>(a));
      const How& how = axis(a).how;
      switch (how.cut) {
        case Cut::expert:
        case Cut::batch:
          layout_.batch_axes |= bit;
          break;
        case Cut::sequence:
          layout_.sequence_axes |= bit;
          break;
        case Cut::layer:
          layout_.layer_axes |= bit;
          break;
        case Cut::tensor:
          layout_.tensor_axes |= bit;
          if (how.modes.activations == Mode::sharded_gather) layout_.split_residual_axes |= bit;
          break;
      }
    }
    const Placement& placement = job_.placement;
    const std::int64_t replicas = degree_of(placement, layout_.batch_axes);
    layout_.stages = degree_of(placement, layout_.layer_axes);
    layout_.tensor_degree = degree_of(placement, layout_.tensor_axes);
    layout_.data_degree = checked_multiply(replicas, degree_of(placement, layout_.sequence_axes),
                                           "degree of data parallel axes");
    const std::int64_t together = checked_multiply(job_.batch.micro, replicas, "micro-batch");
    layout_.micro_batches =
        together == 0 ? 1 : std::max<std::int64_t>(1, job_.batch.global / together);
    layout_.micro_batch = divider_.share(together, layout_.batch_axes);
    layout_.tokens = divider_.share(job_.batch.sequence, layout_.sequence_axes);
    layout_.residual_tokens =
        divider_.share(job_.batch.sequence, layout_.sequence_axes | layout_.split_residual_axes);
  }

  /// Which block-range overrides match a block, as bits in order of appearance.
  std::uint64_t ranges_of(const Unit& unit) const {
    if (job_.model.kinds[at(unit.kind)].role != UnitRole::block) return 0;
    std::uint64_t matched = 0;
    unsigned position = 0;
    for (const AxisPlacement& a : job_.placement.axes) {
      for (const Override& o : a.overrides) {
        const auto* range = std::get_if<BlockRange>(&o.selector);
        if (range == nullptr) continue;
        const bool hit = position < 64 && range->first <= unit.number && unit.number <= range->last;
        matched |= hit ? std::uint64_t{1} << position : 0;
        ++position;
      }
    }
    return matched;
  }

  void place_units() {
    struct Seen {
      int kind;
      std::uint64_t ranges;
    };
    std::vector<Seen> seen;
    layout_.unit_of.reserve(job_.model.units.size());
    const bool ranged = std::ranges::any_of(job_.placement.axes, [](const AxisPlacement& a) {
      return std::ranges::any_of(a.overrides, [](const Override& o) {
        return std::holds_alternative<BlockRange>(o.selector);
      });
    });
    for (const Unit& unit : job_.model.units) {
      const std::uint64_t ranges = ranged ? ranges_of(unit) : 0;
      auto found = std::ranges::find_if(
          seen, [&](const Seen& s) { return s.kind == unit.kind && s.ranges == ranges; });
      layout_.unit_of.push_back(static_cast<int>(found - seen.begin()));
      if (found != seen.end()) continue;
      seen.push_back({unit.kind, ranges});
      layout_.units.push_back(place_unit(unit));
    }
  }

  LocalUnit place_unit(const Unit& unit) const {
    const UnitKind& kind = job_.model.kinds[at(unit.kind)];
    const PreparedKind& prepared = prepared_.kinds[at(unit.kind)];
    std::optional<std::int64_t> block;
    if (kind.role == UnitRole::block) block = unit.number;
    LocalUnit local;
    local.kind = unit.kind;
    local.parameters.reserve(kind.parameters.size());
    for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
      local.parameters.push_back(
          place_parameter(kind.parameters[p], prepared.parameters[p], block));
    }
    local.values.reserve(kind.values.size());
    local.gathered.reserve(kind.values.size());
    for (std::size_t v = 0; v < kind.values.size(); ++v) {
      local.values.push_back(value_elements(kind.values[v], prepared.values[v], block, false));
      local.gathered.push_back(prepared.values[v].enters_parallel
                                   ? value_elements(kind.values[v], prepared.values[v], block, true)
                                   : local.values.back());
    }
    return local;
  }

  /// A dim on a device after some axes have cut it.
  struct CutDim {
    std::int64_t length = 0;
    std::int64_t replicated = 0;  // of these, what `replicas` neighbours hold
    std::int64_t replicas = 1;
  };

  /// A dim after the axes of `mask` cut it; kv heads that are fewer than the degree are shared by
  /// neighbours.
  CutDim cut_by(const Dim& dim, AxisMask mask) const {
    if (mask == 0) return {.length = dim.size};
    const std::int64_t piece = dim.size / dim.parts;
    const std::int64_t degree = degree_of(job_.placement, mask);
    if (dim.index == Index::kv_head && dim.parts < degree && degree % dim.parts == 0) {
      return {.length = piece, .replicated = piece, .replicas = degree / dim.parts};
    }
    return {.length = checked_multiply(divider_.share(dim.parts, mask), piece, "elements")};
  }

  /// A dim made of segments, each cut by its own index. Case: 48 query heads of 128 and the key and
  /// value of one head over 8 devices: 6 x 128 + 2 x 128 = 1024 rows, the last 256 on all 8.
  CutDim cut_by(const std::vector<Dim>& segments, AxisMask mask) const {
    CutDim sum;
    for (const Dim& segment : segments) {
      const CutDim one = cut_by(segment, mask);
      sum.length = checked_add(sum.length, one.length, "elements");
      sum.replicated = checked_add(sum.replicated, one.replicated, "elements");
      sum.replicas = std::max(sum.replicas, one.replicas);
    }
    return sum;
  }

  /// One parameter on its way through the axes.
  struct Placing {
    const Parameter& parameter;
    const PreparedParameter& prepared;
    std::optional<std::int64_t> block;
    std::vector<AxisMask> by_dim;  // axes that cut each dim
    LocalParameter out;
  };

  LocalParameter place_parameter(const Parameter& parameter, const PreparedParameter& prepared,
                                 std::optional<std::int64_t> block) const {
    Placing placing{.parameter = parameter,
                    .prepared = prepared,
                    .block = block,
                    .by_dim = std::vector<AxisMask>(parameter.dims.size(), 0)};
    placing.out.trainable = parameter.trainable;
    for (std::size_t a = 0; a < axis_count(); ++a) place_along(a, placing);
    measure(placing);
    return settle(placing.out);
  }

  /// Elements, padding and shape from the axes that cut each dim.
  void measure(Placing& placing) const {
    LocalParameter& out = placing.out;
    const Parameter& parameter = placing.parameter;
    const std::vector<AxisMask>& by_dim = placing.by_dim;
    out.elements = 1;
    std::int64_t unpadded = 1;
    std::vector<std::int64_t> lengths;
    const int segmented = segmented_dim(parameter);
    CutDim heads;
    for (std::size_t d = 0; d < parameter.dims.size(); ++d) {
      const Dim& dim = parameter.dims[d];
      const CutDim cut = static_cast<int>(d) == segmented ? cut_by(parameter.segments, by_dim[d])
                                                          : cut_by(padded(dim), by_dim[d]);
      const bool pads = dim.index == Index::vocab;
      unpadded =
          checked_multiply(unpadded, pads ? cut_by(dim, by_dim[d]).length : cut.length, "elements");
      lengths.push_back(cut.length);
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
    read_shape(by_dim, lengths, out);
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

  /// What profile and sizes change about how the parameter rests.
  LocalParameter settle(LocalParameter out) const {
    if (out.materialized != 0) out.rests_in_part = 0;  // it rests nowhere
    if (out.elements < job_.profile.persistent_elements) stay_gathered(out);
    settle_keep(out);
    if (job_.profile.layer_cut_defers_sharding && layout_.stages > 1) defer_sharding(out);
    if (job_.profile.defers_scatter && layout_.micro_batches > 1) defer_scatter(out);
    read_rest(out);
    return out;
  }

  /// Elements at rest of Θ, Ω and G.
  void read_rest(LocalParameter& out) const {
    const bool by_rows = grain_of(out) == ShardGrain::row;
    for (std::size_t s = 0; s < out.rest.size(); ++s) {
      const AxisMask mask = out.divided[s];
      // A device whose share of the tensor is nothing has no rows.
      out.rest[s] = by_rows && mask != 0 && out.rows > 0
                        ? divider_.share(out.rows, mask) * (out.elements / out.rows)
                        : divider_.share(out.elements, mask);
    }
    if (out.materialized != 0) out.rest[0] = 0;
    if (out.consumed != 0) out.rest[2] = 0;
  }

  /// Under a pipeline the profile gathers once per step and reduces after the last micro-batch:
  /// gathered parameters and whole gradients stay meanwhile.
  static void defer_sharding(LocalParameter& out) {
    out.keep = Keep::step;
    out.kept = out.rests_in_part | out.materialized;
    out.kept_step = out.kept;
    defer_scatter(out);
  }

  /// Gradients stay whole until the last micro-batch.
  static void defer_scatter(LocalParameter& out) {
    out.divided[static_cast<std::size_t>(State::gradients)] &= ~out.scattered_each;
    out.deferred |= out.scattered_each;
    out.scattered_each = 0;
  }

  ShardGrain grain_of(const LocalParameter& parameter) const {
    const bool gathered = (parameter.rests_in_part | parameter.persistent) != 0;
    return gathered ? job_.profile.gathered_grain.value_or(job_.profile.grain) : job_.profile.grain;
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
  static void read_shape(const std::vector<AxisMask>& by_dim,
                         const std::vector<std::int64_t>& lengths, LocalParameter& out) {
    const std::size_t dims = by_dim.size();
    if (dims == 0) return;
    out.matrix_columns = lengths.back();
    out.cut_columns = by_dim.back();
    out.rows = lengths.front();
    if (dims < 2) return;
    out.matrix_rows = lengths[dims - 2];
    out.cut_rows = by_dim[dims - 2];
  }

  /// Reads one axis's How for one parameter.
  void place_along(std::size_t a, Placing& placing) const {
    const How& how = how_of(axis(a), placing.parameter.classes, placing.block);
    const AxisMask bit = axis_bit(static_cast<int>(a));
    LocalParameter& out = placing.out;
    read_media(how, out);
    if (how.keep != Keep::none) out.kept |= bit;
    if (how.keep == Keep::step) out.kept_step |= bit;
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
    // Where the axis cuts nothing of a class, its devices do the same work on the same tokens.
    const bool between_cut_work =
        placing.prepared.used_in_parallel && (placing.prepared.around & how.tensor_indices) != 0;
    if (between_cut_work || how.modes.activations == Mode::sharded_gather) {
      placing.out.partial |= bit;
      placing.out.shared |= bit;
    }
  }

  static void cut_experts(AxisMask bit, Placing& placing) {
    const Parameter& parameter = placing.parameter;
    if (has_dim(parameter.dims, Index::expert) && prepared_is_expert(parameter)) {
      placing.by_dim[at(dim_of(parameter.dims, Index::expert))] |= bit;
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

  static bool prepared_is_expert(const Parameter& parameter) {
    return contains(parameter.classes, TensorClass::experts);
  }

  static int dim_of(const std::vector<Dim>& dims, Index index) {
    return static_cast<int>(
        std::ranges::find_if(dims, [&](const Dim& d) { return d.index == index; }) - dims.begin());
  }

  static void read_media(const How& how, LocalParameter& out) {
    for (State state : {State::parameters, State::optimizer, State::gradients}) {
      const auto s = static_cast<std::size_t>(state);
      if (how.modes[state] == Mode::offloaded) out.on_host[s] = Rational(1);
      if (!how.offload[s]) continue;
      out.on_host[s] = std::max(out.on_host[s], how.offload[s]->fraction);
      if (how.offload[s]->medium == Medium::nvme) out.on_nvme[s] = true;
    }
    if (how.update) out.update = how.update;
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

  /// A dim as the profile stores it.
  Dim padded(Dim dim) const {
    if (dim.index != Index::vocab) return dim;
    dim.size = padded_vocabulary(dim.size);
    dim.parts = dim.size;
    return dim;
  }

  std::int64_t padded_vocabulary(std::int64_t size) const {
    std::int64_t multiple = job_.profile.vocabulary_multiple;
    if (job_.profile.vocabulary_multiple_times_tensor_degree) {
      multiple = checked_multiply(multiple, layout_.tensor_degree, "vocabulary padding");
    }
    return checked_multiply(largest_share(size, multiple), multiple, "padded vocabulary");
  }

  /// Axes along which a value's dims are divided, and the tokens and samples it spans.
  std::int64_t value_elements(const Value& value, const PreparedValue& prepared,
                              std::optional<std::int64_t> block, bool whole_tokens) const {
    std::int64_t elements = 1;
    AxisMask routed_part = 0;
    const bool residual = prepared.on_stream && !whole_tokens;
    AxisMask spread = 0;   // routed tokens gathered from these axes
    AxisMask experts = 0;  // axes that divide the experts among devices
    if (prepared.routed) {
      read_routing(prepared, block, spread, routed_part);
      experts = expert_axes(prepared, block);
    }
    for (const Dim& dim : value.dims) {
      std::int64_t length = dim.size;
      if (dim.index == Index::sample) {
        length = layout_.micro_batch;
      } else if (dim.index == Index::token) {
        length = prepared.routed || residual ? layout_.residual_tokens : layout_.tokens;
      } else if (dim.index == Index::key_token) {
        length = job_.batch.sequence;
      } else if (dim.index == Index::choice) {
        length = choices_of(dim, experts);
      } else if (!residual || dim.index == Index::hidden) {
        length = feature_length(dim, prepared, block);
      }
      elements = checked_multiply(elements, length, "elements of an activation");
    }
    if (prepared.routed) {
      elements = checked_multiply(elements, degree_of(job_.placement, spread), "routed tokens");
      elements = largest_share(elements, degree_of(job_.placement, routed_part));
      elements = skewed(elements, experts);
    }
    return elements;
  }

  std::int64_t feature_length(const Dim& dim, const PreparedValue& prepared,
                              std::optional<std::int64_t> block) const {
    AxisMask mask = 0;
    for (std::size_t a = 0; a < axis_count(); ++a) {
      const How& how = how_of(axis(a), prepared.classes, block);
      if (how.cut == Cut::tensor && contains(how.tensor_indices, dim.index)) {
        mask |= axis_bit(static_cast<int>(a));
      }
    }
    return cut_by(padded(dim), mask).length;
  }

  /// Where routed tokens come from. Along an axis where the experts see a tensor cut and the stream
  /// is divided, their tokens are gathered (x degree); where the stream is whole and the experts
  /// are cut (or take a part of the tokens), a device handles its part (/ degree).
  void read_routing(const PreparedValue& prepared, std::optional<std::int64_t> block,
                    AxisMask& spread, AxisMask& part) const {
    for (std::size_t a = 0; a < axis_count(); ++a) {
      const How& dense = axis(a).how;
      const How& expert = how_of(axis(a), prepared.classes, block);
      const bool whole =
          dense.cut == Cut::tensor && dense.modes.activations != Mode::sharded_gather;
      const AxisMask bit = axis_bit(static_cast<int>(a));
      if (dense.cut == Cut::layer) continue;
      if (expert.cut == Cut::tensor && !whole) spread |= bit;
      if (expert.cut != Cut::tensor && whole) part |= bit;
    }
  }

  AxisMask expert_axes(const PreparedValue& prepared, std::optional<std::int64_t> block) const {
    AxisMask mask = 0;
    for (std::size_t a = 0; a < axis_count(); ++a) {
      if (how_of(axis(a), prepared.classes, block).cut == Cut::expert) {
        mask |= axis_bit(static_cast<int>(a));
      }
    }
    return mask;
  }

  /// Of the k choices of a token, those that may fall to one device. A token's experts are
  /// distinct: at worst all that the device has, and no more.
  std::int64_t choices_of(const Dim& dim, AxisMask experts) const {
    const std::int64_t all = job_.model.figures.experts;
    if (job_.routing.kind != Routing::Kind::worst || experts == 0 || all == 0) return dim.size;
    return std::min(dim.size, divider_.share(all, experts));
  }

  /// What the fullest device gets of what each would at perfect balance; at worst, the tokens of
  /// all.
  std::int64_t skewed(std::int64_t elements, AxisMask mask) const {
    if (mask == 0) return elements;
    switch (job_.routing.kind) {
      case Routing::Kind::balanced:
        return elements;
      case Routing::Kind::worst:
        return checked_multiply(elements, degree_of(job_.placement, mask), "routed tokens");
      case Routing::Kind::expected:
        return skewed_elements(static_cast<double>(elements) * job_.routing.skew + 0.5);
    }
    return elements;
  }

  const Job& job_;
  const Prepared& prepared_;
  Divider divider_;
  Layout layout_;
};

}  // namespace

AxisMask gathered_axes(const LocalParameter& parameter) {
  const AxisMask source = parameter.materialized != 0
                              ? parameter.divided[static_cast<std::size_t>(State::optimizer)]
                              : 0;
  return parameter.rests_in_part | source;
}

std::int64_t degree_of(const Placement& placement, AxisMask mask) {
  std::int64_t product = 1;
  for (std::size_t a = 0; a < placement.axes.size(); ++a) {
    if ((mask >> a & 1U) != 0) {
      product = checked_multiply(product, placement.axes[a].degree, "product of degrees");
    }
  }
  return product;
}

Layout lay_out(const Job& job, const Prepared& prepared,
               const std::optional<std::vector<std::int64_t>>& coordinates) {
  return LayoutBuilder(job, prepared, coordinates).build();
}

}  // namespace placet
