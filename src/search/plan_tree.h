// The tree of plans that is searched (docs/theory.md §9.2): from what decides most to what decides
// least.
//
//   shape      degrees and words of the axes that cut the work of a unit: sequence, expert, tensor
//   work       micro-batch: now a unit's kernels and messages are known
//   mesh       degree of the pipeline; then what the states cost on all meshes with it
//   pipeline   schedule, blocks per stage
//   states     the other degrees, order of the axes, where the states live, what is moved off the
//              device
//   plan       recomputation: a job
#pragma once

#include <tbb/enumerable_thread_specific.h>

#include <memory>
#include <tuple>
#include <vector>

#include "search/best_first.h"
#include "search/plan_bounds.h"
#include "search/plan_costs.h"
#include "search/plan_space.h"

namespace placet {

/// What is sought.
enum class PlanGoal : std::uint8_t { time, memory };

/// Figures of one plan, as derive and derive_time give them.
struct PlanFigures {
  Seconds step;
  Bytes peak;    // most bytes alive on a device
  Bytes needed;  // by the fullest device, with what the allocator reserves and what lies outside it
  FitGrade fit = FitGrade::fits;
  Bytes sent;
  double tokens = 0;       // of a step
  double utilisation = 0;  // model FLOPs over peak and step

  friend bool operator==(const PlanFigures&, const PlanFigures&) = default;
};

/// A plan that fits and keeps all rules.
struct FoundPlan {
  double value = 0;  // seconds or bytes, by the goal
  Plan plan;
  Plan placement;  // of all its variants the same (PlanSpace::placement_of)
  PlanFigures figures;

  bool same_as(const FoundPlan& other) const { return placement == other.placement; }
  friend bool operator<(const FoundPlan& a, const FoundPlan& b) {
    return std::tuple(a.value, a.figures.step, a.figures.needed, a.figures.sent, a.plan) <
           std::tuple(b.value, b.figures.step, b.figures.needed, b.figures.sent, b.plan);
  }
};

/// Judged by derive and derive_time.
struct EvaluatedPlan {
  std::optional<FoundPlan> found;  // none: it breaks a rule or does not fit
  std::string broken;              // rule; empty: none
  Bytes peak;
  Bytes needed;         // as far as it was judged
  bool cached = false;  // it runs only as the allocator gives blocks back
};

class FamilyBounds;  // of recomputations of one word

class PlanTree {
 public:
  enum class Level : std::uint8_t {
    shape,
    work,
    costed_work,
    mesh,
    costed_mesh,
    pipeline,
    bounded_pipeline,
    states,
    timed_states,
    listed_plans,
    bounded_plan,
    plan
  };

  /// Micro-batches of one shape and the meshes that have them, rising.
  struct WorkGroup {
    std::int64_t micro_batch = 1;
    bool accumulates = true;  // several of them in a step
    std::vector<Degrees> meshes;
    std::int64_t leaves = 0;
  };
  /// One of a mesh's ways to keep the states on a pipeline, and the least value of its plans.
  struct BoundedChoice {
    double bound = 0;
    std::int32_t choice = 0;

    auto operator<=>(const BoundedChoice&) const = default;
  };
  /// One of the recomputations of a pipeline with its states.
  struct BoundedPlan {
    double bound = 0;
    PlanSpace::Recomputation recompute;
    Bytes least_memory;
  };
  struct Node {
    double bound = 0;
    std::int64_t leaves = 0;
    Level level = Level::shape;
    Plan plan;
    std::shared_ptr<const CostedWork> work;
    std::shared_ptr<const FittingStates> states;                // of a mesh
    std::int32_t choice = 0;                                    // of states: which of them
    std::shared_ptr<const std::vector<BoundedChoice>> bounded;  // of a pipeline, rising
    std::shared_ptr<const std::vector<BoundedPlan>> plans;      // of states, rising
    std::size_t first = 0;  // of bounded or of plans: the first one left
    std::shared_ptr<const PipelineShape> pipeline;
    std::shared_ptr<const std::vector<Degrees>> meshes;  // of a shape, or of one pipeline's degree
    std::shared_ptr<const std::vector<WorkGroup>> groups;  // of work
    std::size_t group = 0;                                 // the first one left
    double step = 0;  // of a pipeline: seconds at least, whatever the states
    std::shared_ptr<const std::vector<double>> steps;  // of a mesh: these, by pipeline
    Bytes least_memory;                                // of a plan
    std::shared_ptr<const StepCosts> messages;         // of a plan
  };
  using Answer = FoundPlan;

  /// `costs`: known ones, of a space that differs in sizes of memory only; none: its own.
  PlanTree(const PlanSpace& space, PlanGoal goal, std::shared_ptr<PlanCosts> costs = nullptr);

  std::vector<Node> roots() const;
  Opened<Node, FoundPlan> open(const Node& node, double cutoff) const;
  /// Of nodes below which the placement is known.
  bool all_same_as(const Node& node, const FoundPlan& found) const;
  /// A plan whose value is above `cutoff` is not looked at to the end: it counts as too large.
  EvaluatedPlan evaluate(const Plan& plan, double cutoff = kNoBound) const;

  static std::size_t depth(const Node& node) { return static_cast<std::size_t>(node.level); }
  /// States of a pipeline, and below: what hinders a plan is in the bound.
  static constexpr auto kDeep = static_cast<std::size_t>(Level::bounded_pipeline);

  /// Leaves of all roots.
  std::int64_t size() const;

 private:
  using Result = Opened<Node, FoundPlan>;

  void add_words(Node root, std::vector<Node>& out) const;
  void add_tensor_words(Node& root, std::vector<Node>& out) const;
  WorkShape shape_of(const Plan& plan, const WorkGroup& group) const;
  double samples_of_a_device(const WorkShape& shape) const;
  Result open_shape(const Node& node) const;
  Result cost_work(const Node& node) const;
  Result open_work(const Node& node) const;
  Result open_mesh(const Node& node) const;
  Result open_costed_mesh(const Node& node, double cutoff) const;
  Result open_pipeline(const Node& node, double cutoff) const;
  Result open_bounded_pipeline(const Node& node) const;
  /// States of a pipeline, bounded before the recomputation is chosen.
  struct BoundedStates {
    std::int32_t choice = 0;  // of the node's states
    double more = 0;          // seconds beyond those of the work
    double least = 0;         // value of any of its plans, whatever the memory
    double bound = 0;
    std::vector<std::int64_t> rest;  // bytes by device
  };
  /// Without `rest`.
  BoundedStates bounded_states(const Node& node, const StateCosts& costs) const;
  std::vector<std::int64_t> rest_of(const Node& node, const StateCosts& costs) const;
  double bound_by_device(const Node& node, const BoundedStates& any) const;
  /// Calls `visit` with the bounds of each word's recomputations.
  template <class Visit>
  void each_family(const Node& node, Visit visit) const;
  /// Bounds each of them by its best recomputation.
  void bound_recomputations(const Node& node, std::vector<BoundedStates>& states,
                            double cutoff) const;
  static BoundedStates least_of(const std::vector<BoundedStates>& states);
  /// By the best of a family; what is above the cutoff may be left out.
  void bound_family(FamilyBounds& family, BoundedStates& states, double cutoff) const;
  double flow_of(const Node& node, const PlanSpace::Recomputation& choice) const;
  Result time_states(const Node& node, double cutoff) const;
  Result open_states(const Node& node, double cutoff) const;
  Result open_listed_plans(const Node& node) const;
  Result time_plan(const Node& node) const;
  Result open_plan(const Node& node, double cutoff) const;

  std::vector<double> least_steps(const CostedWork& work, const Plan& mesh) const;
  double least_of_meshes(const CostedWork& work, const FittingStates& states,
                         const Plan& mesh) const;
  StepCosts messages_of(const PipelineShape& pipeline, const Job& job) const;
  std::string broken_rule(const Job& job) const;
  bool engine_refuses(const Plan& pipeline) const;
  std::int64_t leaves_of_pipelines(std::int32_t degree) const;
  std::int64_t leaves_of(const Degrees& mesh) const;
  std::int64_t leaves_of_states(const Degrees& mesh) const;
  std::int64_t leaves_of_states(const std::vector<Degrees>& meshes) const;
  std::int64_t micro_batches(const Plan& plan) const;
  bool is_allowed(const Derivation& derivation) const;
  double value_of(double step, double bytes) const;

  const PlanSpace& space_;
  PlanGoal goal_;
  std::shared_ptr<PlanCosts> costs_;
  const BoundFacts& facts_;
  double limit_ = 0;  // bytes
  bool grows_ = false;
  mutable tbb::enumerable_thread_specific<Workbench> benches_;
};

}  // namespace placet
