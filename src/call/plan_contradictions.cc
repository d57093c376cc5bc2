#include "call/plan_contradictions.h"

#include <algorithm>
#include <vector>

#include "call/plan_constraints.h"
#include "catalog/reader.h"
#include "search/hindrance.h"
#include "search/plan_tree.h"
#include "units/error.h"

namespace placet {
namespace {

/// "1, 2, 4 or 8": what divides n, up to `most`.
std::string divisors_text(std::int64_t n, std::int64_t most) {
  std::vector<std::string> words;
  for (const std::int64_t d : divisors_of(n)) {
    if (d <= most) words.push_back(std::to_string(d));
  }
  return list_words(words);
}

bool cuts_samples(AxisRole role) {
  return role == AxisRole::replica || role == AxisRole::batch || role == AxisRole::expert;
}

std::string item_of(const PlanSpace& space, AxisRole role, std::int64_t degree) {
  return axis_name(space.choices(), role) + "=" + std::to_string(degree);
}

/// All degrees that are settled: "tp=8 dp=2".
std::string items_of(const PlanSpace& space) {
  std::string text;
  for (const auto& [role, degree] : space.constraints().degrees) {
    text += (text.empty() ? "" : " ") + item_of(space, role, degree);
  }
  return text;
}

std::int64_t degree_of(const PlanSpace& space, AxisRole role) {
  const auto found = space.constraints().degrees.find(role);
  return found == space.constraints().degrees.end() ? 0 : found->second;
}

/// Each degree on its own.
void check_degree(const PlanSpace& space, AxisRole role, std::int64_t degree) {
  const std::int64_t devices = space.devices();
  const std::string item = item_of(space, role, degree);
  if (devices % degree != 0) {
    refuse("--fix", item, "does not divide the " + std::to_string(devices) + " devices",
           divisors_text(devices, devices));
  }
  if (role == AxisRole::layer && degree > space.blocks()) {
    refuse("--fix", item, "has more stages than the model has blocks",
           divisors_text(devices, space.blocks()));
  }
}

bool is_open(const PlanSpace& space, AxisRole role) {
  return degree_of(space, role) == 0 && space.has_use(role);
}

/// All degrees together: they take the devices, or leave the rest to other axes.
void check_product(const PlanSpace& space) {
  const std::string devices = std::to_string(space.devices());
  std::int64_t product = 1;
  for (const auto& [role, degree] : space.constraints().degrees) {
    product *= degree;
    if (space.devices() % product == 0) continue;
    refuse("--fix", items_of(space),
           "takes " + std::to_string(product) + " devices, which do not divide the " + devices +
               " of the cluster",
           "degrees whose product is " + divisors_text(space.devices(), space.devices()));
  }
  bool some_open = false;
  for (int r = 0; r < kAxisRoleCount; ++r) {
    some_open = some_open || is_open(space, static_cast<AxisRole>(r));
  }
  if (product == space.devices() || some_open) return;
  refuse("--fix", items_of(space),
         "takes " + std::to_string(product) + " of " + devices +
             " devices and leaves no axis for the others",
         "degrees whose product is " + devices + ", or fewer of them");
}

void check_samples(const PlanSpace& space) {
  const std::int64_t samples = space.base().batch.global;
  const std::int64_t micro = space.constraints().micro_batch.value_or(1);
  std::int64_t ways = micro;
  for (const auto& [role, degree] : space.constraints().degrees) {
    if (cuts_samples(role)) ways *= degree;
  }
  if (samples % ways == 0) return;
  const std::string parts =
      micro == 1 ? "evenly" : "in whole micro-batches of " + std::to_string(micro);
  refuse("--fix", items_of(space),
         "cannot share the " + std::to_string(samples) + " samples of a step " + parts,
         "degrees that divide " + std::to_string(samples / micro));
}

/// Why no mesh can have an axis of that role.
std::string why_useless(const PlanSpace& space, AxisRole role) {
  const std::string name = axis_name(space.choices(), role);
  if (role == AxisRole::expert) return "asks for axis " + name + ", and the model has no experts";
  if (role == AxisRole::layer && space.blocks() < 2) {
    return "asks for axis " + name + ", and the model has no two blocks";
  }
  return "asks for axis " + name + ", for which the other terms leave no way";
}

void check_uses(const PlanSpace& space) {
  for (const auto& [role, term] : space.constraints().used) {
    if (space.has_use(role)) continue;
    refuse("--require", term, why_useless(space, role), "terms that some plan of this model has");
  }
  for (const auto& [role, degree] : space.constraints().degrees) {
    if (degree == 1 || space.has_use(role)) continue;
    refuse("--fix", item_of(space, role, degree), why_useless(space, role),
           item_of(space, role, 1) + ", or nothing of it");
  }
  const std::int64_t replicas = degree_of(space, AxisRole::replica);
  if (replicas <= 1 || degree_of(space, AxisRole::batch) != 1) return;
  refuse("--fix", items_of(space), "asks for replicas of groups of one device",
         item_of(space, AxisRole::batch, replicas) + " in place of the two");
}

}  // namespace

void check_constraints(const PlanSpace& space, const std::shared_ptr<PlanCosts>& costs,
                       const std::string& said) {
  for (const auto& [role, degree] : space.constraints().degrees) check_degree(space, role, degree);
  check_uses(space);
  check_product(space);
  check_samples(space);
  if (PlanTree(space, PlanGoal::time, costs).size() > 0) return;
  const Hindrance hindrance = least_hindered(space);
  if (hindrance.findings.empty()) {
    refuse("plan", said, "leaves no plan of this job to choose from, whatever it costs",
           "fewer constraints, or such as go together");
  }
  const Finding& finding = hindrance.findings.front();
  refuse("plan", said,
         "leaves no plan of this job to choose from, whatever it costs: rule " + finding.rule +
             ", " + finding.where + ", " + finding.message,
         finding.cure);
}

}  // namespace placet
