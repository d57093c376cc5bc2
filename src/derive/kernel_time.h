// What one kernel takes on a device (docs/theory.md §7.2): the longer of its arithmetic, at the
// rate that its shape allows, and its bytes, at the rate that memory gives.
#pragma once

#include "cluster/cluster.h"
#include "derive/unit_work.h"

namespace placet {

/// Matrix products. A product is cut into output tiles; each multiprocessor works on one tile at a
/// time, so that the tiles of the last wave leave some idle, and a tile that sticks out computes
/// what nobody needs. The library may cut the depth too, into parts that are added up afterwards.
/// The best of all tiles and cuts counts.
///   waves x 2 rows columns (depth + fill) / (rate per multiprocessor x tile's efficiency)
/// Case: 108 multiprocessors, tiles of 128 x 256, 4096 x 1024 x 4096: 128 tiles, two waves where
/// 1.19 would do: 59 % of the rate.
Seconds product_time(const DeviceRates& rates, const KernelWork& kernel);

/// What computation loses to messages beside it, of its own time while they run: on devices of
/// these groups, the most. REQUIRES: there is one.
double message_share(const Cluster& cluster, const GroupSet& devices);

/// Any kernel.
Seconds kernel_time(const DeviceRates& rates, const std::string& attention_kernel,
                    const KernelWork& kernel);

}  // namespace placet
