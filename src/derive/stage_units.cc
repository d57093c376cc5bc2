#include "derive/stage_units.h"

#include <algorithm>

namespace placet {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// Whether block `ordinal` of its stage is recomputed. The plans are equal where nothing is.
bool is_recomputed(const Recompute& choice, UnitRole role, std::int64_t ordinal) {
  if (role != UnitRole::block && role != UnitRole::mtp) return false;
  switch (choice.kind) {
    case Recompute::Kind::none:
    case Recompute::Kind::full:
    case Recompute::Kind::selective:
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
  return a.local == b.local && a.recomputed == b.recomputed && a.last_block == b.last_block;
}

}  // namespace

StageUnits units_of(const Layout& layout, const Stage& stage) {
  const Model& model = layout.job->model;
  const Recompute& choice = layout.job->recompute;
  const bool by_number =
      choice.kind == Recompute::Kind::every || choice.kind == Recompute::Kind::first;
  const int last = last_block(model);
  StageUnits out{.hosts_first = stage.hosts_first, .hosts_last = stage.hosts_last};
  out.runs.reserve(2 + stage.chunks.size());
  out.chunk_ends.reserve(stage.chunks.size());
  std::int64_t ordinal = 0;
  for (const std::vector<int>& chunk : stage.chunks) {
    const std::size_t begin = out.runs.size();
    for (const int u : chunk) {
      const int local = layout.unit_of[at(u)];
      const bool follows = out.runs.size() > begin && out.runs.back().local == local && u != last &&
                           out.runs.back().first + out.runs.back().count == u;
      if (follows && !by_number) {
        ++out.runs.back().count;
        continue;
      }
      const UnitRole role = model.kinds[at(layout.units[at(local)].kind)].role;
      const bool again = is_recomputed(choice, role, ordinal);
      if (role == UnitRole::block) ++ordinal;
      if (follows && out.runs.back().recomputed == again) {
        ++out.runs.back().count;
        continue;
      }
      out.runs.push_back(
          {.local = local, .first = u, .count = 1, .recomputed = again, .last_block = u == last});
    }
    out.chunk_ends.push_back(out.runs.size());
  }
  return out;
}

bool are_alike(const StageUnits& a, const StageUnits& b) {
  return a.hosts_first == b.hosts_first && a.hosts_last == b.hosts_last &&
         a.chunk_ends == b.chunk_ends &&
         std::ranges::equal(a.runs, b.runs, [](const UnitRun& x, const UnitRun& y) {
           return x.count == y.count && is_same_unit(x, y);
         });
}

}  // namespace placet
