// A cluster whose rates can be worked with by hand.
#pragma once

#include "cluster/cluster.h"

namespace placet {

/// Devices in hosts of 8; every rate a round number.
inline Cluster small_cluster(std::int64_t devices) {
  DeviceGroup group;
  group.count = devices;
  group.device.peak_bf16 = teraflops_per_second(100);
  DeviceRates& rates = group.device.rates;
  rates.multiprocessors = 10;
  rates.matmul[static_cast<std::size_t>(MatmulFormat::bf16)] = teraflops_per_second(50);
  rates.tiles = {{.rows = 128, .columns = 128}};
  rates.memory = gigabytes_per_second(1000);
  rates.kernel = microseconds(1);
  rates.message_share = 0.1;
  group.host_link = gigabytes_per_second(20);
  group.levels = {{.link = "inside",
                   .devices = 8,
                   .bandwidth = gigabytes_per_second(100),
                   .latency = microseconds(1)},
                  {.link = "outside",
                   .devices = devices,
                   .bandwidth = gigabytes_per_second(10),
                   .latency = microseconds(10)}};
  return {.name = "test", .groups = {group}, .between_groups = {}};
}

}  // namespace placet
