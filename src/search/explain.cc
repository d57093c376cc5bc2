#include "search/explain.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <functional>

#include "derive/derive.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr double kMore = 1.25;
constexpr std::int64_t kMostMultiple = 64;  // of the cluster, where nothing fits

/// The plans around one, choice by choice.
class Neighbourhood {
 public:
  Neighbourhood(const PlanSpace& space, const Plan& plan) : space_(space), plan_(plan) {}

  std::vector<PlanNeighbour> all() {
    add_meshes();
    add_words("sequence parallelism", AxisRole::tensor, &Plan::tensor);
    add_words("attention", AxisRole::sequence, &Plan::attention);
    add_pipelines();
    add_micro_batches();
    add_each("sharding", space_.states_of(plan_.degrees), &Plan::state);
    add_recomputations();
    add_each("offload", space_.offloads(), &Plan::offload);
    add_each("order", space_.orders_of(plan_.degrees), &Plan::order);
    return std::move(out_);
  }

 private:
  void add(const char* axis, const Plan& plan) {
    if (plan != plan_) out_.push_back({.axis = axis, .plan = plan, .judged = {}});
  }

  void add_each(const char* axis, const std::vector<std::int16_t>& values, std::int16_t Plan::*at) {
    for (const std::int16_t value : values) {
      Plan other = plan_;
      other.*at = value;
      add(axis, other);
    }
  }

  void add_words(const char* axis, AxisRole role, std::int16_t Plan::*at) {
    add_each(axis, space_.words_of(role, plan_.degree(role)), at);
  }

  /// One prime factor moves from one axis to another.
  void add_meshes() {
    for (const Degrees& mesh : space_.meshes()) {
      int smaller = 0;
      int larger = 0;
      for (std::size_t r = 0; r < mesh.size(); ++r) {
        smaller += mesh[r] < plan_.degrees[r];
        larger += mesh[r] > plan_.degrees[r];
      }
      if (smaller == 1 && larger == 1) add_mesh(mesh);
    }
  }

  void add_mesh(const Degrees& mesh) {
    Plan other = plan_;
    other.degrees = mesh;
    const auto keep = [&](const std::vector<std::int16_t>& allowed, std::int16_t Plan::*at) {
      if (allowed.empty()) return;
      if (std::ranges::find(allowed, other.*at) == allowed.end()) other.*at = allowed.front();
    };
    for (const auto& [role, at] : kWords) keep(space_.words_of(role, other.degree(role)), at);
    keep(space_.states_of(mesh), &Plan::state);
    keep(space_.orders_of(mesh), &Plan::order);
    keep_split(other);
    const std::vector<std::int64_t> micro = space_.micro_batches_of(mesh);
    if (micro.empty() || !has_split(other)) return;
    const auto nearest = std::ranges::min_element(
        micro, {}, [&](std::int64_t b) { return std::abs(b - plan_.micro_batch); });
    other.micro_batch = *nearest;
    add("mesh", other);
  }

  std::size_t splits(const Plan& plan) const {
    return space_.splits_of(plan.degree(AxisRole::layer), plan.schedule).size();
  }
  bool has_split(const Plan& plan) const { return at(plan.split) < splits(plan); }
  void keep_split(Plan& plan) const {
    if (!has_split(plan)) plan.split = 0;
  }

  void add_pipelines() {
    const std::int32_t degree = plan_.degree(AxisRole::layer);
    for (const std::int16_t word : space_.words_of(AxisRole::layer, degree)) {
      Plan other = plan_;
      other.schedule = word;
      keep_split(other);
      if (has_split(other)) add("schedule", other);
    }
    for (std::size_t s = 0; s < splits(plan_); ++s) {
      Plan other = plan_;
      other.split = static_cast<std::int16_t>(s);
      add("layers per stage", other);
    }
  }

  void add_micro_batches() {
    for (const std::int64_t micro : space_.micro_batches_of(plan_.degrees)) {
      Plan other = plan_;
      other.micro_batch = micro;
      add("micro-batch", other);
    }
  }

  void add_recomputations() {
    for (const PlanSpace::Recomputation& choice : space_.recomputations(space_.blocks())) {
      Plan other = plan_;
      other.recompute = choice.word;
      other.count = choice.count;
      const bool near = choice.count == 0 || std::abs(choice.count - plan_.count) <= 2;
      if (near) add("recomputation", other);
    }
  }

  static constexpr std::array<std::pair<AxisRole, std::int16_t Plan::*>, 4> kWords = {
      std::pair{AxisRole::layer, &Plan::schedule}, std::pair{AxisRole::sequence, &Plan::attention},
      std::pair{AxisRole::expert, &Plan::expert}, std::pair{AxisRole::tensor, &Plan::tensor}};

  const PlanSpace& space_;
  const Plan& plan_;
  std::vector<PlanNeighbour> out_;
};

/// The better of two neighbours: plans by what is sought, others by the memory that they lack.
bool is_better(const PlanNeighbour& a, const PlanNeighbour& b) {
  if (a.is_plan() != b.is_plan()) return a.is_plan();
  if (a.is_plan()) return *a.judged.found < *b.judged.found;
  if (a.judged.broken.empty() != b.judged.broken.empty()) return a.judged.broken.empty();
  return std::tuple(a.judged.needed, a.plan) < std::tuple(b.judged.needed, b.plan);
}

PlanMargin margin_on(const PlanSpace& space, const FoundPlan& plan, const std::string& what,
                     const std::function<void(Job&)>& change) {
  Job better = space.base();
  change(better);
  const PlanSpace other(better, space.choices(), space.constraints());
  const EvaluatedPlan judged = PlanTree(other, PlanGoal::time).evaluate(plan.plan);
  return {.what = what, .factor = kMore, .plan = judged.found.value_or(plan)};
}

/// Every link of the cluster: calls visit(level).
template <class Visit>
void each_link(Cluster& cluster, Visit visit) {
  for (DeviceGroup& group : cluster.groups) {
    for (Level& level : group.levels) visit(level);
  }
  if (cluster.groups.size() > 1) visit(cluster.between_groups);
}

void speed_up_links(Job& job, const std::string& link) {
  each_link(*job.cluster, [&](Level& level) {
    if (level.link != link) return;
    level.bandwidth = level.bandwidth * kMore;
    level.all_reduce.clear();
  });
}

void add_links(const PlanSpace& space, const FoundPlan& plan, std::vector<PlanMargin>& out) {
  std::vector<std::string> links;
  Cluster cluster = *space.base().cluster;
  each_link(cluster, [&](const Level& level) {
    if (std::ranges::find(links, level.link) == links.end()) links.push_back(level.link);
  });
  for (const std::string& link : links) {
    out.push_back(margin_on(space, plan, link, [&](Job& job) { speed_up_links(job, link); }));
  }
}

void speed_up_products(Job& job) {
  for (DeviceGroup& group : job.cluster->groups) {
    for (FlopsPerSecond& rate : group.device.rates.matmul) rate = rate * kMore;
  }
}

/// A cluster of so many times the devices.
void enlarge(Cluster& cluster, std::int64_t times) {
  for (DeviceGroup& group : cluster.groups) {
    group.count *= times;
    if (!group.levels.empty()) group.levels.back().devices *= times;
  }
}

void describe_least(const PlanSpace& space, PlanShortage& out) {
  Job job = space.base();
  space.apply(out.least->plan, job);
  const Derivation derivation = derive(job);
  out.host_used = derivation.host_used;
  out.host_capacity = derivation.host_capacity;
  out.needed = most_needed(derivation);
  const double filled = out.needed / out.capacity;
  if (filled > 1) {
    out.lack = PlanShortage::Lack::device;
  } else if (filled > space.constraints().memory_fraction) {
    out.lack = PlanShortage::Lack::part_of_device;
  } else if (derivation.fit == FitGrade::tight && !space.constraints().allows_tight) {
    out.lack = PlanShortage::Lack::cached;
  } else {
    out.lack = PlanShortage::Lack::host;
  }
  const auto fullest = std::ranges::max_element(derivation.memory, {}, needed);
  if (fullest == derivation.memory.end()) return;
  const auto term = std::ranges::max_element(fullest->terms, {}, &MemoryTerm::bytes);
  if (term == fullest->terms.end()) return;
  out.largest = std::string(name_of(term->category)) + ": " + std::string(term->what);
  if (!term->unit.empty()) out.largest += " of " + std::string(term->unit);
  out.largest_bytes = term->bytes;
}

}  // namespace

std::vector<PlanNeighbour> neighbours_of(const PlanSpace& space, const FoundPlan& plan,
                                         const PlanOptions& options) {
  std::vector<PlanNeighbour> all = Neighbourhood(space, plan.plan).all();
  const PlanTree tree(space, options.goal, options.costs);
  const auto stopped = [&] { return options.stopped && options.stopped(); };
  tbb::parallel_for(std::size_t{0}, all.size(), [&](std::size_t i) {
    if (!stopped()) all[i].judged = tree.evaluate(all[i].plan);
  });
  if (stopped()) return {};  // some were not asked
  std::vector<PlanNeighbour> best;
  for (PlanNeighbour& one : all) {
    if (one.is_plan() && one.judged.found->figures == plan.figures) continue;
    const auto known = std::ranges::find(best, one.axis, &PlanNeighbour::axis);
    if (known == best.end()) {
      best.push_back(std::move(one));
    } else if (is_better(one, *known)) {
      *known = std::move(one);
    }
  }
  return best;
}

namespace {

/// The fastest plan of devices with more memory.
PlanMargin margin_of_memory(const PlanSpace& space, const FoundPlan& plan,
                            const PlanOptions& options) {
  Job roomier = space.base();
  for (DeviceGroup& group : roomier.cluster->groups) {
    group.device.memory += bytes(in_bytes(group.device.memory) / 4);
  }
  const PlanSpace larger(roomier, space.choices(), space.constraints());
  PlanOptions one = options;
  one.top = 1;
  one.cutoff = in_seconds(plan.figures.step);
  const PlanResult roomy = find_plans(larger, one);
  return {
      .what = "memory", .factor = kMore, .plan = roomy.plans.empty() ? plan : roomy.plans.front()};
}

}  // namespace

std::vector<PlanMargin> margins_of(const PlanSpace& space, const FoundPlan& plan,
                                   const PlanOptions& options) {
  std::vector<PlanMargin> out;
  if (options.goal == PlanGoal::time) out.push_back(margin_of_memory(space, plan, options));
  out.push_back(margin_on(space, plan, "arithmetic", speed_up_products));
  add_links(space, plan, out);
  PlanMargin samples = margin_on(space, plan, "samples", [](Job& job) { job.batch.global *= 2; });
  samples.factor = 2;
  out.push_back(std::move(samples));
  return out;
}

PlanShortage shortage_of(const PlanSpace& space, const PlanOptions& options) {
  PlanShortage out{.capacity = smallest_memory(*space.base().cluster)};
  PlanOptions one = options;
  one.top = 1;
  one.goal = PlanGoal::memory;
  // Hosts that are too small are judged apart from devices: here they are as large as needed.
  Job unbounded = space.base();
  for (DeviceGroup& group : unbounded.cluster->groups) {
    group.device.memory = group.device.memory * 1000;
    group.host_memory = group.host_memory * 1000;
  }
  PlanConstraints of_any_size = space.constraints();
  of_any_size.memory_fraction = 1;
  const PlanResult least = find_plans(PlanSpace(unbounded, space.choices(), of_any_size), one);
  if (least.plans.empty()) {
    out.hindrance = least_hindered(space);
    return out;
  }
  out.least = least.plans.front();
  describe_least(space, out);
  if (out.lack != PlanShortage::Lack::device) return out;
  one.goal = PlanGoal::time;
  for (std::int64_t times = 2; times <= kMostMultiple; times *= 2) {
    Job more = space.base();
    enlarge(*more.cluster, times);
    one.costs = nullptr;
    if (find_plans(PlanSpace(more, space.choices(), space.constraints()), one).plans.empty()) {
      continue;
    }
    out.devices = space.devices() * times;
    break;
  }
  return out;
}

}  // namespace placet
