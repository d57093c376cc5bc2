#include "search/stage_counts.h"

#include <algorithm>

#include "derive/stages.h"
#include "units/at.h"

namespace placet {
namespace {

DeviceChunk chunk_of(const Model& model, const std::vector<int>& units, std::int32_t& ordinal) {
  DeviceChunk out;
  for (const int u : units) {
    const auto kind = static_cast<std::int16_t>(model.units[at(u)].kind);
    const UnitRole role = model.kinds[at(kind)].role;
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

/// Multiples of `step` in [first, first + count): as many as whole steps, or one more.
std::int64_t multiples(std::int64_t first, std::int64_t count, std::int64_t step,
                       Counting counting) {
  const auto up_to = [&](std::int64_t n) { return (n + step - 1) / step; };
  switch (counting) {
    case Counting::exact:
      return up_to(first + count) - up_to(first);
    case Counting::fewest:
      return count / step;
    case Counting::most:
      return up_to(count);
  }
  return 0;
}

/// Of a run that is no block: all of it or nothing.
std::int64_t whole_run(const KindRun& run, bool recomputed, Counting counting) {
  switch (counting) {
    case Counting::exact:
      return recomputed ? run.count : 0;
    case Counting::fewest:
      return 0;
    case Counting::most:
      return run.count;
  }
  return 0;
}

/// Whether the same runs send the same messages.
bool are_alike(const std::vector<DeviceChunk>& a, const std::vector<DeviceChunk>& b) {
  return std::ranges::equal(a, b, [](const DeviceChunk& x, const DeviceChunk& y) {
    return x.runs == y.runs && x.sends_forward == y.sends_forward &&
           x.sends_backward == y.sends_backward;
  });
}

}  // namespace

PipelineShape pipeline_shape(const PlanSpace& space, std::int32_t degree, std::int16_t schedule,
                             std::int16_t split, Job& job) {
  Plan plan{.schedule = schedule, .split = split};
  plan.degrees[at(AxisRole::layer)] = degree;
  space.apply(plan, job);
  PipelineShape out;
  std::int64_t most = 0;
  if (degree > 1) out.schedule = job.schedule;
  const std::int64_t last = virtual_stages(out.schedule, degree) - 1;
  for (const Stage& stage : stages_of(job)) {
    std::int32_t ordinal = 0;
    std::vector<DeviceChunk>& chunks = out.devices.emplace_back();
    std::vector<std::int32_t>& units = out.units.emplace_back(job.model.kinds.size(), 0);
    for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
      DeviceChunk& chunk = chunks.emplace_back(chunk_of(job.model, stage.chunks[c], ordinal));
      chunk.stage = static_cast<std::int32_t>(stage.virtual_stages[c]);
      chunk.sends_forward = stage.virtual_stages[c] < last;
      chunk.sends_backward = stage.virtual_stages[c] > 0;
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

std::int64_t recomputed_of(const KindRun& run, const Recompute& recompute, Counting counting) {
  if (!run.may_recompute) return 0;
  const std::int64_t n = recompute.count;
  switch (recompute.kind) {
    case Recompute::Kind::none:
      return 0;
    case Recompute::Kind::full:
    case Recompute::Kind::selective:
      return run.count;
    case Recompute::Kind::every:
      if (n < 1) return 0;
      if (!run.is_block) return whole_run(run, run.ordinal % n == 0, counting);
      return multiples(run.ordinal, run.count, n, counting);
    case Recompute::Kind::first:
      if (!run.is_block) return run.ordinal < n ? run.count : 0;
      return std::clamp<std::int64_t>(n - run.ordinal, 0, run.count);
  }
  return 0;
}

}  // namespace placet
