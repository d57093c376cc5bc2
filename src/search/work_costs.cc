#include "search/work_costs.h"

#include <algorithm>

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

/// The same with its seconds.
UnitCost timed(UnitCost out, const UnitTime& time) {
  out.weights = in_seconds(time.weights);
  add_part(time[WorkPart::forward], out.forward, out.forward_host);
  add_part(time[WorkPart::again], out.backward, out.backward_host);
  add_part(time[WorkPart::backward], out.backward, out.backward_host);
  return out;
}

/// What takes no longer than either of two standings; bytes are the same on both.
UnitCost least_of(UnitCost a, const UnitCost& b) {
  a.forward = std::min(a.forward, b.forward);
  a.forward_host = std::min(a.forward_host, b.forward_host);
  a.backward = std::min(a.backward, b.backward);
  a.backward_host = std::min(a.backward_host, b.backward_host);
  a.weights = std::min(a.weights, b.weights);
  return a;
}

/// Has gradients added up in the smallest format that any way to keep the states may have: what an
/// engine scatters later than the placement says may wait in the format of its reductions.
void ease_sums(Layout& layout) {
  const Job& job = *layout.job;
  const StepShape shape{.stages = 2, .micro_batches = layout.micro_batches};
  const Dtype waits_in = realised_plan(job, shape).reductions.waits_in;
  if (bits_of(waits_in) >= bits_of(job.precision.gradients)) return;
  for (LocalUnit& unit : layout.units) {
    for (LocalParameter& parameter : unit.parameters) parameter.waits_in = waits_in;
  }
}

/// As `apply_plain` has it, for costs that are no dearer whatever the states.
Layout plain_layout(const Workbench& bench) {
  Layout layout = lay_out(bench.job, bench.plain);
  ease_sums(layout);
  return layout;
}

/// Puts the costs of units of a layout among the others, for every standing.
class UnitCosting {
 public:
  UnitCosting(const PlanSpace& space, const Layout& layout)
      : space_(space), layout_(layout), timer_(*layout.job) {}

  void put(int unit, const KnownMessages& traffic, WorkCosts& out) {
    const int kind = layout_.units[at(unit)].kind;
    const UnitCost bytes = bytes_of(layout_, unit, traffic);
    UnitCost least;
    for (std::size_t s = 0; s < space_.standings().size(); ++s) {
      const UnitTime time = unit_time(layout_, unit, traffic, space_.standings()[s], timer_);
      const UnitCost own = timed(bytes, time);
      least = s == 0 ? own : least_of(least, own);
      out[at(space_.costed_kind(kind, s))] = own;
    }
    out[at(space_.costed_kind(kind, space_.anywhere()))] = least;
  }

 private:
  const PlanSpace& space_;
  const Layout& layout_;
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
  const Layout layout = plain_layout(bench);
  UnitCosting costing(space, layout);
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
  Layout layout = plain_layout(bench);
  UnitCosting costing(space, layout);
  std::vector<WorkCosts> out(words.size(), plain);
  for (std::size_t u = 0; u < layout.units.size(); ++u) {
    const auto unit = static_cast<int>(u);
    if (!is_recomputed(bench.job.model.kinds[at(layout.units[u].kind)].role)) continue;
    const std::vector<UnitTerm> once = activation_traffic(layout, unit, false);
    for (std::size_t w = 0; w < words.size(); ++w) {
      // Sizes are the same, whatever is recomputed.
      layout.prepared = &bench.prepared[at(words[w])];
      bench.job.recompute = space.choices().recompute[at(words[w])].recompute;
      const std::vector<UnitTerm> sent = activation_traffic(layout, unit, true);
      costing.put(unit, {.plain = once, .recomputed = &sent}, out[w]);
    }
  }
  return out;
}

}  // namespace placet
