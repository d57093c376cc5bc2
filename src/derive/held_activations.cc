// What the micro-batches in flight keep on a stage (docs/theory.md §3.4).
#include <algorithm>
#include <utility>

#include "derive/heaviest_moments.h"
#include "derive/memory.h"
#include "derive/stage_memory.h"
#include "units/at.h"
#include "units/checked.h"

namespace placet {
namespace {

/// The micro-batches of a moment, with the one that runs: as it is before a backward and after a
/// forward.
MicroBatchesHeld with_running(const WorkMoment& moment) {
  MicroBatchesHeld out{.held = moment.held, .waiting = moment.waiting};
  const bool weights = moment.kind == Work::Kind::backward_weight;
  ++(weights ? out.waiting : out.held)[at(moment.chunk)];
  return out;
}

bool looks_at_moments(const Schedule& schedule, std::int64_t degree) {
  return degree > 1 && (schedule.chunks > 1 || splits_backward(feasible_order(schedule, degree)));
}

}  // namespace

std::vector<ChunkLeft> left_on_chunks(const UnitFigures& figures, const StageUnits& units) {
  std::vector<ChunkLeft> out(units.chunk_ends.size());
  for (std::size_t c = 0; c < out.size(); ++c) {
    for (std::size_t r = units.chunk_begin(c); r < units.chunk_ends[c]; ++r) {
      const UnitMemory& unit = figures.walk_of(units.runs[r]);
      const std::int64_t count = units.runs[r].count;
      out[c].kept += checked_multiply(unit.kept, count, "activations");
      out[c].waiting += checked_multiply(unit.waiting, count, "activations");
    }
  }
  return out;
}

BesideRunning bytes_of_all(const std::vector<ChunkLeft>& left, const MicroBatchesHeld& in_flight) {
  BesideRunning out;
  for (std::size_t c = 0; c < left.size(); ++c) {
    out.kept += checked_multiply(left[c].kept, in_flight.held[c], "activations");
    out.waiting += checked_multiply(left[c].waiting, in_flight.waiting[c], "activations");
  }
  return out;
}

bool looks_at_moments(const Layout& layout) {
  return looks_at_moments(layout.job->schedule, layout.stages);
}

PipelineMoments moments_of(const Schedule& schedule, std::int64_t degree,
                           std::int64_t micro_batches) {
  if (!looks_at_moments(schedule, degree) || arrives_in_turn(schedule, degree)) {
    return PipelineMoments(at(degree));
  }
  return fullest_moments(schedule, degree, micro_batches);
}

PipelineMoments moments_of(const Layout& layout) {
  return moments_of(layout.job->schedule, layout.stages, layout.micro_batches);
}

MicroBatchesHeld held_by_chunk(const Layout& layout, const Stage& stage, const UnitFigures& figures,
                               const StageUnits& units, const std::vector<WorkMoment>& moments) {
  MicroBatchesHeld out;
  if (splits_backward(layout)) {
    const std::vector<ChunkLeft> left = left_on_chunks(figures, units);
    std::int64_t most = -1;
    for (const WorkMoment& moment : moments) {
      MicroBatchesHeld now = with_running(moment);
      const std::int64_t bytes = bytes_of_all(left, now).total();
      if (bytes <= most) continue;
      most = bytes;
      out = std::move(now);
    }
    return out;
  }
  out.held = layout.stages == 1 ? std::vector<std::int64_t>(1, 1)
                                : held_micro_batches(layout.job->schedule, layout.stages,
                                                     stage.device, layout.micro_batches);
  out.held.resize(stage.chunks.size(), 0);
  out.waiting.resize(stage.chunks.size(), 0);
  return out;
}

HeldActivations held_activations(const Layout& layout, const Stage& stage,
                                 const UnitFigures& figures, const StageUnits& units,
                                 const std::vector<WorkMoment>& moments) {
  HeldActivations out;
  out.most = held_by_chunk(layout, stage, figures, units, moments);
  const std::vector<std::int64_t>& held = out.most.held;
  for (std::size_t c = 0; c < held.size(); ++c) {
    for (std::size_t r = units.chunk_begin(c); r < units.chunk_ends[c]; ++r) {
      const UnitMemory& unit = figures.walk_of(units.runs[r]);
      const std::int64_t kept = checked_multiply(held[c], units.runs[r].count, "activations");
      const std::int64_t waiting =
          checked_multiply(out.most.waiting[c], units.runs[r].count, "activations");
      out.waiting = checked_add(out.waiting, checked_multiply(unit.waiting, waiting, "activations"),
                                "activations");
      out.bytes =
          checked_add(out.bytes, checked_multiply(unit.kept, kept, "activations"), "activations");
      const std::int64_t off = checked_multiply(unit.kept_on_host, kept, "activations");
      (unit.kept_on_nvme ? out.on_nvme : out.on_host) += off;
      if (unit.kept_on_nvme) out.staged = std::max(out.staged, unit.kept_on_host);
    }
    if (held[c] > 0) out.active = c;
  }
  out.bytes = checked_add(out.bytes, out.waiting, "activations");
  return out;
}

}  // namespace placet
