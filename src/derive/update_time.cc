#include "derive/update_time.h"

#include "derive/kernel_time.h"
#include "derive/update_inputs.h"

namespace placet {

Seconds update_time(const Layout& layout, const Stage& stage) {
  const Job& job = *layout.job;
  const EngineTiming& timing = job.profile.timing;
  const DeviceGroup& devices = slowest_group(*job.cluster);
  const double each = timing.update_bytes + (job.clips_by_global_norm ? timing.clip_bytes : 0.0);
  double on_device = 0;
  double on_host = 0;
  for_each_unit(stage, [&](int u) {
    const LocalUnit& unit =
        layout.units[static_cast<std::size_t>(layout.unit_of[static_cast<std::size_t>(u)])];
    const UnitKind& kind = job.model.kinds[static_cast<std::size_t>(unit.kind)];
    for (std::size_t p = 0; p < unit.parameters.size(); ++p) {
      const LocalParameter& own = unit.parameters[p];
      if (!own.trainable || is_second_use(job.model, stage, kind.parameters[p])) continue;
      const double elements = static_cast<double>(own.rest[1]);
      const double host = in_double(updated_on_host(own));
      on_device += elements * (1 - host);
      on_host += elements * host;
    }
  });
  return seconds(on_device * each / in_bytes_per_second(devices.device.rates.memory)) +
         seconds(on_host * each / in_bytes_per_second(devices.host_link));
}

}  // namespace placet
