#include "validate/run_figures.h"

#include <algorithm>
#include <set>

#include "derive/derive.h"
#include "derive/fit.h"
#include "derive/layout.h"
#include "derive/memory.h"
#include "derive/stages.h"
#include "derive/time.h"
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

// The class as a replay of one of its devices leaves it, on a device of that capacity.
MemoryClass replayed(MemoryClass memory, const Reservation& own, Bytes capacity) {
  memory.capacity = capacity;
  note_reserved(own, memory);
  memory.fit = grade_of(memory);
  return memory;
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
  const Derivation derivation = derive_all(job, prepared).derivation;
  ensure(!derivation.memory.empty(), "a job has a device class");
  const auto fullest = std::ranges::max_element(derivation.memory, {}, &MemoryClass::peak);
  RunFigures figures{.engine_terms = terms_that_hold(job, prepared), .needed = fullest->peak};
  const bool runs_out = plan.capacity && fullest->peak > *plan.capacity;
  if (runs_out) figures.fit = FitGrade::too_large;
  if (needs == Needs::verdict && runs_out) return figures;

  std::set<int> stages{0, fullest->stage, derivation.memory.back().stage};
  for (const int stage : stages) {
    const Reservation own = reserve(job, prepared, stage, plan.capacity);
    if (stage == 0) figures.first = own;
    figures.fullest = stage == 0 ? own : largest(figures.fullest, own);
    const auto memory = std::ranges::find(derivation.memory, stage, &MemoryClass::stage);
    const MemoryClass graded = replayed(*memory, own, plan.capacity.value_or(Bytes()));
    figures.needed = std::max(figures.needed, placet::needed(graded));
    figures.fit = std::max(figures.fit, graded.fit);
  }
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
    case MemoryMeasure::Quantity::device:
      return figures.needed;
  }
  fail_internally("every quantity has a figure");
}

}  // namespace placet
