#include "derive/unit_time.h"

#include <algorithm>
#include <optional>

#include "derive/kernel_time.h"
#include "units/at.h"

namespace placet {
namespace {

/// The kind of message that an activation's term is, for what runs beside computation.
Overlap overlap_of(const Layout& layout, const CommunicationTerm& term, bool forward) {
  if (term.collective == Collective::host_copy) return Overlap::host;
  if (term.collective == Collective::all_to_all && (term.axes & layout.sequence_axes) == 0) {
    return Overlap::experts;
  }
  if ((term.axes & layout.tensor_axes) != 0) {
    return forward ? Overlap::tensor_forward : Overlap::tensor_backward;
  }
  if ((term.axes & layout.sequence_axes) != 0) return Overlap::sequence;
  return Overlap::experts;
}

class UnitTimer {
 public:
  UnitTimer(const Layout& layout, int unit, const KnownMessages& messages, const GroupSet& devices,
            MessageTimer& timer)
      : layout_(layout),
        job_(*layout.job),
        timing_(job_.profile.timing),
        devices_(devices),
        unit_(unit),
        messages_(messages),
        timer_(timer) {}

  UnitTime time() {
    const UnitWork work = unit_work(layout_, unit_, messages_.recomputed != nullptr);
    add(WorkPart::forward, work.forward);
    add(WorkPart::again, work.again);
    add(WorkPart::backward, work.backward);
    if (std::ranges::any_of(work.forward, &KernelWork::routes)) {
      out_[WorkPart::backward].host += launching(routing());
    }
    add_messages();
    add_own_launches();
    return std::move(out_);
  }

 private:
  void add(WorkPart part, const std::vector<KernelWork>& kernels) {
    PartTime& time = out_[part];
    for (const KernelWork& kernel : kernels) {
      const Seconds taken = most_of(*job_.cluster, devices_, [&](const DeviceGroup& group) {
        return kernel_time(group.device.rates, timing_.attention_kernel, kernel);
      });
      time.kernels[static_cast<std::size_t>(kernel.kind)] += taken;
      time.counted_flops += counted_flops(kernel);
      time.host += launching(kernel);
      if (kernel.for_weights) out_.weights += taken;
      if (kernel.routes) time.host += launching(routing());
      if (kernel.routes && timing_.waits_for_routing && !timing_.captures_launches) {
        time.device_before_wait = time.device();
        time.host_before_wait = time.host;
      }
    }
  }

  Seconds launching(const KernelWork& kernel) const {
    const bool recorded =
        timing_.captures_launches || (timing_.captures_to_routing && kernel.before_routing);
    if (recorded) return {};
    const Seconds inner = timing_.host_per_expert_launch.value_or(Seconds());
    return timing_.host_per_launch * static_cast<double>(kernel.launches) +
           inner * static_cast<double>(kernel.inner_launches);
  }

  /// What router and dispatcher launch beside their operators.
  KernelWork routing() const {
    return {.launches = timing_.routing_launches, .before_routing = true};
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
    for (const UnitTerm& message : messages_.plain) {
      const WorkPart part =
          message.term.phase == Phase::forward ? WorkPart::forward : WorkPart::backward;
      add_message(part, message.term, message.term.phase == Phase::forward);
    }
    if (messages_.recomputed != nullptr) add_again(messages_.plain, *messages_.recomputed);
  }

  void add_message(WorkPart part, const CommunicationTerm& term, bool forward) {
    PartTime& time = out_[part];
    const Seconds taken = timer_.all(term, devices_);
    if (!timing_.captures_launches) {
      time.host += timing_.host_per_collective * static_cast<double>(term.count) +
                   timer_.host(term, devices_);
    }
    const Overlap kind = overlap_of(layout_, term, forward);
    const bool hides =
        timing_.runs_beside(kind) && !(part == WorkPart::backward && comes_first(term));
    time.exposed.add(term.axes, hides ? beside(kind, part, term.axes, taken) : taken);
  }

  /// The gradient of what leaves a parallel region is gathered before anything there can run.
  bool comes_first(const CommunicationTerm& term) const {
    if (term.collective != Collective::all_gather) return false;
    const UnitKind& kind = job_.model.kinds[at(layout_.units[at(unit_)].kind)];
    return std::ranges::any_of(kind.values, [&](const Value& value) {
      return value.name == term.what && value.region == Region::parallel;
    });
  }

  /// What a recomputed unit sends beyond what a plain one does, in backward: its forward once more.
  void add_again(std::vector<UnitTerm> plain, const std::vector<UnitTerm>& recomputed) {
    for (UnitTerm message : recomputed) {
      if (message.term.phase != Phase::backward) continue;
      const auto known = std::ranges::find_if(plain, [&](const UnitTerm& other) {
        return is_same_movement(other, message) && other.term.payload == message.term.payload;
      });
      if (known != plain.end()) {
        message.term.count -= known->term.count;
        plain.erase(known);
      }
      if (message.term.count > 0) add_message(WorkPart::again, message.term, true);
    }
  }

  Seconds room_beside(Overlap kind, WorkPart part) const {
    switch (kind) {
      case Overlap::tensor_backward:
        return out_.weights;
      case Overlap::sequence:
        return out_[part].kernels[1];
      case Overlap::tensor_forward:
      case Overlap::experts:
      case Overlap::host:
      case Overlap::gathers:
      case Overlap::reductions:
      case Overlap::update:
      case Overlap::stages:
        break;
    }
    return out_[part].kernels[0];
  }

  /// What is left of a message that runs beside this part's computation: what computation is too
  /// short to hide, and what it loses to the message's kernels.
  Seconds beside(Overlap kind, WorkPart part, AxisMask axes, Seconds taken) {
    Seconds& used = hidden_[static_cast<std::size_t>(part)];
    const Seconds room = std::max(Seconds(), room_beside(kind, part) - used);
    const Seconds hidden = std::min(taken, room);
    used += hidden;
    out_[part].hidden.add(axes, hidden);
    return taken - hidden + hidden * message_share(*job_.cluster, devices_);
  }

  const Layout& layout_;
  const Job& job_;
  const EngineTiming& timing_;
  const GroupSet& devices_;
  int unit_;
  const KnownMessages& messages_;
  MessageTimer& timer_;
  std::array<Seconds, kPartCount> hidden_{};
  UnitTime out_;
};

}  // namespace

double counted_flops(const KernelWork& kernel) {
  return kernel.kind == KernelWork::Kind::stream ? 0 : kernel.flops / kernel.seen;
}

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

UnitTime unit_time(const Layout& layout, int unit, const KnownMessages& messages,
                   const GroupSet& devices, MessageTimer& timer) {
  return UnitTimer(layout, unit, messages, devices, timer).time();
}

UnitTime unit_time(const Layout& layout, int unit, bool recomputed, const GroupSet& devices) {
  MessageTimer timer(*layout.job);
  const std::vector<UnitTerm> plain = activation_traffic(layout, unit, false);
  if (!recomputed) return unit_time(layout, unit, {.plain = plain}, devices, timer);
  const std::vector<UnitTerm> again = activation_traffic(layout, unit, true);
  return unit_time(layout, unit, {.plain = plain, .recomputed = &again}, devices, timer);
}

}  // namespace placet
