#include "derive/unit_time.h"

#include <algorithm>
#include <optional>

#include "derive/collective_time.h"
#include "derive/communication.h"
#include "derive/kernel_time.h"

namespace placet {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// The kind of message that an activation's term is, for what runs beside computation.
Overlap overlap_of(const Layout& layout, const CommunicationTerm& term) {
  if (term.collective == Collective::host_copy) return Overlap::host;
  if (term.collective == Collective::all_to_all && (term.axes & layout.sequence_axes) == 0) {
    return Overlap::experts;
  }
  if ((term.axes & layout.tensor_axes) != 0) return Overlap::tensor;
  if ((term.axes & layout.sequence_axes) != 0) return Overlap::sequence;
  return Overlap::experts;
}

class UnitTimer {
 public:
  UnitTimer(const Layout& layout, int unit, bool recomputed)
      : layout_(layout),
        job_(*layout.job),
        timing_(job_.profile.timing),
        rates_(job_.cluster->groups.front().device.rates),
        unit_(unit),
        recomputed_(recomputed) {}

  UnitTime time() {
    const UnitWork work = unit_work(layout_, unit_, recomputed_);
    add(Part::forward, work.forward);
    add(Part::again, work.again);
    add(Part::backward, work.backward);
    add_messages();
    add_own_launches();
    return std::move(out_);
  }

 private:
  void add(Part part, const std::vector<KernelWork>& kernels) {
    PartTime& time = out_[part];
    for (const KernelWork& kernel : kernels) {
      const Seconds taken = kernel_time(rates_, timing_.attention_kernel, kernel);
      time.kernels[static_cast<std::size_t>(kernel.kind)] += taken;
      time.flops += kernel.flops;
      time.host += timing_.host_per_launch * static_cast<double>(kernel.launches);
      if (kernel.for_weights) out_.weights += taken;
    }
  }

  /// Kernels that no operator stands for: casts, copies, random states.
  void add_own_launches() {
    const UnitKind& kind = job_.model.kinds[at(layout_.units[at(unit_)].kind)];
    if (kind.role != UnitRole::block) return;
    for (PartTime& part : out_.parts) {
      if (part.host == Seconds()) continue;
      part.host += timing_.host_per_launch * static_cast<double>(timing_.extra_launches);
    }
  }

  void add_messages() {
    for (const UnitTerm& message : activation_traffic(layout_, unit_, recomputed_)) {
      const Part part = message.term.phase == Phase::forward ? Part::forward : Part::backward;
      PartTime& time = out_[part];
      const Seconds taken = term_time(job_, message.term);
      time.host += timing_.host_per_collective * static_cast<double>(message.term.count);
      const Overlap kind = overlap_of(layout_, message.term);
      time.exposed.add(message.term.axes,
                       timing_.runs_beside(kind) ? beside(kind, time, taken) : taken);
    }
  }

  /// What is left of a message that runs beside this part's computation: what computation is too
  /// short to hide, and what it loses to the message's kernels.
  Seconds beside(Overlap kind, const PartTime& time, Seconds taken) {
    Seconds& used = hidden_[static_cast<std::size_t>(&time - out_.parts.data())];
    const Seconds whole = kind == Overlap::sequence ? time.kernels[1] : time.kernels[0];
    const Seconds room = std::max(Seconds(), whole - used);
    const Seconds hidden = std::min(taken, room);
    used += hidden;
    return taken - hidden + hidden * rates_.message_share;
  }

  const Layout& layout_;
  const Job& job_;
  const EngineTiming& timing_;
  const DeviceRates& rates_;
  int unit_;
  bool recomputed_;
  std::array<Seconds, kPartCount> hidden_{};
  UnitTime out_;
};

}  // namespace

void AxisTimes::add(AxisMask axes, Seconds time) {
  if (time == Seconds()) return;
  for (auto& [known, sum] : parts) {
    if (known != axes) continue;
    sum = sum + time;
    return;
  }
  parts.emplace_back(axes, time);
}

void AxisTimes::add(const AxisTimes& other, double times) {
  for (const auto& [axes, time] : other.parts) add(axes, time * times);
}

Seconds AxisTimes::total() const {
  Seconds sum;
  for (const auto& part : parts) sum = sum + part.second;
  return sum;
}

UnitTime unit_time(const Layout& layout, int unit, bool recomputed) {
  return UnitTimer(layout, unit, recomputed).time();
}

}  // namespace placet
