#include "validate/run_figures.h"

#include <algorithm>
#include <set>

#include "derive/derive.h"
#include "derive/layout.h"
#include "derive/memory.h"
#include "derive/stages.h"
#include "units/error.h"

namespace placet {
namespace {

// The largest of each figure.
Reservation largest(const Reservation& a, const Reservation& b) {
  return {
      .stage = a.reserved < b.reserved ? b.stage : a.stage,
      .alive = std::max(a.alive, b.alive),
      .reserved = std::max(a.reserved, b.reserved),
      .alive_after_backward = std::max(a.alive_after_backward, b.alive_after_backward),
      .reserved_after_backward = std::max(a.reserved_after_backward, b.reserved_after_backward)};
}

// Overhead that figures of reserved memory do not see, such as the device's context.
Bytes outside_of(const Profile& profile, const MemoryClass& memory) {
  Bytes sum;
  for (const MemoryTerm& term : memory.terms) {
    const auto own = std::find_if(profile.memory.begin(), profile.memory.end(),
                                  [&](const EngineMemory& m) { return m.what == term.what; });
    if (own != profile.memory.end() && !own->in_reserved) sum += term.bytes;
  }
  return sum;
}

// Those that hold on some stage.
std::vector<std::string> terms_that_hold(const Job& job, const Prepared& prepared) {
  std::vector<std::string> names;
  if (job.profile.memory.empty()) return names;
  const Layout layout = lay_out(job, prepared);
  const std::vector<Stage> stages = stages_of(job);
  for (const EngineMemory& term : job.profile.memory) {
    const bool holds = std::any_of(stages.begin(), stages.end(), [&](const Stage& stage) {
      return all_hold(term.when, layout, stage);
    });
    if (holds) names.push_back(term.what);
  }
  return names;
}

}  // namespace

RunFigures figures_of(const RunPlan& plan, const Job& job, Needs needs) {
  const Prepared& prepared = plan.frame->prepared;
  const Derivation derivation = derive(job, prepared);
  ensure(!derivation.memory.empty(), "a job has a device class");
  const auto fullest =
      std::max_element(derivation.memory.begin(), derivation.memory.end(),
                       [](const MemoryClass& a, const MemoryClass& b) { return a.peak < b.peak; });
  RunFigures figures{.engine_terms = terms_that_hold(job, prepared), .needed = fullest->peak};
  const bool runs_out = plan.capacity && fullest->peak > *plan.capacity;
  if (needs == Needs::verdict && runs_out) return figures;

  const auto replay = [&](int stage) { return reserve(job, prepared, stage, plan.capacity); };
  figures.first = replay(0);
  figures.fullest = figures.first;
  for (const int stage : std::set<int>{fullest->stage, derivation.memory.back().stage}) {
    if (stage != 0) figures.fullest = largest(figures.fullest, replay(stage));
  }
  figures.needed = figures.fullest.reserved + outside_of(job.profile, *fullest);
  return figures;
}

Bytes figure_for(const MemoryMeasure& measure, const RunFigures& figures) {
  const Reservation& device = measure.first_device ? figures.first : figures.fullest;
  switch (measure.quantity) {
    case MemoryMeasure::Quantity::reserved:
      return device.reserved;
    case MemoryMeasure::Quantity::alive:
      return device.alive;
    case MemoryMeasure::Quantity::alive_after_backward:
      return device.alive_after_backward;
    case MemoryMeasure::Quantity::reserved_after_backward:
      return device.reserved_after_backward;
  }
  fail_internally("every quantity has a figure");
}

}  // namespace placet
