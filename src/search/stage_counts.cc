#include "search/stage_counts.h"

#include <algorithm>

#include "derive/stages.h"
#include "units/at.h"

namespace placet {
namespace {

/// `standing`: of the device (PlanSpace::standings).
DeviceChunk chunk_of(const PlanSpace& space, const std::vector<int>& units, std::size_t standing,
                     std::int32_t& ordinal) {
  const Model& model = space.base().model;
  DeviceChunk out;
  for (const int u : units) {
    const std::int32_t kind = space.costed_kind(model.units[at(u)].kind, standing);
    const UnitRole role = model.kinds[at(model.units[at(u)].kind)].role;
    const bool block = role == UnitRole::block;
    if (out.runs.empty() || out.runs.back().kind != kind) {
      out.runs.push_back({.kind = kind,
                          .ordinal = ordinal,
                          .is_block = block,
                          .may_recompute = block || role == UnitRole::mtp});
    }
    ++out.runs.back().count;
    ++out.count;
    if (block) ++ordinal;
  }
  return out;
}

/// The number of these runs among the different ones.
std::int32_t part_of(const std::vector<KindRun>& runs, std::vector<std::vector<KindRun>>& parts) {
  const auto known = std::ranges::find(parts, runs);
  const auto number = static_cast<std::int32_t>(known - parts.begin());
  if (known == parts.end()) parts.push_back(runs);
  return number;
}

/// Whether the same runs send the same messages.
bool are_alike(const std::vector<DeviceChunk>& a, const std::vector<DeviceChunk>& b) {
  return std::ranges::equal(a, b, [](const DeviceChunk& x, const DeviceChunk& y) {
    return x.runs == y.runs && x.sends_forward == y.sends_forward &&
           x.sends_backward == y.sends_backward && x.runs_backward == y.runs_backward;
  });
}

}  // namespace

PipelineForm form_of(const PipelineShape& pipeline, std::int64_t micro_batches) {
  return {.schedule = pipeline.schedule,
          .degree = static_cast<std::int64_t>(pipeline.devices.size()),
          .micro_batches = micro_batches,
          .backward = pipeline.backward};
}

PipelineShape pipeline_shape(const PlanSpace& space, std::int32_t degree, std::int16_t schedule,
                             std::int16_t split, Job& job) {
  Plan plan{.schedule = schedule, .split = split};
  plan.degrees[at(AxisRole::layer)] = degree;
  space.apply(plan, job);
  PipelineShape out;
  std::int64_t most = 0;
  if (degree > 1) out.schedule = job.schedule;
  const std::int64_t last = virtual_stages(out.schedule, degree) - 1;
  const std::vector<std::size_t> standings = space.standings_of(degree);
  for (const Stage& stage : stages_of(job)) {
    out.backward = stage.backward;
    std::int32_t ordinal = 0;
    std::vector<DeviceChunk>& chunks = out.devices.emplace_back();
    std::vector<std::int32_t>& units = out.units.emplace_back(space.costed_kinds(), 0);
    for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
      DeviceChunk& chunk = chunks.emplace_back(
          chunk_of(space, stage.chunks[c], standings[at(stage.device)], ordinal));
      chunk.stage = static_cast<std::int32_t>(stage.virtual_stages[c]);
      chunk.part = part_of(chunk.runs, out.parts);
      chunk.sends_forward = stage.virtual_stages[c] < last;
      chunk.sends_backward = stage.backward.hands_back(stage.virtual_stages[c]);
      chunk.runs_backward = stage.runs_backward(c);
      for (const KindRun& run : chunk.runs) units[at(run.kind)] += run.count;
    }
    most = std::max(most, std::int64_t{ordinal});
    const auto same = std::ranges::find_if(out.devices, [&](const std::vector<DeviceChunk>& other) {
      return are_alike(other, chunks);
    });
    out.like.push_back(static_cast<std::int32_t>(same - out.devices.begin()));
  }
  out.unlike = out.units;
  std::ranges::sort(out.unlike);
  out.unlike.erase(std::ranges::unique(out.unlike).begin(), out.unlike.end());
  out.recomputations = space.recomputations(most);
  return out;
}

}  // namespace placet
