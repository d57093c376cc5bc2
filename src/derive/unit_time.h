// What one unit takes on one device over one micro-batch: its kernels, its host's launches, and the
// messages of its values that nothing hides (docs/theory.md §7.4).
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "derive/collective_time.h"
#include "derive/communication.h"
#include "derive/layout.h"
#include "derive/unit_work.h"

namespace placet {

/// Seconds by set of axes, in the order in which they were added.
struct AxisTimes {
  std::vector<std::pair<AxisMask, Seconds>> parts;

  void add(AxisMask axes, Seconds time);
  void add(const AxisTimes& other, double times);
  Seconds total() const;
};

/// FLOPs of a kernel by the convention of model FLOPs (model/listing.h): products, and attention
/// over all pairs of tokens. Case: a causal kernel of 1e9 FLOPs has half of the pairs: 2e9.
double counted_flops(const KernelWork& kernel);

/// The three parts of a unit's work.
enum class WorkPart : std::uint8_t { forward, again, backward };
inline constexpr int kPartCount = 3;

/// One part: device time by kind of kernel, messages, and what the host needs to launch them.
struct PartTime {
  std::array<Seconds, 4> kernels{};  // by KernelWork::Kind
  AxisTimes exposed;                 // messages that the device waits for
  AxisTimes hidden;                  // those that run beside the kernels
  Seconds host;
  double counted_flops = 0;  // as model FLOPs are counted (counted_flops)
  /// What of device and host lies before the point where the host waits for the device; none: it
  /// never does.
  Seconds device_before_wait;
  Seconds host_before_wait;

  Seconds device() const { return computing() + exposed.total(); }
  Seconds computing() const { return kernels[0] + kernels[1] + kernels[2] + kernels[3]; }
};

struct UnitTime {
  std::array<PartTime, kPartCount> parts;
  Seconds weights;  // of backward: gradients of weights

  const PartTime& operator[](WorkPart part) const { return parts[static_cast<std::size_t>(part)]; }
  PartTime& operator[](WorkPart part) { return parts[static_cast<std::size_t>(part)]; }
};

/// Of local unit `unit` of the layout, on devices of these groups of the job's cluster: each kernel
/// and each message takes what it takes on the slowest of them. REQUIRES: the job has a cluster.
UnitTime unit_time(const Layout& layout, int unit, bool recomputed, const GroupSet& devices);

/// The same where the messages of the unit's values are known: those of one that is not recomputed
/// and, for a recomputed one, its own.
struct KnownMessages {
  const std::vector<UnitTerm>& plain;
  const std::vector<UnitTerm>* recomputed = nullptr;  // none: the unit is not recomputed
};
UnitTime unit_time(const Layout& layout, int unit, const KnownMessages& messages,
                   const GroupSet& devices, MessageTimer& timer);

}  // namespace placet
