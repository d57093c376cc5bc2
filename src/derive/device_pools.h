// The memory of one device as an engine's allocator sees it: a pool of blocks per stream, and the
// buffers that a stream still holds after the program has let go of them (docs/theory.md §3.6).
#pragma once

#include <array>
#include <deque>
#include <utility>

#include "derive/caching_pool.h"
#include "profile/profile.h"
#include "units/quantity.h"

namespace placet {

/// Most bytes over the pools of one device, at any one time since it was last asked.
struct PoolPeaks {
  Bytes alive;
  Bytes reserved;
};

class DevicePools {
 public:
  using Handle = CachingPool::Handle;

  /// `profile` must outlive the pools.
  explicit DevicePools(const Profile& profile);
  DevicePools(const DevicePools&) = delete;
  DevicePools& operator=(const DevicePools&) = delete;

  /// The pool of most requests; those of gathered and of reduced messages, which are the same where
  /// the profile gives them no stream of their own.
  CachingPool& main() { return pools_[0]; }
  CachingPool& gathers() { return pools_[profile_->gathers_in_own_pool ? 1 : 0]; }
  CachingPool& reductions() { return pools_[profile_->reduces_in_own_pool ? 2 : 0]; }

  /// What the pools may reserve together. Where the device is full, the host first waits for it,
  /// then all pools give back what they only cache.
  void limit(Bytes bytes);
  /// Whether a request found the device full.
  bool gave_back() const { return room_.gave_back; }
  /// Gives every wholly free segment back.
  void give_back();

  /// A buffer that the device reads still: back in the main pool when it has run what was launched
  /// so far. None is allowed.
  void release_late(Handle handle);
  /// The host launches `count` kernels: what the full launch queue has pushed out has run.
  void launch(double count);
  /// The host waits for the device: nothing is late any more.
  void wait();

  PoolPeaks take_peaks();

 private:
  const Profile* profile_;
  DeviceRoom room_;
  std::array<CachingPool, 3> pools_;
  std::deque<std::pair<double, Handle>> late_;  // with the number of launches before it
  double launches_ = 0;
};

}  // namespace placet
