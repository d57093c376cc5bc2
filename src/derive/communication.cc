#include "derive/communication.h"

#include <algorithm>

#include "derive/memory.h"
#include "units/checked.h"
#include "units/shares.h"

namespace placet {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

struct UnitTraffic {
  std::vector<UnitTerm> plain;       // activations, not recomputed
  std::vector<UnitTerm> recomputed;  // activations
  std::vector<UnitTerm> parameters;
};

/// Sums the traffic of the units of one stage, then adds what belongs to the stage as a whole.
class StageTraffic {
 public:
  StageTraffic(const Layout& layout, const Stage& stage, const std::vector<UnitTraffic>& units)
      : layout_(layout), job_(*layout.job), stage_(stage), units_(units) {}

  CommunicationClass build() {
    out_.stage = stage_.device;
    add_units();
    add_boundaries();
    add_shared();
    add_messages();
    for (CommunicationTerm& term : out_.terms) {
      const std::int64_t each =
          sent_per_call(term.collective, in_bytes(term.payload), term.group, term.dtype);
      term.sent = bytes(checked_multiply(each, term.count, "bytes sent"));
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
    if (choice.kind == Recompute::Kind::every) return choice.count > 0 && ordinal % choice.count == 0;
    if (choice.kind == Recompute::Kind::first) return ordinal < choice.count;
    return true;
  }

  void add_units() {
    // Units of one local kind differ in nothing but their number: count them, then write once.
    std::vector<std::array<std::int64_t, 2>> counts(units_.size(), {0, 0});
    std::int64_t ordinal = 0;
    for (const std::vector<int>& chunk : stage_.chunks) {
      for (int u : chunk) {
        const auto k = at(layout_.unit_of[at(u)]);
        ++counts[k][is_recomputed(u, ordinal) ? 1 : 0];
        if (kind_of(u).role == UnitRole::block) ++ordinal;
      }
    }
    for (std::size_t k = 0; k < units_.size(); ++k) {
      add_terms(units_[k].plain, counts[k][0]);
      add_terms(units_[k].recomputed, counts[k][1]);
    }
    for (std::size_t k = 0; k < units_.size(); ++k) {
      add_terms(units_[k].parameters, counts[k][0] + counts[k][1]);
    }
  }

  void add_terms(const std::vector<UnitTerm>& terms, std::int64_t units) {
    if (units == 0) return;
    for (const UnitTerm& unit : terms) {
      CommunicationTerm term = unit.term;
      const std::int64_t repeats = unit.per_micro_batch ? layout_.micro_batches : 1;
      const MessageGrain grain = grain_of(term);
      if (grain == MessageGrain::unit) {
        term.count = checked_multiply(checked_multiply(term.count, repeats, "calls"), units, "calls");
        merge(term);
        continue;
      }
      term.count = repeats;
      term.payload = term.payload * units;
      term.unit = {};
      merge_payload(term, grain);
    }
  }

  MessageGrain grain_of(const CommunicationTerm& term) const {
    if (term.collective == Collective::host_copy) return MessageGrain::unit;
    if (term.state == State::gradients && term.op != ReduceOp::none) {
      return job_.profile.gradient_grain;
    }
    if (term.state == State::parameters && term.phase == Phase::update) {
      return job_.profile.update_grain;
    }
    return MessageGrain::unit;
  }

  void merge(const CommunicationTerm& term) {
    for (CommunicationTerm& known : out_.terms) {
      if (known.what.data() != term.what.data() || known.payload != term.payload) continue;
      CommunicationTerm same = term;
      same.count = known.count;
      if (!(same == known)) continue;
      known.count += term.count;
      return;
    }
    out_.terms.push_back(term);
  }

  /// Everything that makes the same transition travels together; buckets are cut by finish_buckets.
  void merge_payload(const CommunicationTerm& term, MessageGrain grain) {
    for (CommunicationTerm& known : out_.terms) {
      if (known.what.data() != term.what.data()) continue;
      CommunicationTerm same = term;
      same.payload = known.payload;
      if (!(same == known)) continue;
      known.payload += term.payload;
      return;
    }
    out_.terms.push_back(term);
    if (grain == MessageGrain::bucket) bucketed_.push_back(out_.terms.size() - 1);
  }

  /// Activations (and their gradients) that cross stage boundaries.
  void add_boundaries() {
    cut_buckets();
    if (layout_.stages == 1) return;
    std::int64_t forward = 0;
    std::int64_t backward = 0;
    const std::int64_t virtuals = virtual_stages(job_.schedule, layout_.stages);
    const bool both_ways = job_.schedule.hosting == Hosting::bidirectional;
    for (std::int64_t stage : stage_.virtual_stages) {
      // In a bidirectional pipeline each chunk carries half of the micro-batches.
      const std::int64_t m = both_ways ? largest_share(layout_.micro_batches, 2)
                                       : layout_.micro_batches;
      if (stage + 1 < virtuals && !stays_here(stage, stage + 1)) forward += m;
      if (stage > 0 && !stays_here(stage, stage - 1)) backward += m;
    }
    const std::int64_t elements = checked_multiply(
        checked_multiply(layout_.residual_tokens, layout_.micro_batch, "tokens"),
        job_.model.figures.hidden, "boundary activations");
    CommunicationTerm term{.axes = layout_.layer_axes, .collective = Collective::send_recv,
                           .state = State::activations, .what = "boundary activations",
                           .dtype = job_.precision.compute, .phase = Phase::forward,
                           .payload = bytes_of(elements, job_.precision.compute),
                           .count = forward, .group = 2};
    if (forward > 0) out_.terms.push_back(term);
    term.what = "boundary gradients";
    term.phase = Phase::backward;
    term.count = backward;
    if (backward > 0) out_.terms.push_back(term);
  }

  /// Whether two neighbouring virtual stages stand on this device (the turn of a vee).
  bool stays_here(std::int64_t, std::int64_t neighbour) const {
    return job_.schedule.hosting == Hosting::vee &&
           std::ranges::find(stage_.virtual_stages, neighbour) != stage_.virtual_stages.end();
  }

  void cut_buckets() {
    for (std::size_t i : bucketed_) {
      CommunicationTerm& term = out_.terms[i];
      const std::int64_t limit = in_bytes(bytes_of(job_.profile.bucket_elements, term.dtype));
      const std::int64_t whole = in_bytes(term.payload);
      if (limit <= 0 || whole <= limit) continue;
      CommunicationTerm last = term;
      last.payload = bytes(whole % limit);
      term.payload = bytes(limit);
      term.count *= whole / limit;
      if (last.payload > bytes(0)) out_.terms.push_back(last);
    }
  }

  /// Tensors hosted on several devices of the layer axes: their gradients are partial over the hosts.
  void add_shared() {
    if (layout_.stages == 1) return;
    std::int64_t elements = 0;
    for (const std::vector<int>& chunk : stage_.chunks) {
      for (int u : chunk) elements += shared_elements(u);
    }
    if (elements == 0) return;
    out_.terms.push_back({.axes = layout_.layer_axes, .collective = Collective::all_reduce,
                          .op = ReduceOp::sum, .state = State::gradients,
                          .what = "gradients of shared tensors",
                          .dtype = job_.precision.gradients, .phase = Phase::reduce,
                          .payload = bytes_of(elements, job_.precision.gradients), .count = 1,
                          .group = 2});
  }

  std::int64_t shared_elements(int u) const {
    const LocalUnit& local = layout_.units[at(layout_.unit_of[at(u)])];
    const UnitKind& kind = kind_of(u);
    const bool both_ways = job_.schedule.hosting == Hosting::bidirectional;
    std::int64_t elements = 0;
    for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
      if (!local.parameters[p].trainable) continue;
      const int parameter = static_cast<int>(p);
      if (both_ways || is_shared_elsewhere(kind, parameter, u)) {
        elements += local.parameters[p].elements;
      }
    }
    return elements;
  }

  bool hosts_kind(int kind) const {
    return std::ranges::any_of(stage_.chunks, [&](const std::vector<int>& chunk) {
      return std::ranges::any_of(
          chunk, [&](int u) { return job_.model.units[at(u)].kind == kind; });
    });
  }

  /// A tie whose other end stands on another device. Each device counts the tensor once.
  bool is_shared_elsewhere(const UnitKind& kind, int parameter, int u) const {
    const Parameter& own = kind.parameters[at(parameter)];
    if (own.tied) return !hosts_kind(own.tied->kind) && is_first_use(kind, parameter, u);
    const int number = job_.model.units[at(u)].kind;
    for (std::size_t k = 0; k < job_.model.kinds.size(); ++k) {
      for (const Parameter& other : job_.model.kinds[k].parameters) {
        const bool here = other.tied && other.tied->kind == number &&
                          other.tied->parameter == parameter;
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

  AxisMask axes_with(const EngineMessage& message) const {
    AxisMask mask = 0;
    for (std::size_t a = 0; a < job_.placement.axes.size(); ++a) {
      const Cut cut = job_.placement.axes[a].how.cut;
      const bool listed = std::ranges::find(message.over, cut) != message.over.end();
      if (message.over_all || listed) mask |= axis_bit(static_cast<int>(a));
    }
    return mask;
  }

  void add_messages() {
    for (const EngineMessage& message : job_.profile.messages) {
      if (!all_hold(message.when, layout_, stage_)) continue;
      const AxisMask axes = axes_with(message);
      const std::int64_t group = degree_of(job_.placement, axes);
      const std::int64_t elements = evaluate(message.payload_elements, layout_, stage_);
      const std::int64_t count = evaluate(message.count, layout_, stage_);
      if (group <= 1 || elements <= 0 || count <= 0) continue;
      out_.terms.push_back({.axes = axes, .collective = message.collective, .op = message.op,
                            .state = message.state, .what = message.what,
                            .dtype = message.dtype, .phase = message.phase,
                            .payload = bytes_of(elements, message.dtype), .count = count,
                            .group = group, .source = message.source});
    }
  }

  const Layout& layout_;
  const Job& job_;
  const Stage& stage_;
  const std::vector<UnitTraffic>& units_;
  std::vector<std::size_t> bucketed_;
  CommunicationClass out_;
};

}  // namespace

std::int64_t sent_per_call(Collective collective, std::int64_t payload, std::int64_t group,
                           Dtype dtype) {
  const std::int64_t bits = bits_of(dtype);
  const std::int64_t own = payload * 8 / bits / group * bits / 8;
  switch (collective) {
    case Collective::all_reduce: return 2 * (payload - own);
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::all_to_all: return payload - own;
    case Collective::send_recv:
    case Collective::broadcast:
    case Collective::host_copy: return payload;
  }
  return payload;
}

Rational exact_sent(const CommunicationTerm& term) {
  const Rational total = Rational(in_bytes(term.payload)) * term.count;
  const Rational part(term.group - 1, term.group);
  switch (term.collective) {
    case Collective::all_reduce: return total * part * 2;
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::all_to_all: return total * part;
    case Collective::send_recv:
    case Collective::broadcast:
    case Collective::host_copy: return total;
  }
  return total;
}

std::vector<CommunicationClass> derive_communication(const Layout& layout,
                                                     const std::vector<Stage>& stages) {
  const Job& job = *layout.job;
  std::vector<UnitTraffic> units(layout.units.size());
  for (std::size_t k = 0; k < units.size(); ++k) {
    const int unit = static_cast<int>(k);
    const UnitRole role = job.model.kinds[at(layout.units[k].kind)].role;
    const bool is_block = role == UnitRole::block || role == UnitRole::mtp;
    const bool mixed = job.recompute.kind == Recompute::Kind::every ||
                       job.recompute.kind == Recompute::Kind::first;
    if (!is_block || mixed) units[k].plain = activation_traffic(layout, unit, false);
    if (is_block) units[k].recomputed = activation_traffic(layout, unit, true);
    units[k].parameters = parameter_traffic(layout, unit, {});
  }
  std::vector<CommunicationClass> classes;
  classes.reserve(stages.size());
  for (const Stage& stage : stages) {
    classes.push_back(StageTraffic(layout, stage, units).build());
  }
  return classes;
}

}  // namespace placet
