#include "derive/stages.h"

#include <algorithm>

#include "model/gradients.h"
#include "units/at.h"
#include "units/checked.h"
#include "units/error.h"

namespace placet {
namespace {

__extension__ typedef __int128 Wide;  // products of two 64-bit numbers

/// The first layer axis of several devices, if there is one.
const AxisPlacement* layer_axis(const Placement& placement) {
  const AxisPlacement* found = nullptr;
  for (const AxisPlacement& axis : placement.axes) {
    if (axis.how.cut != Cut::layer) continue;
    if (found == nullptr || found->degree == 1) found = &axis;
  }
  return found;
}

/// Elements of the matrices a unit multiplies with: its cost, up to a factor, at equal tokens.
std::int64_t matrix_elements(const UnitKind& kind) {
  std::int64_t cost = 0;
  for (const Operator& op : kind.operators) {
    if (op.kind != OpKind::linear && op.kind != OpKind::grouped_linear) continue;
    for (int p : op.parameters) cost += elements_of(kind.parameters[at(p)].dims);
  }
  return cost;
}

/// Stages close after the block whose running cost passes k/n of the total, embedding free, head
/// weighed by its matrix. `on_tie` decides a block that meets the bound exactly: closes there, or
/// one later.
std::vector<std::int64_t> blocks_by_cost(const Model& model, std::int64_t stages, StageCut on_tie) {
  std::vector<std::int64_t> costs;
  std::int64_t total = 0;
  for (const Unit& unit : model.units) {
    const UnitKind& kind = model.kinds[at(unit.kind)];
    if (kind.role == UnitRole::embedding || kind.role == UnitRole::mtp) continue;
    const std::int64_t cost = matrix_elements(kind);
    total += cost;
    if (kind.role == UnitRole::block) costs.push_back(cost);
  }
  std::vector<std::int64_t> blocks(at(stages), 0);
  std::int64_t stage = 0;
  Wide running = 0;
  for (std::int64_t cost : costs) {
    ++blocks[at(stage)];
    running += cost;
    const Wide bound = static_cast<Wide>(total) * (stage + 1);
    const Wide reached = running * stages;
    const bool passed = on_tie == StageCut::by_cost ? reached >= bound : reached > bound;
    if (passed && stage + 1 < stages) ++stage;
  }
  return blocks;
}

/// Even over units, where embedding and head count as blocks of their own weight on the first and
/// the last stage; what does not divide goes to the first stages.
std::vector<std::int64_t> blocks_weighed(const Job& job, std::int64_t blocks, std::int64_t stages) {
  const std::int64_t first = job.profile.embedding_weight;
  const std::int64_t last = job.profile.head_weight;
  std::vector<std::int64_t> shares = even_blocks(blocks + first + last, stages);
  shares.front() = std::max<std::int64_t>(0, shares.front() - first);
  shares.back() = std::max<std::int64_t>(0, shares.back() - last);
  return shares;
}

std::vector<std::int64_t> by_shares(const std::vector<std::int64_t>& shares, std::int64_t blocks,
                                    std::int64_t stages) {
  std::vector<std::int64_t> out(at(stages), 0);
  std::int64_t left = blocks;
  for (std::int64_t s = 0; s < stages; ++s) {
    const std::int64_t wanted = at(s) < shares.size() ? shares[at(s)] : 0;
    out[at(s)] = s + 1 == stages ? left : std::min(left, wanted);
    left -= out[at(s)];
  }
  return out;
}

/// "pp=64", "a=8 b=8": the layer axes as written.
std::string layer_axes_as_written(const Placement& placement) {
  std::string text;
  for (const AxisPlacement& axis : placement.axes) {
    if (axis.how.cut != Cut::layer) continue;
    text += (text.empty() ? "" : " ") + std::string(axis.axis.text()) + "=" +
            std::to_string(axis.degree);
  }
  return text;
}

/// Pipelines that are somewhat too deep are laid out, idle stages and all, for a finding to judge
/// them. Checked before anything is made per stage: a degree may be any number.
void refuse_absurd_depth(const Job& job, std::int64_t blocks, std::int64_t stages) {
  constexpr std::int64_t kMostIdle = 1024;
  if (stages <= blocks + kMostIdle) return;
  throw InputError({.where = "placement",
                    .value = layer_axes_as_written(job.placement),
                    .problem = "makes " + std::to_string(stages) + " stages of a model with " +
                               std::to_string(blocks) + " blocks",
                    .allowed = "at most " + std::to_string(blocks) + " stages"});
}

}  // namespace

std::int64_t pipeline_degree(const Placement& placement) {
  std::int64_t degree = 1;
  for (const AxisPlacement& axis : placement.axes) {
    if (axis.how.cut == Cut::layer) degree = checked_multiply(degree, axis.degree, "degree");
  }
  return degree;
}

std::vector<std::int64_t> blocks_per_stage(const Job& job, std::int64_t virtual_stages) {
  std::int64_t blocks = 0;
  for (const Unit& unit : job.model.units) {
    blocks += job.model.kinds[at(unit.kind)].role == UnitRole::block ? 1 : 0;
  }
  refuse_absurd_depth(job, blocks, virtual_stages);
  const AxisPlacement* axis = layer_axis(job.placement);
  if (axis != nullptr && !axis->shares.empty()) {
    return by_shares(axis->shares, blocks, virtual_stages);
  }
  if (virtual_stages > 1) {
    switch (job.profile.stage_cut) {
      case StageCut::even:
        break;
      case StageCut::weighed:
        return blocks_weighed(job, blocks, virtual_stages);
      case StageCut::by_cost:
      case StageCut::by_cost_late:
        return blocks_by_cost(job.model, virtual_stages, job.profile.stage_cut);
    }
  }
  return even_blocks(blocks, virtual_stages);
}

namespace {

/// Units by virtual stage, as positions in Model::units.
std::vector<std::vector<int>> content_of(const Job& job, std::int64_t virtuals) {
  std::vector<std::int64_t> room = blocks_per_stage(job, virtuals);
  std::vector<std::vector<int>> content(at(virtuals));
  constexpr std::size_t kEnds = 3;  // embedding, head, a prediction module
  for (std::size_t s = 0; s < content.size(); ++s) content[s].reserve(at(room[s]) + kEnds);
  std::size_t stage = 0;
  for (std::size_t u = 0; u < job.model.units.size(); ++u) {
    const int unit = static_cast<int>(u);
    switch (job.model.kinds[at(job.model.units[u].kind)].role) {
      case UnitRole::embedding:
        content.front().push_back(unit);
        break;
      case UnitRole::head:
      case UnitRole::mtp:
        content.back().push_back(unit);
        break;
      case UnitRole::block:
        while (stage + 1 < room.size() && room[stage] == 0) ++stage;
        --room[stage];
        content[stage].push_back(unit);
        break;
    }
  }
  return content;
}

BackwardReach backward_reach(const Model& model, const std::vector<std::vector<int>>& content) {
  const auto trains_something = [&](const std::vector<int>& units) {
    return std::ranges::any_of(
        units, [&](int u) { return trains(model.kinds[at(model.units[at(u)].kind)]); });
  };
  return {.end = std::ranges::find_if(content, trains_something) - content.begin()};
}

}  // namespace

bool is_last_block(const Model& model, int unit) {
  const auto is_block = [&](std::size_t u) {
    return u < model.units.size() && model.kinds[at(model.units[u].kind)].role == UnitRole::block;
  };
  return is_block(at(unit)) && !is_block(at(unit) + 1);
}

bool is_first_use(const Model& model, const Stage& stage, const Parameter& parameter, int unit) {
  const auto ties_too = [&](int u) {
    return std::ranges::any_of(model.kinds[at(model.units[at(u)].kind)].parameters,
                               [&](const Parameter& p) { return p.tied == parameter.tied; });
  };
  for (const std::vector<int>& chunk : stage.chunks) {
    const auto first = std::ranges::find_if(chunk, [&](int u) { return u == unit || ties_too(u); });
    if (first != chunk.end()) return *first == unit;
  }
  return true;
}

bool is_second_use(const Model& model, const Stage& stage, const Parameter& parameter) {
  if (!parameter.tied) return false;
  return hosts_any(stage, [&](int u) { return model.units[at(u)].kind == parameter.tied->kind; });
}

std::vector<Stage> stages_of(const Job& job) {
  const std::int64_t degree = pipeline_degree(job.placement);
  const Schedule schedule = degree == 1 ? Schedule{} : job.schedule;
  std::vector<std::vector<int>> content = content_of(job, virtual_stages(schedule, degree));
  const BackwardReach backward = backward_reach(job.model, content);
  const bool hosted_twice = schedule.hosting == Hosting::bidirectional;
  std::vector<Stage> stages(at(degree));
  for (std::int64_t d = 0; d < degree; ++d) {
    Stage& out = stages[at(d)];
    out.device = static_cast<int>(d);
    out.backward = backward;
    out.chunks.reserve(at(schedule.chunks));
    out.virtual_stages.reserve(at(schedule.chunks));
    for (std::int64_t c = 0; c < schedule.chunks; ++c) {
      const std::int64_t hosted = hosted_stage(schedule, degree, d, c);
      std::vector<int>& units = content[at(hosted)];
      out.chunks.push_back(hosted_twice ? units : std::move(units));
      out.virtual_stages.push_back(hosted);
      out.hosts_first = out.hosts_first || hosted == 0;
      out.hosts_last = out.hosts_last || at(hosted) + 1 == content.size();
    }
  }
  return stages;
}

}  // namespace placet
