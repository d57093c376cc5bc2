#include "derive/memory.h"

#include <algorithm>
#include <utility>

#include "derive/stage_memory.h"
#include "units/at.h"

namespace placet {
namespace {

/// What stages share that host equal units.
struct AlikeStages {
  StageContent content;
  std::vector<KnownMoments> moments;
};

/// The stages that are alike with this one, found or made.
AlikeStages& alike_with(const Layout& layout, const UnitFigures& figures, const Stage& stage,
                        const StageUnits& units, std::vector<AlikeStages>& known) {
  const auto same = std::ranges::find_if(
      known, [&](const AlikeStages& other) { return are_alike(other.content.units, units); });
  if (same != known.end()) return *same;
  known.push_back({.content = content_of(layout, figures, stage, units), .moments = {}});
  StageContent& content = known.back().content;
  content.resting = resting_terms(layout, content);
  return known.back();
}

}  // namespace

std::vector<MemoryClass> derive_memory(const Layout& layout, const std::vector<Stage>& stages) {
  return derive_memory(layout, stages, units_by_stage(layout, stages), moments_of(layout));
}

std::vector<MemoryClass> derive_memory(const Layout& layout, const std::vector<Stage>& stages,
                                       const std::vector<StageUnits>& units,
                                       const PipelineMoments& moments) {
  const UnitFigures figures = figures_of(layout);
  std::vector<AlikeStages> known;
  known.reserve(stages.size());
  std::vector<MemoryClass> classes;
  classes.reserve(stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const Stage& stage = stages[s];
    const std::vector<WorkMoment>& own = moments[at(stage.device)];
    AlikeStages& alike = alike_with(layout, figures, stage, units[s], known);
    StageFigures all{.layout = layout,
                     .stage = stage,
                     .units = units[s],
                     .content = alike.content,
                     .moments = own,
                     .activations = held_activations(layout, stage, figures, units[s], own)};
    find_instants(figures, alike.moments, all);
    classes.push_back(described(all));
  }
  return classes;
}

}  // namespace placet
