// Rules 4 and 6 of docs/theory.md §4: values between operators, and what recomputation repeats.
//
// For every value and every axis we ask in which layout its producer leaves it and in which its
// consumers need it, forward and backward. Along a tensor axis the residual stream is R or
// S(token); inside a parallel region tokens are whole, values that carry a cut index are S of it,
// contractions over a cut index leave P, and the gradient of a value without the cut index is P.
// Axes with the same transition form one group.
#include <algorithm>

#include "derive/narrow_products.h"
#include "derive/partial_sums.h"
#include "derive/routed_exchange.h"
#include "derive/unit_sizes.h"
#include "derive/unit_traffic.h"
#include "derive/whole_operands.h"
#include "model/gradients.h"
#include "units/at.h"
#include "units/checked.h"

namespace placet {
namespace {

bool is_number(const Value& value) {
  return value.type != ValueType::int64 && value.type != ValueType::mask;
}

/// Whether some tensors see a tensor cut along the axis: along others values between operators make
/// no transition.
bool cuts_tensors(const AxisPlacement& axis) {
  return axis.how.cut == Cut::tensor ||
         std::ranges::any_of(axis.overrides,
                             [](const Override& one) { return one.how.cut == Cut::tensor; });
}

/// Transitions of one value, by axis.
struct Transitions {
  AxisMask gathered = 0;        // forward S(token) -> R
  AxisMask scattered = 0;       // forward P -> S(token)
  AxisMask reduced = 0;         // forward P -> R
  AxisMask back_scattered = 0;  // gradient P -> S(token)
  AxisMask back_reduced = 0;    // gradient P -> R
  AxisMask back_gathered = 0;   // gradient S(token) -> R
  AxisMask regathered = 0;      // the whole input again, for the weights' gradient
  bool gathered_again = false;  // by a recomputation
  bool reduced_again = false;

  bool any() const {
    return (gathered | scattered | reduced | back_scattered | back_reduced | back_gathered |
            regathered) != 0;
  }
};

class StreamTraffic {
 public:
  explicit StreamTraffic(UnitTraffic& unit)
      : unit_(unit),
        kind_(unit.kind),
        both_sides_(unit.layout.cuts_both_sides),
        values_(kind_.values.size()),
        columns_(both_sides_ ? kind_.values.size() : 0) {}

  void write() {
    for (std::size_t a = 0; a < unit_.axis_count(); ++a) read_axis(a);
    read_routed_results();
    for (std::size_t v = 0; v < values_.size(); ++v) {
      write_columns(v, Phase::forward);
      write_value(v);
      write_columns(v, Phase::backward);
    }
  }

 private:
  const Value& value_at(int v) const { return kind_.values[at(v)]; }
  IndexSet dims_of(int v) const { return indices_in(value_at(v).dims); }

  /// One axis on its way through the operators.
  struct Walk {
    std::size_t axis = 0;
    AxisMask bit = 0;
    bool split = false;         // the stream is divided along it
    std::vector<bool> partial;  // values that are P along it
    std::vector<bool> columns;  // of these, those that it cuts as well
  };

  void read_axis(std::size_t a) {
    const AxisPlacement& axis = unit_.axis(a);
    if (axis.degree == 1 || !cuts_tensors(axis)) return;
    Walk walk{
        .axis = a,
        .bit = axis_bit(static_cast<int>(a)),
        .split = axis.how.cut == Cut::tensor && axis.how.modes.activations == Mode::sharded_gather,
        .partial = std::vector<bool>(kind_.values.size(), false),
        .columns = std::vector<bool>(kind_.values.size(), false)};
    for (std::size_t o = 0; o < kind_.operators.size(); ++o) read_operator(o, walk);
    for (std::size_t v = 0; v < walk.partial.size(); ++v) {
      // What the unit hands on is on the stream; what a later operator took is dealt with there.
      const bool handed_on = unit_.prepared.values[v].last_use < 0;
      if (walk.partial[v] && handed_on) leave(static_cast<int>(v), false, walk);
    }
  }

  void read_operator(std::size_t o, Walk& walk) {
    const Operator& op = kind_.operators[o];
    const How& how = unit_.how_for(walk.axis, o);
    if (how.cut != Cut::tensor || (unit_.is_routed(op) && !cuts_columns_alone(how))) return;
    const bool cuts = (unit_.prepared.operators[o].around & how.tensor_indices) != 0;
    const bool takes_partial =
        std::ranges::any_of(op.inputs, [&](int v) { return walk.partial[at(v)]; });
    if (!walk.split && !cuts && !takes_partial) return;  // the same work on all
    for (int v : op.inputs) {
      if (is_number(value_at(v))) read_input(o, v, how.tensor_indices, walk);
    }
    for (int v : op.outputs) {
      walk.partial[at(v)] = is_partial(op, v, how.tensor_indices, walk);
      walk.columns[at(v)] = walk.partial[at(v)] && (dims_of(v) & how.tensor_indices) != 0;
    }
  }

  /// Whether an operator leaves its output as a partial sum: it contracts over a cut index, or is
  /// linear and was given one.
  bool is_partial(const Operator& op, int output, IndexSet cut, const Walk& walk) const {
    const bool passes = passes_partial(op.kind) &&
                        std::ranges::any_of(op.inputs, [&](int v) { return walk.partial[at(v)]; });
    return passes || summed_in_part(kind_, op, output, cut) != 0;
  }

  /// What one input of an operator needs along the axis.
  void read_input(std::size_t o, int v, IndexSet cut, Walk& walk) {
    const Operator& op = kind_.operators[o];
    const bool inside = op.region == Region::parallel;
    const bool cut_here = (indices_of(kind_, op) & cut) != 0;
    if (walk.partial[at(v)]) return read_partial(op, v, cut_here ? cut : 0, walk);
    if (both_sides_ && (axes_of_whole_input(placed(o), v) & walk.bit) != 0) {
      return enter_whole(o, v, columns_[at(v)], walk);
    }
    if ((dims_of(v) & cut) != 0) return;
    if (inside && value_at(v).region == Region::residual) {
      // Work that the axis does not cut gives whole gradients, but for steps that pass on parts.
      const bool whole = !cut_here && !is_whole_linear_step(kind_, op);
      if (walk.split || !whole) enter(o, v, walk);
    } else if (cut_here && !is_linear_chain(v, cut)) {
      // Whole, and used by cut work (on the stream only the columns are cut): its gradient must be
      // whole where it was made.
      note(v, &Transitions::back_reduced, walk.bit, values_[at(v)]);
    }
  }

  /// An input that is a partial sum. `cut`: the axis's indices where it cuts the operator.
  void read_partial(const Operator& op, int v, IndexSet cut, Walk& walk) {
    const bool inside = op.region == Region::parallel;
    if (inside && passes_partial(op.kind) && cut == 0) return;
    leave(v, inside, walk);
    walk.partial[at(v)] = false;
    const bool by_cut_work = cut != 0 && (dims_of(v) & cut) == 0;
    if (by_cut_work) note(v, &Transitions::back_reduced, walk.bit, values_[at(v)]);
  }

  /// Whether a value inside came by linear steps of which the axis cuts nothing: its gradient may
  /// stay partial until it reaches the stream, or the weights of those steps.
  bool is_linear_chain(int v, IndexSet cut) const {
    const int producer = unit_.prepared.values[at(v)].producer;
    if (producer < 0) return false;
    const Operator& step = kind_.operators[at(producer)];
    return is_whole_linear_step(kind_, step) && (indices_of(kind_, step) & cut) == 0;
  }

  /// Notes a transition of the gradient, if there is one.
  void note(int v, AxisMask Transitions::*transition, AxisMask bit, Transitions& of) const {
    if (unit_.prepared.gradients.values[at(v)]) of.*transition |= bit;
  }

  PlacedOperator placed(std::size_t o) const {
    return {.placement = unit_.job.placement,
            .kind = kind_,
            .op = kind_.operators[o],
            .classes = unit_.prepared.operators[o].classes};
  }

  /// A partial value where it is needed: whole inside, as the stream is on the stream; its columns
  /// divided where the axis cuts them.
  void leave(int v, bool inside, const Walk& walk) {
    const bool in_columns = walk.columns[at(v)];
    Transitions& t = in_columns ? columns_[at(v)] : values_[at(v)];
    if (!in_columns && (inside || !walk.split)) {
      t.reduced |= walk.bit;
    } else {
      t.scattered |= walk.bit;
      note(v, &Transitions::back_gathered, walk.bit, t);
    }
    const int producer = unit_.prepared.values[at(v)].producer;
    t.reduced_again = producer >= 0 && unit_.ends_again(at(producer));
  }

  /// A value of the stream in a parallel region: gathered if the stream is divided; its gradient is
  /// partial.
  void enter(std::size_t o, int v, const Walk& walk) {
    Transitions& t = values_[at(v)];
    t.gathered_again = t.gathered_again || unit_.starts_again(o);
    if (!walk.split) return note(v, &Transitions::back_reduced, walk.bit, t);
    t.gathered |= walk.bit;
    note(v, &Transitions::back_scattered, walk.bit, t);
    const bool kept_as_part = unit_.job.profile.gathered_input == GatheredInput::shard;
    if (kept_as_part && needs_input_again(kind_.operators[o])) t.regathered |= walk.bit;
  }

  /// A value whose columns come together for a product, and once more for the weights' gradient;
  /// its own gradient is a partial sum of all columns.
  void enter_whole(std::size_t o, int v, Transitions& t, const Walk& walk) {
    t.gathered_again = t.gathered_again || unit_.starts_again(o);
    t.gathered |= walk.bit;
    note(v, &Transitions::back_scattered, walk.bit, t);
    if (needs_input_again(kind_.operators[o])) t.regathered |= walk.bit;
  }

  /// A contraction with trainable weights needs its whole input for their gradient.
  bool needs_input_again(const Operator& op) const {
    return is_contraction(op.kind) && trains(kind_, op);
  }

  /// Where the stream is whole and experts are cut or apart, each device has a part of every
  /// result; what flows back to the tokens and to their weights is partial.
  void read_routed_results() {
    const RoutedAxes axes = routed_axes(unit_);
    if (axes.summed == 0) return;
    for (std::size_t o = 0; o < kind_.operators.size(); ++o) {
      const Operator& op = kind_.operators[o];
      if (op.kind == OpKind::dispatch) {
        const int v = op.inputs.front();
        note(v, &Transitions::back_reduced, axes.summed, values_[at(v)]);
      } else if (op.kind == OpKind::combine) {
        read_combination(o, axes);
      }
    }
  }

  void read_combination(std::size_t o, const RoutedAxes& axes) {
    const Operator& op = kind_.operators[o];
    const AxisMask cut = axes.summed & ~axes.parted;
    // A combination on the stream follows a bias, which is added to whole sums of cut experts.
    const bool late = op.region == Region::residual;
    const int returned = unit_.prepared.values[at(op.inputs.front())].root;
    auto reduce = [&](int v, AxisMask mask) {
      values_[at(v)].reduced |= mask;
      const int producer = unit_.prepared.values[at(v)].producer;
      values_[at(v)].reduced_again = producer >= 0 && unit_.ends_again(at(producer));
    };
    if (late) reduce(returned, cut);
    reduce(op.outputs.front(), late ? axes.summed & ~cut : axes.summed);
    for (std::size_t i = 1; i < op.inputs.size(); ++i) {
      const int v = op.inputs[i];
      note(v, &Transitions::back_reduced, late ? axes.summed & ~cut : axes.summed, values_[at(v)]);
    }
  }

  void write_value(std::size_t v) {
    const Transitions& t = values_[v];
    if (!t.any()) return;
    const Value& value = kind_.values[v];
    // Tokens sent to experts are not put together first: their gradient is summed in parts.
    const bool enters = (t.gathered | t.back_scattered | t.regathered) != 0;
    const bool gathers = enters && value.region == Region::residual;
    const std::int64_t part = gathers ? unit_.local.gathered[v] : unit_.local.values[v];
    const std::int64_t whole =
        both_sides_ ? part * degree_of(unit_.job.placement, columns_[v].gathered) : part;
    const auto send = [&](Collective collective, Phase phase, AxisMask axes) {
      send_value(v, collective, phase, axes, whole);
    };
    const auto forward = Phase::forward;
    const auto backward = Phase::backward;
    const auto gather = [&](Phase phase, AxisMask axes) {
      gather_value(v, phase, axes, whole, gathered_in(unit_.job, kind_, static_cast<int>(v)));
    };
    gather(forward, t.gathered);
    const std::int64_t summed = part_of(whole, t.scattered, 0);
    send(Collective::reduce_scatter, forward, t.scattered);
    send_value(v, Collective::all_reduce, forward, t.reduced, summed);
    if (t.gathered_again) gather(backward, t.gathered);
    if (t.reduced_again) {
      send(Collective::reduce_scatter, backward, t.scattered);
      send_value(v, Collective::all_reduce, backward, t.reduced, summed);
    }
    gather(backward, t.regathered);
    gather_value(v, backward, t.back_gathered, whole,
                 gradient_gathered_in(unit_.job, kind_, static_cast<int>(v)));
    send(Collective::reduce_scatter, backward, t.back_scattered);
    const AxisMask columns = both_sides_ ? columns_[v].back_scattered : 0;
    send_value(v, Collective::all_reduce, backward, t.back_reduced,
               part_of(whole, t.back_scattered, columns));
  }

  /// What is summed for all along some axes is summed after others took their parts of it: tokens
  /// (all axes that divide the stream, or none, scatter a value), or columns of the stream.
  std::int64_t part_of(std::int64_t whole, AxisMask tokens, AxisMask columns) const {
    if (tokens != 0) whole = elements_on_stream(unit_.layout, whole);
    return whole / degree_of(unit_.job.placement, columns);
  }

  void send_value(std::size_t v, Collective collective, Phase phase, AxisMask axes,
                  std::int64_t elements) {
    const Value& value = kind_.values[v];
    unit_.add({.what = value.name,
               .collective = collective,
               .phase = phase,
               .axes = axes,
               .elements = elements,
               .dtype = unit_.dtype_of(value)});
  }

  /// A value or its gradient, gathered for products: in their format, if there is one.
  void gather_value(std::size_t v, Phase phase, AxisMask axes, std::int64_t elements,
                    const StorageFormat* format) {
    if (format == nullptr) return send_value(v, Collective::all_gather, phase, axes, elements);
    unit_.add({.what = kind_.values[v].name,
               .collective = Collective::all_gather,
               .phase = phase,
               .axes = axes,
               .elements = elements,
               .dtype = format->dtype,
               .constants = &format->constants});
  }

  /// Columns come together before tokens do, and part after them.
  void write_columns(std::size_t v, Phase phase) {
    if (!both_sides_ || !columns_[v].any()) return;
    const Transitions& t = columns_[v];
    const auto send = [&](Collective collective, AxisMask axes) {
      send_value(v, collective, phase, axes,
                 checked_multiply(unit_.local.values[v], degree_of(unit_.job.placement, axes),
                                  "elements of an activation"));
    };
    const bool forward = phase == Phase::forward;
    if (forward || t.gathered_again) send(Collective::all_gather, t.gathered);
    if (forward || t.reduced_again) send(Collective::reduce_scatter, t.scattered);
    if (forward) return;
    send(Collective::all_gather, t.regathered);
    send(Collective::all_gather, t.back_gathered);
    send(Collective::reduce_scatter, t.back_scattered);
  }

  UnitTraffic& unit_;
  const UnitKind& kind_;
  bool both_sides_;  // some axis cuts the stream's columns and the other side of its matrices
  std::vector<Transitions> values_;
  std::vector<Transitions> columns_;  // of those axes
};

}  // namespace

std::vector<UnitTerm> activation_traffic(const Layout& layout, int unit, bool recomputed) {
  UnitTraffic traffic(layout, unit, recomputed);
  if (std::ranges::any_of(layout.job->placement.axes, cuts_tensors)) StreamTraffic(traffic).write();
  write_operators(traffic);
  return traffic.take();
}

}  // namespace placet
