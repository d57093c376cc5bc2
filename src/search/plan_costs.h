// What parts of plans cost, worked out once and shared by all nodes of a search, and by searches of
// one job on devices of other sizes of memory (docs/theory.md §9.2).
#pragma once

#include <tbb/enumerable_thread_specific.h>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "search/device_bounds.h"
#include "search/memo.h"
#include "search/plan_bounds.h"
#include "search/plan_space.h"

namespace placet {

/// What a micro-batch of one shape costs.
struct CostedWork {
  WorkShape shape;
  WorkCosts plain;
  std::vector<WorkCosts> again;    // by word of recomputation; none: not worked out
  std::vector<std::int16_t> like;  // by word: the first one with the same costs
  std::vector<EasedWork> eased;    // by word: bounds of any number of its units
  double all = 0;                  // seconds of a micro-batch through all units
  std::int64_t most = 0;           // bytes alive at the fullest moment of a unit that is never
                                   // recomputed

  /// Of units recomputed by a word. REQUIRES: `again` is worked out.
  WorkPair pair(std::int16_t word) const {
    return {.plain = &plain, .again = &again[static_cast<std::size_t>(word)]};
  }
  WorkPair eased_pair(std::int16_t word) const {
    return eased[static_cast<std::size_t>(word)].pair();
  }
};

/// A schedule with one way to deal the blocks.
struct PipelineChoice {
  std::int16_t schedule = 0;
  std::int16_t split = 0;
  std::shared_ptr<const PipelineShape> shape;
};

/// One way to keep the states on a mesh.
struct StateChoice {
  Degrees degrees{};
  std::int16_t order = 0;
  std::int16_t state = 0;
  std::int16_t offload = 0;
  StateCosts costs;
  WholeStates whole;  // of all units of the model
};

/// Of all ways to keep the states on some meshes those that may fit.
struct FittingStates {
  std::vector<StateChoice> choices;
  std::int64_t refused = 0;  // by the engine, whatever else a plan chooses
  StateCosts least;          // no dearer than any of them
};

/// What states may take of a device.
struct StateRoom {
  double bytes = std::numeric_limits<double>::infinity();
  bool grows = false;  // gradients may appear in the course of backward only

  auto operator<=>(const StateRoom&) const = default;
};

class PlanCosts {
 public:
  /// `space` must outlive it.
  explicit PlanCosts(const PlanSpace& space);

  const BoundFacts& facts() const { return facts_; }

  /// Without recomputation, and with all of it.
  std::shared_ptr<const CostedWork> work(const WorkShape& shape);
  std::shared_ptr<const CostedWork> recomputed(const CostedWork& work);

  /// Seconds of work that a sample of a shape takes at least, whatever the micro-batch; 0: not
  /// known.
  double least_per_sample(WorkShape shape);

  /// Ways to keep the states on all meshes that give a pipeline the same work as a plan's, on
  /// whose mean device they have room. REQUIRES: `meshes` are all of the space's with the plan's
  /// degrees of layer, sequence, expert and tensor axes; its own is one of them.
  std::shared_ptr<const FittingStates> states(const Plan& plan, const std::vector<Degrees>& meshes,
                                              const StateRoom& room);
  /// On the plan's mesh alone.
  FittingStates states_of(const Plan& plan, const StateRoom& room);

  /// All pipelines of a degree.
  std::shared_ptr<const std::vector<PipelineChoice>> pipelines(std::int32_t degree);

  /// Seconds that a step of so much work takes at least, messages left aside, by working through
  /// the order of the schedule (`least_by_order`); 0 where other bounds are as good, or the order
  /// is too long. REQUIRES: recomputations of `work` are worked out.
  double flow(const CostedWork& work, const Plan& plan, const PipelineShape& pipeline,
              const PlanSpace::Recomputation& choice, std::int64_t micro_batches);
  /// Whatever number of units is recomputed by the word.
  double eased_flow(const CostedWork& work, const Plan& plan, const PipelineShape& pipeline,
                    std::int16_t word, std::int64_t micro_batches);

  /// Moments of a pipeline's work that memory looks at (`moments_of`).
  std::shared_ptr<const PipelineMoments> moments(const Schedule& schedule, std::int64_t degree,
                                                 std::int64_t micro_batches);

  /// As `flow`, with the messages of a plan: not kept.
  double flow_with(const StepCosts& messages, const CostedWork& work, const PipelineShape& pipeline,
                   const PlanSpace::Recomputation& choice, std::int64_t micro_batches);

  /// Micro-batches in flight (`in_flight_of`).
  std::shared_ptr<const PipelineInFlight> in_flight(const PipelineShape& pipeline,
                                                    std::int64_t micro_batches);

  /// Bounds by the devices of a pipeline.
  std::shared_ptr<const DeviceBounds> devices(const std::shared_ptr<const PipelineShape>& pipeline,
                                              std::int64_t micro_batches);

 private:
  using WorkKey = std::tuple<Degrees, std::int16_t, std::int16_t, std::int16_t, std::int64_t, bool>;
  using StateKey = std::array<std::int32_t, 8>;
  using FlightKey = std::array<std::int64_t, 6>;
  using FlowKey = std::pair<WorkKey, std::array<std::int32_t, 5>>;

  static WorkKey key_of(const WorkShape& shape);
  static FlowKey flow_key(const CostedWork& work, const Plan& plan,
                          const PlanSpace::Recomputation& choice);
  static FlightKey flight_key(const Schedule& schedule, std::int64_t degree,
                              std::int64_t micro_batches);
  static FlightKey flight_key(const PipelineShape& pipeline, std::int64_t micro_batches);
  StateKey state_key(const Plan& plan) const;
  FittingStates make_states(const Plan& plan, const std::vector<Degrees>& meshes,
                            const StateRoom& room);
  WorkFlow& flow_of(const PipelineShape& pipeline, std::int64_t micro_batches);
  CostedWork make_work(const WorkShape& shape);
  CostedWork make_recomputed(const CostedWork& work);
  std::vector<PipelineChoice> make_pipelines(std::int32_t degree);

  const PlanSpace& space_;
  BoundFacts facts_;
  bool asks_micro_batches_ = false;
  std::vector<std::int32_t> units_;           // of the model by kind
  std::vector<std::int16_t> attention_like_;  // by word: the first one with the same states
  tbb::enumerable_thread_specific<Workbench> benches_;
  tbb::enumerable_thread_specific<std::optional<std::pair<PipelineForm, WorkFlow>>> work_flows_;
  Memo<WorkKey, CostedWork> works_;
  Memo<WorkKey, CostedWork> recomputed_;
  Memo<std::pair<StateKey, StateRoom>, FittingStates> states_;
  Memo<FlightKey, PipelineMoments> moments_;
  Memo<std::int32_t, std::vector<PipelineChoice>> pipelines_;
  Memo<FlowKey, double> flows_;
  Memo<FlightKey, PipelineInFlight> flights_;
  Memo<std::pair<std::shared_ptr<const PipelineShape>, std::int64_t>, DeviceBounds> devices_;
};

}  // namespace placet
