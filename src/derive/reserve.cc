#include "derive/reserve.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "derive/caching_pool.h"
#include "derive/layout.h"
#include "derive/memory.h"
#include "derive/stages.h"
#include "derive/unit_memory.h"
#include "units/error.h"
#include "units/shares.h"

namespace placet {
namespace {

using Handle = CachingPool::Handle;

std::size_t at(int i) { return static_cast<std::size_t>(i); }
std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Buffers of one unit in one micro-batch.
struct UnitBuffers {
  std::vector<Handle> values;  // by value, roots only
  std::vector<Handle> weight_gradients;
};

/// The allocations of one device over steps of training.
class Replay {
 public:
  Replay(const Job& job, const Layout& layout, const Stage& stage, std::optional<Bytes> limit)
      : job_(job),
        profile_(job.profile),
        layout_(layout),
        stage_(stage),
        limit_(limit),
        main_(profile_.expandable_segments),
        gathers_(profile_.expandable_segments),
        reductions_(profile_.expandable_segments) {
    without_master_.precision = job.precision;
    without_master_.precision.master = std::nullopt;
    without_master_.optimizer = job.optimizer;
    read_units();
  }

  Reservation run() {
    allocate_resting();
    if (limit_) main_.limit(in_bytes(*limit_ - outside_ - unseen_), [this] { wait_for_device(); });
    peaks_.reserved = start_reserved_;
    for (int step = 0; step < 2; ++step) run_step(step);
    return {.stage = stage_.device,
            .alive = peaks_.alive + outside_,
            .reserved = peaks_.reserved + outside_,
            .alive_after_backward = peaks_.alive_after_backward + outside_,
            .reserved_after_backward = peaks_.reserved_after_backward + outside_};
  }

 private:
  struct UnitFacts {
    const UnitKind* kind = nullptr;
    const PreparedKind* prepared = nullptr;
    const LocalUnit* local = nullptr;
    const SavedPlan* plan = nullptr;
    std::vector<std::int64_t> sizes;
    UnitMemory memory;
  };

  void read_units() {
    std::int64_t ordinal = 0;
    for (const std::vector<int>& chunk : stage_.chunks) {
      for (int u : chunk) {
        UnitFacts facts;
        const int k = layout_.unit_of[at(u)];
        facts.local = &layout_.units[at(k)];
        facts.kind = &job_.model.kinds[at(facts.local->kind)];
        facts.prepared = &layout_.prepared->kinds[at(facts.local->kind)];
        const bool block = facts.kind->role == UnitRole::block;
        const bool again = is_recomputed(*facts.kind, ordinal);
        facts.plan = again ? &facts.prepared->recomputed : &facts.prepared->plain;
        facts.sizes = value_bytes(layout_, k, again);
        facts.memory = unit_memory(layout_, k, again);
        if (block) ++ordinal;
        units_.emplace(u, std::move(facts));
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
    start_reserved_ = bytes(main_.reserved());
    main_.give_back();
    main_.restart_peaks();
  }

  /// Parameters and, where they rest, gradients; buffers that live on; the optimizer's master. Its
  /// other state appears in the first update.
  void allocate_resting() {
    set_up();
    std::int64_t gradients = 0;
    std::int64_t master = 0;
    for_each_parameter([&](const Parameter& declared, const LocalParameter& local) {
      const StateBytes own = state_bytes(job_, declared, local);
      main_.allocate(own.device[0]);
      gradients += own.device[2];
      master += own.device[1] - moments(declared, local);
    });
    main_.allocate(master);
    if (profile_.gradient_life == GradientLife::resting) {
      if (profile_.gradient_grain == MessageGrain::unit) {
        for_each_parameter([&](const Parameter& declared, const LocalParameter& local) {
          main_.allocate(state_bytes(job_, declared, local).device[2]);
        });
      } else {
        main_.allocate(gradients);
      }
    }
    for (const EngineMemory& term : profile_.memory) {
      if (!all_hold(term.when, layout_, stage_)) continue;
      const bool always = term.instants == kEveryInstant;
      const std::int64_t size = evaluate(term.bytes, layout_, stage_);
      if (term.category == MemoryCategory::overhead && always) {
        (term.in_reserved ? outside_ : unseen_) += bytes(size);
      } else if (always) {
        allocate_term(term);
      }
    }
  }

  /// A profile's term, in as many equal blocks as it says.
  std::vector<Handle> allocate_term(const EngineMemory& term) {
    const std::int64_t size = evaluate(term.bytes, layout_, stage_);
    const std::int64_t blocks = std::max<std::int64_t>(1, evaluate(term.blocks, layout_, stage_));
    std::vector<Handle> handles;
    for (std::int64_t b = 0; b < blocks; ++b) {
      handles.push_back(main_.allocate(largest_share(size, blocks)));
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
    std::int64_t in_flight = 0;
    for (std::int64_t count : held) in_flight = std::max(in_flight, count);
    const std::int64_t m = std::min(layout_.micro_batches, std::max(in_flight, layout_.stages) + 2);
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
    finish_step(step);
  }

  /// Gathered parameters of one unit, unless they are there already.
  void gather(int u) {
    const UnitMemory& memory = units_.at(u).memory;
    if (memory.gathered_parameters == 0 || gathered_.contains(u)) return;
    CachingPool& pool = profile_.gathers_in_own_pool ? gathers_ : main_;
    const Handle message =
        profile_.gathers_in_own_pool ? gathers_.allocate(memory.gathered_parameters) : Handle{0};
    gathered_[u] = main_.allocate(memory.gathered_parameters);
    // The message lives until the next one has been copied out.
    pool.release(last_message_);
    last_message_ = message;
  }

  void drop_gathered(int u) {
    const auto found = gathered_.find(u);
    if (found == gathered_.end()) return;
    main_.release(found->second);
    gathered_.erase(found);
  }

  /// Embedding and head where they are one unit: gathered at its first use, freed after its last.
  bool stays_joined(const UnitFacts& unit) const {
    const UnitRole role = unit.kind->role;
    return profile_.joins_ends && (role == UnitRole::embedding || role == UnitRole::head);
  }

  void drop_joined(const std::vector<int>& chunk) {
    for (int u : chunk) {
      const UnitFacts& unit = units_.at(u);
      if (stays_joined(unit) && unit.memory.keep != Keep::step) drop_gathered(u);
    }
  }

  void forward(const Work& work) {
    if (stage_.virtual_stages[at(work.chunk)] > 0) wait_for_device();
    const std::vector<int>& chunk = stage_.chunks[at(work.chunk)];
    std::vector<UnitBuffers>& buffers = alive_[{work.chunk, work.micro_batch}];
    buffers.resize(chunk.size());
    Handle stream = 0;
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      const UnitFacts& unit = units_.at(chunk[i]);
      gather(chunk[i]);
      if (i == 0 && profile_.joins_ends) gather(chunk.back());
      stream = forward_unit(unit, buffers[i], stream);
      const bool last = i + 1 == chunk.size() && profile_.last_unit_stays_gathered;
      if (unit.memory.keep == Keep::none && !last && !stays_joined(unit)) drop_gathered(chunk[i]);
    }
    leaving_[{work.chunk, work.micro_batch}] = stream;
    if (layout_.stages > 1 && profile_.host_waits_at_sends) wait_for_device();
  }

  /// Runs one unit forward. The unit's input is handed over by the unit before; its output is
  /// returned. Values that are not kept vanish after their last use.
  Handle forward_unit(const UnitFacts& unit, UnitBuffers& buffers, Handle input) {
    buffers.values.assign(unit.sizes.size(), 0);
    if (unit.sizes.empty()) return input;
    const PreparedKind& prepared = *unit.prepared;
    if (prepared.values[0].producer < 0) {
      buffers.values[0] = input != 0 ? input : main_.allocate(unit.sizes[0]);
    }
    for (std::size_t o = 0; o < unit.kind->operators.size(); ++o) {
      const Operator& op = unit.kind->operators[o];
      const std::vector<Handle> whole = gather_inputs(unit, op);
      for (int v : prepared.operators[o].made) allocate_value(unit, buffers, v);
      for (int v : op.internals) {
        if (unit.plan->is_kept[at(v)]) allocate_value(unit, buffers, v);
      }
      if (op.kind == OpKind::loss) run_loss(unit, op, buffers);
      release_all(whole);
      launch(unit);
      for (int v : prepared.operators[o].dead_after) {
        if (unit.plan->is_kept[at(v)]) continue;
        if (prepared.values[at(v)].leaves_parallel && hands_over_late()) {
          release_late(buffers.values[at(v)]);
          buffers.values[at(v)] = 0;
        }
        release_value(buffers, v);
      }
    }
    if (prepared.output < 0) return 0;
    const Handle output = buffers.values[at(prepared.output)];
    if (!unit.plan->is_kept[at(prepared.output)]) buffers.values[at(prepared.output)] = 0;
    return output;
  }

  void allocate_value(const UnitFacts& unit, UnitBuffers& buffers, int v) {
    if (buffers.values[at(v)] == 0) buffers.values[at(v)] = main_.allocate(unit.sizes[at(v)]);
  }

  void release_value(UnitBuffers& buffers, int v) {
    main_.release(buffers.values[at(v)]);
    buffers.values[at(v)] = 0;
  }

  bool hands_over_late() const {
    return profile_.collective_buffers_return_late && job_.host_runs_ahead &&
           layout_.split_residual_axes != 0;
  }

  /// A buffer handed to a collective: back in the pool when the device has run what was launched.
  void release_late(Handle handle) {
    if (handle == 0) return;
    late_.push_back({launches_, handle});
  }

  /// The host launches the kernels of one operator; what the full queue has pushed out has run.
  void launch(const UnitFacts& unit) {
    if (late_.empty() && !hands_over_late()) return;
    const std::size_t both_ways = std::max<std::size_t>(1, 2 * unit.kind->operators.size());
    launches_ += static_cast<double>(profile_.launches_per_block) / static_cast<double>(both_ways);
    const double run = launches_ - static_cast<double>(profile_.launch_queue);
    while (!late_.empty() && late_.front().first < run) {
      main_.release(late_.front().second);
      late_.pop_front();
    }
  }

  /// The host waits for the device: a message received, the end of a step.
  void wait_for_device() {
    const auto handed_over = std::exchange(late_, {});
    for (const auto& [when, handle] : handed_over) main_.release(handle);
  }

  void release_all(const std::vector<Handle>& handles) {
    for (Handle handle : handles) main_.release(handle);
  }

  /// Whole copies of divided inputs, unless a resting buffer of the engine takes them.
  std::vector<Handle> gather_inputs(const UnitFacts& unit, const Operator& op) {
    std::vector<Handle> whole;
    if (op.region != Region::parallel || profile_.gathered_input_has_buffer) return whole;
    for (int v : op.inputs) {
      const std::size_t i = at(v);
      if (!unit.prepared->values[i].enters_parallel ||
          unit.local->gathered[i] == unit.local->values[i] || unit.local->values[i] == 0) {
        continue;
      }
      const std::int64_t size = unit.sizes[i] / unit.local->values[i] * unit.local->gathered[i];
      if (size != unit.sizes[i]) whole.push_back(main_.allocate(size));
    }
    return whole;
  }

  /// The steps of the loss; what is left afterwards (the logits' gradient) stays until backward.
  void run_loss(const UnitFacts& unit, const Operator& op, UnitBuffers& buffers) {
    const std::int64_t logits = unit.local->values[at(op.inputs.front())];
    std::map<std::string_view, Handle> named;
    if (profile_.fuses_output_and_loss) return;
    for (const LossStep& step : steps_of_loss(layout_)) {
      if (step.buffer == "logits" && !step.appears) {
        release_value(buffers, op.inputs.front());
      } else if (step.appears) {
        named[step.buffer] = main_.allocate(step.bytes_per_logit * logits);
      } else {
        main_.release(named[step.buffer]);
        named.erase(step.buffer);
      }
    }
    for (const auto& [name, handle] : named) buffers.weight_gradients.push_back(handle);
  }

  void backward(const Work& work) {
    if (layout_.stages > 1) wait_for_device();
    const std::vector<int>& chunk = stage_.chunks[at(work.chunk)];
    std::vector<UnitBuffers>& buffers = alive_[{work.chunk, work.micro_batch}];
    Handle& leaving = leaving_[{work.chunk, work.micro_batch}];
    main_.release(leaving);
    Handle gradient = 0;
    std::vector<Handle> held;
    for (std::size_t i = chunk.size(); i-- > 0;) {
      const UnitFacts& unit = units_.at(chunk[i]);
      gather(chunk[i]);
      gradient = backward_unit(unit, buffers[i], gradient, held);
      if (unit.memory.keep != Keep::step && !stays_joined(unit)) drop_gathered(chunk[i]);
      if (profile_.gradient_hold != GradientHold::micro_batch) reduce_unit(unit, held);
    }
    main_.release(gradient);
    release_all(held);
    if (profile_.joins_ends) drop_joined(chunk);
    alive_.erase({work.chunk, work.micro_batch});
    leaving_.erase({work.chunk, work.micro_batch});
  }

  /// Gradients of a finished unit: added to what rests, or sent off.
  void reduce_unit(const UnitFacts& unit, std::vector<Handle>& held) {
    const std::int64_t whole = unit.memory.gradient_whole;
    if (whole > 0) {
      CachingPool& pool = profile_.reduces_in_own_pool ? reductions_ : main_;
      const std::int64_t input =
          whole / bits_of(job_.precision.compute) * bits_of(job_.precision.reduce);
      pool.release(last_reduction_);
      last_reduction_ = pool.allocate(input);
    }
    release_all(held);
    held.clear();
    if (profile_.gradient_life == GradientLife::growing) grow_gradients(unit);
  }

  void grow_gradients(const UnitFacts& unit) {
    if (!grown_.insert(unit.kind == nullptr ? nullptr : &unit).second) return;
    CachingPool& pool = profile_.reduces_in_own_pool ? reductions_ : main_;
    for (std::size_t p = 0; p < unit.kind->parameters.size(); ++p) {
      if (is_second_use(job_.model, stage_, unit.kind->parameters[p])) continue;
      const StateBytes own = state_bytes(job_, unit.kind->parameters[p], unit.local->parameters[p]);
      growing_.push_back({&pool, pool.allocate(own.device[2])});
    }
  }

  Handle backward_unit(const UnitFacts& unit, UnitBuffers& buffers, Handle incoming,
                       std::vector<Handle>& held) {
    const PreparedKind& prepared = *unit.prepared;
    if (unit.sizes.empty()) return incoming;
    std::vector<Handle> adjoints(unit.sizes.size(), 0);
    if (prepared.output >= 0) {
      adjoints[at(prepared.output)] =
          incoming != 0 ? incoming : main_.allocate(unit.sizes[at(prepared.output)]);
    }
    if (!unit.plan->rebuilt.empty()) rebuild(unit, buffers);
    for (std::size_t o = unit.kind->operators.size(); o-- > 0;) {
      backward_operator(unit, o, buffers, adjoints, held);
    }
    for (std::size_t v = 0; v < buffers.values.size(); ++v)
      release_value(buffers, static_cast<int>(v));
    release_all(buffers.weight_gradients);
    const Handle out = adjoints[0];
    for (std::size_t v = 1; v < adjoints.size(); ++v) main_.release(adjoints[v]);
    return out;
  }

  void backward_operator(const UnitFacts& unit, std::size_t o, UnitBuffers& buffers,
                         std::vector<Handle>& adjoints, std::vector<Handle>& held) {
    const Operator& op = unit.kind->operators[o];
    const PreparedOperator& facts = unit.prepared->operators[o];
    const std::vector<Handle> whole = gather_inputs(unit, op);
    for (int v : facts.adjoints_made) adjoints[at(v)] = main_.allocate(unit.sizes[at(v)]);
    std::vector<Handle> temporary;
    for (int v : facts.adjoints_added) temporary.push_back(main_.allocate(unit.sizes[at(v)]));
    for (int p : op.parameters) weigh(unit, p, held);
    release_all(temporary);
    release_all(whole);
    launch(unit);
    if (hands_over_late()) scatter_gradients(unit, facts);
    for (int v : facts.adjoints_dead) {
      main_.release(adjoints[at(v)]);
      adjoints[at(v)] = 0;
    }
    for (int v : unit.plan->done[o]) release_value(buffers, v);
    if (op.kind == OpKind::loss) return;
    if (profile_.gradient_hold == GradientHold::op && unit.memory.gradient_whole == 0) {
      release_all(held);
      held.clear();
    }
  }

  /// Whole gradients of inputs that came from the divided stream, on their way to be scattered.
  void scatter_gradients(const UnitFacts& unit, const PreparedOperator& facts) {
    for (int v : facts.adjoints_made) {
      const std::size_t i = at(v);
      if (!unit.prepared->values[i].enters_parallel || unit.local->values[i] == 0) continue;
      release_late(main_.allocate(unit.sizes[i] / unit.local->values[i] * unit.local->gathered[i]));
    }
  }

  void weigh(const UnitFacts& unit, int p, std::vector<Handle>& held) {
    const LocalParameter& parameter = unit.local->parameters[at(p)];
    if (!parameter.trainable || profile_.fuses_weight_gradient) return;
    held.push_back(main_.allocate(in_bytes(bytes_of(parameter.elements, job_.precision.compute))));
  }

  /// Runs the recomputed part forward again: what backward needs stays, the rest passes by.
  void rebuild(const UnitFacts& unit, UnitBuffers& buffers) {
    std::vector<bool> stays(unit.sizes.size(), false);
    for (int v : unit.plan->rebuilt) stays[at(v)] = true;
    for (std::size_t o = 0; o < unit.kind->operators.size(); ++o) {
      const Operator& op = unit.kind->operators[o];
      const bool again =
          std::ranges::find(unit.plan->modules, op.module) != unit.plan->modules.end();
      if (!again) continue;
      const std::vector<Handle> whole = gather_inputs(unit, op);
      for (int v : unit.prepared->operators[o].made) allocate_value(unit, buffers, v);
      for (int v : op.internals) {
        if (stays[at(v)]) allocate_value(unit, buffers, v);
      }
      release_all(whole);
      for (int v : unit.prepared->operators[o].dead_after) {
        if (!stays[at(v)] && !unit.plan->is_kept[at(v)]) release_value(buffers, v);
      }
    }
    if (unit.prepared->output >= 0) release_value(buffers, unit.prepared->output);
  }

  /// The most that was alive and reserved since this was last asked.
  Reservation take_peaks() {
    Reservation since;
    for (CachingPool* pool : {&main_, &gathers_, &reductions_}) {
      since.alive += bytes(pool->peak_alive());
      since.reserved += bytes(pool->reserved());
      pool->restart_peaks();
    }
    peaks_.alive = std::max(peaks_.alive, since.alive);
    peaks_.reserved = std::max(peaks_.reserved, since.reserved);
    return since;
  }

  /// After the last backward: reductions, the update and its temporaries.
  void finish_step(int step) {
    wait_for_device();
    main_.release(last_reduction_pool_main());
    take_peaks();
    std::vector<Handle> temporary;
    for (Instant instant : {Instant::reduction, Instant::update}) {
      for (const EngineMemory& term : profile_.memory) {
        const bool now = (term.instants & bit_of(instant)) != 0 && term.instants != kEveryInstant;
        if (!now || !all_hold(term.when, layout_, stage_)) continue;
        if (term.category == MemoryCategory::overhead) continue;
        const std::vector<Handle> blocks = allocate_term(term);
        temporary.insert(temporary.end(), blocks.begin(), blocks.end());
      }
      if (instant == Instant::update && step == 0) allocate_optimizer();
      release_all(temporary);
      temporary.clear();
    }
    const Reservation after_backward = take_peaks();
    peaks_.alive_after_backward = after_backward.alive;
    peaks_.reserved_after_backward = after_backward.reserved;
    for (const auto& [pool, handle] : growing_) pool->release(handle);
    growing_.clear();
    grown_.clear();
    for (const auto& [u, handle] : gathered_) main_.release(handle);
    gathered_.clear();
  }

  Handle last_reduction_pool_main() {
    if (profile_.reduces_in_own_pool) return 0;
    const Handle handle = last_reduction_;
    last_reduction_ = 0;
    return handle;
  }

  void allocate_optimizer() {
    const auto states =
        static_cast<std::int64_t>(std::max<std::size_t>(1, job_.optimizer.states.size()));
    for_each_parameter([&](const Parameter& declared, const LocalParameter& local) {
      const std::int64_t size = moments(declared, local);
      for (std::int64_t s = 0; s < states; ++s) main_.allocate(largest_share(size, states));
    });
  }

  const Job& job_;
  const Profile& profile_;
  const Layout& layout_;
  const Stage& stage_;
  std::optional<Bytes> limit_;
  Job without_master_;
  std::map<int, UnitFacts> units_;
  CachingPool main_;
  CachingPool gathers_;
  CachingPool reductions_;
  Bytes outside_;                               // overhead that figures of reserved memory see ...
  Bytes unseen_;                                // ... and that they do not: contexts, communicators
  Bytes start_reserved_;                        // most that was reserved before the first step
  std::deque<std::pair<double, Handle>> late_;  // with the number of launches before it
  double launches_ = 0;
  std::map<int, Handle> gathered_;
  Handle last_message_ = 0;
  Handle last_reduction_ = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<UnitBuffers>> alive_;
  std::map<std::pair<std::int64_t, std::int64_t>, Handle> leaving_;
  std::vector<std::pair<CachingPool*, Handle>> growing_;
  std::set<const UnitFacts*> grown_;
  Reservation peaks_;
};

}  // namespace

namespace {

std::optional<Bytes> memory_of(const Job& job) {
  if (!job.cluster) return std::nullopt;
  return smallest_memory(*job.cluster);
}

}  // namespace

Reservation reserve(const Job& job, const Prepared& prepared, int stage,
                    std::optional<Bytes> limit) {
  const Layout layout = lay_out(job, prepared);
  const std::vector<Stage> stages = stages_of(job);
  return Replay(job, layout, stages[at(stage)], limit ? limit : memory_of(job)).run();
}

std::vector<Reservation> reserve(const Job& job) {
  const Prepared prepared = prepare(job);
  const Layout layout = lay_out(job, prepared);
  std::vector<Reservation> out;
  for (const Stage& stage : stages_of(job)) {
    out.push_back(Replay(job, layout, stage, memory_of(job)).run());
  }
  return out;
}

}  // namespace placet
