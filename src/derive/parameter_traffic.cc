// Rules 1 to 3 of docs/theory.md §4: use of parameters, gradients, update.
#include <algorithm>

#include "derive/communication.h"
#include "derive/memory.h"
#include "units/checked.h"
#include "units/shares.h"

namespace placet {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// Adds up what the parameters of one unit move, one term per kind of movement and group.
class ParameterTraffic {
 public:
  ParameterTraffic(const Layout& layout, int unit)
      : layout_(layout), job_(*layout.job), unit_(layout.units[at(unit)]) {}

  std::vector<UnitTerm> collect() {
    const UnitKind& kind = job_.model.kinds[at(unit_.kind)];
    for (std::size_t p = 0; p < unit_.parameters.size(); ++p) {
      const LocalParameter& parameter = unit_.parameters[p];
      if (kind.parameters[p].tied) {
        use(kind, parameter);
        continue;  // the owner's gradient and update carry the shared tensor
      }
      use(kind, parameter);
      if (!parameter.trainable) continue;
      reduce(parameter);
      update(kind.parameters[p], parameter);
    }
    return std::move(terms_);
  }

 private:
  struct Move {
    Collective collective = Collective::all_gather;
    ReduceOp op = ReduceOp::none;
    State state = State::parameters;
    std::string_view what;
    Dtype dtype = Dtype::bf16;
    Phase phase = Phase::forward;
    bool per_micro_batch = false;
  };

  void add(const Move& move, AxisMask axes, std::int64_t elements, std::int64_t group = 0) {
    if (group == 0) group = degree_of(job_.placement, axes);
    if ((group <= 1 && move.collective != Collective::host_copy) || elements == 0) return;
    const Bytes payload = bytes_of(elements, move.dtype);
    for (UnitTerm& term : terms_) {
      const CommunicationTerm& t = term.term;
      const bool same = t.axes == axes && t.what == move.what && t.phase == move.phase &&
                        t.collective == move.collective && t.group == group &&
                        t.dtype == move.dtype && term.per_micro_batch == move.per_micro_batch;
      if (!same) continue;
      term.term.payload += payload;
      return;
    }
    terms_.push_back({{.axes = axes, .collective = move.collective, .op = move.op,
                       .state = move.state, .what = move.what, .dtype = move.dtype,
                       .phase = move.phase, .payload = payload, .count = 1, .group = group},
                      move.per_micro_batch});
  }

  /// Rests in part, used whole: gathered in forward and again in backward, unless kept.
  void use(const UnitKind& kind, const LocalParameter& parameter) {
    AxisMask axes = parameter.rests_in_part;
    if (parameter.materialized != 0) axes |= parameter.divided[1];
    if (axes == 0 && parameter.on_host[0] == Rational(0)) return;
    const bool is_last = kind.role == UnitRole::head && job_.profile.last_unit_stays_gathered;
    const bool each = parameter.keep != Keep::step;
    const bool again = parameter.keep == Keep::none && !is_last;
    Move move{.what = "gathered parameters", .dtype = job_.precision.gather,
              .phase = Phase::forward, .per_micro_batch = each};
    copy_in(parameter, move);
    add(move, axes, parameter.elements);
    if (!again) return;
    move.phase = Phase::backward;
    copy_in(parameter, move);
    add(move, axes, parameter.elements);
  }

  /// The own part of parameters that rest in host memory comes in before each gather.
  void copy_in(const LocalParameter& parameter, Move move) {
    if (parameter.on_host[0] == Rational(0)) return;
    move.collective = Collective::host_copy;
    move.what = "parameters from host";
    move.dtype = job_.precision.parameters;
    add(move, 0, moved(parameter.rest[0], parameter.on_host[0]), 1);
  }

  static std::int64_t moved(std::int64_t elements, const Rational& part) {
    return in_bytes(part_rounded_up(bytes(elements), part));
  }

  Move reduction(Collective collective, Phase phase, bool each) const {
    return {.collective = collective, .op = ReduceOp::sum, .state = State::gradients,
            .what = "gradients", .dtype = job_.precision.reduce, .phase = phase,
            .per_micro_batch = each};
  }

  /// Brings a partial gradient to the layout of the update, at the cadence of its mode: scatters
  /// first, then all-reduces of what is left.
  void reduce(const LocalParameter& parameter) {
    std::int64_t left = parameter.elements;
    const AxisMask each = parameter.partial & parameter.scattered_each;
    const AxisMask consumed = parameter.partial & parameter.consumed;
    left = scatter(each, left, Phase::backward, true);
    left = scatter(consumed & parameter.owned, left, Phase::backward, true);
    if (const AxisMask whole = consumed & ~parameter.owned; whole != 0) {
      add(reduction(Collective::all_reduce, Phase::backward, true), whole, left);
    }
    const AxisMask rest = parameter.partial & ~parameter.scattered_each & ~parameter.consumed;
    const AxisMask to_owner = rest & (parameter.owned | parameter.deferred);
    left = scatter(to_owner, left, Phase::reduce, false);
    add(reduction(Collective::all_reduce, Phase::reduce, false), rest & ~to_owner, left);
    if (parameter.replicas > 1) {
      Move shared = reduction(Collective::all_reduce, Phase::reduce, false);
      shared.what = "gradients of shared heads";
      add(shared, parameter.replica_axes, left, parameter.replicas);
    }
  }

  std::int64_t scatter(AxisMask axes, std::int64_t elements, Phase phase, bool each) {
    if (axes == 0) return elements;
    const bool whole = job_.profile.scatter_path == ScatterPath::all_reduce_and_slice;
    add(reduction(whole ? Collective::all_reduce : Collective::reduce_scatter, phase, each), axes,
        elements);
    return largest_share(elements, degree_of(job_.placement, axes));
  }

  /// After the update parameters go from the layout of their optimizer state to their own.
  void update(const Parameter& declared, const LocalParameter& parameter) {
    const AxisMask early = parameter.scattered_each & ~parameter.owned & parameter.partial;
    Move gradients{.state = State::gradients, .what = "gradients for the update",
                   .dtype = job_.precision.gradients, .phase = Phase::update};
    add(gradients, early, parameter.elements);
    regather_state(declared, parameter);
    const AxisMask spread =
        parameter.owned & ~parameter.divided[0] & ~parameter.materialized & ~parameter.cut;
    if (spread != 0) {
      Move gather{.what = "updated parameters", .dtype = job_.precision.parameters,
                  .phase = Phase::update};
      // Axes along which parameters rest divided anyway keep their part: only the rest is gathered.
      const std::int64_t part =
          largest_share(parameter.elements, degree_of(job_.placement, parameter.divided[0]));
      add(gather, spread, part);
    }
    copy_states(declared, parameter);
  }

  void regather_state(const Parameter& declared, const LocalParameter& parameter) {
    if (parameter.regathered == 0) return;
    LocalParameter whole = parameter;
    whole.rest[1] =
        largest_share(parameter.elements, degree_of(job_.placement, parameter.owned));
    whole.on_host = {};
    const std::int64_t size = state_bytes(job_, declared, whole).device[1];
    Move gather{.state = State::optimizer, .what = "optimizer state for the update",
                .dtype = Dtype::uint8, .phase = Phase::update};
    add(gather, parameter.regathered, size);
  }

  /// Optimizer state in host memory: the update runs there, or the state comes in and goes back.
  void copy_states(const Parameter& declared, const LocalParameter& parameter) {
    if (parameter.on_host[1] == Rational(0)) return;
    Move copy{.collective = Collective::host_copy, .state = State::optimizer, .dtype = Dtype::uint8,
              .phase = Phase::update};
    if (!parameter.update_on_host) {
      const std::int64_t size = state_bytes(job_, declared, parameter).host[1];
      copy.what = "optimizer state from host";
      add(copy, 0, size, 1);
      copy.what = "optimizer state to host";
      add(copy, 0, size, 1);
      return;
    }
    const std::int64_t part = moved(parameter.rest[1], parameter.on_host[1]);
    if (parameter.on_host[2] == Rational(0)) {
      copy.state = State::gradients;
      copy.what = "gradients to host";
      copy.dtype = job_.precision.gradients;
      add(copy, 0, part, 1);
    }
    if (parameter.on_host[0] == Rational(0)) {
      copy.state = State::parameters;
      copy.what = "updated parameters from host";
      copy.dtype = job_.precision.parameters;
      add(copy, 0, part, 1);
    }
  }

  const Layout& layout_;
  const Job& job_;
  const LocalUnit& unit_;
  std::vector<UnitTerm> terms_;
};

}  // namespace

std::vector<UnitTerm> parameter_traffic(const Layout& layout, int unit) {
  return ParameterTraffic(layout, unit).collect();
}

}  // namespace placet
