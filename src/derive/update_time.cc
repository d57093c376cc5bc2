#include "derive/update_time.h"

#include <algorithm>

#include "derive/state_bytes.h"
#include "derive/update_inputs.h"
#include "units/at.h"

namespace placet {
namespace {

/// Elements that are updated here or there.
struct Updated {
  double on_device = 0;
  double on_host = 0;
  double through_nvme = 0;  // bytes of states that the host reads from there and writes back
};

/// Of one unit of the run.
Updated updated_by(const Layout& layout, const Stage& stage, const UnitRun& run) {
  const Model& model = layout.job->model;
  const LocalUnit& unit = layout.units[at(run.local)];
  const UnitKind& kind = model.kinds[at(unit.kind)];
  Updated out;
  for (std::size_t p = 0; p < unit.parameters.size(); ++p) {
    const LocalParameter& own = unit.parameters[p];
    if (!own.trainable || is_second_use(model, stage, kind.parameters[p])) continue;
    const double elements = static_cast<double>(own.rest[1]);
    const double host = in_double(updated_on_host(own));
    out.on_device += elements * (1 - host);
    out.on_host += elements * host;
    if (host > 0) out.through_nvme += through_nvme(*layout.job, kind.parameters[p], own);
  }
  return out;
}

}  // namespace

UpdateRates update_rates(const Cluster& cluster, const GroupSet& devices) {
  const auto least = [&](auto rate) {
    BytesPerSecond out = rate(cluster.groups[devices.front()]);
    for (const std::size_t g : devices) out = std::min(out, rate(cluster.groups[g]));
    return out;
  };
  return {.memory = least([](const DeviceGroup& group) { return group.device.rates.memory; }),
          .host_link = least([](const DeviceGroup& group) { return group.host_link; }),
          .nvme = least([](const DeviceGroup& group) { return nvme_rate(group); })};
}

double through_nvme(const Job& job, const Parameter& declared, const LocalParameter& own) {
  const StateBytes bytes = state_bytes(job, declared, own);
  return static_cast<double>(bytes.nvme[0]) + 2 * static_cast<double>(bytes.nvme[1]) +
         static_cast<double>(bytes.nvme[2]);
}

Seconds update_time(const Layout& layout, const Stage& stage, const StageUnits& units) {
  const Job& job = *layout.job;
  const EngineTiming& timing = job.profile.timing;
  const double each = timing.update_bytes + (job.clips_by_global_norm ? timing.clip_bytes : 0.0);
  Updated all;
  for (const UnitRun& run : units.runs) {
    const Updated own = updated_by(layout, stage, run);
    all.on_device += own.on_device * static_cast<double>(run.count);
    all.on_host += own.on_host * static_cast<double>(run.count);
    all.through_nvme += own.through_nvme * static_cast<double>(run.count);
  }
  const UpdateRates least = update_rates(*job.cluster, units.groups);
  return seconds(all.on_device * each / in_bytes_per_second(least.memory)) +
         std::max(seconds(all.on_host * each / in_bytes_per_second(least.host_link)),
                  seconds(all.through_nvme / in_bytes_per_second(least.nvme)));
}

Seconds update_time(const Layout& layout, const Stage& stage) {
  return update_time(layout, stage, units_of(layout, stage));
}

}  // namespace placet
