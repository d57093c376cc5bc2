#include "derive/memory.h"

#include <algorithm>

#include "derive/stage_memory.h"
#include "units/at.h"
#include "units/checked.h"
#include "units/error.h"

namespace placet {
namespace {

/// What the micro-batches in flight keep of a stage's chunks.
HeldActivations held_activations(const Layout& layout, const Stage& stage,
                                 const UnitFigures& figures, const StageUnits& units) {
  HeldActivations out;
  out.held = held_by_chunk(layout, stage);
  for (std::size_t c = 0; c < out.held.size(); ++c) {
    for (std::size_t r = units.chunk_begin(c); r < units.chunk_ends[c]; ++r) {
      const UnitMemory& unit = figures.walk_of(units.runs[r]);
      const std::int64_t kept = checked_multiply(out.held[c], units.runs[r].count, "activations");
      out.bytes =
          checked_add(out.bytes, checked_multiply(unit.kept, kept, "activations"), "activations");
      const std::int64_t off = checked_multiply(unit.kept_on_host, kept, "activations");
      (unit.kept_on_nvme ? out.on_nvme : out.on_host) += off;
      if (unit.kept_on_nvme) out.staged = std::max(out.staged, unit.kept_on_host);
    }
    if (out.held[c] > 0) out.active = c;
  }
  return out;
}

/// Finds the fullest moment of each instant. Within a run of equal units every sum is linear in the
/// position, except near its ends, where units gathered ahead are of another run: only those
/// positions are looked at.
class StageMemory {
 public:
  StageMemory(const UnitFigures& units, StageFigures& out)
      : layout_(out.layout),
        job_(*layout_.job),
        content_(out.content),
        units_(units),
        ahead_(units_ahead(job_)),
        out_(out) {}

  void visit_instants() {
    sum_active_chunk();
    sum_other_chunks();
    std::int64_t kept = 0;
    for (const RunSums& run : runs_) kept += run.of->count * run.walk->kept;
    // Kept by other micro-batches, then also by the units before the one that runs.
    const std::int64_t others = out_.activations.bytes - (held_here() > 0 ? kept : 0);
    for (const RunSums& run : runs_) visit(run, others);
    consider({.instant = Instant::reduction,
              .gradients = content_.rest.device[2],
              .update = content_.reduction});
    consider({.instant = Instant::update,
              .gradients = content_.rest.device[2],
              .update = content_.update});
  }

 private:
  /// A run of the chunk that runs, with sums over the units before it.
  struct RunSums {
    const UnitRun* of = nullptr;
    const UnitMemory* walk = nullptr;
    std::int64_t gradient = 0;  // bytes of gradients of one unit
    std::int64_t begin = 0;     // position in the chunk
    std::int64_t kept_before = 0;
    std::int64_t grown_before = 0;
    std::int64_t made_before = 0;
  };

  std::int64_t held_here() const { return out_.activations.held[out_.activations.active]; }

  const UnitRole& role_of(const UnitRun& run) const {
    const Model& model = job_.model;
    return model.kinds[at(layout_.units[at(run.local)].kind)].role;
  }

  /// The engine may keep a unit gathered for longer than its placement says.
  Keep keep_of(const UnitRun& run) const {
    const Profile& profile = job_.profile;
    const UnitRole role = role_of(run);
    const bool end = role == UnitRole::embedding || role == UnitRole::head;
    if (end && profile.joins_ends) return Keep::step;
    const bool stays = (role == UnitRole::head && profile.last_unit_stays_gathered) ||
                       (profile.last_block_stays_gathered && run.last_block);
    const Keep keep = units_.walk_of(run).keep;
    return stays ? std::max(keep, Keep::backward) : keep;
  }

  GatheredUnit gathered_of(const UnitRun& run) const {
    const UnitMemory& unit = units_.walk_of(run);
    return {.whole = unit.gathered_parameters,
            .keep = keep_of(run),
            .parts = unit.kept_parts,
            .parts_step = unit.kept_parts_step};
  }

  void sum_active_chunk() {
    const StageUnits& units = out_.units;
    const std::size_t active = out_.activations.active;
    gathered_ = GatheredChunk(ahead_, held_here() > 1);
    runs_.reserve(units.chunk_ends[active] - units.chunk_begin(active));
    std::int64_t kept = 0;
    for (std::size_t r = units.chunk_begin(active); r < units.chunk_ends[active]; ++r) {
      const UnitRun& run = units.runs[r];
      const UnitMemory& walk = units_.walk_of(run);
      gathered_.add(gathered_of(run), run.count);
      runs_.push_back({.of = &run,
                       .walk = &walk,
                       .gradient = units_.states_of(run).bytes.device[2],
                       .begin = count_,
                       .kept_before = kept,
                       .grown_before = grown_,
                       .made_before = made_});
      count_ += run.count;
      kept += run.count * walk.kept;
      grown_ += run.count * runs_.back().gradient;
      made_ += run.count * walk.weight_gradients;
    }
  }

  /// What the chunks that do not run keep gathered.
  void sum_other_chunks() {
    const StageUnits& units = out_.units;
    for (std::size_t c = 0; c < units.chunk_ends.size(); ++c) {
      if (c == out_.activations.active) continue;
      for (std::size_t r = units.chunk_begin(c); r < units.chunk_ends[c]; ++r) {
        const UnitRun& run = units.runs[r];
        const GatheredBytes kept = kept_of(gathered_of(run), out_.activations.held[c] > 0);
        gathered_elsewhere_.whole += run.count * kept.whole;
        gathered_elsewhere_.parts += run.count * kept.parts;
      }
    }
  }

  void visit(const RunSums& run, std::int64_t others) {
    const std::int64_t last = run.of->count - 1;
    const std::int64_t near = std::min(ahead_, last);
    for (std::int64_t i = 0; i <= last; ++i) {
      if (i > near && i < last - near) i = last - near;
      visit_unit(run, i, others + run.kept_before + i * run.walk->kept);
    }
  }

  /// Unit `i` of a run, with what other units and micro-batches keep.
  void visit_unit(const RunSums& run, std::int64_t i, std::int64_t activations) {
    const UnitMemory& walk = *run.walk;
    const std::size_t position = at(run.begin + i);
    Moment moment{.unit = run.of->first + static_cast<int>(i),
                  .running = &walk,
                  .gradients = gradients_before_backward(),
                  .activations = activations,
                  .peak = walk.forward,
                  .gathered = with_elsewhere(gathered_.in_forward(position))};
    consider(moment);
    if (walk.gathered_from > 0 && walk.keep != Keep::step) {
      consider(gathering(moment, walk.begins_with));
    }
    moment.instant = Instant::loss;
    moment.peak = walk.loss;
    if (walk.loss.total() > 0) consider(moment);
    moment.instant = Instant::backward;
    moment.gradients = gradients_in_backward(run, i);
    moment.peak = walk.backward;
    moment.gathered = with_elsewhere(gathered_.in_backward(position));
    if (job_.profile.gradient_hold == GradientHold::micro_batch) {
      moment.held_gradients = made_ - run.made_before - (i + 1) * walk.weight_gradients;
    }
    moment.held_gradients += waiting(moment.unit, -1);
    consider(moment);
    if (walk.gathered_from > 0 && walk.keep == Keep::none) {
      consider(gathering(moment, walk.ends_with));
    }
    if (walk.scatter.total() == 0) return;
    moment.peak = walk.scatter;
    moment.held_gradients = waiting(moment.unit, layout_.units[at(run.of->local)].kind);
    consider(moment);
  }

  /// The moment when the unit's parameters come together from copies of parts.
  static Moment gathering(Moment moment, const UnitPeak& there) {
    moment.peak = there;
    moment.gathered.parts += moment.running->gathered_from;
    return moment;
  }

  /// Gradients of later units that wait for their owners', but for those of kind `joined`.
  std::int64_t waiting(int unit, int joined) const {
    std::int64_t bytes = 0;
    for (const WaitingGradient& one : content_.waiting) {
      if (one.unit > unit && one.owner != joined) bytes += one.bytes;
    }
    return bytes;
  }

  GatheredBytes with_elsewhere(GatheredBytes here) const {
    return {.whole = here.whole + gathered_elsewhere_.whole,
            .parts = here.parts + gathered_elsewhere_.parts};
  }

  /// Whether gradients appear in the course of backward. All of them are there where they rest, or
  /// an earlier micro-batch made them.
  bool gradients_grow() const {
    return job_.profile.gradient_life == GradientLife::growing && layout_.micro_batches == 1;
  }

  std::int64_t gradients_before_backward() const {
    return gradients_grow() ? 0 : content_.rest.device[2];
  }

  std::int64_t gradients_in_backward(const RunSums& run, std::int64_t i) const {
    const std::int64_t all = content_.rest.device[2];
    if (!gradients_grow()) return all;
    return std::min(grown_ - run.grown_before - (i + 1) * run.gradient, all);
  }

  /// Compares one moment with the fullest of its instant so far.
  void consider(Moment moment) {
    Moment& best = out_.instants[static_cast<std::size_t>(moment.instant)];
    moment.total = content_.rest.device[0] + content_.rest.device[1] + moment.gradients +
                   moment.activations + moment.peak.total() + moment.gathered.total() +
                   moment.held_gradients + moment.update.total() +
                   content_.engine[static_cast<std::size_t>(moment.instant)];
    if (moment.total > best.total) best = moment;
  }

  const Layout& layout_;
  const Job& job_;
  const StageContent& content_;
  const UnitFigures& units_;
  std::int64_t ahead_ = 0;
  StageFigures& out_;
  std::vector<RunSums> runs_;
  std::int64_t count_ = 0;  // units of the chunk
  std::int64_t grown_ = 0;  // gradients of all its units
  std::int64_t made_ = 0;   // weights' gradients
  GatheredChunk gathered_{0, false};
  GatheredBytes gathered_elsewhere_;  // by the chunks that do not run
};

}  // namespace

std::vector<std::int64_t> held_by_chunk(const Layout& layout, const Stage& stage) {
  std::vector<std::int64_t> held = layout.stages == 1
                                       ? std::vector<std::int64_t>(1, 1)
                                       : held_micro_batches(layout.job->schedule, layout.stages,
                                                            stage.device, layout.micro_batches);
  held.resize(stage.chunks.size(), 0);
  return held;
}

std::vector<MemoryClass> derive_memory(const Layout& layout, const std::vector<Stage>& stages) {
  const UnitFigures units = figures_of(layout);
  std::vector<StageContent> contents;
  contents.reserve(stages.size());
  std::vector<MemoryClass> classes;
  classes.reserve(stages.size());
  for (const Stage& stage : stages) {
    const StageUnits own = units_of(layout, stage);
    auto known = std::ranges::find_if(
        contents, [&](const StageContent& content) { return are_alike(content.units, own); });
    if (known == contents.end()) {
      contents.push_back(content_of(layout, units, stage));
      known = contents.end() - 1;
    }
    StageFigures figures{.layout = layout,
                         .stage = stage,
                         .units = own,
                         .content = *known,
                         .activations = held_activations(layout, stage, units, own)};
    StageMemory(units, figures).visit_instants();
    classes.push_back(described(figures));
  }
  return classes;
}

}  // namespace placet
