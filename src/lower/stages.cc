#include "lower/stages.h"

#include <numeric>

#include "units/error.h"

namespace placet {
namespace {

[[noreturn]] void refuse(const std::string& value, const std::string& problem) {
  throw InputError({.where = "--placement",
                    .value = value,
                    .problem = problem,
                    .allowed = {},
                    .nearest = {},
                    .excerpt = {}});
}

/// Blocks of each virtual stage: as the shares say, or even.
std::vector<std::int64_t> blocks_of(const Job& job, const AxisPlacement& axis,
                                    std::int64_t stages) {
  const std::int64_t blocks = job.model.figures.blocks;
  if (axis.shares.empty()) return even_blocks(blocks, stages);
  const std::int64_t sum = std::accumulate(axis.shares.begin(), axis.shares.end(), std::int64_t{0});
  if (static_cast<std::int64_t>(axis.shares.size()) != stages || sum != blocks) {
    refuse(std::string(axis.axis.text()), "its shares are not the blocks of its stages");
  }
  return axis.shares;
}

}  // namespace

int layer_axis(const Placement& placement) {
  int found = -1;
  for (std::size_t a = 0; a < placement.axes.size(); ++a) {
    if (placement.axes[a].how.cut != Cut::layer || placement.axes[a].degree == 1) continue;
    if (found >= 0) refuse(std::string(placement.axes[a].axis.text()), "is a second layer axis");
    found = static_cast<int>(a);
  }
  return found;
}

std::vector<StagePlan> plan_stages(const Job& job, std::int64_t micro_batches) {
  const int units = static_cast<int>(job.model.units.size());
  const int layer = layer_axis(job.placement);
  if (layer < 0) {
    StagePlan all{.chunks = {{}}, .virtual_stages = {0}};
    for (int u = 0; u < units; ++u) all.chunks[0].push_back(u);
    for (std::int64_t j = 0; j < micro_batches; ++j) {
      all.work.push_back({.kind = Work::Kind::forward, .chunk = 0, .micro_batch = j});
      all.work.push_back({.kind = Work::Kind::backward, .chunk = 0, .micro_batch = j});
    }
    return {all};
  }
  const AxisPlacement& axis = job.placement.axes[static_cast<std::size_t>(layer)];
  const Schedule& schedule = job.schedule;
  if (schedule.hosting == Hosting::bidirectional) {
    refuse(schedule.name, "has no step program yet");
  }
  if (const std::string need = unmet_need(schedule, axis.degree, micro_batches); !need.empty()) {
    refuse(schedule.name, need);
  }
  const std::int64_t stages = virtual_stages(schedule, axis.degree);
  const std::vector<std::int64_t> blocks = blocks_of(job, axis, stages);
  std::vector<std::vector<int>> by_stage(static_cast<std::size_t>(stages));
  int next = 0;
  by_stage.front().push_back(next++);
  for (std::size_t s = 0; s < by_stage.size(); ++s) {
    for (std::int64_t b = 0; b < blocks[s]; ++b) by_stage[s].push_back(next++);
  }
  while (next < units) by_stage.back().push_back(next++);
  std::vector<StagePlan> out;
  for (std::int64_t d = 0; d < axis.degree; ++d) {
    StagePlan plan{.coordinate = d};
    for (std::int64_t c = 0; c < schedule.chunks; ++c) {
      const std::int64_t stage = hosted_stage(schedule, axis.degree, d, c);
      plan.virtual_stages.push_back(stage);
      plan.chunks.push_back(by_stage[static_cast<std::size_t>(stage)]);
    }
    plan.work = order_of_work(schedule, axis.degree, d, micro_batches);
    out.push_back(std::move(plan));
  }
  return out;
}

}  // namespace placet
