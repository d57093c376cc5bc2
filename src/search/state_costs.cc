#include "search/state_costs.h"

#include "derive/kernel_time.h"
#include "derive/layout.h"
#include "derive/state_bytes.h"
#include "derive/update_inputs.h"

namespace placet {
namespace {

/// Seconds of the update per element, on the device and on the host (as derive/update_time.h).
struct UpdateRates {
  double device = 0;
  double host = 0;
};

UpdateRates update_rates(const Job& job) {
  const DeviceGroup& devices = slowest_group(*job.cluster);
  const EngineTiming& timing = job.profile.timing;
  const double each = timing.update_bytes + (job.clips_by_global_norm ? timing.clip_bytes : 0.0);
  return {.device = each / in_bytes_per_second(devices.device.rates.memory),
          .host = each / in_bytes_per_second(devices.host_link)};
}

}  // namespace

StateCosts state_costs(const PlanSpace& space, const Plan& plan, Workbench& bench) {
  Plan alone = plan;
  alone.micro_batch = 1;
  alone.recompute = 0;
  space.apply(alone, bench.job);
  bench.job.recompute = {};
  const Layout layout = lay_out(bench.job, bench.prepared.front());
  const UpdateRates rates = update_rates(bench.job);
  StateCosts out(bench.job.model.kinds.size());
  for (const LocalUnit& local : layout.units) {
    const UnitKind& kind = bench.job.model.kinds[static_cast<std::size_t>(local.kind)];
    UnitStateCost& cost = out[static_cast<std::size_t>(local.kind)];
    for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
      if (kind.parameters[p].tied) continue;
      const LocalParameter& own = local.parameters[p];
      const StateBytes bytes = state_bytes(bench.job, kind.parameters[p], own);
      cost.parameters += bytes.device[0];
      cost.optimizer += bytes.device[1];
      cost.gradients += bytes.device[2];
      if (!own.trainable) continue;
      const double host = in_double(updated_on_host(own));
      cost.update += static_cast<double>(own.rest[1]) *
                     ((1 - host) * rates.device + host * rates.host);
    }
  }
  return out;
}

}  // namespace placet
