#include "derive/device_pools.h"

namespace placet {

DevicePools::DevicePools(const Profile& profile)
    : profile_(&profile),
      pools_{CachingPool(profile.expandable_segments, room_),
             CachingPool(profile.expandable_segments, room_),
             CachingPool(profile.expandable_segments, room_)} {}

void DevicePools::limit(Bytes bytes) {
  room_.limit = in_bytes(bytes);
  room_.wait = [this] { wait(); };
  room_.give_back = [this] { give_back(); };
}

void DevicePools::give_back() {
  for (CachingPool& pool : pools_) pool.give_back();
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
  const PoolPeaks peaks{.alive = bytes(room_.peak_alive), .reserved = bytes(room_.peak_reserved)};
  room_.restart_peaks();
  return peaks;
}

}  // namespace placet
