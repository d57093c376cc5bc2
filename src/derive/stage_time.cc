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

std::vector<ChunkPasses> passes_of(const Job& job, const Stage& stage, const StageUnits& units,
                                   const StepMessages& messages, UnitTimes& times) {
  std::vector<ChunkPasses> out;
  out.reserve(stage.chunks.size());
  const double share = 1.0 / static_cast<double>(stage.chunks.size());
  const auto backwards = static_cast<double>(std::ranges::count(units.runs_backward, true));
  for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
    ChunkPasses& chunk = out.emplace_back(
        run_chunk(units, c, job.profile.timing.host_per_pass, times, [](const PassPart&) {}));
    const auto beside = [&](const AxisTimes& own, const PassTime& pass) {
      return left_beside(job, own, Overlap::gathers, pass.device + pass.launch,
                         stage.chunks[c].size());
    };
    chunk.forward.exposed = beside(scaled(messages.forward, share), chunk.forward);
    if (!units.runs_backward[c]) {
      chunk.backward = {};
      continue;
    }
    const AxisTimes own = scaled(messages.backward, 1.0 / backwards);
    chunk.backward.exposed =
        job.profile.timing.gathers_after_reductions ? own : beside(own, chunk.backward);
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
                  recomputes_units(*layout.job)),
      times_(layout.job->cluster->groups.size()) {}

const UnitTime& UnitTimes::of(const UnitRun& run, std::size_t group) {
  const bool recomputed = recomputes_ && run.recomputed;
  times_[group].resize(layout_.units.size());
  std::optional<UnitTime>& time = times_[group][at(run.local)][recomputed ? 1 : 0];
  if (!time) time = make(run.local, recomputed, layout_.job->cluster->groups[group]);
  return *time;
}

UnitTime UnitTimes::make(int unit, bool recomputed, const DeviceGroup& devices) {
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

AxisTimes left_beside(const Job& job, const AxisTimes& messages, Overlap what, Seconds room,
                      std::size_t pieces) {
  const Seconds all = messages.total();
  if (!job.profile.timing.runs_beside(what) || all == Seconds()) return messages;
  const double share = slowest_group(*job.cluster).device.rates.message_share;
  const double parts = static_cast<double>(std::max<std::size_t>(1, pieces));
  const Seconds open = std::max(all / parts, all - room);
  const Seconds left = open + (all - open) * share;
  return scaled(messages, left / all);
}

StageWork stage_work(const Layout& layout, const Stage& stage, const StageUnits& units,
                     StepMessages messages, UnitTimes& times) {
  const Job& job = *layout.job;
  StageWork out{.messages = std::move(messages)};
  out.passes = passes_of(job, stage, units, out.messages, times);
  Seconds last;
  for (const ChunkPasses& pass : out.passes) last += pass.backward.device;
  out.reduce = left_beside(job, out.messages.reduce, Overlap::reductions, last, units_in(stage));
  out.update = update_time(layout, stage, units);
  return out;
}

AxisTimes left_after_update(const Layout& layout, const StageWork& work) {
  Seconds first;
  for (const ChunkPasses& pass : work.passes) first += pass.forward.device;
  return left_beside(*layout.job, work.messages.update, Overlap::update, first,
                     layout.units.size());
}

}  // namespace placet
