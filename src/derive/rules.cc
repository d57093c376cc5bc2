#include "derive/rules.h"

#include <algorithm>
#include <numeric>
#include <ranges>

#include "derive/rule_parts.h"
#include "placement/strategy.h"
#include "profile/conditions.h"
#include "units/shares.h"

namespace placet {
namespace {

// --- product

/// The axis whose degree is the first to change: the outermost that cuts the batch, else the
/// outermost.
const AxisPlacement& axis_to_change(const Placement& placement, std::int64_t devices) {
  const AxisPlacement* best = &placement.axes.front();
  const std::int64_t have = devices_of(placement);
  for (const AxisPlacement& axis : placement.axes | std::views::reverse) {
    const bool mends = devices % (have / axis.degree) == 0;
    const bool best_mends = devices % (have / best->degree) == 0;
    const bool batch = axis.how.cut == Cut::batch;
    if ((mends && !best_mends) || (mends == best_mends && batch)) best = &axis;
  }
  return *best;
}

void judge_product(const Job& job, Findings& findings) {
  if (!job.cluster || job.cluster->groups.empty()) return;
  const std::int64_t devices = devices_of(*job.cluster);
  const std::int64_t have = devices_of(job.placement);
  if (have == devices) return;
  Finding finding{.rule = "product",
                  .where = "placement",
                  .message = "the degrees multiply to " + std::to_string(have) +
                             ", the cluster has " + std::to_string(devices) + " devices"};
  if (job.placement.axes.empty()) {
    finding.cure = "an axis that takes all " + std::to_string(devices) + " devices";
    findings.push_back(std::move(finding));
    return;
  }
  const AxisPlacement& axis = axis_to_change(job.placement, devices);
  const std::int64_t others = have / axis.degree;
  const std::int64_t degree = std::max<std::int64_t>(1, devices / others);
  finding.where = place_of(axis);
  finding.cure = with_degree(axis, degree);
  if (degree * others != devices) {
    finding.cure += ", which takes " + std::to_string(degree * others) + " devices";
  }
  findings.push_back(std::move(finding));
}

// --- schedule and engine

constexpr std::int64_t kMostTried = 4096;  // numbers of micro-batches, for a cure

void judge_schedule(const Job& job, Findings& findings) {
  const std::int64_t degree = pipeline_degree(job.placement);
  if (degree == 1) return;
  const std::int64_t micro_batches = micro_batches_per_step(job);
  std::string need = unmet_need(job.schedule, degree, micro_batches);
  if (need.empty()) return;
  std::int64_t more = micro_batches + 1;
  const std::int64_t last = micro_batches + std::min<std::int64_t>(4 * degree, kMostTried);
  while (more < last && !unmet_need(job.schedule, degree, more).empty()) ++more;
  const std::int64_t per_micro_batch = std::max<std::int64_t>(1, job.batch.global / micro_batches);
  const bool reachable = unmet_need(job.schedule, degree, more).empty();
  findings.push_back({.rule = "schedule",
                      .where = "schedule " + job.schedule.name,
                      .message = std::move(need),
                      .cure = reachable ? "--global-batch " + std::to_string(more * per_micro_batch)
                                        : "another degree or schedule"});
}

void judge_engine(const Job& job, Findings& findings) {
  for (const Refusal& refusal : job.profile.refusals) {
    if (!all_hold(refusal.when, job, StageFacts{})) continue;
    findings.push_back({.rule = "engine",
                        .where = "engine " + job.profile.name,
                        .message = refusal.what,
                        .cure = refusal.cure});
  }
}

}  // namespace

bool is_refused(const Job& job, JobParts chosen) {
  return std::ranges::any_of(job.profile.refusals, [&](const Refusal& refusal) {
    // Few hold: what they ask for is looked at only then.
    return all_hold(refusal.when, job, StageFacts{}) && (parts_asked(refusal.when) & ~chosen) == 0;
  });
}

std::vector<Finding> check_rules(const Job& job) {
  Findings findings;
  judge_meaning(job, findings);
  judge_product(job, findings);
  judge_dimensions(job, findings);
  judge_idle_cuts(job, findings);
  judge_tokens(job, findings);
  judge_recurrences(job, findings);
  judge_expert_columns(job, findings);
  judge_positions(job, findings);
  judge_samples(job, findings);
  judge_blocks(job, findings);
  judge_shares(job, findings);
  judge_storage(job, findings);
  judge_update(job, findings);
  judge_regions(job, findings);
  judge_materialized(job, findings);
  judge_recompute(job, findings);
  judge_schedule(job, findings);
  judge_effects(job, findings);
  judge_engine(job, findings);
  return findings;
}

// --- shared by the parts

std::int64_t degree_by_product(const Job& job, const AxisPlacement& axis) {
  if (!job.cluster || job.cluster->groups.empty() || job.placement.axes.empty()) return 0;
  const std::int64_t devices = devices_of(*job.cluster);
  const std::int64_t have = devices_of(job.placement);
  if (have == devices || &axis_to_change(job.placement, devices) != &axis) return 0;
  const std::int64_t others = have / axis.degree;
  return devices % others == 0 ? devices / others : 0;
}

std::string place_of(const AxisPlacement& axis) { return "axis " + std::string(axis.axis.text()); }

std::string place_of(const AxisPlacement& axis, const Selector& selector) {
  return place_of(axis) + ", class " + spell(selector);
}

std::string with_degree(const AxisPlacement& axis, std::int64_t degree) {
  return std::string(axis.axis.text()) + "=" + std::to_string(degree);
}

std::int64_t parts_of(const AxisPlacement& axis) {
  if (axis.shares.empty()) return axis.degree;
  std::int64_t sum = 0;
  std::int64_t common = 0;
  for (std::int64_t share : axis.shares) {
    sum += share;
    common = std::gcd(common, share);
  }
  return common > 0 ? sum / common : axis.degree;
}

std::int64_t blocks_of(const Model& model) {
  return std::ranges::count_if(model.units, [&](const Unit& unit) {
    return model.kinds[static_cast<std::size_t>(unit.kind)].role == UnitRole::block;
  });
}

std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return saturating_multiply(largest_share(n, multiple), multiple);
}

}  // namespace placet
