#include "derive/stage_units.h"

#include <algorithm>

#include "derive/stage_devices.h"
#include "units/at.h"

namespace placet {
namespace {

/// Whether block `ordinal` of its stage is recomputed. The plans are equal where nothing is.
bool is_recomputed(const Recompute& choice, UnitRole role, std::int64_t ordinal) {
  if (role != UnitRole::block && role != UnitRole::mtp) return false;
  switch (choice.kind) {
    case Recompute::Kind::none:
    case Recompute::Kind::full:
    case Recompute::Kind::selective:
    case Recompute::Kind::uniform:
      return true;
    case Recompute::Kind::every:
      return choice.count > 0 && ordinal % choice.count == 0;
    case Recompute::Kind::first:
      return ordinal < choice.count;
  }
  return false;
}

/// Position of the model's last block; -1: it has none.
int last_block(const Model& model) {
  for (int u = static_cast<int>(model.units.size()) - 1; u >= 0; --u) {
    if (is_last_block(model, u)) return u;
  }
  return -1;
}

bool is_same_unit(const UnitRun& a, const UnitRun& b) {
  return a.local == b.local && a.recomputed == b.recomputed && a.last_block == b.last_block &&
         a.together == b.together && a.inside == b.inside;
}

/// The blocks that a unit is made again with.
struct MadeAgainWith {
  std::int64_t together = 1;
  bool inside = false;
};

/// By position in a chunk. Case: 5 blocks by two: 2 2 2 2 1, of which the second and the fourth are
/// inside.
std::vector<MadeAgainWith> made_again_with(const Layout& layout, const std::vector<int>& chunk) {
  std::vector<MadeAgainWith> out(chunk.size());
  const Recompute& choice = layout.job->recompute;
  if (choice.kind != Recompute::Kind::uniform) return out;
  std::vector<std::size_t> blocks;
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    const int local = layout.unit_of[at(chunk[i])];
    const UnitKind& kind = layout.job->model.kinds[at(layout.units[at(local)].kind)];
    if (kind.role == UnitRole::block) blocks.push_back(i);
  }
  const std::size_t count = at(choice.count);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const std::size_t begin = b - b % count;
    out[blocks[b]] = {.together = static_cast<std::int64_t>(std::min(count, blocks.size() - begin)),
                      .inside = b > begin};
  }
  return out;
}

/// Takes the units of a stage one by one.
class RunList {
 public:
  explicit RunList(const Layout& layout)
      : layout_(layout),
        model_(layout.job->model),
        choice_(layout.job->recompute),
        last_(last_block(model_)) {}

  /// `begin`: where the chunk's runs begin.
  void add(int u, const MadeAgainWith& with, std::size_t begin, std::vector<UnitRun>& runs) {
    const int local = layout_.unit_of[at(u)];
    const UnitRole role = model_.kinds[at(layout_.units[at(local)].kind)].role;
    const bool again = is_recomputed(choice_, role, ordinal_);
    if (role == UnitRole::block) ++ordinal_;
    const bool follows = runs.size() > begin && u != last_ && runs.back().local == local &&
                         runs.back().first + runs.back().count == u &&
                         runs.back().recomputed == again && runs.back().inside == with.inside &&
                         runs.back().together == with.together &&
                         (with.inside || with.together == 1);
    if (follows) {
      ++runs.back().count;
      return;
    }
    runs.push_back({.local = local,
                    .first = u,
                    .count = 1,
                    .recomputed = again,
                    .last_block = u == last_,
                    .together = with.together,
                    .inside = with.inside});
  }

 private:
  const Layout& layout_;
  const Model& model_;
  const Recompute& choice_;
  int last_ = -1;
  std::int64_t ordinal_ = 0;  // blocks of the stage so far
};

}  // namespace

StageUnits units_of(const Layout& layout, const Stage& stage) {
  StageUnits out{.hosts_first = stage.hosts_first, .hosts_last = stage.hosts_last};
  const Job& job = *layout.job;
  if (job.cluster && !job.cluster->groups.empty()) {
    out.groups = groups_of_stage(*job.cluster, job.placement, stage.device);
  }
  out.runs.reserve(2 + stage.chunks.size());
  out.chunk_ends.reserve(stage.chunks.size());
  RunList list(layout);
  for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
    const std::size_t begin = out.runs.size();
    const std::vector<MadeAgainWith> with = made_again_with(layout, stage.chunks[c]);
    for (std::size_t i = 0; i < with.size(); ++i) {
      list.add(stage.chunks[c][i], with[i], begin, out.runs);
    }
    out.chunk_ends.push_back(out.runs.size());
    out.runs_backward.push_back(stage.runs_backward(c));
  }
  return out;
}

std::vector<StageUnits> units_by_stage(const Layout& layout, const std::vector<Stage>& stages) {
  std::vector<StageUnits> out;
  out.reserve(stages.size());
  for (const Stage& stage : stages) out.push_back(units_of(layout, stage));
  return out;
}

bool are_alike(const StageUnits& a, const StageUnits& b) {
  return a.hosts_first == b.hosts_first && a.hosts_last == b.hosts_last && a.groups == b.groups &&
         a.chunk_ends == b.chunk_ends && a.runs_backward == b.runs_backward &&
         std::ranges::equal(a.runs, b.runs, [](const UnitRun& x, const UnitRun& y) {
           return x.count == y.count && is_same_unit(x, y);
         });
}

}  // namespace placet
