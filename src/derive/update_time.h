// The optimizer's own time on one device (docs/theory.md §7.4): it streams parameters, gradients
// and its states through memory.
#pragma once

#include "derive/layout.h"
#include "derive/stage_units.h"
#include "derive/stages.h"

namespace placet {

/// Bytes that the profile says per element, of the elements whose state the device owns, plus those
/// of the gradient's norm where gradients are clipped. What the host updates passes its link
/// instead. REQUIRES: the job has a cluster.
Seconds update_time(const Layout& layout, const Stage& stage);
/// The same with the stage's units at hand.
Seconds update_time(const Layout& layout, const Stage& stage, const StageUnits& units);

/// What an update streams through: each the least of devices of these groups. REQUIRES: there is
/// one.
struct UpdateRates {
  BytesPerSecond memory, host_link, nvme;
};
UpdateRates update_rates(const Cluster& cluster, const GroupSet& devices);

/// Bytes of one parameter's states that pass the host's NVMe drives for an update which runs on the
/// host: optimizer state both ways, gradients in, parameters back.
double through_nvme(const Job& job, const Parameter& declared, const LocalParameter& own);

}  // namespace placet
