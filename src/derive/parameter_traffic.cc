// Rules 1 to 3 of docs/theory.md §4: use of parameters, gradients, update.
#include <algorithm>
#include <numeric>

#include "derive/communication.h"
#include "derive/quantised_traffic.h"
#include "derive/state_bytes.h"
#include "derive/update_inputs.h"
#include "profile/conditions.h"
#include "units/at.h"
#include "units/checked.h"
#include "units/shares.h"

namespace placet {
namespace {

std::int64_t padded(std::int64_t elements, std::int64_t multiple) {
  return checked_multiply(largest_share(elements, multiple), multiple, "padding");
}

/// Elements of one tensor in a message between its `degree` shards, padding included.
std::int64_t padded_elements(const Profile& profile, const LocalParameter& parameter,
                             std::int64_t degree) {
  const bool gathered = (parameter.rests_in_part | parameter.persistent) != 0;
  switch (gathered ? profile.gathered_grain.value_or(profile.grain) : profile.grain) {
    case ShardGrain::element:
      return parameter.elements;
    case ShardGrain::unit:
    case ShardGrain::everything:
      return padded(parameter.elements, profile.align_elements);
    case ShardGrain::tensor:
      return padded(parameter.elements,
                    std::lcm(degree * profile.pad_elements, profile.pad_total_elements));
    case ShardGrain::row:
      return checked_multiply(padded(parameter.rows, degree),
                              parameter.elements / std::max<std::int64_t>(1, parameter.rows),
                              "padding");
  }
  return parameter.elements;
}

/// Adds up what the parameters of one unit move, one term per kind of movement and group.
class ParameterTraffic {
 public:
  ParameterTraffic(const Layout& layout, int unit)
      : layout_(layout),
        job_(*layout.job),
        profile_(job_.profile),
        unit_(layout.units[at(unit)]),
        kind_(job_.model.kinds[at(unit_.kind)]) {}

  std::vector<UnitTerm> collect(const OtherUses& uses) {
    for (std::size_t p = 0; p < unit_.parameters.size(); ++p) {
      const LocalParameter& parameter = unit_.parameters[p];
      if (!joins_before(p)) ++tensor_;
      const bool carried = p < uses.here.size() && uses.here[p];
      // What stays gathered over the step is there for all its uses.
      if (!carried || parameter.keep != Keep::step) use(kind_.parameters[p], parameter);
      if (!parameter.trainable || carried) continue;
      hosted_elsewhere_ = p < uses.elsewhere.size() && uses.elsewhere[p] &&
                          degree_of(job_.placement, reduced_with_hosts(profile_, parameter)) > 1;
      reduce(parameter);
      update(kind_.parameters[p], parameter);
    }
    pad_units();
    return std::move(terms_);
  }

 private:
  /// The linear operator that a parameter is the matrix of; none: it is no such matrix.
  const Operator* linear_of(std::size_t p) const {
    const auto op = std::ranges::find_if(kind_.operators, [&](const Operator& o) {
      return o.kind == OpKind::linear && !o.parameters.empty() &&
             o.parameters.front() == static_cast<int>(p);
    });
    return op == kind_.operators.end() ? nullptr : &*op;
  }

  /// Whether the engine keeps a parameter and the one before it in one tensor.
  bool joins_before(std::size_t p) const {
    if (!profile_.joins_inputs || p == 0) return false;
    const Operator* own = linear_of(p);
    const Operator* before = linear_of(p - 1);
    return own != nullptr && before != nullptr && own->module == before->module &&
           own->inputs.front() == before->inputs.front();
  }

  struct Move {
    Collective collective = Collective::all_gather;
    ReduceOp op = ReduceOp::none;
    State state = State::parameters;
    std::string_view what;
    Dtype dtype = Dtype::bf16;
    Phase phase = Phase::forward;
    bool per_micro_batch = false;
    MessageGrain grain = MessageGrain::unit;
    bool sharded = false;
    std::int64_t shard_of = 1;
    bool nvme = false;
    std::int64_t apart = 1;
    const std::vector<BlockConstants>* constants =
        nullptr;               // of its blocks, sent with the elements
    std::int64_t entries = 0;  // that the elements make up, several each; 0: they are the entries
  };

  void add(const Move& move, AxisMask axes, std::int64_t elements, std::int64_t group = 0) {
    if (axes == 0 && group == 0) return;
    if (group == 0) group = degree_of(job_.placement, axes);
    if ((group <= 1 && move.collective != Collective::host_copy) || elements == 0) return;
    Bytes payload = bytes_of(elements, move.dtype);
    if (move.constants != nullptr) payload += bytes_of(elements, *move.constants);
    UnitTerm made{.term = {.axes = axes,
                           .collective = move.collective,
                           .op = move.op,
                           .state = move.state,
                           .what = move.what,
                           .unit = kind_.name,
                           .dtype = move.dtype,
                           .phase = move.phase,
                           .payload = payload,
                           .count = 1,
                           .group = group,
                           .nvme = move.nvme,
                           .apart = move.apart,
                           .sent = sent_of_shards(move, axes, elements, group)},
                  .per_micro_batch = move.per_micro_batch,
                  .grain = move.grain,
                  .sharded = move.sharded,
                  .shard_of = move.shard_of};
    for (UnitTerm& known : terms_) {
      if (!travel_together(known, made)) continue;
      if (move.grain == MessageGrain::tensor) {
        ++known.term.count;
      } else {
        known.term.payload += payload;
        known.term.sent += made.term.sent;
        add_tensor(known, in_bytes(payload));
      }
      return;
    }
    add_tensor(made, in_bytes(payload));
    terms_.push_back(std::move(made));
  }

  /// Notes a tensor of a message that is cut into buckets, or another part of the last one.
  void add_tensor(UnitTerm& term, std::int64_t size) {
    if (term.grain != MessageGrain::bucket) return;
    if (term.tensors.empty()) term.tensors.emplace_back();
    std::vector<std::int64_t>& tensors = term.tensors.front().bytes;
    if (tensors.empty() || term.last_tensor != tensor_) {
      tensors.push_back(size);
    } else {
      tensors.back() += size;
    }
    term.last_tensor = tensor_;
  }

  /// Where each tensor has shards of its own, a message of several is as uneven as all of them
  /// together: what its busiest device sends in one call. 0 for other messages, which are divided
  /// as a whole. Case: two tensors of 3 elements in fp32, gathered over 2 devices: 16 bytes, not
  /// 12.
  Bytes sent_of_shards(const Move& move, AxisMask axes, std::int64_t elements,
                       std::int64_t group) const {
    const bool shards =
        move.collective == Collective::all_gather || move.collective == Collective::reduce_scatter;
    const bool whole = group == degree_of(job_.placement, axes);
    if (!shards || !whole || profile_.grain != ShardGrain::element) return {};
    const std::int64_t entries = move.entries > 0 ? move.entries : elements;
    const std::int64_t own = smallest_part(job_.placement, entries, axes) * (elements / entries);
    return bytes_of(elements, move.dtype) - bytes_of(own, move.dtype);
  }

  /// Whether a tensor joins a known message, or, if each has its own, repeats one.
  static bool travel_together(const UnitTerm& known, const UnitTerm& made) {
    const bool each = made.grain == MessageGrain::tensor;
    if (each && known.term.payload != made.term.payload) return false;
    return known.per_micro_batch == made.per_micro_batch && is_same_movement(known, made);
  }

  std::int64_t padded(const LocalParameter& parameter, AxisMask axes) const {
    return axes == 0 ? parameter.elements
                     : padded_elements(profile_, parameter, degree_of(job_.placement, axes));
  }

  /// Units are padded as a whole where they are flattened.
  void pad_units() {
    if (profile_.grain != ShardGrain::unit) return;
    for (UnitTerm& term : terms_) {
      if (!term.sharded || term.grain != MessageGrain::unit) continue;
      const std::int64_t elements = in_bytes(term.term.payload) * 8 / bits_of(term.term.dtype);
      term.term.payload = bytes_of(padded_message(profile_, term, elements), term.term.dtype);
      term.term.sent = {};
    }
  }

  // --- use

  /// Rests in part, used whole: gathered in forward and again in backward, unless kept.
  void use(const Parameter& declared, const LocalParameter& parameter) {
    const AxisMask axes = gathered_axes(parameter);
    if (axes == 0 && used_from_host(parameter) == Rational(0)) return;
    const bool is_end = kind_.role == UnitRole::head || kind_.role == UnitRole::embedding;
    // Where neither the unit nor anything before it is trained, backward has no use of it.
    const bool stays = (kind_.role == UnitRole::head && profile_.last_unit_stays_gathered) ||
                       (is_end && profile_.joins_ends) ||
                       !layout_.prepared->kinds[at(unit_.kind)].gradients.backward;
    Move move{.what = "gathered parameters",
              .dtype = gather_dtype(declared),
              .phase = Phase::forward,
              .grain = profile_.gather_grain,
              .sharded = true,
              .constants = &declared.constants};
    const AxisMask once = axes & parameter.kept_step;
    const AxisMask again = stays ? 0 : axes & ~parameter.kept;
    if (once != 0) gather(parameter, move, once, axes & ~once);
    move.per_micro_batch = true;
    if (once != axes || axes == 0) gather(parameter, move, axes & ~once, 0);
    move.phase = Phase::backward;
    const bool rereads = axes == 0 && !stays && parameter.keep == Keep::none;
    if (again != 0 || rereads) gather(parameter, move, again, 0);
  }

  /// The part of what a parameter is made from for use, its own bytes or the master's, that is in
  /// host memory.
  static Rational used_from_host(const LocalParameter& parameter) {
    return parameter.on_host[parameter.materialized != 0 ? 1 : 0];
  }

  Dtype gather_dtype(const Parameter& declared) const {
    return declared.dtype ? *declared.dtype : job_.precision.gather;
  }

  /// Gathers over `axes` what stays divided over `later`; the own part comes from host memory first
  /// where it rests there.
  void gather(const LocalParameter& parameter, Move move, AxisMask axes, AxisMask later) {
    if (used_from_host(parameter) != Rational(0)) {
      Move copy = move;
      copy.collective = Collective::host_copy;
      copy.what = "parameters from host";
      copy.nvme = parameter.on_nvme[parameter.materialized != 0 ? 1 : 0];
      copy.grain = MessageGrain::unit;
      copy.sharded = false;
      const std::int64_t part = parameter.rest[parameter.materialized != 0 ? 1 : 0];
      add(copy, 0, elements_moved(part, used_from_host(parameter)), 1);
    }
    const std::int64_t whole =
        largest_share(padded(parameter, axes | later), degree_of(job_.placement, later));
    if (profile_.quantised_gathers) return gather_quantised(move, axes, whole);
    add(move, axes, whole);
  }

  /// Each device quantises its part; the constants of its blocks are gathered beside it.
  void gather_quantised(Move move, AxisMask axes, std::int64_t whole) {
    const Quantised& format = *profile_.quantised_gathers;
    const std::int64_t parts = degree_of(job_.placement, axes);
    move.dtype = format.dtype;
    move.constants = nullptr;
    add(move, axes, whole);
    move.dtype = format.constants;
    move.what = "constants of gathered parameters";
    add(move, axes, checked_multiply(equal_blocks(whole / parts, format.block), parts, "blocks"));
  }

  // --- gradients

  Dtype reduce_dtype() const {
    if (!profile_.reduce_over_sequence) return job_.precision.reduce;
    const bool divided = *value_in_job(Symbol::sequence_degree, job_) > 1;
    return divided ? *profile_.reduce_over_sequence : job_.precision.reduce;
  }

  Move reduction(Collective collective, Phase phase, bool each) const {
    return {.collective = collective,
            .op = ReduceOp::sum,
            .state = State::gradients,
            .what = "gradients",
            .dtype = reduce_dtype(),
            .phase = phase,
            .per_micro_batch = each,
            .grain = profile_.gradient_grain};
  }

  /// A gradient on its way: its size, when, and whether in every micro-batch.
  struct Part {
    std::int64_t elements = 0;
    Phase phase = Phase::reduce;
    bool each = false;
  };

  /// Brings a partial gradient to the layout of the update, at the cadence of its mode: scatters
  /// first, then all-reduces of what is left.
  void reduce(const LocalParameter& parameter) {
    AxisMask partial = parameter.partial;
    if (profile_.shared_gradients_whole) {
      add_shared(parameter.shared, parameter.elements, parameter.scattered_each != 0);
      partial &= ~parameter.shared;
    }
    const AxisMask each = partial & parameter.scattered_each;
    const AxisMask consumed = partial & parameter.consumed;
    AxisMask rest = partial & ~each & ~consumed;
    const AxisMask to_owner = rest & (parameter.owned | parameter.deferred);
    rest &= ~to_owner;
    std::int64_t left = padded(parameter, each | to_owner | (consumed & parameter.owned));
    if (each != 0) {
      const AxisMask follow = profile_.replicas_follow_scatter ? rest : 0;
      left = scatter(parameter, each, follow, {left, Phase::backward, true});
      rest &= ~follow;
    }
    left = scatter(parameter, consumed & parameter.owned, consumed & ~parameter.owned,
                   {left, Phase::backward, true});
    if (to_owner != 0) {
      left = scatter(parameter, to_owner, rest, {left, Phase::reduce, false});
    } else {
      Move last = reduction(Collective::all_reduce, Phase::reduce, false);
      const bool whole = each == 0 && consumed == 0;
      if (whole && profile_.replica_bucket_bytes > 0) last.grain = MessageGrain::bucket;
      add_last(last, rest, left);
    }
    if (parameter.replicas > 1) share_heads(parameter, left);
  }

  /// The last reduction of a gradient, once per step. Of a tensor with a host on another stage its
  /// places of use are one more place in the group.
  void add_last(const Move& move, AxisMask axes, std::int64_t elements) {
    const std::int64_t group = degree_of(job_.placement, axes);
    if (!hosted_elsewhere_ || group == 1 || move.per_micro_batch) return add(move, axes, elements);
    add(move, axes | layout_.layer_axes, elements, checked_multiply(group, 2, "group"));
  }

  /// Key and value heads that several neighbours hold: a group of them, a part of an axis. Of what
  /// is left of a tensor that holds other rows too, their part.
  void share_heads(const LocalParameter& parameter, std::int64_t left) {
    const std::int64_t heads =
        in_bytes(part_rounded_up(bytes(left), Rational(parameter.replicated, parameter.elements)));
    Move shared = reduction(Collective::all_reduce, Phase::reduce, false);
    shared.what = "gradients of shared heads";
    shared.grain = profile_.shared_gradient_grain;
    add(shared, parameter.replica_axes,
        profile_.shared_gradients_whole ? parameter.replicated : heads, parameter.replicas);
  }

  void add_shared(AxisMask axes, std::int64_t elements, bool each) {
    Move shared = reduction(Collective::all_reduce, each ? Phase::backward : Phase::reduce, each);
    shared.what = "gradients of uncut tensors";
    shared.grain = profile_.shared_gradient_grain;
    add(shared, axes, elements);
  }

  /// Reduces to the owners over `axes`, and what is left over `others`. An all-reduce that serves
  /// as a scatter makes the same transition over both: one group. Gives the elements left.
  std::int64_t scatter(const LocalParameter& parameter, AxisMask axes, AxisMask others,
                       const Part& part) {
    if ((axes | others) == 0) return part.elements;
    const std::int64_t left =
        axes == 0 ? part.elements : largest_part(job_.placement, part.elements, axes);
    if (path_of(parameter) == ScatterPath::all_reduce_and_slice) {
      Move all = reduction(Collective::all_reduce, part.phase, part.each);
      all.sharded = true;
      add(all, axes | others, part.elements);
      return left;
    }
    to_owners(parameter, axes, part);
    Move rest = reduction(Collective::all_reduce, part.phase, part.each);
    rest.shard_of = degree_of(job_.placement, axes);
    rest.sharded = rest.shard_of > 1;
    add_last(rest, others, left);
    return left;
  }

  /// A reduce-scatter, or exchanges of quantised numbers where the engine has them and the tensor
  /// can go that way. Such engines reduce tensor by tensor.
  void to_owners(const LocalParameter& parameter, AxisMask axes, const Part& part) {
    Move move = reduction(Collective::reduce_scatter, part.phase, part.each);
    move.sharded = true;
    if (!profile_.quantised_reductions) return add(move, axes, part.elements);
    move.grain = MessageGrain::tensor;
    if (!can_be_exchanged(job_.placement, parameter, axes)) return add(move, axes, part.elements);
    move.collective = Collective::all_to_all;
    move.op = ReduceOp::none;
    for (const GradientExchange& step : gradient_exchanges(job_, parameter, axes)) {
      move.what = "quantised gradients";
      move.dtype = profile_.quantised_reductions->dtype;
      move.apart = step.apart;
      add(move, step.axes, step.elements, step.group);
      move.what = "constants of quantised gradients";
      move.dtype = profile_.quantised_reductions->constants;
      add(move, step.axes, step.blocks, step.group);
    }
  }

  /// The engine's path for this tensor: one of the first two.
  ScatterPath path_of(const LocalParameter& parameter) const {
    if (profile_.scatter_path != ScatterPath::reduce_scatter_if_gathered) {
      return profile_.scatter_path;
    }
    const bool gathered = (parameter.rests_in_part | parameter.persistent) != 0;
    return gathered ? ScatterPath::reduce_scatter : ScatterPath::all_reduce_and_slice;
  }

  // --- update

  /// After the update parameters go from the layout of their optimizer state to their own.
  void update(const Parameter& declared, const LocalParameter& parameter) {
    gather_for_update(declared, parameter);
    // Parameters that rest nowhere are made from the master when they are used.
    const AxisMask spread = parameter.owned & ~parameter.divided[0] & ~parameter.cut;
    if (spread != 0 && parameter.materialized == 0) {
      const Move gather{.what = "updated parameters",
                        .dtype = job_.precision.parameters,
                        .phase = Phase::update,
                        .grain = profile_.update_grain,
                        .sharded = true};
      // Axes along which parameters rest divided anyway keep their part: only the rest is gathered.
      add(gather, spread,
          largest_share(padded(parameter, spread | parameter.divided[0]),
                        degree_of(job_.placement, parameter.divided[0])));
    }
    copy_states(declared, parameter);
    copy_gradients(parameter);
    copy_parameters(declared, parameter);
  }

  /// What the update must see whole and does not: gradients scattered although their optimizer
  /// state is whole, state divided only at rest, matrices and statistics that cuts tear.
  void gather_for_update(const Parameter& declared, const LocalParameter& parameter) {
    const Move gradients{.state = State::gradients,
                         .what = "gradients for the update",
                         .dtype = job_.precision.gradients,
                         .phase = Phase::update};
    add(gradients, gradient_gather_axes(parameter), gathered_gradient(layout_, parameter));
    regather_state(declared, parameter);
    gather_regions(declared, parameter);
  }

  void regather_state(const Parameter& declared, const LocalParameter& parameter) {
    const Move gather{.state = State::optimizer,
                      .what = "optimizer state for the update",
                      .dtype = Dtype::uint8,
                      .phase = Phase::update,
                      .entries = own_part(layout_, parameter.elements, parameter.owned)};
    add(gather, parameter.regathered, gathered_state(layout_, declared, parameter));
  }

  /// Optimizers that see more than elements: whole matrices are put together along the axes that
  /// tear them (shards along other axes hold whole matrices); sums along a torn row or column are
  /// reduced. Blocks never lie across shards.
  void gather_regions(const Parameter& declared, const LocalParameter& parameter) {
    if (declared.dims.size() < 2) return;
    const AxisMask torn = parameter.cut_rows | parameter.cut_columns;
    switch (region_of(job_.optimizer, declared)) {
      case UpdateRegion::element:
      case UpdateRegion::block:
        return;
      case UpdateRegion::matrix: {
        const Move gather{.state = State::gradients,
                          .what = "matrices for the update",
                          .dtype = job_.precision.gradients,
                          .phase = Phase::update};
        add(gather, torn, gathered_matrix(layout_, declared, parameter));
        return;
      }
      case UpdateRegion::row_and_column: {
        Move sums{.collective = Collective::all_reduce,
                  .op = ReduceOp::sum,
                  .state = State::optimizer,
                  .what = "column sums for the update",
                  .dtype = Dtype::fp32,
                  .phase = Phase::update};
        add(sums, parameter.cut_rows | parameter.owned,
            parameter.elements / std::max<std::int64_t>(1, parameter.matrix_rows));
        sums.what = "row sums for the update";
        const std::int64_t rows =
            parameter.elements / std::max<std::int64_t>(1, parameter.matrix_columns);
        add(sums, parameter.cut_columns,
            largest_share(rows, degree_of(job_.placement, parameter.owned)));
        return;
      }
    }
  }

  // --- host memory

  /// Optimizer state in host memory, updated on the device: it comes in and goes back.
  void copy_states(const Parameter& declared, const LocalParameter& parameter) {
    if (parameter.on_host[1] == Rational(0) || updated_on_host(parameter) != Rational(0)) return;
    Move copy{.collective = Collective::host_copy,
              .state = State::optimizer,
              .dtype = Dtype::uint8,
              .phase = Phase::update,
              .nvme = parameter.on_nvme[1]};
    const std::int64_t size = state_bytes(job_, declared, parameter).off_device(State::optimizer);
    copy.what = "optimizer state from host";
    add(copy, 0, size, 1);
    copy.what = "optimizer state to host";
    add(copy, 0, size, 1);
  }

  /// Gradients that rest on the host go there each time they are reduced; what else of them the
  /// update on the host needs, once. The part that is updated on the device comes back.
  void copy_gradients(const LocalParameter& parameter) {
    Move copy{.collective = Collective::host_copy,
              .state = State::gradients,
              .what = "gradients to host",
              .dtype = job_.precision.gradients,
              .phase = Phase::update};
    const Rational there = parameter.on_host[2];
    const Rational updated = updated_on_host(parameter);
    if (updated > there) add(copy, 0, elements_moved(parameter.rest[1], updated - there), 1);
    if (there == Rational(0)) return;
    copy.nvme = parameter.on_nvme[2];
    copy.phase = Phase::backward;
    copy.per_micro_batch = true;
    add(copy, 0, elements_moved(parameter.rest[2], there), 1);
    if (there <= updated) return;
    copy.phase = Phase::update;
    copy.per_micro_batch = false;
    copy.what = "gradients from host";
    add(copy, 0, elements_moved(parameter.rest[2], there - updated), 1);
  }

  /// Parameters updated on the other side of the host link than they rest on.
  void copy_parameters(const Parameter& declared, const LocalParameter& parameter) {
    const Rational there = parameter.on_host[0];
    const Rational updated = updated_on_host(parameter);
    if (there == updated || parameter.materialized != 0) return;
    Move copy{.collective = Collective::host_copy,
              .what = "updated parameters from host",
              .dtype = job_.precision.parameters,
              .phase = Phase::update};
    if (there > updated) {
      copy.nvme = parameter.on_nvme[0];
      const std::int64_t moved = elements_moved(parameter.rest[0], there - updated);
      copy.what = "updated parameters to host";
      add(copy, 0, moved, 1);
      // Without a master the update begins with the parameters themselves.
      copy.what = "parameters from host for the update";
      if (!has_master(job_, declared)) add(copy, 0, moved, 1);
    } else {
      // Where parameters rest in smaller parts than they are updated in, only those come up.
      const std::int64_t part = std::min(parameter.rest[0], parameter.rest[1]);
      const std::int64_t moved = elements_moved(part, updated - there);
      add(copy, 0, moved, 1);
      copy.what = "parameters to host for the update";
      if (!has_master(job_, declared)) add(copy, 0, moved, 1);
    }
  }

  const Layout& layout_;
  const Job& job_;
  const Profile& profile_;
  const LocalUnit& unit_;
  const UnitKind& kind_;
  bool hosted_elsewhere_ = false;  // the parameter at hand
  int tensor_ = 0;                 // the tensor that it is in
  std::vector<UnitTerm> terms_;
};

}  // namespace

AxisMask reduced_with_hosts(const Profile& profile, const LocalParameter& parameter) {
  if (profile.shared_gradients_whole || profile.replicas_follow_scatter) return 0;
  if (profile.scatter_path != ScatterPath::reduce_scatter) return 0;
  return parameter.partial &
         ~(parameter.scattered_each | parameter.consumed | parameter.owned | parameter.deferred);
}

std::int64_t left_after_scatter(const Layout& layout, const LocalParameter& parameter) {
  const AxisMask scattered = parameter.partial &
                             (parameter.scattered_each | parameter.deferred | parameter.owned) &
                             ~parameter.shared;
  return largest_part(layout.job->placement, parameter.elements, scattered);
}

std::vector<UnitTerm> parameter_traffic(const Layout& layout, int unit, const OtherUses& uses) {
  return ParameterTraffic(layout, unit).collect(uses);
}

}  // namespace placet
