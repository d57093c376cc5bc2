#include "derive/layout.h"

#include <algorithm>
#include <bit>

#include "derive/dim_cutter.h"
#include "derive/divider.h"
#include "derive/moved_states.h"
#include "derive/parameter_layout.h"
#include "derive/whole_operands.h"
#include "layout/realised.h"
#include "units/at.h"
#include "units/checked.h"
#include "units/error.h"
#include "units/shares.h"

namespace placet {
namespace {

/// A real number of elements cut off to a whole one.
std::int64_t skewed_elements(double elements) {
  if (elements >= static_cast<double>(INT64_MAX)) throw_overflow("routed tokens", "product");
  return static_cast<std::int64_t>(elements);
}

class LayoutBuilder {
 public:
  LayoutBuilder(const Job& job, const Prepared& prepared, const Coordinates& coordinates)
      : job_(job),
        prepared_(prepared),
        divider_(job.placement, coordinates),
        cutter_(job, divider_) {
    layout_.job = &job;
    layout_.prepared = &prepared;
    layout_.coordinates = coordinates;
  }

  Layout build() {
    read_axes();
    place_units();
    return std::move(layout_);
  }

  LayoutBuilder& without_values() {
    with_values_ = false;
    return *this;
  }

 private:
  const AxisPlacement& axis(std::size_t a) const { return job_.placement.axes[a]; }
  std::size_t axis_count() const { return job_.placement.axes.size(); }

  void read_axes() {
    for (std::size_t a = 0; a < axis_count(); ++a) {
      read_cut_indices(axis(a).how);
      for (const Override& o : axis(a).overrides) read_cut_indices(o.how);
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
    layout_.cuts_both_sides = cuts_both_sides(placement);
    const std::int64_t replicas = degree_of(placement, layout_.batch_axes);
    layout_.stages = degree_of(placement, layout_.layer_axes);
    layout_.tensor_degree = degree_of(placement, layout_.tensor_axes);
    layout_.data_degree = checked_multiply(replicas, degree_of(placement, layout_.sequence_axes),
                                           "degree of data parallel axes");
    const std::int64_t together = checked_multiply(job_.batch.micro, replicas, "micro-batch");
    layout_.micro_batches =
        together == 0 ? 1 : std::max<std::int64_t>(1, job_.batch.global / together);
    layout_.plan =
        realised_plan(job_, {.stages = layout_.stages, .micro_batches = layout_.micro_batches});
    layout_.micro_batch = divider_.share(together, layout_.batch_axes);
    layout_.tokens = divider_.share(job_.batch.sequence, layout_.sequence_axes);
    layout_.residual_tokens =
        divider_.share(job_.batch.sequence, layout_.sequence_axes | layout_.split_residual_axes);
  }

  void read_cut_indices(const How& how) {
    if (how.cut == Cut::tensor) cut_indices_ |= how.tensor_indices;
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
    const PlacedMesh mesh{.layout = layout_, .divider = divider_, .cutter = cutter_};
    for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
      local.parameters.push_back(
          place_parameter(mesh, kind.parameters[p], prepared.parameters[p], block));
      local.parameters.back().narrow = prepared.parameters[p].narrow;
    }
    if (with_values_) place_values(kind, prepared, block, local);
    return local;
  }

  void place_values(const UnitKind& kind, const PreparedKind& prepared,
                    std::optional<std::int64_t> block, LocalUnit& local) const {
    local.values.reserve(kind.values.size());
    local.gathered.reserve(kind.values.size());
    for (std::size_t v = 0; v < kind.values.size(); ++v) {
      local.values.push_back(value_elements(kind.values[v], prepared.values[v], block, false));
      local.gathered.push_back(prepared.values[v].enters_parallel
                                   ? value_elements(kind.values[v], prepared.values[v], block, true)
                                   : local.values.back());
    }
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
      elements = divider_.share(elements, routed_part);
      elements = skewed(elements, experts);
    }
    return elements;
  }

  std::int64_t feature_length(const Dim& dim, const PreparedValue& prepared,
                              std::optional<std::int64_t> block) const {
    if (!contains(cut_indices_, dim.index)) return cutter_.padded(dim).size;
    AxisMask mask = 0;
    for (std::size_t a = 0; a < axis_count(); ++a) {
      const How& how = how_of(axis(a), prepared.classes, block);
      if (how.cut == Cut::tensor && contains(how.tensor_indices, dim.index)) {
        mask |= axis_bit(static_cast<int>(a));
      }
    }
    return cutter_.cut(cutter_.padded(dim), mask).length;
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
      case Routing::Kind::capacity:
        return full_slots(elements, mask);
      case Routing::Kind::worst:
        return checked_multiply(elements, degree_of(job_.placement, mask), "routed tokens");
      case Routing::Kind::expected:
        return skewed_elements(static_cast<double>(elements) * job_.routing.skew + 0.5);
    }
    return elements;
  }

  /// All slots of the device's experts: ceil(share of an expert x capacity), as much wider as a
  /// token's entry is.
  std::int64_t full_slots(std::int64_t elements, AxisMask mask) const {
    const std::int64_t choices = checked_multiply(
        checked_multiply(layout_.micro_batch, layout_.residual_tokens, "routed tokens"),
        job_.model.figures.experts_per_token, "routed tokens");
    const std::int64_t experts = divider_.share(job_.model.figures.experts, mask);
    if (choices == 0 || experts == 0) return elements;
    const Rational share = Rational(choices) * job_.routing.capacity * Rational(1, experts);
    const std::int64_t slots = in_bytes(part_rounded_up(bytes(1), share));
    const Rational width(elements, choices);
    return in_bytes(
        part_rounded_up(bytes(checked_multiply(slots, experts, "routed tokens")), width));
  }

  const Job& job_;
  const Prepared& prepared_;
  Divider divider_;
  DimCutter cutter_;
  IndexSet cut_indices_ = 0;  // of all tensor cuts
  bool with_values_ = true;
  Layout layout_;
};

}  // namespace

AxisMask gathered_axes(const LocalParameter& parameter) {
  const AxisMask source = parameter.materialized != 0
                              ? parameter.divided[static_cast<std::size_t>(State::optimizer)]
                              : 0;
  return parameter.rests_in_part | source;
}

std::array<AxisMask, 5> row_order(const LocalParameter& parameter) {
  const AxisMask rests = parameter.divided[static_cast<std::size_t>(State::parameters)];
  const AxisMask owned = parameter.owned;
  return {rests & owned, rests, parameter.scattered_each & owned, owned, ~AxisMask{0}};
}

AxisMask real_axes(const Placement& placement, AxisMask mask) {
  AxisMask out = 0;
  for (; mask != 0; mask &= mask - 1) {
    const int a = std::countr_zero(mask);
    if (placement.axes[static_cast<std::size_t>(a)].degree > 1) out |= axis_bit(a);
  }
  return out;
}

ShardGrain grain_of(const Profile& profile, const LocalParameter& parameter) {
  const bool gathered = (parameter.rests_in_part | parameter.persistent) != 0;
  return gathered ? profile.gathered_grain.value_or(profile.grain) : profile.grain;
}

std::int64_t padded(std::int64_t elements, std::int64_t multiple) {
  return checked_multiply(largest_share(elements, multiple), multiple, "padding");
}

std::int64_t degree_of(const Placement& placement, AxisMask mask) {
  std::int64_t product = 1;
  for (; mask != 0; mask &= mask - 1) {
    const auto a = static_cast<std::size_t>(std::countr_zero(mask));
    product = checked_multiply(product, placement.axes[a].degree, "product of degrees");
  }
  return product;
}

Layout lay_out(const Job& job, const Prepared& prepared,
               const std::optional<std::vector<std::int64_t>>& coordinates) {
  return LayoutBuilder(job, prepared, coordinates).build();
}

Layout lay_out_parameters(const Job& job, const Prepared& prepared) {
  return LayoutBuilder(job, prepared, std::nullopt).without_values().build();
}

std::int64_t micro_batches_of_chunk(const Layout& layout) {
  const bool both_ways =
      layout.stages > 1 && layout.job->schedule.hosting == Hosting::bidirectional;
  return both_ways ? largest_share(layout.micro_batches, 2) : layout.micro_batches;
}

namespace {

void take_moved(const How& from, How& to) {
  to.offload = from.offload;
  to.update = from.update;
}

}  // namespace

bool differ_in_moved_alone(const Placement& a, const Placement& b) {
  if (a.axes.size() != b.axes.size()) return false;
  Placement moved = a;
  for (std::size_t i = 0; i < a.axes.size(); ++i) {
    AxisPlacement& own = moved.axes[i];
    const AxisPlacement& other = b.axes[i];
    if (own.overrides.size() != other.overrides.size()) return false;
    take_moved(other.how, own.how);
    for (std::size_t o = 0; o < own.overrides.size(); ++o) {
      take_moved(other.overrides[o].how, own.overrides[o].how);
    }
  }
  return moved == b;
}

void read_moved(Layout& layout) {
  const Job& job = *layout.job;
  std::vector<bool> done(layout.units.size(), false);
  for (std::size_t u = 0; u < job.model.units.size(); ++u) {
    const std::size_t number = at(layout.unit_of[u]);
    if (done[number]) continue;
    done[number] = true;
    const Unit& unit = job.model.units[u];
    const UnitKind& kind = job.model.kinds[at(unit.kind)];
    std::optional<std::int64_t> block;
    if (kind.role == UnitRole::block) block = unit.number;
    for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
      place_moved(job.placement, kind.parameters[p], block, layout.units[number].parameters[p]);
    }
  }
}

bool splits_backward(const Layout& layout) {
  const Schedule& schedule = layout.job->schedule;
  return layout.stages > 1 && splits_backward(feasible_order(schedule, layout.stages));
}

}  // namespace placet
