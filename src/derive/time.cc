#include "derive/time.h"

#include <algorithm>

#include "derive/communication.h"
#include "derive/kernel_time.h"
#include "derive/step_messages.h"
#include "derive/update_time.h"
#include "model/listing.h"

namespace placet {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

constexpr std::array<std::string_view, 3> kKernelNames = {"products", "attention", "streams"};
constexpr std::array<std::string_view, kPartCount> kPartNames = {"forward", "recomputation",
                                                                 "backward"};

/// One pass of a chunk over a micro-batch, in named parts.
struct PassTime {
  Seconds device;     // kernels and exposed messages
  Seconds launch;     // waiting for the host
  AxisTimes exposed;  // of gathers and reductions that repeat per micro-batch
  Seconds whole() const { return device + launch + exposed.total(); }
};

struct ChunkPasses {
  PassTime forward;
  PassTime backward;
  Seconds weights;
};

class StepTimer {
 public:
  StepTimer(const Job& job, const Layout& layout)
      : job_(job), timing_(job.profile.timing), layout_(layout), stages_(stages_of(job)) {
    for (std::size_t u = 0; u < layout.units.size(); ++u) {
      const int unit = static_cast<int>(u);
      plain_.push_back(unit_time(layout, unit, false));
      again_.push_back(recomputes(unit) ? unit_time(layout, unit, true) : plain_.back());
    }
    traffic_ = derive_communication(layout, stages_);
  }

  TimeDerivation time() {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      messages_.push_back(step_messages(job_, layout_, traffic_[s]));
      passes_.push_back(passes_of(s));
    }
    run_pipeline();
    for (std::size_t s = 0; s < stages_.size(); ++s) finish_stage(s);
    write_terms();
    count_flops();
    return std::move(out_);
  }

 private:
  // --- units

  bool recomputes(int unit) const {
    const UnitRole role = job_.model.kinds[at(layout_.units[at(unit)].kind)].role;
    return job_.recompute.kind != Recompute::Kind::none || recomputes_units(job_)
               ? role == UnitRole::block || role == UnitRole::mtp
               : false;
  }

  const UnitTime& time_of(int u, std::int64_t ordinal) const {
    const int local = layout_.unit_of[at(u)];
    return (recomputes(local) && is_chosen(ordinal) ? again_ : plain_)[at(local)];
  }

  bool is_chosen(std::int64_t ordinal) const {
    const Recompute& choice = job_.recompute;
    if (choice.kind == Recompute::Kind::every) {
      return choice.count > 0 && ordinal % choice.count == 0;
    }
    return choice.kind != Recompute::Kind::first || ordinal < choice.count;
  }

  const UnitKind& kind_of(int u) const {
    return job_.model.kinds[at(job_.model.units[at(u)].kind)];
  }

  /// Calls visit(unit, its time) for every unit of a stage.
  template <class Visit>
  void each_unit(const Stage& stage, Visit visit) const {
    std::int64_t ordinal = 0;
    for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
      for (int u : stage.chunks[c]) {
        visit(c, u, time_of(u, ordinal));
        if (kind_of(u).role == UnitRole::block) ++ordinal;
      }
    }
  }

  // --- passes

  /// The host launches ahead of the device: a part ends when both are done with it, and begins as
  /// soon as the device is free and its first kernel launched.
  struct Queue {
    Seconds host, device, work;

    void run(const PartTime& part) {
      if (part.device() == Seconds()) return;
      const Seconds start = std::max(device, host);
      host += part.host;
      device = std::max(start + part.device(), host);
      work += part.device();
    }
    PassTime pass(Seconds fixed) const {
      return {.device = work, .launch = device - work + fixed, .exposed = {}};
    }
  };

  std::vector<ChunkPasses> passes_of(std::size_t s) {
    const Stage& stage = stages_[s];
    std::vector<Queue> forward(stage.chunks.size());
    std::vector<Queue> backward(stage.chunks.size());
    std::vector<ChunkPasses> out(stage.chunks.size());
    each_unit(stage, [&](std::size_t c, int, const UnitTime& time) {
      forward[c].run(time[Part::forward]);
      backward[c].run(time[Part::again]);
      backward[c].run(time[Part::backward]);
      out[c].weights += time.weights;
    });
    for (std::size_t c = 0; c < out.size(); ++c) {
      const double share = 1.0 / static_cast<double>(out.size());
      const double units = static_cast<double>(std::max<std::size_t>(1, stage.chunks[c].size()));
      out[c].forward = forward[c].pass(timing_.host_per_pass);
      out[c].backward = backward[c].pass(timing_.host_per_pass);
      const StepMessages& messages = messages_[s];
      out[c].forward.exposed =
          left_beside(scaled(messages.forward, share), timing_.runs_beside(Overlap::gathers),
                      out[c].forward.device + out[c].forward.launch, units);
      out[c].backward.exposed =
          left_beside(scaled(messages.backward, share), timing_.runs_beside(Overlap::gathers),
                      out[c].backward.device + out[c].backward.launch, units);
    }
    return out;
  }

  static AxisTimes scaled(const AxisTimes& times, double by) {
    AxisTimes out;
    out.add(times, by);
    return out;
  }

  /// What is left of messages beside `room` of computation: at least the first or last of `pieces`,
  /// and what computation loses to them.
  AxisTimes left_beside(const AxisTimes& messages, bool beside, Seconds room, double pieces) const {
    const Seconds all = messages.total();
    if (!beside || all == Seconds()) return messages;
    const double share = slowest_group(*job_.cluster).device.rates.message_share;
    const Seconds open = std::max(all / pieces, all - room);
    const Seconds left = open + (all - open) * share;
    return scaled(messages, left / all);
  }

  // --- stages

  void run_pipeline() {
    PipelineWork work{.schedule = job_.schedule, .micro_batches = layout_.micro_batches};
    if (stages_.size() == 1) work.schedule = {};
    work.sender_waits = timing_.sends_block && !timing_.runs_beside(Overlap::stages);
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      work.message = std::max(work.message, messages_[s].boundary);
      std::vector<ChunkTime>& chunks = work.devices.emplace_back();
      for (const ChunkPasses& pass : passes_[s]) {
        chunks.push_back({.forward = pass.forward.whole(),
                          .backward = pass.backward.whole(),
                          .backward_weight = pass.weights});
      }
      out_.stages.push_back({.stage = stages_[s].device, .chunks = chunks});
    }
    pipeline_ = pipeline_time(work);
  }

  void finish_stage(std::size_t s) {
    StageTime& stage = out_.stages[s];
    std::size_t units = 0;
    Seconds last;
    for (std::size_t c = 0; c < passes_[s].size(); ++c) {
      last += passes_[s][c].backward.device;
      units += stages_[s].chunks[c].size();
    }
    reduce_.push_back(left_beside(messages_[s].reduce, timing_.runs_beside(Overlap::reductions),
                                  last, static_cast<double>(std::max<std::size_t>(1, units))));
    stage.busy = pipeline_.busy[s];
    stage.reduce = reduce_.back().total();
    stage.update = update_time(layout_, stages_[s]);
    stage.finished = pipeline_.end[s] + stage.reduce;
    if (stage.finished > out_.stages[at(out_.critical)].finished) {
      out_.critical = static_cast<int>(s);
    }
  }

  // --- terms

  void add(TimeTerm term) {
    if (term.time == Seconds()) return;
    for (TimeTerm& known : out_.terms) {
      const bool same = known.kind == term.kind && known.what == term.what &&
                        known.unit == term.unit && known.phase == term.phase &&
                        known.axes == term.axes;
      if (!same) continue;
      known.time += term.time;
      return;
    }
    out_.terms.push_back(term);
  }

  void add_exposed(const AxisTimes& times, double repeats, std::string_view unit,
                   std::string_view phase) {
    for (const auto& [axes, time] : times.parts) {
      add({.kind = TimeKind::exposed,
           .what = "collectives",
           .unit = unit,
           .phase = phase,
           .axes = axes,
           .time = time * repeats});
    }
  }

  /// Micro-batches that a chunk sees: half of them where two directions share a device.
  double rounds() const {
    const double m = static_cast<double>(layout_.micro_batches);
    return job_.schedule.hosting == Hosting::bidirectional && stages_.size() > 1 ? m / 2 : m;
  }

  void write_terms() {
    const std::size_t s = at(out_.critical);
    const double m = rounds();
    each_unit(stages_[s], [&](std::size_t, int u, const UnitTime& time) {
      for (std::size_t p = 0; p < kPartCount; ++p) {
        write_part(kind_of(u).name, kPartNames[p], time.parts[p], m);
      }
    });
    for (const ChunkPasses& pass : passes_[s]) {
      add({.kind = TimeKind::launch,
           .what = "launching",
           .time = (pass.forward.launch + pass.backward.launch) * m});
      add_exposed(pass.forward.exposed, m, {}, "forward");
      add_exposed(pass.backward.exposed, m, {}, "backward");
    }
    add({.kind = TimeKind::send, .what = "messages to stages", .time = pipeline_.sending[s]});
    add({.kind = TimeKind::bubble,
         .what = "waiting for stages",
         .time = pipeline_.end[s] - pipeline_.busy[s]});
    write_end(s);
    for (const TimeTerm& term : out_.terms) out_.step += term.time;
    out_.known = true;
  }

  void write_part(std::string_view unit, std::string_view phase, const PartTime& part, double m) {
    for (std::size_t k = 0; k < kKernelNames.size(); ++k) {
      add({.kind = TimeKind::compute,
           .what = kKernelNames[k],
           .unit = unit,
           .phase = phase,
           .time = part.kernels[k] * m});
    }
    add_exposed(part.exposed, m, unit, phase);
  }

  void write_end(std::size_t s) {
    add_exposed(reduce_[s], 1, {}, "reduce");
    Seconds update;
    Seconds widest;
    std::size_t slowest = s;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      update = std::max(update, out_.stages[i].update);
      if (messages_[i].update.total() > widest) {
        widest = messages_[i].update.total();
        slowest = i;
      }
    }
    add({.kind = TimeKind::update, .what = "optimizer", .phase = "update", .time = update});
    Seconds first;
    for (const ChunkPasses& pass : passes_[slowest]) first += pass.forward.device;
    add_exposed(left_beside(messages_[slowest].update, timing_.runs_beside(Overlap::update), first,
                            static_cast<double>(std::max<std::size_t>(1, layout_.units.size()))),
                1, {}, "update");
    add_exposed(messages_[slowest].scalars, 1, {}, "update");
    add({.kind = TimeKind::host, .what = "data and logging", .time = timing_.host_per_step});
  }

  void count_flops() {
    const double tokens =
        static_cast<double>(job_.batch.global) * static_cast<double>(job_.batch.sequence);
    out_.tokens = tokens;
    out_.model_flops = in_flops(flops_per_token(job_.model, job_.batch.sequence).training) * tokens;
    const auto devices = static_cast<double>(devices_of(job_.placement));
    const double each = devices / static_cast<double>(stages_.size());
    for (const Stage& stage : stages_) {
      each_unit(stage, [&](std::size_t, int, const UnitTime& time) {
        for (const PartTime& part : time.parts) out_.hardware_flops += part.flops * rounds() * each;
      });
    }
    const double all = static_cast<double>(devices_of(*job_.cluster));
    for (const DeviceGroup& group : job_.cluster->groups) {
      out_.peak += group.device.peak_bf16 * (devices * static_cast<double>(group.count) / all);
    }
  }

  const Job& job_;
  const EngineTiming& timing_;
  const Layout& layout_;
  std::vector<Stage> stages_;
  std::vector<UnitTime> plain_, again_;
  std::vector<CommunicationClass> traffic_;
  std::vector<StepMessages> messages_;
  std::vector<std::vector<ChunkPasses>> passes_;
  std::vector<AxisTimes> reduce_;
  PipelineTime pipeline_;
  TimeDerivation out_;
};

}  // namespace

std::string_view name_of(TimeKind kind) {
  switch (kind) {
    case TimeKind::compute:
      return "compute";
    case TimeKind::launch:
      return "launch";
    case TimeKind::exposed:
      return "exposed communication";
    case TimeKind::send:
      return "send";
    case TimeKind::bubble:
      return "bubble";
    case TimeKind::update:
      return "update";
    case TimeKind::host:
      return "host";
  }
  return "";
}

Seconds total_of(const TimeDerivation& time, TimeKind kind) {
  Seconds sum;
  for (const TimeTerm& term : time.terms) {
    if (term.kind == kind) sum += term.time;
  }
  return sum;
}

double utilisation(const TimeDerivation& time) {
  const double possible = in_flops_per_second(time.peak) * in_seconds(time.step);
  return possible > 0 ? time.model_flops / possible : 0;
}

TimeDerivation derive_time(const Job& job) { return derive_time(job, prepare(job)); }

TimeDerivation derive_time(const Job& job, const Prepared& prepared) {
  if (!job.cluster || job.cluster->groups.empty()) return {};
  const Layout layout = lay_out(job, prepared);
  return StepTimer(job, layout).time();
}

}  // namespace placet
