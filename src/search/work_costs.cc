#include "search/work_costs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "derive/collective_time.h"
#include "derive/communication.h"
#include "derive/layout.h"
#include "derive/unit_memory.h"
#include "derive/unit_time.h"
#include "layout/realised.h"
#include "units/at.h"
#include "units/checked.h"

namespace placet {
namespace {

bool is_recomputed(UnitRole role) { return role == UnitRole::block || role == UnitRole::mtp; }

void add_part(const PartTime& part, double& device, double& host) {
  const double own = in_seconds(part.device());
  if (own == 0) return;
  device += own;
  host += in_seconds(part.host);
}

/// Bytes of a unit that is computed once, or of one that is recomputed by the job's word.
UnitCost bytes_of(const Layout& layout, int unit, const KnownMessages& traffic) {
  const bool again = traffic.recomputed != nullptr;
  const UnitMemory memory = unit_memory_in_parts(layout, unit, again);
  UnitCost out{.kept = memory.kept, .waiting = memory.waiting};
  for (const UnitTerm& term : again ? *traffic.recomputed : traffic.plain) {
    out.sent += sent_by(term.term);
  }
  // Gradients of weights are left out: their buffers depend on where the states live.
  out.most_forward = std::max(memory.forward.total(), memory.loss.total());
  out.most_inputs = memory.inputs.total();
  out.most = std::max(out.most_forward, memory.backward.total() - memory.backward.weight_gradient);
  return out;
}

/// The same with its seconds by the states that make them shortest, and longest.
UnitCost timed(UnitCost out, const UnitTime& time, const UnitTime& longest) {
  out.weights = in_seconds(time.weights);
  add_part(time[WorkPart::forward], out.forward, out.forward_host);
  add_part(time[WorkPart::again], out.backward, out.backward_host);
  add_part(time[WorkPart::backward], out.backward, out.backward_host);
  out.longest_backward =
      in_seconds(longest[WorkPart::again].device() + longest[WorkPart::backward].device());
  out.longest_weights = in_seconds(longest.weights);
  return out;
}

/// What takes no longer than either of two standings; bytes are the same on both.
UnitCost least_of(UnitCost a, const UnitCost& b) {
  a.forward = std::min(a.forward, b.forward);
  a.forward_host = std::min(a.forward_host, b.forward_host);
  a.backward = std::min(a.backward, b.backward);
  a.backward_host = std::min(a.backward_host, b.backward_host);
  a.weights = std::min(a.weights, b.weights);
  a.longest_backward = std::max(a.longest_backward, b.longest_backward);
  a.longest_weights = std::max(a.longest_weights, b.longest_weights);
  return a;
}

/// As `apply_plain` has it, with the states between which all others lie.
struct PlainLayouts {
  Layout least;
  std::optional<Layout> longest;  // none: the same work

  explicit PlainLayouts(const Workbench& bench);

  void recompute_by(const Prepared& prepared) {
    least.prepared = &prepared;
    if (longest) longest->prepared = &prepared;
  }
};

/// The two formats that gradients may be added up in, the narrower one first: as they rest, or, if
/// an engine scatters them later than the placement says, as they are reduced.
std::pair<Dtype, Dtype> formats_of_sums(const Layout& layout) {
  const Job& job = *layout.job;
  const StepShape shape{.stages = 2, .micro_batches = layout.micro_batches};
  const Dtype waits = realised_plan(job, shape).reductions.waits_in;
  const Dtype rests = job.precision.gradients;
  return bits_of(waits) < bits_of(rests) ? std::pair(waits, rests) : std::pair(rests, waits);
}

template <class Change>
void change_parameters(Layout& layout, Change change) {
  for (LocalUnit& unit : layout.units) {
    for (LocalParameter& parameter : unit.parameters) change(parameter);
  }
}

PlainLayouts::PlainLayouts(const Workbench& bench) : least(lay_out(bench.job, bench.plain)) {
  const auto [narrow, wide] = formats_of_sums(least);
  if (narrow != wide || bench.job.profile.timing.gathered_bytes > 0) longest = least;
  change_parameters(least, [&](LocalParameter& own) { own.waits_in = narrow; });
  if (!longest) return;
  change_parameters(*longest, [&](LocalParameter& own) {
    own.waits_in = wide;
    // Copied out of what is gathered for backward.
    own.rests_in_part = ~AxisMask{};
    own.kept = 0;
  });
}

/// Puts the costs of units of a layout among the others, for every standing.
class UnitCosting {
 public:
  UnitCosting(const PlanSpace& space, const PlainLayouts& layouts)
      : space_(space), layouts_(layouts), timer_(*layouts.least.job) {}

  void put(int unit, const KnownMessages& traffic, WorkCosts& out) {
    const int kind = layouts_.least.units[at(unit)].kind;
    const UnitCost bytes = bytes_of(layouts_.least, unit, traffic);
    UnitCost least;
    for (std::size_t s = 0; s < space_.standings().size(); ++s) {
      const GroupSet& devices = space_.standings()[s];
      const auto time_in = [&](const Layout& layout) {
        return unit_time(layout, unit, traffic, devices, timer_);
      };
      const UnitTime time = time_in(layouts_.least);
      const UnitCost own = timed(bytes, time, layouts_.longest ? time_in(*layouts_.longest) : time);
      least = s == 0 ? own : least_of(least, own);
      out[at(space_.costed_kind(kind, s))] = own;
    }
    out[at(space_.costed_kind(kind, space_.anywhere()))] = least;
  }

 private:
  const PlanSpace& space_;
  const PlainLayouts& layouts_;
  MessageTimer timer_;
};

}  // namespace

Workbench::Workbench(const PlanSpace& space) : job(space.base()) {
  for (const RecomputeWord& word : space.choices().recompute) {
    job.recompute = word.recompute;
    prepared.push_back(prepare(job));
  }
  job.recompute = {};
  plain = prepare(job);
}

std::int64_t sent_by(const CommunicationTerm& term) {
  const std::int64_t once =
      term.sent > Bytes()
          ? in_bytes(term.sent)
          : sent_per_call(term.collective, in_bytes(term.payload), term.group, term.dtype);
  return checked_multiply(once, term.count, "bytes sent");
}

void apply_plain(const PlanSpace& space, const WorkShape& shape, Job& job) {
  Plan plan{.micro_batch = shape.micro_batch,
            .attention = shape.attention,
            .expert = shape.expert,
            .tensor = shape.tensor,
            .degrees = shape.degrees};
  const std::int64_t inside = shape.degree(AxisRole::sequence) * shape.degree(AxisRole::expert) *
                              shape.degree(AxisRole::tensor);
  const std::int64_t outside = space.devices() / inside;
  plan.degrees[at(AxisRole::batch)] = static_cast<std::int32_t>(outside);
  space.apply(plan, job);
  job.recompute = {};
  job.batch.global =
      outside * shape.degree(AxisRole::expert) * shape.micro_batch * (shape.accumulates ? 2 : 1);
}

WorkCosts plain_costs(const PlanSpace& space, const WorkShape& shape, Workbench& bench) {
  apply_plain(space, shape, bench.job);
  const PlainLayouts layouts(bench);
  const Layout& layout = layouts.least;
  UnitCosting costing(space, layouts);
  WorkCosts out(space.costed_kinds());
  for (std::size_t u = 0; u < layout.units.size(); ++u) {
    const auto unit = static_cast<int>(u);
    const std::vector<UnitTerm> sent = activation_traffic(layout, unit, false);
    costing.put(unit, {.plain = sent}, out);
  }
  return out;
}

std::vector<WorkCosts> recomputed_costs(const PlanSpace& space, const WorkShape& shape,
                                        const WorkCosts& plain,
                                        const std::vector<std::int16_t>& words, Workbench& bench) {
  apply_plain(space, shape, bench.job);
  PlainLayouts layouts(bench);
  const Layout& layout = layouts.least;
  UnitCosting costing(space, layouts);
  std::vector<WorkCosts> out(words.size(), plain);
  for (std::size_t u = 0; u < layout.units.size(); ++u) {
    const auto unit = static_cast<int>(u);
    if (!is_recomputed(bench.job.model.kinds[at(layout.units[u].kind)].role)) continue;
    const std::vector<UnitTerm> once = activation_traffic(layout, unit, false);
    for (std::size_t w = 0; w < words.size(); ++w) {
      // Sizes are the same, whatever is recomputed.
      layouts.recompute_by(bench.prepared[at(words[w])]);
      bench.job.recompute = space.choices().recompute[at(words[w])].recompute;
      const std::vector<UnitTerm> sent = activation_traffic(layout, unit, true);
      costing.put(unit, {.plain = once, .recomputed = &sent}, out[w]);
    }
  }
  return out;
}

}  // namespace placet
