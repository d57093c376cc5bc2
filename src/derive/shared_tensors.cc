#include "derive/shared_tensors.h"

#include <algorithm>

#include "units/at.h"

namespace placet {

SharedTensors::SharedTensors(const Job& job, const Stage& stage)
    : job_(job), stage_(stage), both_ways_(job.schedule.hosting == Hosting::bidirectional) {
  for (std::size_t k = 0; k < job.model.kinds.size(); ++k) {
    for (const Parameter& parameter : job.model.kinds[k].parameters) {
      if (parameter.tied) ties_.push_back({static_cast<int>(k), *parameter.tied});
    }
  }
}

bool SharedTensors::may_share(int kind) const {
  return both_ways_ || std::ranges::any_of(ties_, [&](const UsedTensor& used) {
           return used.user == kind || used.owner.kind == kind;
         });
}

bool SharedTensors::hosts_kind(int kind) const {
  return hosts_any(stage_, [&](int u) { return job_.model.units[at(u)].kind == kind; });
}

bool SharedTensors::is_elsewhere(int unit, std::size_t p) const {
  const int kind = job_.model.units[at(unit)].kind;
  const Parameter& own = job_.model.kinds[at(kind)].parameters[p];
  if (both_ways_) return !own.tied;
  if (own.tied) return !hosts_kind(own.tied->kind) && is_first_use(job_.model, stage_, own, unit);
  const Parameter::Tie here{.kind = kind, .parameter = static_cast<int>(p)};
  return std::ranges::any_of(
      ties_, [&](const UsedTensor& used) { return used.owner == here && !hosts_kind(used.user); });
}

}  // namespace placet
