#include "derive/device_pools.h"

namespace placet {

DevicePools::DevicePools(const Profile& profile)
    : profile_(&profile),
      pools_{CachingPool(profile.expandable_segments), CachingPool(profile.expandable_segments),
             CachingPool(profile.expandable_segments)} {}

void DevicePools::limit(Bytes bytes) {
  main().limit(in_bytes(bytes), [this] { wait(); });
}

void DevicePools::release_late(Handle handle) {
  if (handle != 0) late_.emplace_back(launches_, handle);
}

void DevicePools::launch(double count) {
  launches_ += count;
  const double run = launches_ - static_cast<double>(profile_->launch_queue);
  while (!late_.empty() && late_.front().first < run) {
    main().release(late_.front().second);
    late_.pop_front();
  }
}

void DevicePools::wait() {
  for (const auto& [when, handle] : late_) main().release(handle);
  late_.clear();
}

PoolPeaks DevicePools::take_peaks() {
  PoolPeaks peaks;
  for (CachingPool& pool : pools_) {
    peaks.alive += bytes(pool.peak_alive());
    peaks.reserved += bytes(pool.reserved());
    pool.restart_peaks();
  }
  return peaks;
}

}  // namespace placet
