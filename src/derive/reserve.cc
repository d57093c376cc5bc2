#include "derive/reserve.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "derive/device_pools.h"
#include "derive/layout.h"
#include "derive/memory.h"
#include "derive/stage_content.h"
#include "derive/stages.h"
#include "derive/unit_replay.h"
#include "units/at.h"
#include "units/error.h"
#include "units/shares.h"

namespace placet {
namespace {

using Handle = CachingPool::Handle;

/// The allocations of one device over steps of training.
class Replay {
 public:
  Replay(const Job& job, const Layout& layout, const Stage& stage, std::optional<Bytes> limit)
      : job_(job),
        profile_(job.profile),
        layout_(layout),
        stage_(stage),
        limit_(limit),
        content_(content_of(layout, figures_of(layout), stage, units_of(layout, stage))),
        pools_(job.profile),
        replay_(job, layout, pools_) {
    without_master_.precision = job.precision;
    without_master_.precision.master = std::nullopt;
    without_master_.optimizer = job.optimizer;
    read_units();
  }

  Reservation run() {
    set_up();
    allocate_states();
    allocate_own_terms();
    if (limit_) pools_.limit(*limit_ - outside_ - unseen_);
    for (int step = 0; step < 2; ++step) run_step(step);
    return {.stage = stage_.device,
            .alive = peaks_.alive + outside_,
            .reserved = peaks_.reserved + outside_,
            .alive_after_backward = peaks_.alive_after_backward + outside_,
            .reserved_after_backward = peaks_.reserved_after_backward + outside_,
            .outside = unseen_,
            .gives_back = pools_.gave_back()};
  }

 private:
  using WorkKey = std::pair<std::int64_t, std::int64_t>;  // chunk, micro-batch

  void read_units() {
    std::int64_t ordinal = 0;
    for (const std::vector<int>& chunk : stage_.chunks) {
      for (int u : chunk) {
        const int k = layout_.unit_of[at(u)];
        const UnitKind& kind = job_.model.kinds[at(layout_.units[at(k)].kind)];
        units_.emplace(u, unit_facts(layout_, k, is_recomputed(kind, ordinal)));
        if (kind.role == UnitRole::block) ++ordinal;
      }
    }
  }

  bool is_recomputed(const UnitKind& kind, std::int64_t ordinal) const {
    if (kind.role != UnitRole::block && kind.role != UnitRole::mtp) return false;
    const Recompute& choice = job_.recompute;
    if (choice.kind == Recompute::Kind::every)
      return choice.count > 0 && ordinal % choice.count == 0;
    if (choice.kind == Recompute::Kind::first) return ordinal < choice.count;
    return true;
  }

  template <class F>
  void for_each_parameter(F&& f) const {
    for (const auto& [u, facts] : units_) {
      for (std::size_t p = 0; p < facts.kind->parameters.size(); ++p) {
        if (is_second_use(job_.model, stage_, facts.kind->parameters[p])) continue;
        f(facts.kind->parameters[p], facts.local->parameters[p]);
      }
    }
  }

  /// What the engine needs before the first step, given back before it begins.
  void set_up() {
    for (const EngineMemory& term : profile_.memory) {
      if ((term.instants & bit_of(Instant::start)) == 0) continue;
      if (!all_hold(term.when, layout_, stage_)) continue;
      release_all(allocate_term(term));
    }
    peaks_.reserved = pools_.take_peaks().reserved;
    pools_.give_back();
    pools_.take_peaks();
  }

  /// Parameters, the optimizer's master and, where they rest, gradients. The optimizer's other
  /// state appears in the first update.
  void allocate_states() {
    std::int64_t gradients = 0;
    std::int64_t master = 0;
    for_each_parameter([&](const Parameter& declared, const LocalParameter& local) {
      const StateBytes own = state_bytes(job_, declared, local);
      pools_.main().allocate(own.device[0]);
      gradients += own.device[2];
      master += own.device[1] - moments(declared, local);
    });
    pools_.main().allocate(master);
    if (profile_.gradient_life != GradientLife::resting) return;
    if (profile_.gradient_grain != MessageGrain::unit) {
      pools_.main().allocate(gradients);
      return;
    }
    for_each_parameter([&](const Parameter& declared, const LocalParameter& local) {
      pools_.main().allocate(state_bytes(job_, declared, local).device[2]);
    });
  }

  /// The engine's own terms that live on.
  void allocate_own_terms() {
    for (const EngineMemory& term : profile_.memory) {
      if (term.instants != kEveryInstant || !all_hold(term.when, layout_, stage_)) continue;
      if (term.category != MemoryCategory::overhead) {
        allocate_term(term);
        continue;
      }
      (term.in_reserved ? outside_ : unseen_) += bytes(evaluate(term.bytes, layout_, stage_));
    }
  }

  /// The engine's own terms that are there from forward to backward.
  std::vector<Handle> allocate_terms_of_passes() {
    constexpr InstantSet kPasses = bit_of(Instant::forward) | bit_of(Instant::backward);
    std::vector<Handle> handles;
    for (const EngineMemory& term : profile_.memory) {
      const bool passes = (term.instants & kPasses) == kPasses && term.instants != kEveryInstant;
      if (!passes || !all_hold(term.when, layout_, stage_)) continue;
      const std::vector<Handle> own = allocate_term(term);
      handles.insert(handles.end(), own.begin(), own.end());
    }
    return handles;
  }

  /// A profile's term, in as many equal blocks as it says.
  std::vector<Handle> allocate_term(const EngineMemory& term) {
    const std::int64_t size = evaluate(term.bytes, layout_, stage_);
    const std::int64_t blocks = std::max<std::int64_t>(1, evaluate(term.blocks, layout_, stage_));
    std::vector<Handle> handles;
    for (std::int64_t b = 0; b < blocks; ++b) {
      handles.push_back(pools_.main().allocate(largest_share(size, blocks)));
    }
    return handles;
  }

  /// Bytes of one parameter's optimizer state on the device that is not its master copy.
  std::int64_t moments(const Parameter& declared, const LocalParameter& local) const {
    return state_bytes(without_master_, declared, local).device[1];
  }

  void run_step(int step) {
    const Schedule schedule = layout_.stages == 1 ? Schedule{} : job_.schedule;
    const std::vector<std::int64_t> held =
        layout_.stages == 1
            ? std::vector<std::int64_t>{1}
            : held_micro_batches(schedule, layout_.stages, stage_.device, layout_.micro_batches);
    const std::int64_t in_flight = *std::ranges::max_element(held);
    const std::int64_t m = std::min(layout_.micro_batches, std::max(in_flight, layout_.stages) + 2);
    gather_for_step();
    const std::vector<Handle> own_terms = allocate_terms_of_passes();
    for (const Work& work : order_of_work(schedule, layout_.stages, stage_.device, m)) {
      switch (work.kind) {
        case Work::Kind::forward:
          forward(work);
          break;
        case Work::Kind::backward:
        case Work::Kind::backward_input:
          backward(work);
          break;
        case Work::Kind::backward_weight:
          break;
      }
    }
    release_all(own_terms);
    finish_step(step);
  }

  /// Gathered parameters of one unit, unless they are there already.
  void gather(int u) {
    const UnitMemory& memory = units_.at(u).memory;
    if (memory.gathered_parameters == 0 || gathered_.contains(u)) return;
    const Handle message = profile_.gathers_in_own_pool
                               ? pools_.gathers().allocate(memory.gathered_parameters)
                               : Handle{0};
    const Handle parts = pools_.main().allocate(memory.gathered_from);
    gathered_[u] = pools_.main().allocate(memory.gathered_parameters);
    pools_.main().release(parts);
    // The message lives until the next one has been copied out.
    pools_.gathers().release(last_message_);
    last_message_ = message;
  }

  /// What stays gathered over the step, before its first micro-batch.
  void gather_for_step() {
    if (!profile_.parts_stand_apart) return;
    for_each_unit(stage_, [&](int u) {
      if (units_.at(u).memory.keep == Keep::step) gather(u);
    });
  }

  void drop_gathered(int u) {
    const auto found = gathered_.find(u);
    if (found == gathered_.end()) return;
    pools_.main().release(found->second);
    gathered_.erase(found);
  }

  /// Embedding and head where they are one unit: gathered at its first use, freed after its last.
  bool stays_joined(const UnitFacts& unit) const {
    return layout_.plan.gathers.joins_ends && is_end(unit.kind->role);
  }

  void drop_joined(const std::vector<int>& chunk) {
    for (int u : chunk) {
      const UnitFacts& unit = units_.at(u);
      if (stays_joined(unit) && unit.memory.keep != Keep::step) drop_gathered(u);
    }
  }

  void forward(const Work& work) {
    if (stage_.virtual_stages[at(work.chunk)] > 0) pools_.wait();
    const std::vector<int>& chunk = stage_.chunks[at(work.chunk)];
    std::vector<UnitBuffers>& buffers = alive_[{work.chunk, work.micro_batch}];
    buffers.resize(chunk.size());
    Handle stream = 0;
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      const UnitFacts& unit = units_.at(chunk[i]);
      gather(chunk[i]);
      if (i == 0 && layout_.plan.gathers.joins_ends) gather(chunk.back());
      stream = replay_.forward(unit, buffers[i], stream);
      const GatherTerms& gathers = layout_.plan.gathers;
      const bool last =
          gathers.all != Keep::none || (i + 1 == chunk.size() && gathers.head != Keep::none);
      if (unit.memory.keep == Keep::none && !last && !stays_joined(unit)) drop_gathered(chunk[i]);
    }
    leaving_[{work.chunk, work.micro_batch}] = stream;
    if (layout_.stages > 1 && profile_.host_waits_at_sends) pools_.wait();
  }

  void backward(const Work& work) {
    if (layout_.stages > 1) pools_.wait();
    const std::vector<int>& chunk = stage_.chunks[at(work.chunk)];
    const WorkKey key{work.chunk, work.micro_batch};
    std::vector<UnitBuffers>& buffers = alive_[key];
    pools_.main().release(leaving_[key]);
    Handle gradient = 0;
    std::vector<Handle> held;
    for (std::size_t i = chunk.size(); i-- > 0;) {
      const UnitFacts& unit = units_.at(chunk[i]);
      if (unit.prepared->gradients.backward) gather(chunk[i]);
      if (takes_loss(unit)) run_terms_of_loss();
      gradient = replay_.backward(unit, buffers[i], gradient, held);
      if (unit.memory.keep != Keep::step && !stays_joined(unit)) drop_gathered(chunk[i]);
      if (profile_.gradient_hold != GradientHold::micro_batch) reduce_unit(unit, held);
      join_gradients(chunk[i]);
    }
    pools_.main().release(gradient);
    release_all(held);
    if (layout_.plan.gathers.joins_ends) drop_joined(chunk);
    alive_.erase(key);
    leaving_.erase(key);
  }

  /// Gradients of tensors that an earlier unit owns wait for its own, and go with them.
  void join_gradients(int u) {
    for (const WaitingGradient& one : content_.waiting) {
      if (one.unit == u) joining_[one.owner].push_back(pools_.main().allocate(one.bytes));
    }
    const auto found = joining_.find(job_.model.units[at(u)].kind);
    if (found == joining_.end()) return;
    release_all(found->second);
    joining_.erase(found);
  }

  /// Gradients of a finished unit: added to what rests, or sent off.
  void reduce_unit(const UnitFacts& unit, std::vector<Handle>& held) {
    const std::int64_t whole = unit.memory.gradient_whole;
    if (whole > 0) {
      const std::int64_t input =
          whole / bits_of(job_.precision.compute) * bits_of(job_.precision.reduce);
      pools_.reductions().release(last_reduction_);
      last_reduction_ = pools_.reductions().allocate(input);
    }
    release_all(held);
    held.clear();
    if (profile_.gradient_life == GradientLife::growing) grow_gradients(unit);
  }

  void grow_gradients(const UnitFacts& unit) {
    if (!grown_.insert(&unit).second) return;
    for (std::size_t p = 0; p < unit.kind->parameters.size(); ++p) {
      if (is_second_use(job_.model, stage_, unit.kind->parameters[p])) continue;
      const StateBytes own = state_bytes(job_, unit.kind->parameters[p], unit.local->parameters[p]);
      growing_.push_back(pools_.reductions().allocate(own.device[2]));
    }
  }

  /// After the last backward: reductions, the update and its temporaries.
  void finish_step(int step) {
    pools_.wait();
    if (!profile_.reduces_in_own_pool) {
      pools_.main().release(std::exchange(last_reduction_, 0));
    }
    // What was gathered for all micro-batches goes with the last backward.
    for (const auto& [u, handle] : gathered_) pools_.main().release(handle);
    gathered_.clear();
    note_peaks();
    const std::vector<Handle> reduced = allocate(content_.reduction);
    run_own_terms(Instant::reduction);
    release_all(reduced);
    if (step == 0) allocate_optimizer();
    const std::vector<Handle> inputs = allocate(content_.update);
    run_own_terms(Instant::update);
    release_all(inputs);
    const PoolPeaks after_backward = note_peaks();
    peaks_.alive_after_backward = after_backward.alive;
    peaks_.reserved_after_backward = after_backward.reserved;
    for (Handle handle : growing_) pools_.reductions().release(handle);
    growing_.clear();
    grown_.clear();
  }

  /// What reductions or updates need at their fullest moment.
  std::vector<Handle> allocate(const UpdateInputs& most) {
    std::vector<Handle> handles;
    for (const std::int64_t size :
         {most.gradients_gathered + most.gradients_copied, most.state_gathered + most.state_copied,
          most.matrices, most.own_gradients, most.sums, most.updated}) {
      if (size > 0) handles.push_back(pools_.main().allocate(size));
    }
    return handles;
  }

  static bool takes_loss(const UnitFacts& unit) {
    return std::ranges::find(unit.kind->operators, OpKind::loss, &Operator::kind) !=
           unit.kind->operators.end();
  }

  /// The engine's own terms of one instant come and go.
  void run_own_terms(Instant instant) {
    run_terms(
        [instant](InstantSet set) { return (set & bit_of(instant)) != 0 && set != kEveryInstant; });
  }

  /// Those of the loss alone: what stays from forward to backward is there already.
  void run_terms_of_loss() {
    run_terms([](InstantSet set) { return set == bit_of(Instant::loss); });
  }

  template <typename Chooses>
  void run_terms(const Chooses& chooses) {
    std::vector<Handle> temporary;
    for (const EngineMemory& term : profile_.memory) {
      if (!chooses(term.instants) || term.category == MemoryCategory::overhead) continue;
      if (!all_hold(term.when, layout_, stage_)) continue;
      const std::vector<Handle> blocks = allocate_term(term);
      temporary.insert(temporary.end(), blocks.begin(), blocks.end());
    }
    release_all(temporary);
  }

  /// The most since this was last asked; of the whole replay, the largest.
  PoolPeaks note_peaks() {
    const PoolPeaks since = pools_.take_peaks();
    peaks_.alive = std::max(peaks_.alive, since.alive);
    peaks_.reserved = std::max(peaks_.reserved, since.reserved);
    return since;
  }

  void allocate_optimizer() {
    for_each_parameter([&](const Parameter& declared, const LocalParameter& local) {
      // Constants of blocks are counted with the numbers that they belong to.
      const auto states = std::max<std::int64_t>(
          1, std::ranges::count_if(states_of(job_.optimizer, declared), [](const auto& state) {
            return state.extent != OptimizerState::Extent::block;
          }));
      const std::int64_t size = moments(declared, local);
      for (std::int64_t s = 0; s < states; ++s) {
        pools_.main().allocate(largest_share(size, states));
      }
    });
  }

  void release_all(const std::vector<Handle>& handles) {
    for (Handle handle : handles) pools_.main().release(handle);
  }

  const Job& job_;
  const Profile& profile_;
  const Layout& layout_;
  const Stage& stage_;
  std::optional<Bytes> limit_;
  StageContent content_;
  Job without_master_;
  DevicePools pools_;
  UnitReplay replay_;
  std::map<int, UnitFacts> units_;
  Bytes outside_;  // overhead that figures of reserved memory see ...
  Bytes unseen_;   // ... and that they do not: contexts, communicators
  Reservation peaks_;
  std::map<int, Handle> gathered_;
  Handle last_message_ = 0;
  Handle last_reduction_ = 0;
  std::map<WorkKey, std::vector<UnitBuffers>> alive_;
  std::map<WorkKey, Handle> leaving_;
  std::map<int, std::vector<Handle>> joining_;  // gradients, by the kind of unit that they wait for
  std::vector<Handle> growing_;
  std::set<const UnitFacts*> grown_;
};

std::optional<Bytes> memory_of(const Job& job) {
  if (!job.cluster) return std::nullopt;
  return smallest_memory(*job.cluster);
}

}  // namespace

Reservation reserve(const Job& job, const Prepared& prepared, int stage,
                    std::optional<Bytes> limit) {
  return reserve(lay_out(job, prepared), stage, limit);
}

Reservation reserve(const Layout& layout, int stage, std::optional<Bytes> limit) {
  const Job& job = *layout.job;
  const std::vector<Stage> stages = stages_of(job);
  return Replay(job, layout, stages[at(stage)], limit ? limit : memory_of(job)).run();
}

std::vector<Reservation> reserve(const Job& job) { return reserve(job, prepare(job)); }

std::vector<Reservation> reserve(const Job& job, const Prepared& prepared) {
  const Layout layout = lay_out(job, prepared);
  std::vector<Reservation> out;
  for (const Stage& stage : stages_of(job)) {
    out.push_back(Replay(job, layout, stage, memory_of(job)).run());
  }
  return out;
}

}  // namespace placet
