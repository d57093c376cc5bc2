#include "derive/communication.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "derive/memory.h"
#include "profile/conditions.h"
#include "units/checked.h"
#include "units/shares.h"

namespace placet {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

constexpr std::string_view kJoinedEnds = "embedding and head";

struct UnitTerms {
  std::vector<UnitTerm> plain;       // activations, not recomputed
  std::vector<UnitTerm> recomputed;  // activations
  std::vector<UnitTerm> parameters;  // of units without shared tensors
  bool shares_tensors = false;       // some parameter is another unit's tensor
};

/// Sums the traffic of the units of one stage, then adds what belongs to the stage as a whole.
class StageTraffic {
 public:
  StageTraffic(const Layout& layout, const Stage& stage, const std::vector<UnitTerms>& units)
      : layout_(layout), job_(*layout.job), profile_(job_.profile), stage_(stage), units_(units) {}

  CommunicationClass build() {
    out_.stage = stage_.device;
    add_units();
    pad_and_cut();
    add_boundaries();
    add_shared();
    add_messages();
    for (CommunicationTerm& term : out_.terms) {
      term.sent = bytes(checked_multiply(sent_once(term), term.count, "bytes sent"));
      out_.sent += term.sent;
    }
    return std::move(out_);
  }

 private:
  const UnitKind& kind_of(int u) const {
    return job_.model.kinds[at(job_.model.units[at(u)].kind)];
  }

  bool is_recomputed(int u, std::int64_t ordinal) const {
    const UnitRole role = kind_of(u).role;
    if (role != UnitRole::block && role != UnitRole::mtp) return false;
    const Recompute& choice = job_.recompute;
    if (choice.kind == Recompute::Kind::every) {
      return choice.count > 0 && ordinal % choice.count == 0;
    }
    if (choice.kind == Recompute::Kind::first) return ordinal < choice.count;
    return true;
  }

  // --- units

  /// Units of one local kind differ in nothing but their number: count them, then write once. Those
  /// with shared tensors are written one by one: which use is the device's first depends on the
  /// rest.
  void add_units() {
    std::vector<std::array<std::int64_t, 2>> counts(units_.size(), {0, 0});
    std::vector<std::int64_t> alone(units_.size(), 0);
    std::int64_t ordinal = 0;
    for (const std::vector<int>& chunk : stage_.chunks) {
      for (int u : chunk) {
        const auto k = at(layout_.unit_of[at(u)]);
        ++counts[k][is_recomputed(u, ordinal) ? 1 : 0];
        if (is_written_alone(u)) ++alone[k];
        if (kind_of(u).role == UnitRole::block) ++ordinal;
      }
    }
    for (std::size_t k = 0; k < units_.size(); ++k) {
      add_terms(units_[k].plain, counts[k][0]);
      add_terms(units_[k].recomputed, counts[k][1]);
    }
    for (std::size_t k = 0; k < units_.size(); ++k) {
      add_terms(units_[k].parameters, counts[k][0] + counts[k][1] - alone[k]);
    }
    for (const std::vector<int>& chunk : stage_.chunks) {
      for (int u : chunk) {
        if (is_written_alone(u)) add_terms(traffic_of(u), 1);
      }
    }
  }

  bool is_written_alone(int u) const {
    return stays_gathered(u) || units_[at(layout_.unit_of[at(u)])].shares_tensors;
  }

  /// Whether the unit is the model's last block, and the engine gathers that only once.
  bool stays_gathered(int u) const {
    return profile_.last_block_stays_gathered && is_last_block(job_.model, u);
  }

  std::vector<UnitTerm> traffic_of(int u) const {
    std::vector<UnitTerm> terms =
        parameter_traffic(layout_, layout_.unit_of[at(u)], second_uses(u));
    if (stays_gathered(u)) {
      std::erase_if(terms, [](const UnitTerm& t) {
        return t.term.state == State::parameters && t.term.phase == Phase::backward;
      });
    }
    return terms;
  }

  /// By parameter: whether the device holds the tensor anyway, as its owner's or as that of an
  /// earlier unit which is tied to the same.
  std::vector<bool> second_uses(int u) const {
    const UnitKind& kind = kind_of(u);
    std::vector<bool> out;
    for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
      const Parameter& own = kind.parameters[p];
      out.push_back(own.tied && (is_second_use(job_.model, stage_, own) ||
                                 !is_first_use(kind, static_cast<int>(p), u)));
    }
    return out;
  }

  void add_terms(const std::vector<UnitTerm>& terms, std::int64_t units) {
    if (units == 0) return;
    for (const UnitTerm& unit : terms) {
      UnitTerm made = unit;
      const std::int64_t repeats = unit.per_micro_batch ? layout_.micro_batches : 1;
      if (joins(unit)) {
        made.term.unit = kJoinedEnds;
        made.term.count = repeats;
        join(made);
      } else if (unit.grain == MessageGrain::unit || unit.grain == MessageGrain::tensor) {
        made.term.count =
            checked_multiply(checked_multiply(unit.term.count, repeats, "calls"), units, "calls");
        repeat(made);
      } else {
        made.term.count = repeats;
        made.term.payload = unit.term.payload * units;
        made.term.unit = {};
        join(made);
      }
    }
  }

  /// Whether the term belongs to a unit that embedding and head make together.
  bool joins(const UnitTerm& unit) const {
    if (!profile_.joins_ends || unit.grain != MessageGrain::unit) return false;
    if (unit.term.state == State::activations) return false;
    return std::ranges::any_of(job_.model.kinds, [&](const UnitKind& kind) {
      const bool end = kind.role == UnitRole::embedding || kind.role == UnitRole::head;
      return end && kind.name == unit.term.unit;
    });
  }

  /// The same message once more: counts add up.
  void repeat(const UnitTerm& made) {
    for (UnitTerm& known : terms_) {
      if (!is_same(known, made) || known.term.payload != made.term.payload) continue;
      known.term.count += made.term.count;
      return;
    }
    terms_.push_back(made);
  }

  /// Everything that makes the same transition travels together: payloads add up.
  void join(const UnitTerm& made) {
    for (UnitTerm& known : terms_) {
      if (!is_same(known, made) || known.term.count != made.term.count) continue;
      known.term.payload += made.term.payload;
      return;
    }
    terms_.push_back(made);
  }

  /// Equal but for payload and count.
  static bool is_same(const UnitTerm& a, const UnitTerm& b) {
    CommunicationTerm same = b.term;
    same.count = a.term.count;
    same.payload = a.term.payload;
    return same == a.term && a.grain == b.grain && a.sharded == b.sharded &&
           a.shard_of == b.shard_of;
  }

  // --- what an engine's messages carry

  void pad_and_cut() {
    for (UnitTerm& term : terms_) {
      if (term.grain != MessageGrain::everything && term.grain != MessageGrain::bucket) {
        out_.terms.push_back(term.term);
        continue;
      }
      pad(term);
      cut(term);
    }
  }

  /// Pads a message of everything so that its shards are equal.
  void pad(UnitTerm& term) const {
    if (!term.sharded || profile_.grain != ShardGrain::everything) return;
    const std::int64_t elements = in_bytes(term.term.payload) * 8 / bits_of(term.term.dtype);
    term.term.payload = bytes_of(padded_message(profile_, term, elements), term.term.dtype);
  }

  /// Bytes of a full bucket; 0: everything in one.
  std::int64_t bucket_size(const CommunicationTerm& term) const {
    if (profile_.later_stages_use_one_bucket && !stage_.hosts_first) return 0;
    if (profile_.bucket_bytes > 0) return profile_.bucket_bytes;
    const std::int64_t elements = std::max(
        profile_.bucket_elements,
        checked_multiply(profile_.bucket_elements_per_replica, layout_.data_degree, "bucket"));
    return in_bytes(bytes_of(elements, term.dtype));
  }

  void cut(const UnitTerm& whole) {
    CommunicationTerm term = whole.term;
    const std::int64_t size = bucket_size(term);
    const std::int64_t payload = in_bytes(term.payload);
    if (whole.grain != MessageGrain::bucket || size <= 0 || payload <= size) {
      out_.terms.push_back(term);
      return;
    }
    CommunicationTerm last = term;
    last.payload = bytes(payload % size);
    term.payload = bytes(size);
    term.count = checked_multiply(term.count, payload / size, "calls");
    out_.terms.push_back(term);
    if (last.payload > bytes(0)) out_.terms.push_back(last);
  }

  /// Bytes the busiest device sends in one call. Shards follow the shares of their axes; a value
  /// that is no state of an axis with shares is divided evenly.
  std::int64_t sent_once(const CommunicationTerm& term) const {
    const std::int64_t payload = in_bytes(term.payload);
    const bool shards = (term.collective == Collective::reduce_scatter ||
                         term.collective == Collective::all_gather) &&
                        degree_of(job_.placement, term.axes) == term.group;
    const bool uneven = shards && std::ranges::any_of(job_.placement.axes, [&](const auto& axis) {
                          const auto a = static_cast<int>(&axis - job_.placement.axes.data());
                          return !axis.shares.empty() && (term.axes & axis_bit(a)) != 0;
                        });
    if (!uneven) return sent_per_call(term.collective, payload, term.group, term.dtype);
    const std::int64_t bits = bits_of(term.dtype);
    return payload - smallest_part(job_.placement, payload * 8 / bits, term.axes) * bits / 8;
  }

  // --- between stages

  /// Activations (and their gradients) that cross stage boundaries.
  void add_boundaries() {
    if (layout_.stages == 1) return;
    const std::optional<CommunicationTerm> crossing = boundary();
    if (!crossing) return;
    const std::int64_t virtuals = virtual_stages(job_.schedule, layout_.stages);
    // In a bidirectional pipeline each chunk carries half of the micro-batches.
    const bool both_ways = job_.schedule.hosting == Hosting::bidirectional;
    const std::int64_t m =
        both_ways ? largest_share(layout_.micro_batches, 2) : layout_.micro_batches;
    std::int64_t out = 0;
    std::int64_t in = 0;
    for (std::int64_t stage : stage_.virtual_stages) {
      if (stage + 1 < virtuals && !stays_here(stage + 1)) out += m;
      if (stage > 0 && !stays_here(stage - 1)) in += m;
    }
    // What comes in forward goes back as a gradient, and the other way round.
    add_crossing(*crossing, "boundary activations", Phase::forward, out, in);
    add_crossing(*crossing, "boundary gradients", Phase::backward, in, out);
  }

  /// The stream as it stands between blocks; none in a model without operators.
  std::optional<CommunicationTerm> boundary() const {
    for (const LocalUnit& unit : layout_.units) {
      const UnitKind& kind = job_.model.kinds[at(unit.kind)];
      if (kind.role != UnitRole::block || kind.values.empty()) continue;
      return CommunicationTerm{.axes = layout_.layer_axes,
                               .collective = Collective::send_recv,
                               .state = State::activations,
                               .dtype = job_.precision.compute,
                               .payload = bytes_of(unit.values.front(), job_.precision.compute),
                               .group = 2};
    }
    return std::nullopt;
  }

  void add_crossing(CommunicationTerm term, std::string_view what, Phase phase, std::int64_t sends,
                    std::int64_t receives) {
    term.what = what;
    term.phase = phase;
    const AxisMask whole = layout_.tensor_axes & ~layout_.split_residual_axes;
    const bool parts = profile_.sends_boundary_in_parts && degree_of(job_.placement, whole) > 1;
    CommunicationTerm gather = term;
    if (parts) {
      const std::int64_t elements = in_bytes(term.payload) * 8 / bits_of(term.dtype);
      term.payload =
          bytes_of(largest_share(elements, degree_of(job_.placement, whole)), term.dtype);
    }
    term.count = sends;
    if (sends > 0) out_.terms.push_back(term);
    if (!parts || receives == 0) return;
    gather.axes = whole;
    gather.group = degree_of(job_.placement, whole);
    gather.collective = Collective::all_gather;
    gather.count = receives;
    out_.terms.push_back(gather);
  }

  /// Whether a neighbouring virtual stage stands on this device (the turn of a vee).
  bool stays_here(std::int64_t neighbour) const {
    return job_.schedule.hosting == Hosting::vee &&
           std::ranges::find(stage_.virtual_stages, neighbour) != stage_.virtual_stages.end();
  }

  /// Tensors hosted on several devices of the layer axes: their gradients are partial over the
  /// hosts.
  void add_shared() {
    if (layout_.stages == 1) return;
    std::int64_t elements = 0;
    for (const std::vector<int>& chunk : stage_.chunks) {
      for (int u : chunk) {
        elements = checked_add(elements, shared_elements(u), "gradients of shared tensors");
      }
    }
    if (elements == 0) return;
    out_.terms.push_back({.axes = layout_.layer_axes,
                          .collective = Collective::all_reduce,
                          .op = ReduceOp::sum,
                          .state = State::gradients,
                          .what = "gradients of shared tensors",
                          .dtype = job_.precision.reduce,
                          .phase = Phase::reduce,
                          .payload = bytes_of(elements, job_.precision.reduce),
                          .count = 1,
                          .group = 2});
  }

  std::int64_t shared_elements(int u) const {
    const LocalUnit& local = layout_.units[at(layout_.unit_of[at(u)])];
    const UnitKind& kind = kind_of(u);
    const bool both_ways = job_.schedule.hosting == Hosting::bidirectional;
    std::int64_t elements = 0;
    for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
      const LocalParameter& parameter = local.parameters[p];
      if (!parameter.trainable) continue;
      const bool shared =
          both_ways ? !kind.parameters[p].tied : is_shared_elsewhere(kind, static_cast<int>(p), u);
      if (!shared) continue;
      elements += profile_.shared_gradients_whole ? parameter.elements
                                                  : left_after_scatter(layout_, parameter);
    }
    return elements;
  }

  bool hosts_kind(int kind) const {
    return std::ranges::any_of(stage_.chunks, [&](const std::vector<int>& chunk) {
      return std::ranges::any_of(chunk,
                                 [&](int u) { return job_.model.units[at(u)].kind == kind; });
    });
  }

  /// A tie whose other end stands on another device. Each device counts the tensor once.
  bool is_shared_elsewhere(const UnitKind& kind, int parameter, int u) const {
    const Parameter& own = kind.parameters[at(parameter)];
    if (own.tied) return !hosts_kind(own.tied->kind) && is_first_use(kind, parameter, u);
    const int number = job_.model.units[at(u)].kind;
    for (std::size_t k = 0; k < job_.model.kinds.size(); ++k) {
      for (const Parameter& other : job_.model.kinds[k].parameters) {
        const bool here =
            other.tied && other.tied->kind == number && other.tied->parameter == parameter;
        if (here && !hosts_kind(static_cast<int>(k))) return true;
      }
    }
    return false;
  }

  /// Several units of this device may use the same remote tensor (head and prediction modules).
  bool is_first_use(const UnitKind& kind, int parameter, int u) const {
    for (const std::vector<int>& chunk : stage_.chunks) {
      for (int other : chunk) {
        if (other == u) return true;
        for (const Parameter& p : kind_of(other).parameters) {
          if (p.tied == kind.parameters[at(parameter)].tied) return false;
        }
      }
    }
    return true;
  }

  // --- the profile's own messages

  AxisMask axes_with(const EngineMessage& message) const {
    if (message.over_owners) return owner_axes();
    AxisMask mask = 0;
    for (std::size_t a = 0; a < job_.placement.axes.size(); ++a) {
      const AxisPlacement& axis = job_.placement.axes[a];
      const Cut experts = how_of(axis, bit_of(TensorClass::experts), std::nullopt).cut;
      const bool listed = std::ranges::any_of(message.over, [&](Cut cut) {
        return cut == Cut::expert ? experts == Cut::expert : axis.how.cut == cut;
      });
      const bool around =
          (message.over_experts && (experts == Cut::expert || experts == Cut::tensor)) ||
          (message.over_cut_experts && experts == Cut::tensor);
      if (message.over_all || listed || around) mask |= axis_bit(static_cast<int>(a));
    }
    return mask;
  }

  /// Axes along which devices update different elements of some tensor.
  AxisMask owner_axes() const {
    AxisMask mask = layout_.layer_axes;
    for (const LocalUnit& unit : layout_.units) {
      for (const LocalParameter& parameter : unit.parameters) {
        if (parameter.trainable) mask |= parameter.cut | parameter.owned;
      }
    }
    return mask;
  }

  void add_messages() {
    for (const EngineMessage& message : profile_.messages) {
      if (!all_hold(message.when, layout_, stage_)) continue;
      const AxisMask axes = axes_with(message);
      const std::int64_t whole = degree_of(job_.placement, axes);
      const bool pair = message.collective == Collective::send_recv;
      const std::int64_t elements = evaluate(message.payload_elements, layout_, stage_);
      const std::int64_t count = evaluate(message.count, layout_, stage_);
      if (whole <= 1 || elements <= 0 || count <= 0) continue;
      out_.terms.push_back({.axes = axes,
                            .collective = message.collective,
                            .op = message.op,
                            .state = message.state,
                            .what = message.what,
                            .dtype = message.dtype,
                            .phase = message.phase,
                            .payload = bytes_of(elements, message.dtype),
                            .count = count,
                            .group = pair ? 2 : whole,
                            .source = message.source});
    }
  }

  const Layout& layout_;
  const Job& job_;
  const Profile& profile_;
  const Stage& stage_;
  const std::vector<UnitTerms>& units_;
  std::vector<UnitTerm> terms_;
  CommunicationClass out_;
};

}  // namespace

std::int64_t sent_per_call(Collective collective, std::int64_t payload, std::int64_t group,
                           Dtype dtype) {
  const std::int64_t bits = bits_of(dtype);
  const std::int64_t own = payload * 8 / bits / group * bits / 8;
  switch (collective) {
    case Collective::all_reduce:
      return 2 * (payload - own);
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::all_to_all:
      return payload - own;
    case Collective::send_recv:
    case Collective::broadcast:
    case Collective::host_copy:
      return payload;
  }
  return payload;
}

Rational exact_sent(const CommunicationTerm& term) {
  const Rational total = Rational(in_bytes(term.payload)) * term.count;
  switch (term.collective) {
    case Collective::all_reduce:
      return total * Rational(2 * (term.group - 1), term.group);
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::all_to_all:
      return total * Rational(term.group - 1, term.group);
    case Collective::send_recv:
    case Collective::broadcast:
    case Collective::host_copy:
      return total;
  }
  return total;
}

std::int64_t padded_message(const Profile& profile, const UnitTerm& term, std::int64_t elements) {
  const std::int64_t shards = term.shard_of > 1 ? term.shard_of : term.term.group;
  const std::int64_t multiple = std::lcm(checked_multiply(shards, profile.pad_elements, "padding"),
                                         profile.pad_total_elements);
  const std::int64_t whole = checked_multiply(elements, term.shard_of, "padding");
  return checked_multiply(largest_share(whole, multiple), multiple, "padding") / term.shard_of;
}

std::vector<CommunicationClass> derive_communication(const Layout& layout,
                                                     const std::vector<Stage>& stages) {
  const Job& job = *layout.job;
  std::vector<UnitTerms> units(layout.units.size());
  for (std::size_t k = 0; k < units.size(); ++k) {
    const int unit = static_cast<int>(k);
    const UnitRole role = job.model.kinds[at(layout.units[k].kind)].role;
    const bool is_block = role == UnitRole::block || role == UnitRole::mtp;
    const bool mixed = job.recompute.kind == Recompute::Kind::every ||
                       job.recompute.kind == Recompute::Kind::first;
    if (!is_block || mixed) units[k].plain = activation_traffic(layout, unit, false);
    if (is_block) units[k].recomputed = activation_traffic(layout, unit, true);
    units[k].parameters = parameter_traffic(layout, unit, {});
    units[k].shares_tensors =
        std::ranges::any_of(job.model.kinds[at(layout.units[k].kind)].parameters,
                            [](const Parameter& parameter) { return parameter.tied.has_value(); });
  }
  std::vector<CommunicationClass> classes;
  classes.reserve(stages.size());
  for (const Stage& stage : stages) {
    classes.push_back(StageTraffic(layout, stage, units).build());
  }
  return classes;
}

}  // namespace placet
