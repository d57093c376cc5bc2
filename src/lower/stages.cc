#include "lower/stages.h"

#include <algorithm>
#include <numeric>

#include "model/gradients.h"
#include "units/error.h"

namespace placet {
namespace {

/// Blocks of each virtual stage: as the shares say, or even.
std::vector<std::int64_t> blocks_of(const Job& job, const AxisPlacement& axis,
                                    std::int64_t stages) {
  const std::int64_t blocks = job.model.figures.blocks;
  if (axis.shares.empty()) return even_blocks(blocks, stages);
  const std::int64_t sum = std::accumulate(axis.shares.begin(), axis.shares.end(), std::int64_t{0});
  if (static_cast<std::int64_t>(axis.shares.size()) != stages || sum != blocks) {
    refuse("--placement", std::string(axis.axis.text()),
           "its shares are not the blocks of its stages");
  }
  return axis.shares;
}

}  // namespace

int layer_axis(const Placement& placement) {
  int found = -1;
  for (std::size_t a = 0; a < placement.axes.size(); ++a) {
    if (placement.axes[a].how.cut != Cut::layer || placement.axes[a].degree == 1) continue;
    if (found >= 0)
      refuse("--placement", std::string(placement.axes[a].axis.text()), "is a second layer axis");
    found = static_cast<int>(a);
  }
  return found;
}

bool splits_backward(const Job& job) {
  if (layer_axis(job.placement) < 0) return false;
  switch (job.schedule.order) {
    case Order::all_forward:
    case Order::one_forward_one_backward:
    case Order::interleaved:
    case Order::table:
      return false;
    case Order::split_single:
    case Order::split_vee:
    case Order::bidirectional_split:
    case Order::split_table:
      return true;
  }
  fail_internally("every order has its backward");
}

namespace {

/// The first unit that hands the gradient of its input back; one past the last: none does.
int first_asked(const Model& model) {
  const std::vector<KindGradients> gradients = gradients_of(model);
  for (std::size_t u = 0; u < model.units.size(); ++u) {
    if (gradients[static_cast<std::size_t>(model.units[u].kind)].stream) return static_cast<int>(u);
  }
  return static_cast<int>(model.units.size());
}

/// All units on one device, micro-batch after micro-batch.
StagePlan undivided(int units, std::int64_t micro_batches) {
  StagePlan all{.chunks = {{}},
                .virtual_stages = {0},
                .micro_batches = {{.first = 0, .last = micro_batches - 1}}};
  for (int u = 0; u < units; ++u) all.chunks[0].push_back(u);
  for (std::int64_t j = 0; j < micro_batches; ++j) {
    all.work.push_back({.kind = Work::Kind::forward, .chunk = 0, .micro_batch = j});
    all.work.push_back({.kind = Work::Kind::backward, .chunk = 0, .micro_batch = j});
  }
  return all;
}

/// Units by virtual stage: what comes before the blocks on the first, what comes after on the last.
std::vector<std::vector<int>> units_of_stages(const Job& job, const AxisPlacement& axis) {
  const std::int64_t stages = virtual_stages(job.schedule, axis.degree);
  const std::vector<std::int64_t> blocks = blocks_of(job, axis, stages);
  const int units = static_cast<int>(job.model.units.size());
  std::vector<std::vector<int>> by_stage(static_cast<std::size_t>(stages));
  int next = 0;
  by_stage.front().push_back(next++);
  for (std::size_t s = 0; s < by_stage.size(); ++s) {
    for (std::int64_t b = 0; b < blocks[s]; ++b) by_stage[s].push_back(next++);
  }
  while (next < units) by_stage.back().push_back(next++);
  for (const std::vector<int>& own : by_stage) {
    if (!own.empty()) continue;
    refuse("--placement", std::string(axis.axis.text()),
           "leaves a stage without a block: no step program yet",
           "at most " + std::to_string(job.model.figures.blocks) + " stages");
  }
  return by_stage;
}

/// In a bidirectional pipeline each direction has half of the micro-batches.
MicroBatches micro_batches_of(const Schedule& schedule, std::int64_t chunk, std::int64_t all) {
  if (schedule.hosting != Hosting::bidirectional) return {.first = 0, .last = all - 1};
  const std::int64_t half = all / 2;
  return {.first = chunk * half, .last = chunk * half + half - 1};
}

/// The device that has a virtual stage; of two, the one where it is the same chunk. -1: there is no
/// such stage.
std::int64_t device_of(const std::vector<StagePlan>& stages, std::int64_t stage,
                       std::int64_t chunk) {
  for (const StagePlan& s : stages) {
    if (s.virtual_stages[static_cast<std::size_t>(chunk)] == stage) return s.coordinate;
  }
  for (const StagePlan& s : stages) {
    if (std::ranges::find(s.virtual_stages, stage) != s.virtual_stages.end()) return s.coordinate;
  }
  return -1;
}

/// Where the stages before and after those of each device are.
void find_neighbours(std::vector<StagePlan>& stages) {
  for (StagePlan& plan : stages) {
    for (std::size_t c = 0; c < plan.virtual_stages.size(); ++c) {
      const auto chunk = static_cast<std::int64_t>(c);
      plan.before.push_back(device_of(stages, plan.virtual_stages[c] - 1, chunk));
      plan.after.push_back(device_of(stages, plan.virtual_stages[c] + 1, chunk));
    }
  }
}

}  // namespace

std::vector<StagePlan> plan_stages(const Job& job, std::int64_t micro_batches) {
  const int layer = layer_axis(job.placement);
  if (layer < 0) return {undivided(static_cast<int>(job.model.units.size()), micro_batches)};
  const AxisPlacement& axis = job.placement.axes[static_cast<std::size_t>(layer)];
  const Schedule& schedule = job.schedule;
  if (const std::string need = unmet_need(schedule, axis.degree, micro_batches); !need.empty()) {
    refuse("--placement", schedule.name, need);
  }
  const std::vector<std::vector<int>> by_stage = units_of_stages(job, axis);
  const int asked = first_asked(job.model);
  std::vector<StagePlan> out;
  for (std::int64_t d = 0; d < axis.degree; ++d) {
    StagePlan plan{.coordinate = d, .first_asked = asked};
    for (std::int64_t c = 0; c < schedule.chunks; ++c) {
      const std::int64_t stage = hosted_stage(schedule, axis.degree, d, c);
      plan.virtual_stages.push_back(stage);
      plan.chunks.push_back(by_stage[static_cast<std::size_t>(stage)]);
      plan.micro_batches.push_back(micro_batches_of(schedule, c, micro_batches));
    }
    plan.work = order_of_work(schedule, axis.degree, d, micro_batches);
    for (Work& work : plan.work) {
      work.micro_batch += plan.micro_batches[static_cast<std::size_t>(work.chunk)].first;
    }
    out.push_back(std::move(plan));
  }
  find_neighbours(out);
  return out;
}

namespace {

/// The message over the boundary after (`later`) or before the stage of the work: the stream or its
/// gradient, to the device or from it.
std::optional<StageMessage> at_boundary(const StagePlan& stage, const Work& work, bool later) {
  const auto c = static_cast<std::size_t>(work.chunk);
  const std::int64_t peer = later ? stage.after[c] : stage.before[c];
  if (peer < 0 || peer == stage.coordinate) return std::nullopt;
  const bool gradient = work.kind != Work::Kind::forward;
  const bool sends = later != gradient;
  const int unit = later ? stage.chunks[c].back() + 1 : stage.chunks[c].front();
  if (gradient && unit < stage.first_asked) return std::nullopt;
  return StageMessage{.gradient = gradient,
                      .unit = unit,
                      .micro_batch = work.micro_batch,
                      .from = sends ? stage.coordinate : peer,
                      .to = sends ? peer : stage.coordinate};
}

}  // namespace

std::optional<StageMessage> message_before(const StagePlan& stage, const Work& work) {
  if (work.kind == Work::Kind::backward_weight) return std::nullopt;
  return at_boundary(stage, work, work.kind != Work::Kind::forward);
}

std::optional<StageMessage> message_after(const StagePlan& stage, const Work& work) {
  if (work.kind == Work::Kind::backward_weight) return std::nullopt;
  return at_boundary(stage, work, work.kind == Work::Kind::forward);
}

std::deque<StageMessage> messages_between(const std::vector<StagePlan>& stages, std::int64_t from,
                                          std::int64_t to) {
  std::deque<StageMessage> out;
  for (const StagePlan& stage : stages) {
    if (stage.coordinate != from) continue;
    for (const Work& work : stage.work) {
      const auto message = message_after(stage, work);
      if (message && message->to == to) out.push_back(*message);
    }
  }
  return out;
}

}  // namespace placet
