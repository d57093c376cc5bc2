// The optimizer's own time on one device (docs/theory.md §7.4): it streams parameters, gradients
// and its states through memory, and may multiply whole matrices.
#pragma once

#include <vector>

#include "cluster/rates.h"
#include "derive/layout.h"
#include "derive/stage_units.h"
#include "derive/stages.h"

namespace placet {

/// What an update streams through: each the least of devices of these groups. REQUIRES: there is
/// one.
struct UpdateRates {
  BytesPerSecond memory, host_link, nvme;
  std::vector<const DeviceRates*> devices;  // of these groups; alive as long as the cluster
};
UpdateRates update_rates(const Cluster& cluster, const GroupSet& devices);

/// Seconds of an update on the device, and on the host, whose arithmetic and drives work beside
/// each other.
struct UpdateSeconds {
  double device = 0;
  double host = 0;
  double drives = 0;

  double total() const;
  UpdateSeconds& operator+=(const UpdateSeconds& other);
  friend UpdateSeconds operator*(double times, UpdateSeconds one);
};

/// Bytes that the update of one parameter moves on one device: optimizer state with the master
/// copy read and written, the gradient read, the parameter written, or read and written where it
/// has no master; then what the engine adds (theory.md §7.4). Case: Adam with bf16 parameters and
/// gradients, fp32 master and moments: 24 + 2 + 2 bytes an element; SGD 8 + 2 + 2.
double update_bytes(const Layout& layout, const Parameter& declared, const LocalParameter& own);

/// Products of the whole matrices that a device updates, one matrix after another: each a kernel
/// (theory.md §7.2). Case: a 2 x 4 matrix, one iteration of gram, square and apply: 2 x 2 x 2 x 4 +
/// 2 x 2 x 2 x 2 + 2 x 2 x 2 x 4 = 80 FLOPs.
Seconds matrices_time(const Layout& layout, const Parameter& declared, const LocalParameter& own,
                      const DeviceRates& rates);

/// The update of one parameter. What the host updates passes its link instead of device memory.
UpdateSeconds parameter_update(const Layout& layout, const Parameter& declared,
                               const LocalParameter& own, const UpdateRates& rates);

/// Of all that the stage's device updates. REQUIRES: the job has a cluster.
Seconds update_time(const Layout& layout, const Stage& stage);
/// The same with the stage's units at hand.
Seconds update_time(const Layout& layout, const Stage& stage, const StageUnits& units);

}  // namespace placet
