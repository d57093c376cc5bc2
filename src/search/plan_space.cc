#include "search/plan_space.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "derive/rules.h"
#include "derive/stage_devices.h"
#include "derive/stages.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

/// What is moved off the device is said of one axis: the first of these that the mesh has.
constexpr std::array kCarriers = {AxisRole::batch,  AxisRole::replica, AxisRole::sequence,
                                  AxisRole::expert, AxisRole::tensor,  AxisRole::layer};

/// Roles along which states may be divided.
bool has_states(const Degrees& degrees) {
  return degrees[at(AxisRole::replica)] > 1 || degrees[at(AxisRole::batch)] > 1 ||
         degrees[at(AxisRole::sequence)] > 1 || degrees[at(AxisRole::expert)] > 1;
}

bool routes_tokens(const Model& model) {
  return std::ranges::any_of(model.kinds, [](const UnitKind& kind) {
    return std::ranges::any_of(
        kind.operators, [](const Operator& op) { return op.kind == OpKind::grouped_linear; });
  });
}

std::vector<std::int16_t> chosen(std::size_t count, const std::vector<bool>& allowed) {
  std::vector<std::int16_t> out;
  for (std::size_t i = 0; i < count; ++i) {
    if (allowed.empty() || allowed[i]) out.push_back(static_cast<std::int16_t>(i));
  }
  return out;
}

/// Blocks in proportion to the stages' paces; what does not divide goes to the largest remainders,
/// and among equal ones to stages in the middle and behind, away from the embedding.
std::vector<std::int64_t> dealt_by(const std::vector<double>& paces, std::int64_t blocks) {
  const double sum = std::accumulate(paces.begin(), paces.end(), 0.0);
  std::vector<std::int64_t> out;
  std::vector<std::pair<double, std::size_t>> left;
  std::int64_t dealt = 0;
  for (std::size_t v = 0; v < paces.size(); ++v) {
    const double share = static_cast<double>(blocks) * paces[v] / sum;
    out.push_back(static_cast<std::int64_t>(share));
    left.emplace_back(share - std::floor(share), v);
    dealt += out.back();
  }
  std::ranges::sort(left, std::greater());
  for (std::size_t i = 0; std::cmp_less(i, blocks - dealt); ++i) ++out[left[i].second];
  return out;
}

/// The meshes that constraints allow, over roles that have a use.
struct MeshList {
  const PlanSpace& space;
  std::span<const bool> useful;
  std::vector<Degrees>& out;

  /// Appends all ways to share `left` among the roles from `role` on.
  void add(std::size_t role, std::int64_t left, Degrees& degrees) const {
    const auto own = static_cast<AxisRole>(role);
    const auto fixed = space.constraints().degrees.find(own);
    const bool is_fixed = fixed != space.constraints().degrees.end();
    if (role + 1 == degrees.size()) {
      if (is_fixed && fixed->second != left) return;
      if (left > 1 && !useful[role]) return;
      degrees[role] = static_cast<std::int32_t>(left);
      out.push_back(degrees);
      return;
    }
    for (const std::int64_t d : divisors_of(left)) {
      if ((is_fixed && d != fixed->second) || (d > 1 && !useful[role])) continue;
      degrees[role] = static_cast<std::int32_t>(d);
      add(role + 1, left / d, degrees);
    }
  }
};

/// The rates of virtual stages on the devices of pipeline stages that have these rates. A virtual
/// stage that stands on several waits for the slowest.
std::vector<double> paces_from(const Schedule& schedule, const std::vector<double>& rates) {
  const auto pipeline = static_cast<std::int64_t>(rates.size());
  const auto stages = static_cast<std::size_t>(virtual_stages(schedule, pipeline));
  std::vector<double> out(stages, std::numeric_limits<double>::infinity());
  for (std::int64_t d = 0; d < pipeline; ++d) {
    for (int c = 0; c < schedule.chunks; ++c) {
      double& pace = out[static_cast<std::size_t>(hosted_stage(schedule, pipeline, d, c))];
      pace = std::min(pace, rates[static_cast<std::size_t>(d)]);
    }
  }
  return out;
}

void keep_over_one_micro_batch(How& how) {
  if (how.keep == Keep::step) how.keep = Keep::backward;
}

/// What a state says of all axes but replicas, which are a choice of the group's size alone.
std::vector<AxisPlacement> axes_of_state(const Choices& choices, std::size_t state) {
  std::vector<AxisPlacement> out;
  for (int r = 0; r < kAxisRoleCount; ++r) {
    const auto role = static_cast<AxisRole>(r);
    if (role == AxisRole::replica) continue;
    for (std::size_t w = 0; w < choices.roles[at(role)].words.size(); ++w) {
      out.push_back(choices.word(role, w, state, 0).axis);
    }
  }
  return out;
}

/// Of each thing the first one with an equal key.
template <typename Key>
std::vector<std::int16_t> firsts_alike(const std::vector<Key>& keys) {
  std::vector<std::int16_t> out;
  out.reserve(keys.size());
  for (const Key& key : keys) {
    out.push_back(static_cast<std::int16_t>(std::ranges::find(keys, key) - keys.begin()));
  }
  return out;
}

/// Of each state the first that says the same of all axes but replicas; `once`: where a step has
/// one micro-batch.
std::vector<std::int16_t> states_alike(const Choices& choices, bool once) {
  std::vector<std::vector<AxisPlacement>> keys;
  for (std::size_t s = 0; s < choices.states.size(); ++s) {
    for (AxisPlacement& axis : keys.emplace_back(axes_of_state(choices, s))) {
      if (!once) continue;
      keep_over_one_micro_batch(axis.how);
      for (Override& own : axis.overrides) keep_over_one_micro_batch(own.how);
    }
  }
  return firsts_alike(keys);
}

/// Of each schedule the first of the same order of work and hosting, over as many chunks or others.
std::vector<std::int16_t> schedules_of_one_rule(const Choices& choices) {
  std::vector<Schedule> keys;
  for (std::size_t w = 0; w < choices.roles[at(AxisRole::layer)].words.size(); ++w) {
    Schedule& key = keys.emplace_back(choices.word(AxisRole::layer, w, 0, 0).schedule);
    key.name.clear();
    key.chunks = 0;
    key.group = 0;
  }
  return firsts_alike(keys);
}

}  // namespace

std::vector<std::int64_t> divisors_of(std::int64_t n) {
  std::vector<std::int64_t> low;
  std::vector<std::int64_t> high;
  for (std::int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    low.push_back(d);
    if (d != n / d) high.push_back(n / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

PlanSpace::PlanSpace(const Job& base, const Choices& choices, PlanConstraints constraints)
    : base_(base),
      choices_(choices),
      constraints_(std::move(constraints)),
      states_alike_(states_alike(choices, false)),
      states_of_one_micro_batch_(states_alike(choices, true)),
      schedules_of_one_rule_(schedules_of_one_rule(choices)) {
  devices_ = devices_of(*base.cluster);
  for (const Unit& unit : base.model.units) {
    blocks_ += base.model.kinds[static_cast<std::size_t>(unit.kind)].role == UnitRole::block;
  }
  has_experts_ = routes_tokens(base.model);
  for (const std::int64_t degree : is_mixed() ? divisors_of(devices_) : divisors_of(1)) {
    if (degree > std::max<std::int64_t>(1, blocks_)) break;
    for (GroupSet& groups : groups_of(static_cast<std::int32_t>(degree))) {
      const bool known = std::ranges::find(standings_, groups) != standings_.end();
      if (!known) standings_.push_back(std::move(groups));
    }
  }
  const auto units = static_cast<std::int64_t>(base.model.units.size());
  for (const RecomputeWord& word : choices.recompute) {
    std::vector<Recompute>& counts = recomputes_.emplace_back(1, word.recompute);
    for (std::int64_t n = 1; word.counted && n < units; ++n) {
      counts.push_back(word.recompute);
      counts.back().count = n;
    }
  }
  leave_out_refused_recomputations();
}

void PlanSpace::leave_out_refused_recomputations() {
  Job job = base_;
  std::vector<bool>& allowed = constraints_.recompute;
  allowed.resize(recomputes_.size(), allowed.empty());
  for (std::size_t w = 0; w < recomputes_.size(); ++w) {
    job.recompute = recomputes_[w].back();
    if (is_refused(job, bit_of(JobPart::recomputation))) allowed[w] = false;
  }
}

bool PlanSpace::allows(AxisRole role, std::size_t word) const {
  const auto found = constraints_.words.find(role);
  return found == constraints_.words.end() || found->second.empty() || found->second[word];
}

bool PlanSpace::has_use(AxisRole role) const {
  if (words_of(role, 2).empty()) return false;
  switch (role) {
    case AxisRole::layer:
      return blocks_ > 1;
    case AxisRole::expert:
      return has_experts_;
    case AxisRole::replica:
      return std::ranges::any_of(
          chosen(choices_.states.size(), constraints_.states),
          [&](std::int16_t s) { return choices_.states[static_cast<std::size_t>(s)].splits; });
    case AxisRole::batch:
    case AxisRole::sequence:
    case AxisRole::tensor:
      return true;
  }
  fail_internally("every role of an axis has its use");
}

std::vector<Degrees> PlanSpace::meshes() const {
  std::array<bool, kAxisRoleCount> useful{};
  for (int r = 0; r < kAxisRoleCount; ++r) {
    const auto role = static_cast<AxisRole>(r);
    useful[at(role)] = has_use(role);
  }
  std::vector<Degrees> out;
  Degrees degrees{};
  MeshList{*this, useful, out}.add(0, devices_, degrees);
  // Replicas of groups of one device are what the batch axis is there for.
  std::erase_if(out, [&](const Degrees& d) {
    if (d[at(AxisRole::replica)] > 1 && d[at(AxisRole::batch)] == 1) return true;
    if (constraints_.uses_states && !has_states(d)) return true;
    return std::ranges::any_of(constraints_.used,
                               [&](const auto& used) { return d[at(used.first)] == 1; });
  });
  return out;
}

std::vector<std::int16_t> PlanSpace::orders_of(const Degrees& degrees) const {
  std::vector<std::vector<AxisRole>> seen;
  std::vector<std::int16_t> out;
  for (std::size_t o = 0; o < choices_.orders.size(); ++o) {
    std::vector<AxisRole> axes;
    for (const AxisRole role : choices_.orders[o]) {
      if (degrees[at(role)] > 1) axes.push_back(role);
    }
    const bool inside = degrees[at(AxisRole::layer)] > 1 && axes.front() != AxisRole::layer;
    if (is_mixed() && inside) continue;
    if (std::ranges::find(seen, axes) != seen.end()) continue;
    seen.push_back(std::move(axes));
    out.push_back(static_cast<std::int16_t>(o));
  }
  return out;
}

std::vector<std::int16_t> PlanSpace::words_of(AxisRole role, std::int32_t degree) const {
  if (degree == 1) return {0};
  std::vector<std::int16_t> out;
  for (std::size_t w = 0; w < choices_.roles[at(role)].words.size(); ++w) {
    if (allows(role, w)) out.push_back(static_cast<std::int16_t>(w));
  }
  return out;
}

std::vector<std::int16_t> PlanSpace::states_of(const Degrees& degrees) const {
  std::vector<std::int16_t> all = chosen(choices_.states.size(), constraints_.states);
  const bool split = degrees[at(AxisRole::replica)] > 1;
  std::erase_if(all, [&](std::int16_t s) {
    return choices_.states[static_cast<std::size_t>(s)].splits != split;
  });
  if (!has_states(degrees) && all.size() > 1) all.resize(1);
  return all;
}

std::vector<std::int16_t> PlanSpace::offloads() const {
  return chosen(choices_.offloads.size(), constraints_.offloads);
}

std::vector<GroupSet> PlanSpace::groups_of(std::int32_t pipeline) const {
  Placement placement;
  placement.axes.resize(2);
  placement.axes[0].how.cut = Cut::layer;
  placement.axes[0].degree = pipeline;
  placement.axes[1].how.cut = Cut::batch;
  placement.axes[1].degree = devices_ / pipeline;
  std::vector<GroupSet> out(static_cast<std::size_t>(pipeline));
  for (std::size_t d = 0; d < out.size(); ++d) {
    out[d] = groups_of_stage(*base_.cluster, placement, static_cast<int>(d));
  }
  return out;
}

std::vector<std::size_t> PlanSpace::standings_of(std::int32_t pipeline) const {
  std::vector<std::size_t> out;
  for (const GroupSet& groups : groups_of(pipeline)) {
    const auto known = std::ranges::find(standings_, groups);
    ensure(known != standings_.end(), "a pipeline has no more stages than the model has blocks");
    out.push_back(static_cast<std::size_t>(known - standings_.begin()));
  }
  return out;
}

std::int32_t PlanSpace::costed_kind(int kind, std::size_t standing) const {
  return static_cast<std::int32_t>(static_cast<std::size_t>(kind) +
                                   standing * base_.model.kinds.size());
}

/// Relative rates of virtual stages by which blocks may be dealt; all alike come first.
std::vector<std::vector<double>> PlanSpace::paces_of(std::int32_t pipeline,
                                                     const Schedule& schedule) const {
  const auto stages = static_cast<std::size_t>(virtual_stages(schedule, pipeline));
  std::vector<std::vector<double>> out = {std::vector<double>(stages, 1)};
  if (!is_mixed()) return out;
  const std::vector<GroupSet> groups = groups_of(pipeline);
  const auto add = [&](auto time_on) {
    std::vector<double> rates(groups.size());
    std::ranges::transform(groups, rates.begin(), [&](const GroupSet& on) {
      return 1 / most_of(*base_.cluster, on, time_on);
    });
    out.push_back(paces_from(schedule, rates));
  };
  add([](const DeviceGroup& group) {
    return 1 / in_flops_per_second(matmul_rate(group.device.rates, MatmulFormat::bf16));
  });
  add([](const DeviceGroup& group) { return 1 / in_bytes_per_second(group.device.rates.memory); });
  return out;
}

std::vector<std::vector<std::int64_t>> PlanSpace::splits_of(std::int32_t pipeline,
                                                            std::int16_t schedule) const {
  if (pipeline == 1) return {{}};
  const Schedule& own =
      choices_.word(AxisRole::layer, static_cast<std::size_t>(schedule), 0, 0).schedule;
  const std::int64_t stages = virtual_stages(own, pipeline);
  std::vector<std::vector<std::int64_t>> out;
  if (blocks_ < stages) return out;
  const std::vector<std::int64_t> even = even_blocks(blocks_, stages);
  for (const std::vector<double>& paces : paces_of(pipeline, own)) {
    for (const StageWeights& weights : choices_.stages) {
      std::vector<std::int64_t> shares =
          dealt_by(paces, blocks_ + weights.embedding + weights.head);
      shares.front() -= weights.embedding;
      shares.back() -= weights.head;
      if (std::ranges::min(shares) < 1) continue;
      if (shares == even && blocks_ % stages == 0) shares.clear();
      if (std::ranges::find(out, shares) == out.end()) out.push_back(std::move(shares));
    }
  }
  return out;
}

std::int64_t PlanSpace::samples_at_once(const Plan& plan) {
  return plan.micro_batch * plan.degree(AxisRole::replica) * plan.degree(AxisRole::batch) *
         plan.degree(AxisRole::expert);
}

std::int64_t PlanSpace::micro_batches(const Plan& plan) const {
  return base_.batch.global / samples_at_once(plan);
}

std::vector<std::int64_t> PlanSpace::micro_batches_of(const Degrees& degrees) const {
  const std::int64_t ways = std::int64_t{degrees[at(AxisRole::replica)]} *
                            degrees[at(AxisRole::batch)] * degrees[at(AxisRole::expert)];
  if (base_.batch.global % ways != 0) return {};
  const std::int64_t own = base_.batch.global / ways;
  if (!constraints_.micro_batch) return divisors_of(own);
  if (own % *constraints_.micro_batch != 0) return {};
  return {*constraints_.micro_batch};
}

std::vector<PlanSpace::Recomputation> PlanSpace::recomputations(std::int64_t blocks) const {
  std::vector<Recomputation> out;
  for (const std::int16_t w : chosen(choices_.recompute.size(), constraints_.recompute)) {
    const RecomputeWord& word = choices_.recompute[static_cast<std::size_t>(w)];
    if (!word.counted) {
      out.push_back({.word = w});
      continue;
    }
    const bool every = word.recompute.kind == Recompute::Kind::every;
    for (std::int64_t n = every ? 2 : 1; n < blocks; ++n) {
      out.push_back({.word = w, .count = static_cast<std::int32_t>(n)});
    }
  }
  return out;
}

Plan PlanSpace::placement_of(Plan plan) const {
  const auto& alike = micro_batches(plan) == 1 ? states_of_one_micro_batch_ : states_alike_;
  plan.state = alike[at(plan.state)];
  plan.schedule = schedules_of_one_rule_[at(plan.schedule)];
  std::int32_t& batch = plan.degrees[at(AxisRole::batch)];
  batch *= std::exchange(plan.degrees[at(AxisRole::replica)], 1);
  plan.offload = 0;
  plan.recompute = 0;
  plan.count = 0;
  plan.order = 0;
  plan.split = 0;
  plan.attention = 0;
  return plan;
}

void PlanSpace::add_axis(const Plan& plan, AxisRole role, bool& offloads, Job& job) const {
  const std::array<std::int16_t, kAxisRoleCount> words = {plan.schedule,  0,           0,
                                                          plan.attention, plan.expert, plan.tensor};
  const std::size_t offload = offloads ? static_cast<std::size_t>(plan.offload) : 0;
  const AxisWord& word = choices_.word(role, static_cast<std::size_t>(words[at(role)]),
                                       static_cast<std::size_t>(plan.state), offload);
  AxisPlacement& axis = job.placement.axes.emplace_back(word.axis);
  axis.degree = plan.degree(role);
  job.attention.push_back(word.attention);
  if (role != AxisRole::layer) return;
  job.schedule = word.schedule;
  if (plan.split == kNoSplit) return;
  axis.shares = splits_of(plan.degree(role), plan.schedule)[static_cast<std::size_t>(plan.split)];
}

void PlanSpace::apply(const Plan& plan, Job& job) const {
  job.placement.axes.clear();
  job.attention.clear();
  job.schedule = {};
  const auto carrier =
      std::ranges::find_if(kCarriers, [&](AxisRole role) { return plan.degree(role) > 1; });
  const AxisRole carries = carrier == kCarriers.end() ? AxisRole::batch : *carrier;
  for (const AxisRole role : choices_.orders[static_cast<std::size_t>(plan.order)]) {
    const bool alone = carrier == kCarriers.end() && role == AxisRole::batch;
    if (plan.degree(role) == 1 && !alone) continue;
    bool offloads = role == carries;
    add_axis(plan, role, offloads, job);
  }
  job.batch.micro = plan.micro_batch;
  job.recompute = recompute_of({.word = plan.recompute, .count = plan.count});
}

}  // namespace placet
