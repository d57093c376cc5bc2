// Rules about what is shared out: blocks among the stages of a pipeline, and the parts of an axis
// whose devices differ.
#include <algorithm>

#include "derive/rule_parts.h"
#include "profile/conditions.h"

namespace placet {
namespace {

std::string spelled_shares(const AxisPlacement& axis, const std::vector<std::int64_t>& shares) {
  std::string text = with_degree(axis, axis.degree);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    text += (i == 0 ? "[" : ",") + std::to_string(shares[i]);
  }
  return text + "]";
}

/// What mends a pipeline: even shares where each stage gets a block, else fewer stages.
std::string mended(const AxisPlacement& axis, std::int64_t blocks, std::int64_t stages) {
  if (blocks < stages) return "at most " + std::to_string(blocks) + " stages";
  return spelled_shares(axis, even_blocks(blocks, stages));
}

struct Pipeline {
  const AxisPlacement* axis = nullptr;  // the outermost layer axis
  std::int64_t stages = 1;              // virtual
  std::int64_t blocks = 0;
};

std::string stages_and_blocks(const Pipeline& pipeline) {
  return std::to_string(pipeline.blocks) + " blocks and " + std::to_string(pipeline.stages) +
         " stages";
}

void judge_block_shares(const Pipeline& pipeline, Findings& findings) {
  const std::vector<std::int64_t>& shares = pipeline.axis->shares;
  std::int64_t sum = 0;
  for (std::int64_t share : shares) sum += share;
  const bool counted = static_cast<std::int64_t>(shares.size()) == pipeline.stages;
  if (counted && sum == pipeline.blocks) return;
  findings.push_back({.rule = "shares",
                      .where = place_of(*pipeline.axis),
                      .message = std::to_string(shares.size()) + " shares place " +
                                 std::to_string(sum) + " blocks; there are " +
                                 stages_and_blocks(pipeline),
                      .cure = mended(*pipeline.axis, pipeline.blocks, pipeline.stages)});
}

/// Parameters without shapes in one unit: there is nothing to put on stages.
void judge_bare_stages(const Job& job, const Pipeline& pipeline, Findings& findings) {
  const std::int64_t count = count_parameters(job.model).total;
  findings.push_back(
      {.rule = "meaning",
       .where = place_of(*pipeline.axis),
       .message = "a bare count of parameters is one unit, which stages cannot divide",
       .cure = "params=" + std::to_string(count) + ",units=" + std::to_string(pipeline.stages) +
               " or more units, or a model with shapes"});
}

void judge_even_blocks(const Job& job, const Pipeline& pipeline, Findings& findings) {
  const bool engine_cuts = job.profile.stage_cut != StageCut::even;
  const bool enough = pipeline.blocks >= pipeline.stages;
  if (enough && (engine_cuts || pipeline.blocks % pipeline.stages == 0)) return;
  findings.push_back({.rule = "divisibility",
                      .where = place_of(*pipeline.axis),
                      .message = enough ? std::to_string(pipeline.blocks) +
                                              " blocks do not divide by " +
                                              std::to_string(pipeline.stages) + " stages"
                                        : "there are only " + stages_and_blocks(pipeline),
                      .cure = mended(*pipeline.axis, pipeline.blocks, pipeline.stages)});
}
}  // namespace

void judge_blocks(const Job& job, Findings& findings) {
  const std::int64_t degree = pipeline_degree(job.placement);
  if (degree == 1) return;
  Pipeline pipeline;
  for (const AxisPlacement& axis : job.placement.axes) {
    if (axis.how.cut != Cut::layer || axis.degree == 1) continue;
    if (pipeline.axis == nullptr || !axis.shares.empty()) pipeline.axis = &axis;
  }
  pipeline.stages = virtual_stages(job.schedule, degree);
  pipeline.blocks = blocks_of(job.model);
  if (pipeline.blocks == 0) return;
  if (pipeline.blocks == 1 && is_bare(job.model)) {
    return judge_bare_stages(job, pipeline, findings);
  }
  if (pipeline.axis->shares.empty()) return judge_even_blocks(job, pipeline, findings);
  judge_block_shares(pipeline, findings);
}

void judge_shares(const Job& job, Findings& findings) {
  for (const AxisPlacement& axis : job.placement.axes) {
    if (axis.shares.empty() || axis.how.cut == Cut::layer) continue;
    const bool counted = static_cast<std::int64_t>(axis.shares.size()) == axis.degree;
    const bool busy =
        std::ranges::all_of(axis.shares, [](std::int64_t share) { return share > 0; });
    if (counted && busy) continue;
    findings.push_back({.rule = "shares",
                        .where = place_of(axis),
                        .message = counted ? "a share of 0 leaves devices without work"
                                           : std::to_string(axis.shares.size()) +
                                                 " shares for a degree of " +
                                                 std::to_string(axis.degree),
                        .cure = counted ? "shares above 0" : "one share per coordinate"});
  }
}

}  // namespace placet
