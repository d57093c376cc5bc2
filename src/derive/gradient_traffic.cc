// Rule 2 of docs/theory.md §4: gradients go from partial to the layout of the update.
#include "derive/parameter_messages.h"
#include "derive/quantised_traffic.h"
#include "profile/conditions.h"
#include "units/checked.h"

namespace placet {
namespace {

class GradientTraffic {
 public:
  GradientTraffic(ParameterMessages& out, bool hosted_elsewhere)
      : out_(out), hosted_elsewhere_(hosted_elsewhere) {}

  /// Brings a partial gradient to the layout of the update, at the cadence of its mode: scatters
  /// first, then all-reduces of what is left.
  void write(const LocalParameter& parameter) {
    AxisMask partial = parameter.partial;
    if (out_.profile.shared_gradients_whole) {
      add_shared(parameter.shared, parameter.elements, parameter.scattered_each != 0);
      partial &= ~parameter.shared;
    }
    const AxisMask each = partial & parameter.scattered_each;
    const AxisMask consumed = partial & parameter.consumed;
    AxisMask rest = partial & ~each & ~consumed;
    const AxisMask to_owner = rest & (parameter.owned | parameter.deferred);
    rest &= ~to_owner;
    std::int64_t left = out_.padded(parameter, each | to_owner | (consumed & parameter.owned));
    if (each != 0) {
      const AxisMask follow = out_.layout.plan.reductions.replicas_each ? rest : 0;
      left = scatter(parameter, each, follow, {left, Phase::backward, true});
      rest &= ~follow;
    }
    left = scatter(parameter, consumed & parameter.owned, consumed & ~parameter.owned,
                   {left, Phase::backward, true});
    const bool each_time = out_.layout.plan.reductions.whole_each;
    if (to_owner != 0) {
      left = scatter(parameter, to_owner, rest, {left, Phase::reduce, false});
    } else {
      ParameterMove last =
          reduction(Collective::all_reduce, each_time ? Phase::backward : Phase::reduce, each_time);
      const bool whole = each == 0 && consumed == 0;
      if (whole && out_.profile.replica_bucket_bytes > 0) last.grain = MessageGrain::bucket;
      add_last(last, rest, left);
    }
    if (parameter.replicas > 1) share_heads(parameter, left);
  }

 private:
  /// A gradient on its way: its size, when, and whether in every micro-batch.
  struct Part {
    std::int64_t elements = 0;
    Phase phase = Phase::reduce;
    bool each = false;
  };

  Dtype reduce_dtype() const {
    if (!out_.profile.reduce_over_sequence) return out_.job.precision.reduce;
    const bool divided = *value_in_job(Symbol::sequence_degree, out_.job) > 1;
    return divided ? *out_.profile.reduce_over_sequence : out_.job.precision.reduce;
  }

  ParameterMove reduction(Collective collective, Phase phase, bool each) const {
    return {.collective = collective,
            .op = ReduceOp::sum,
            .state = State::gradients,
            .what = "gradients",
            .dtype = reduce_dtype(),
            .phase = phase,
            .per_micro_batch = each,
            .grain = out_.profile.gradient_grain};
  }

  /// The last reduction of a gradient, once per step. Of a tensor with a host on another stage its
  /// places of use are one more place in the group.
  void add_last(const ParameterMove& move, AxisMask axes, std::int64_t elements) {
    const std::int64_t group = degree_of(out_.job.placement, axes);
    if (!hosted_elsewhere_ || group == 1 || move.per_micro_batch)
      return out_.add(move, axes, elements);
    out_.add(move, axes | out_.layout.layer_axes, elements, checked_multiply(group, 2, "group"));
  }

  /// Key and value heads that several neighbours hold: a group of them, a part of an axis. Of what
  /// is left of a tensor that holds other rows too, their part.
  void share_heads(const LocalParameter& parameter, std::int64_t left) {
    const std::int64_t heads =
        in_bytes(part_rounded_up(bytes(left), Rational(parameter.replicated, parameter.elements)));
    ParameterMove shared = reduction(Collective::all_reduce, Phase::reduce, false);
    shared.what = "gradients of shared heads";
    shared.grain = out_.profile.shared_gradient_grain;
    out_.add(shared, parameter.replica_axes,
             out_.profile.shared_gradients_whole ? parameter.replicated : heads,
             parameter.replicas);
  }

  void add_shared(AxisMask axes, std::int64_t elements, bool each) {
    ParameterMove shared =
        reduction(Collective::all_reduce, each ? Phase::backward : Phase::reduce, each);
    shared.what = "gradients of uncut tensors";
    if (out_.profile.shared_gradients_as_computed) shared.dtype = out_.job.precision.compute;
    shared.grain = out_.profile.shared_gradient_grain;
    out_.add(shared, axes, elements);
  }

  /// Reduces to the owners over `axes`, and what is left over `others`. An all-reduce that serves
  /// as a scatter makes the same transition over both: one group. Gives the elements left.
  std::int64_t scatter(const LocalParameter& parameter, AxisMask axes, AxisMask others,
                       const Part& part) {
    if ((axes | others) == 0) return part.elements;
    const std::int64_t left =
        axes == 0 ? part.elements : own_part(out_.layout, parameter, part.elements, axes);
    if (path_of(parameter) == ScatterPath::all_reduce_and_slice) {
      ParameterMove all = reduction(Collective::all_reduce, part.phase, part.each);
      all.sharded = true;
      out_.add(all, axes | others, part.elements);
      return left;
    }
    to_owners(parameter, axes, part);
    ParameterMove rest = reduction(Collective::all_reduce, part.phase, part.each);
    rest.shard_of = degree_of(out_.job.placement, axes);
    rest.sharded = rest.shard_of > 1;
    add_last(rest, others, left);
    return left;
  }

  /// A reduce-scatter, or exchanges of quantised numbers where the engine has them and the tensor
  /// can go that way. Such engines reduce tensor by tensor.
  void to_owners(const LocalParameter& parameter, AxisMask axes, const Part& part) {
    ParameterMove move = reduction(Collective::reduce_scatter, part.phase, part.each);
    move.sharded = true;
    if (!out_.profile.quantised_reductions) return out_.add(move, axes, part.elements);
    move.grain = MessageGrain::tensor;
    if (!can_be_exchanged(out_.job.placement, parameter, axes))
      return out_.add(move, axes, part.elements);
    move.collective = Collective::all_to_all;
    move.op = ReduceOp::none;
    for (const GradientExchange& step : gradient_exchanges(out_.job, parameter, axes)) {
      move.what = "quantised gradients";
      move.dtype = out_.profile.quantised_reductions->dtype;
      move.apart = step.apart;
      out_.add(move, step.axes, step.elements, step.group);
      move.what = "constants of quantised gradients";
      move.dtype = out_.profile.quantised_reductions->constants;
      out_.add(move, step.axes, step.blocks, step.group);
    }
  }

  /// The engine's path for this tensor: one of the first two.
  ScatterPath path_of(const LocalParameter& parameter) const {
    if (out_.profile.scatter_path != ScatterPath::reduce_scatter_if_gathered) {
      return out_.profile.scatter_path;
    }
    const bool gathered = (parameter.rests_in_part | parameter.persistent) != 0;
    return gathered ? ScatterPath::reduce_scatter : ScatterPath::all_reduce_and_slice;
  }

  ParameterMessages& out_;
  bool hosted_elsewhere_ = false;
};

}  // namespace

void write_reduction(ParameterMessages& out, const LocalParameter& parameter,
                     bool hosted_elsewhere) {
  GradientTraffic(out, hosted_elsewhere).write(parameter);
}

AxisMask reduced_with_hosts(const Layout& layout, const LocalParameter& parameter) {
  const Profile& profile = layout.job->profile;
  if (profile.shared_gradients_whole || layout.plan.reductions.replicas_each) return 0;
  if (profile.scatter_path != ScatterPath::reduce_scatter) return 0;
  return parameter.partial &
         ~(parameter.scattered_each | parameter.consumed | parameter.owned | parameter.deferred);
}

std::int64_t left_after_scatter(const Layout& layout, const LocalParameter& parameter) {
  const AxisMask scattered = parameter.partial &
                             (parameter.scattered_each | parameter.deferred | parameter.owned) &
                             ~parameter.shared;
  return own_part(layout, parameter, parameter.elements, scattered);
}

}  // namespace placet
