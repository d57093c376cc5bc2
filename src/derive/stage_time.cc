#include "derive/stage_time.h"

#include <algorithm>

#include "derive/kernel_time.h"
#include "derive/update_time.h"
#include "units/at.h"

namespace placet {
namespace {

AxisTimes scaled(const AxisTimes& times, double by) {
  AxisTimes out;
  out.add(times, by);
  return out;
}

/// What messages of a stage may run beside.
class Beside {
 public:
  Beside(const Job& job, const GroupSet& devices)
      : timing_(job.profile.timing), share_(message_share(*job.cluster, devices)) {}

  /// What is left of messages beside `room` of computation: at least the first or last of `pieces`,
  /// and what computation loses to them. All of them unless they run beside it.
  AxisTimes left_of(const AxisTimes& messages, Overlap what, Seconds room,
                    std::size_t pieces) const {
    const Seconds all = messages.total();
    if (!timing_.runs_beside(what) || all == Seconds()) return messages;
    const double parts = static_cast<double>(std::max<std::size_t>(1, pieces));
    const Seconds open = std::max(all / parts, all - room);
    const Seconds left = open + (all - open) * share_;
    return scaled(messages, left / all);
  }

 private:
  const EngineTiming& timing_;
  double share_;
};

std::vector<ChunkPasses> passes_of(const Job& job, const Stage& stage, const StageUnits& units,
                                   const StepMessages& messages, UnitTimes& times) {
  const EngineTiming& timing = job.profile.timing;
  const Beside beside(job, units.groups);
  std::vector<ChunkPasses> out;
  out.reserve(stage.chunks.size());
  const double share = 1.0 / static_cast<double>(stage.chunks.size());
  const auto backwards = static_cast<double>(std::ranges::count(units.runs_backward, true));
  for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
    ChunkPasses& chunk =
        out.emplace_back(run_chunk(units, c, timing.host_per_pass, times, [](const PassPart&) {}));
    const auto left = [&](const AxisTimes& own, const PassTime& pass) {
      return beside.left_of(own, Overlap::gathers, pass.device + pass.launch,
                            stage.chunks[c].size());
    };
    chunk.forward.exposed = left(scaled(messages.forward, share), chunk.forward);
    if (!units.runs_backward[c]) {
      chunk.backward = {};
      continue;
    }
    const AxisTimes own = scaled(messages.backward, 1.0 / backwards);
    chunk.backward.exposed = timing.gathers_after_reductions ? own : left(own, chunk.backward);
  }
  return out;
}

std::size_t units_in(const Stage& stage) {
  std::size_t units = 0;
  for (const std::vector<int>& chunk : stage.chunks) units += chunk.size();
  return units;
}

}  // namespace

Seconds LaunchQueue::run(const PartTime& part, Seconds length) {
  const Seconds before = device_;
  launch(part.device_before_wait, part.host_before_wait);
  if (part.host_before_wait > Seconds()) host_ = device_;
  launch(length - part.device_before_wait, part.host - part.host_before_wait);
  work_ += length;
  return std::max(Seconds(), device_ - before - length);
}

void LaunchQueue::launch(Seconds length, Seconds by_host) {
  const Seconds start = std::max(device_, host_);
  host_ += by_host;
  device_ = std::max(start + length, host_);
}

UnitTimes::UnitTimes(const Layout& layout, const std::vector<UnitMessages>& messages,
                     MessageTimer& timer)
    : layout_(layout),
      messages_(messages),
      timer_(timer),
      recomputes_(layout.job->recompute.kind != Recompute::Kind::none ||
                  recomputes_units(*layout.job)) {}

UnitTimes::Known& UnitTimes::known_on(const GroupSet& devices) {
  const auto known = std::ranges::find(times_, devices, &std::pair<GroupSet, Known>::first);
  if (known != times_.end()) return known->second;
  return times_.emplace_back(devices, Known(layout_.units.size())).second;
}

const UnitTime& UnitTimes::of(const UnitRun& run, const GroupSet& devices) {
  const bool recomputed = recomputes_ && run.recomputed;
  std::optional<UnitTime>& time = known_on(devices)[at(run.local)][recomputed ? 1 : 0];
  if (!time) time = make(run.local, recomputed, devices);
  return *time;
}

UnitTime UnitTimes::make(int unit, bool recomputed, const GroupSet& devices) {
  const UnitMessages& own = messages_[at(unit)];
  const UnitRole role = layout_.job->model.kinds[at(layout_.units[at(unit)].kind)].role;
  const bool is_block = role == UnitRole::block || role == UnitRole::mtp;
  // Where nothing is recomputed the two plans are one.
  if (is_block && !recomputes_) {
    return unit_time(layout_, unit, {.plain = own.recomputed}, devices, timer_);
  }
  const bool known = !is_block || !own.plain.empty();
  const std::vector<UnitTerm> derived =
      known ? std::vector<UnitTerm>{} : activation_traffic(layout_, unit, false);
  const std::vector<UnitTerm>& plain = known ? own.plain : derived;
  return unit_time(layout_, unit,
                   {.plain = plain, .recomputed = recomputed ? &own.recomputed : nullptr}, devices,
                   timer_);
}

StageWork stage_work(const Layout& layout, const Stage& stage, const StageUnits& units,
                     StepMessages messages, UnitTimes& times) {
  const Job& job = *layout.job;
  StageWork out{.messages = std::move(messages)};
  out.passes = passes_of(job, stage, units, out.messages, times);
  Seconds first;
  Seconds last;
  for (const ChunkPasses& pass : out.passes) {
    first += pass.forward.device;
    last += pass.backward.device;
  }
  const Beside beside(job, units.groups);
  out.reduce = beside.left_of(out.messages.reduce, Overlap::reductions, last, units_in(stage));
  out.update = update_time(layout, stage, units);
  out.after = beside.left_of(out.messages.update, Overlap::update, first, layout.units.size());
  return out;
}

}  // namespace placet
