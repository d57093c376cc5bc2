#include "derive/communication.h"

#include <algorithm>
#include <numeric>

#include "derive/shared_tensors.h"
#include "derive/stage_terms.h"
#include "derive/stage_units.h"
#include "profile/conditions.h"
#include "units/at.h"
#include "units/checked.h"
#include "units/shares.h"

namespace placet {
namespace {

// Usual numbers, which save growing: of one kind of unit, and beyond those of units.
constexpr std::size_t kTermsOfUnit = 8;
constexpr std::size_t kFurtherTerms = 8;

constexpr std::string_view kJoinedEnds = "embedding and head";

/// Sums the traffic of the units of one stage, then adds what belongs to the stage as a whole.
class StageTraffic {
 public:
  StageTraffic(const Layout& layout, const Stage& stage, const std::vector<UnitRun>& runs,
               const std::vector<UnitMessages>& units)
      : layout_(layout),
        job_(*layout.job),
        profile_(job_.profile),
        stage_(stage),
        runs_(runs),
        units_(units),
        shared_(job_, stage) {}

  CommunicationClass build() {
    out_.stage = stage_.device;
    add_units();
    out_.terms.reserve(terms_.size() + kFurtherTerms);
    pad_and_cut();
    write_between_stages(layout_, stage_, out_.terms);
    write_engine_messages(layout_, stage_, out_.terms);
    for (CommunicationTerm& term : out_.terms) {
      // Terms of shards know what one call of them sends.
      const std::int64_t once = term.sent > bytes(0) ? in_bytes(term.sent) : sent_once(term);
      term.sent = bytes(checked_multiply(once, term.count, "bytes sent"));
      out_.sent += term.sent;
    }
    return std::move(out_);
  }

 private:
  const UnitKind& kind_of(int u) const {
    return job_.model.kinds[at(job_.model.units[at(u)].kind)];
  }

  // --- units

  /// Units of one run differ in nothing but their number: they are written once. Those with shared
  /// tensors are written one by one: which use is the device's first depends on the rest.
  void add_units() {
    terms_.reserve(kTermsOfUnit * units_.size());
    std::vector<Uses> uses(units_.size());
    for (const UnitRun& run : runs_) {
      Uses& own = uses[at(run.local)];
      (run.recomputed ? own.recomputed : own.plain) += run.count;
      if (is_written_alone(run)) own.alone += run.count;
    }
    for (std::size_t k = 0; k < units_.size(); ++k) {
      add_terms(units_[k].plain, uses[k].plain);
      add_terms(units_[k].recomputed, uses[k].recomputed);
    }
    if (fills_buckets()) return add_in_order();
    for (std::size_t k = 0; k < units_.size(); ++k) {
      add_terms(units_[k].parameters, uses[k].plain + uses[k].recomputed - uses[k].alone);
    }
    for (const UnitRun& run : runs_) write_alone(run);
  }

  /// Whether it matters in which order parameters stand in the model.
  bool fills_buckets() const {
    return profile_.gradient_grain == MessageGrain::bucket ||
           profile_.update_grain == MessageGrain::bucket || profile_.replica_bucket_bytes > 0 ||
           layout_.plan.gathers.bucket_elements > 0;
  }

  void add_in_order() {
    for (const UnitRun& run : runs_) {
      if (is_written_alone(run)) {
        write_alone(run);
      } else {
        add_terms(units_[at(run.local)].parameters, run.count);
      }
    }
  }

  /// Units of one local kind on this device.
  struct Uses {
    std::int64_t plain = 0;
    std::int64_t recomputed = 0;
    std::int64_t alone = 0;  // of all: those written one by one
  };

  bool is_written_alone(const UnitRun& run) const {
    return stays_gathered(run) || units_[at(run.local)].shares_tensors || stands_elsewhere(run);
  }

  /// Whether the units are the model's last block, and that is gathered only once.
  bool stays_gathered(const UnitRun& run) const {
    return layout_.plan.gathers.last_block != Keep::none && run.last_block;
  }

  bool stands_elsewhere(const UnitRun& run) const {
    return layout_.stages > 1 && shared_.may_share(layout_.units[at(run.local)].kind);
  }

  void write_alone(const UnitRun& run) {
    if (!is_written_alone(run)) return;
    if (!units_[at(run.local)].shares_tensors) return add_terms(traffic_of(run, 0), run.count);
    for (int i = 0; i < run.count; ++i) add_terms(traffic_of(run, i), 1);
  }

  /// Of unit `i` of a run.
  std::vector<UnitTerm> traffic_of(const UnitRun& run, int i) const {
    std::vector<UnitTerm> terms =
        parameter_traffic(layout_, run.local, other_uses(run.first + i, stands_elsewhere(run)));
    if (stays_gathered(run)) {
      std::erase_if(terms, [](const UnitTerm& t) {
        return t.term.state == State::parameters && t.term.phase == Phase::backward;
      });
    }
    return terms;
  }

  /// Of each parameter, whether the device holds the tensor anyway, as its owner's or as that of an
  /// earlier unit which is tied to the same; and, where asked, whether another device does.
  OtherUses other_uses(int u, bool ask_elsewhere) const {
    const UnitKind& kind = kind_of(u);
    OtherUses out;
    for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
      const Parameter& own = kind.parameters[p];
      out.here.push_back(own.tied && (is_second_use(job_.model, stage_, own) ||
                                      !is_first_use(job_.model, stage_, own, u)));
      out.elsewhere.push_back(ask_elsewhere && shared_.is_elsewhere(u, p));
    }
    return out;
  }

  void add_terms(const std::vector<UnitTerm>& terms, std::int64_t units) {
    if (units == 0) return;
    for (const UnitTerm& unit : terms) {
      UnitTerm made = unit;
      const std::int64_t repeats = unit.per_micro_batch ? micro_batches_of_chunk(layout_) : 1;
      if (joins(unit)) {
        made.term.unit = kJoinedEnds;
        made.term.count = repeats;
        join(std::move(made));
      } else if (unit.grain == MessageGrain::unit || unit.grain == MessageGrain::tensor) {
        made.term.count =
            checked_multiply(checked_multiply(unit.term.count, repeats, "calls"), units, "calls");
        repeat(std::move(made));
      } else {
        made.term.count = repeats;
        made.term.payload = unit.term.payload * units;
        made.term.sent = unit.term.sent * units;
        made.term.unit = {};
        for (BucketTensors& list : made.tensors) list.units = units;
        join(std::move(made));
      }
    }
  }

  /// Whether the term belongs to a unit that embedding and head make together.
  bool joins(const UnitTerm& unit) const {
    if (!layout_.plan.gathers.joins_ends || unit.grain != MessageGrain::unit) return false;
    if (unit.term.state == State::activations) return false;
    return std::ranges::any_of(job_.model.kinds, [&](const UnitKind& kind) {
      return is_end(kind.role) && kind.name == unit.term.unit;
    });
  }

  /// The same message once more: counts add up.
  void repeat(UnitTerm made) {
    for (UnitTerm& known : terms_) {
      const bool same =
          known.term.payload == made.term.payload && known.term.sent == made.term.sent;
      if (!same || !is_same_movement(known, made)) continue;
      known.term.count += made.term.count;
      return;
    }
    terms_.push_back(std::move(made));
  }

  /// Everything that makes the same transition travels together: payloads add up.
  void join(UnitTerm made) {
    for (UnitTerm& known : terms_) {
      if (known.term.count != made.term.count || !is_same_movement(known, made)) continue;
      known.term.payload += made.term.payload;
      known.term.sent += made.term.sent;
      known.tensors.insert(known.tensors.end(), made.tensors.begin(), made.tensors.end());
      return;
    }
    terms_.push_back(std::move(made));
  }

  // --- what an engine's messages carry

  void pad_and_cut() {
    for (UnitTerm& term : terms_) {
      const bool whole = term.grain == MessageGrain::everything;
      if (term.grain == MessageGrain::bucket) {
        cut(term);
      } else {
        if (whole) pad(term);
        out_.terms.push_back(term.term);
      }
    }
  }

  /// An all-reduce of whole gradients, of which each device keeps a part, and what is divided
  /// tensor by tensor.
  bool has_no_shards(const UnitTerm& term) const {
    if (term.term.collective == Collective::all_reduce && term.shard_of <= 1) return true;
    const bool gathered =
        is_gather_for_use(term.term) || term.term.collective == Collective::reduce_scatter;
    return gathered && profile_.gathered_grain == ShardGrain::tensor;
  }

  /// Pads a message of everything, or a bucket, so that its shards are equal.
  void pad(UnitTerm& term) const {
    if (!term.sharded || profile_.grain != ShardGrain::everything || has_no_shards(term)) return;
    const std::int64_t elements = in_bytes(term.term.payload) * 8 / bits_of(term.term.dtype);
    term.term.payload = bytes_of(padded_message(profile_, term, elements), term.term.dtype);
    term.term.sent = {};
  }

  static bool is_gather_for_use(const CommunicationTerm& term) {
    return term.state == State::parameters && term.phase != Phase::update;
  }

  /// When a bucket of this term's is full; of size 0: never, everything is in one.
  BucketRule bucket_rule(const CommunicationTerm& term) const {
    const std::int64_t gathered = layout_.plan.gathers.bucket_elements;
    if (gathered > 0 && is_gather_for_use(term)) {
      return {.size = in_bytes(bytes_of(gathered, term.dtype)),
              .end = BucketEnd::after,
              .from_first = term.phase == Phase::forward};
    }
    BucketRule rule{.first = profile_.first_bucket_bytes, .end = profile_.bucket_ends};
    if (profile_.later_stages_use_one_bucket && !stage_.hosts_first) return rule;
    rule.size = profile_.bucket_bytes;
    if (rule.size == 0) rule.size = profile_.replica_bucket_bytes;
    if (profile_.bucket_elements == 0) return rule;
    const std::int64_t elements =
        std::max(profile_.bucket_elements,
                 checked_multiply(profile_.bucket_elements_per_replica,
                                  value_in_job(Symbol::batch_degree, job_).value_or(1), "bucket"));
    if (profile_.bucket_bytes == 0) rule.size = in_bytes(bytes_of(elements, term.dtype));
    return rule;
  }

  void cut(const UnitTerm& whole) {
    const BucketRule rule = bucket_rule(whole.term);
    std::vector<BucketCount> buckets = {{.bytes = in_bytes(whole.term.payload), .count = 1}};
    if (rule.size > 0) buckets = fill_buckets(whole.tensors, rule);
    for (const BucketCount& bucket : buckets) {
      UnitTerm message = whole;
      if (message.term.payload != bytes(bucket.bytes)) message.term.sent = {};
      message.term.payload = bytes(bucket.bytes);
      message.term.count = checked_multiply(whole.term.count, bucket.count, "calls");
      pad(message);
      out_.terms.push_back(message.term);
    }
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

  const Layout& layout_;
  const Job& job_;
  const Profile& profile_;
  const Stage& stage_;
  const std::vector<UnitRun>& runs_;
  const std::vector<UnitMessages>& units_;
  SharedTensors shared_;
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

namespace {

/// Of a payload, what a device of a group with equal shares sends.
Rational sent_part(const CommunicationTerm& term) {
  switch (term.collective) {
    case Collective::all_reduce:
      return {2 * (term.group - 1), term.group};
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::all_to_all:
      return {term.group - 1, term.group};
    case Collective::send_recv:
    case Collective::broadcast:
    case Collective::host_copy:
      return 1;
  }
  return 1;
}

}  // namespace

Rational exact_sent(const CommunicationTerm& term) {
  return Rational(in_bytes(term.payload)) * term.count * sent_part(term);
}

std::string exact_sent_text(const CommunicationTerm& term) {
  return text_of_part(checked_multiply(in_bytes(term.payload), term.count, "bytes sent"),
                      sent_part(term));
}

bool is_same_movement(const CommunicationTerm& a, const CommunicationTerm& b) {
  // What differs most often comes first, text last.
  const bool same_group =
      a.axes == b.axes && a.group == b.group && a.apart == b.apart && a.collective == b.collective;
  const bool same_value = a.phase == b.phase && a.state == b.state && a.dtype == b.dtype &&
                          a.nvme == b.nvme && a.op == b.op;
  return same_group && same_value && a.what == b.what && a.unit == b.unit && a.source == b.source;
}

bool is_same_movement(const UnitTerm& a, const UnitTerm& b) {
  return a.grain == b.grain && a.sharded == b.sharded && a.shard_of == b.shard_of &&
         is_same_movement(a.term, b.term);
}

std::int64_t padded_message(const Profile& profile, const UnitTerm& term, std::int64_t elements) {
  const std::int64_t shards = term.shard_of > 1 ? term.shard_of : term.term.group;
  const std::int64_t multiple = std::lcm(checked_multiply(shards, profile.pad_elements, "padding"),
                                         profile.pad_total_elements);
  const std::int64_t whole = checked_multiply(elements, term.shard_of, "padding");
  return padded(whole, multiple) / term.shard_of;
}

std::vector<UnitMessages> messages_of_units(const Layout& layout) {
  const Job& job = *layout.job;
  std::vector<UnitMessages> units(layout.units.size());
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
  return units;
}

StageKinds stage_kinds(const Layout& layout, const std::vector<Stage>& stages,
                       const std::vector<StageUnits>& units,
                       const std::vector<UnitMessages>& messages) {
  StageKinds out;
  std::vector<Crossings> crossings;
  out.of_stage.reserve(stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const Crossings crossed = crossings_of(layout, stages[s]);
    std::size_t kind = 0;
    while (kind < crossings.size() &&
           (crossings[kind] != crossed || !are_alike(out.units[kind], units[s]))) {
      ++kind;
    }
    out.of_stage.push_back(kind);
    if (kind < crossings.size()) continue;
    crossings.push_back(crossed);
    out.units.push_back(units[s]);
    out.traffic.push_back(StageTraffic(layout, stages[s], units[s].runs, messages).build());
  }
  return out;
}

std::vector<CommunicationClass> class_per_stage(const StageKinds& kinds,
                                                const std::vector<Stage>& stages) {
  std::vector<CommunicationClass> classes;
  classes.reserve(stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    classes.push_back(kinds.traffic[kinds.of_stage[s]]);
    classes.back().stage = stages[s].device;
  }
  return classes;
}

std::vector<CommunicationClass> derive_communication(const Layout& layout,
                                                     const std::vector<Stage>& stages) {
  const std::vector<StageUnits> units = units_by_stage(layout, stages);
  return class_per_stage(stage_kinds(layout, stages, units, messages_of_units(layout)), stages);
}

}  // namespace placet
