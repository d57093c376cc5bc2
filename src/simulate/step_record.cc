#include "simulate/step_record.h"

#include <algorithm>

#include "units/at.h"

namespace placet {
namespace {

std::int64_t parts_in_all(const StepParts& parts) {
  std::int64_t sum = 0;
  for (std::size_t s = 0; s < parts.stages(); ++s) {
    for (const ChunkParts& chunk : parts.stage(s).chunks) {
      sum += static_cast<std::int64_t>(chunk.forward.size() + chunk.backward.size());
    }
  }
  return sum * parts.form.micro_batches;
}

}  // namespace

StepRecord::StepRecord(const StepParts& parts, const SimulateChoice& choice)
    : parts_(parts), choice_(choice) {
  simulation.stages.resize(parts.stages());
  simulation.by_unit = parts_in_all(parts) <= choice.most_parts;
}

void StepRecord::keep(const Slice& slice) {
  if (slice.end <= slice.begin) return;
  if (slice.lane == Lane::compute) {
    simulation.stages[at(slice.stage)].spent[static_cast<std::size_t>(slice.doing)] +=
        slice.end - slice.begin;
  }
  if (static_cast<std::int64_t>(simulation.slices.size()) < choice_.most_slices) {
    simulation.slices.push_back(slice);
  } else {
    ++simulation.left_out;
  }
}

void StepRecord::end_step() {
  Seconds update;
  Seconds after;
  for (std::size_t s = 0; s < parts_.stages(); ++s) {
    update = std::max(update, update_of(s));
    after = std::max(after, after_of(s));
    simulation.pipeline = std::max(simulation.pipeline, simulation.stages[s].finished);
  }
  const Seconds pipeline = simulation.pipeline;
  const Seconds updated = pipeline + update;
  const Seconds last = updated + after;
  simulation.step = last + parts_.host_per_step;
  for (std::size_t s = 0; s < parts_.stages(); ++s) {
    SimulatedStage& stage = simulation.stages[s];
    stage.idle = stage.finished;
    for (const Seconds spent : stage.spent) stage.idle = stage.idle - spent;
    keep_of(s, Doing::wait, stage.finished, pipeline);
    keep_of(s, Doing::update, pipeline, pipeline + update_of(s));
    keep_of(s, Doing::wait, pipeline + update_of(s), updated);
    keep_of(s, Doing::after, updated, updated + after_of(s));
    keep_of(s, Doing::wait, updated + after_of(s), last);
    keep_of(s, Doing::step, last, simulation.step);
  }
}

double StepRecord::slower(std::size_t stage) const {
  return stage < choice_.slower.size() ? choice_.slower[stage] : 1;
}

void StepRecord::keep_of(std::size_t stage, Doing doing, Seconds begin, Seconds end) {
  keep({.stage = static_cast<int>(stage), .doing = doing, .begin = begin, .end = end});
}

}  // namespace placet
