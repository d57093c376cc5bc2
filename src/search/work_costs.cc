#include "search/work_costs.h"

#include <algorithm>

#include "derive/collective_time.h"
#include "derive/communication.h"
#include "derive/layout.h"
#include "derive/unit_memory.h"
#include "derive/unit_time.h"
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

UnitCost cost_of(const Layout& layout, int unit, bool recomputed, const DeviceGroup& devices) {
  MessageTimer timer(*layout.job);
  const std::vector<UnitTerm> plain = activation_traffic(layout, unit, false);
  std::vector<UnitTerm> again;
  if (recomputed) again = activation_traffic(layout, unit, true);
  const std::vector<UnitTerm>& sent = recomputed ? again : plain;
  const UnitTime time = unit_time(
      layout, unit, {.plain = plain, .recomputed = recomputed ? &again : nullptr}, devices, timer);
  const UnitMemory memory = unit_memory_in_parts(layout, unit, recomputed);
  UnitCost out{.weights = in_seconds(time.weights), .kept = memory.kept, .waiting = memory.waiting};
  for (const UnitTerm& term : sent) out.sent += sent_by(term.term);
  add_part(time[WorkPart::forward], out.forward, out.forward_host);
  add_part(time[WorkPart::again], out.backward, out.backward_host);
  add_part(time[WorkPart::backward], out.backward, out.backward_host);
  // Gradients of weights are left out: their buffers depend on where the states live.
  out.most_forward = std::max(memory.forward.total(), memory.loss.total());
  out.most_inputs = memory.inputs.total();
  out.most = std::max(out.most_forward, memory.backward.total() - memory.backward.weight_gradient);
  return out;
}

/// What takes no longer than either of two groups of devices; bytes are the same on both.
UnitCost least_of(UnitCost a, const UnitCost& b) {
  a.forward = std::min(a.forward, b.forward);
  a.forward_host = std::min(a.forward_host, b.forward_host);
  a.backward = std::min(a.backward, b.backward);
  a.backward_host = std::min(a.backward_host, b.backward_host);
  a.weights = std::min(a.weights, b.weights);
  return a;
}

WorkCosts costs(const PlanSpace& space, const WorkShape& shape, std::optional<std::int16_t> word,
                Workbench& bench) {
  apply_plain(space, shape, bench.job);
  if (word)
    bench.job.recompute = space.choices().recompute[static_cast<std::size_t>(*word)].recompute;
  const Prepared& prepared = bench.prepared[static_cast<std::size_t>(word.value_or(0))];
  const Layout layout = lay_out(bench.job, prepared);
  const std::vector<DeviceGroup>& groups = bench.job.cluster->groups;
  WorkCosts out(space.costed_kinds());
  for (std::size_t u = 0; u < layout.units.size(); ++u) {
    const int kind = layout.units[u].kind;
    const bool again = word && is_recomputed(bench.job.model.kinds[at(kind)].role);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const UnitCost own = cost_of(layout, static_cast<int>(u), again, groups[g]);
      UnitCost& least = out[at(space.costed_kind(kind, space.anywhere()))];
      least = g == 0 ? own : least_of(least, own);
      out[at(space.costed_kind(kind, g))] = own;
    }
  }
  return out;
}

}  // namespace

Workbench::Workbench(const PlanSpace& space) : job(space.base()) {
  for (const RecomputeWord& word : space.choices().recompute) {
    job.recompute = word.recompute;
    prepared.push_back(prepare(job));
  }
  job.recompute = {};
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
  return costs(space, shape, std::nullopt, bench);
}

WorkCosts recomputed_costs(const PlanSpace& space, const WorkShape& shape, std::int16_t word,
                           Workbench& bench) {
  return costs(space, shape, word, bench);
}

}  // namespace placet
