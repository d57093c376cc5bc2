// The space of plans (docs/theory.md §9): every way to lay a model over a cluster that the choices
// allow. A plan is a mesh and one choice of each kind; together with what is not to be chosen it is
// a job.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profile/choices.h"
#include "profile/job.h"

namespace placet {

/// Blocks dealt evenly, whatever a plan's schedule allows: where only the axis matters.
inline constexpr std::int16_t kNoSplit = -1;

/// Degrees by role.
using Degrees = std::array<std::int32_t, kAxisRoleCount>;

/// One plan: indices into Choices. Its order is that of preference among equals.
struct Plan {
  std::int64_t micro_batch = 1;
  std::int16_t recompute = 0;
  std::int16_t offload = 0;
  std::int32_t count = 0;  // of a counted recomputation
  std::int16_t state = 0;
  std::int16_t schedule = 0;
  std::int16_t split = 0;  // how blocks are dealt to stages: index into PlanSpace::splits
  std::int16_t attention = 0;
  std::int16_t expert = 0;
  std::int16_t tensor = 0;
  std::int16_t order = 0;
  Degrees degrees{1, 1, 1, 1, 1, 1};

  std::int32_t degree(AxisRole role) const { return degrees[at(role)]; }
  friend auto operator<=>(const Plan&, const Plan&) = default;
};

/// What a plan must keep to, beside the rules of every job.
struct PlanConstraints {
  std::map<AxisRole, std::int64_t> degrees;       // fixed
  std::map<AxisRole, std::vector<bool>> words;    // allowed words; none: all
  std::vector<bool> states, offloads, recompute;  // likewise
  std::map<AxisRole, std::string> used;           // axes that a plan must have, and what asks it
  bool uses_states = false;                       // some axis must have words of states
  std::optional<std::int64_t> micro_batch;
  double memory_fraction = 1;  // of the device's capacity
  bool allows_tight = true;    // also plans that run only as the allocator gives blocks back
};

class PlanSpace {
 public:
  /// `base`: model, batch, formats, optimizer, cluster, engine; no placement. REQUIRES: a cluster,
  /// a global batch.
  PlanSpace(const Job& base, const Choices& choices, PlanConstraints constraints);

  const Job& base() const { return base_; }
  const Choices& choices() const { return choices_; }
  const PlanConstraints& constraints() const { return constraints_; }
  std::int64_t devices() const { return devices_; }
  std::int64_t blocks() const { return blocks_; }

  /// Whether a mesh may have an axis of this role: the model has what it cuts, and the constraints
  /// leave a way to carry it out.
  bool has_use(AxisRole role) const;

  /// All meshes of the cluster: degrees by role whose product is its devices, in ascending order.
  /// Those with a role that the model or the constraints leave no use for are not among them.
  std::vector<Degrees> meshes() const;

  /// Orders in which the axes of these degrees can stand so that no two give the same placement. On
  /// a mixed cluster a pipeline is the outermost axis: each stage then stands on devices of a kind.
  std::vector<std::int16_t> orders_of(const Degrees& degrees) const;

  /// Words that a role has at a degree: one, without meaning, where there is no axis.
  std::vector<std::int16_t> words_of(AxisRole role, std::int32_t degree) const;
  /// States that make a difference on these degrees.
  std::vector<std::int16_t> states_of(const Degrees& degrees) const;
  std::vector<std::int16_t> offloads() const;

  /// The sets of device groups that a stage may stand on, whatever the pipeline: each once. What is
  /// placed on one goes at the pace of its slowest.
  const std::vector<GroupSet>& standings() const { return standings_; }
  /// Of a pipeline of that degree over all devices, by stage: a position in standings().
  std::vector<std::size_t> standings_of(std::int32_t pipeline) const;
  /// A unit costs different on different devices: costs are kept by kind of unit and standing. One
  /// standing more, the last, stands for any, where there are several: what a unit costs at least.
  std::size_t costed_standings() const {
    return standings_.size() > 1 ? standings_.size() + 1 : standings_.size();
  }
  std::size_t costed_kinds() const { return base_.model.kinds.size() * costed_standings(); }
  std::size_t anywhere() const { return costed_standings() - 1; }
  std::int32_t costed_kind(int kind, std::size_t standing) const;

  /// Blocks per virtual stage of each way to deal them; empty list: the even one, unsaid. On a
  /// mixed cluster also in proportion to the rates of the stages' devices, those of products and
  /// those of memory.
  std::vector<std::vector<std::int64_t>> splits_of(std::int32_t pipeline,
                                                   std::int16_t schedule) const;

  /// Of all replicas together, while each has one micro-batch.
  static std::int64_t samples_at_once(const Plan& plan);
  /// Micro-batches of a step of one replica.
  std::int64_t micro_batches(const Plan& plan) const;
  /// Samples of a micro-batch that divide the batch of these degrees.
  std::vector<std::int64_t> micro_batches_of(const Degrees& degrees) const;

  /// Recomputations for stages of at most `blocks` blocks: (index, count).
  struct Recomputation {
    std::int16_t word = 0;
    std::int32_t count = 0;
  };
  std::vector<Recomputation> recomputations(std::int64_t blocks) const;
  /// REQUIRES: one of recomputations().
  const Recompute& recompute_of(const Recomputation& choice) const {
    return recomputes_[static_cast<std::size_t>(choice.word)].at(
        static_cast<std::size_t>(choice.count));
  }

  /// What a plan has in common with its variants: plans that differ in the order of their axes, in
  /// how blocks are dealt to stages, in the chunks of a stage, in how many of the replicas share a
  /// cut of the states, in the exchange of attention, in what is recomputed or in what is moved off
  /// the device, and in nothing else. Where a step has one micro-batch, what is kept over it is
  /// kept over the step (but for tensors of several units, which each of them gathers): states
  /// that differ in that alone are then variants, too.
  Plan placement_of(Plan plan) const;

  /// Makes `job`, a copy of base(), the job of the plan.
  void apply(const Plan& plan, Job& job) const;

 private:
  bool allows(AxisRole role, std::size_t word) const;
  /// What the engine refuses to recompute, whatever else a plan chooses, is no choice.
  void leave_out_refused_recomputations();
  bool is_mixed() const { return base_.cluster->groups.size() > 1; }
  /// By stage of a pipeline of that degree over all devices.
  std::vector<GroupSet> groups_of(std::int32_t pipeline) const;
  std::vector<std::vector<double>> paces_of(std::int32_t pipeline, const Schedule& schedule) const;
  void add_axis(const Plan& plan, AxisRole role, bool& offloads, Job& job) const;

  const Job& base_;
  const Choices& choices_;
  PlanConstraints constraints_;
  std::int64_t devices_ = 1;
  std::int64_t blocks_ = 0;
  bool has_experts_ = false;
  std::vector<GroupSet> standings_;
  std::vector<std::int16_t> states_alike_;               // by state: the first of one placement
  std::vector<std::int16_t> states_of_one_micro_batch_;  // likewise, where a step has one
  std::vector<std::int16_t> schedules_of_one_rule_;      // by word of the role layer, likewise
  std::vector<std::vector<Recompute>> recomputes_;       // by word and count
};

/// Whole numbers that divide n, ascending.
std::vector<std::int64_t> divisors_of(std::int64_t n);

}  // namespace placet
