#include "derive/time.h"

#include <algorithm>

#include "derive/laid_out.h"
#include "derive/stage_time.h"
#include "model/listing.h"
#include "profile/conditions.h"
#include "units/at.h"
#include "units/shares.h"

namespace placet {
namespace {

constexpr std::array<std::string_view, 4> kKernelNames = {"products", "attention", "streams",
                                                          "dequantisation"};
constexpr std::array<std::string_view, kPartCount> kPartNames = {"forward", "recomputation",
                                                                 "backward"};

class StepTimer {
 public:
  explicit StepTimer(const LaidOut& laid_out)
      : job_(*laid_out.layout.job),
        timing_(job_.profile.timing),
        layout_(laid_out.layout),
        stages_(laid_out.stages),
        kinds_(laid_out.kinds),
        timer_(job_),
        times_(layout_, laid_out.messages, timer_) {}

  TimeDerivation time() {
    work_.resize(kinds_.units.size());
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const std::size_t kind = kinds_.of_stage[s];
      if (!work_[kind].passes.empty()) continue;
      const StageUnits& units = kinds_.units[kind];
      work_[kind] =
          stage_work(layout_, stages_[s], units,
                     step_messages(layout_, kinds_.traffic[kind], units.groups, timer_), times_);
    }
    run_pipeline();
    for (std::size_t s = 0; s < stages_.size(); ++s) finish_stage(s);
    write_terms();
    count_flops();
    return std::move(out_);
  }

 private:
  const StageWork& work_of(std::size_t stage) const { return work_[kinds_.of_stage[stage]]; }
  const StageUnits& units_of(std::size_t stage) const {
    return kinds_.units[kinds_.of_stage[stage]];
  }

  std::string_view name_of_unit(const UnitRun& run) const {
    return job_.model.kinds[at(layout_.units[at(run.local)].kind)].name;
  }

  // --- stages

  void run_pipeline() {
    PipelineWork work{.form = {.schedule = job_.schedule,
                               .degree = static_cast<std::int64_t>(stages_.size()),
                               .micro_batches = layout_.micro_batches,
                               .backward = stages_.front().backward}};
    if (stages_.size() == 1) work.form.schedule = {};
    work.sender_waits = timing_.sender_waits(job_.schedule.chunks);
    work.devices.reserve(stages_.size());
    out_.stages.reserve(stages_.size());
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const StageWork& own = work_of(s);
      work.message = std::max(work.message, own.messages.boundary);
      std::vector<ChunkTime>& chunks = work.devices.emplace_back();
      chunks.reserve(own.passes.size());
      for (const ChunkPasses& pass : own.passes) {
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
    stage.busy = pipeline_.busy[s];
    stage.reduce = work_of(s).reduce.total();
    stage.update = work_of(s).update;
    stage.finished = pipeline_.end[s] + stage.reduce;
    if (stage.finished > out_.stages[at(out_.critical)].finished) {
      out_.critical = static_cast<int>(s);
    }
  }

  // --- terms

  /// So many times the same.
  void add(const TimeTerm& term, std::int64_t times = 1) {
    if (term.time == Seconds()) return;
    TimeTerm& sum = known(term);
    for (std::int64_t i = 0; i < times; ++i) sum.time += term.time;
  }

  /// The sum that a term belongs to.
  TimeTerm& known(const TimeTerm& term) {
    for (TimeTerm& other : out_.terms) {
      const bool same = other.kind == term.kind && other.axes == term.axes &&
                        other.what == term.what && other.phase == term.phase &&
                        other.unit == term.unit;
      if (same) return other;
    }
    out_.terms.push_back(term);
    out_.terms.back().time = {};
    return out_.terms.back();
  }

  void add_exposed(const AxisTimes& times, double repeats, std::string_view unit,
                   std::string_view phase, std::int64_t units = 1) {
    for (const auto& [axes, time] : times.parts) {
      add({.kind = TimeKind::exposed,
           .what = "collectives",
           .unit = unit,
           .phase = phase,
           .axes = axes,
           .time = time * repeats},
          units);
    }
  }

  /// Micro-batches that a chunk sees: its share of them where two directions share a device.
  double rounds(std::size_t chunk) const {
    const bool both_ways = job_.schedule.hosting == Hosting::bidirectional && stages_.size() > 1;
    const std::int64_t m = layout_.micro_batches;
    return static_cast<double>(both_ways ? share_of(m, 2, static_cast<std::int64_t>(chunk)) : m);
  }

  /// Calls visit(run, micro-batches that it sees).
  template <class Visit>
  void each_run(std::size_t stage, Visit visit) const {
    const StageUnits& units = units_of(stage);
    for (std::size_t c = 0; c < units.chunk_ends.size(); ++c) {
      for (std::size_t r = units.chunk_begin(c); r < units.chunk_ends[c]; ++r) {
        visit(units.runs[r], rounds(c));
      }
    }
  }

  void write_terms() {
    const std::size_t s = at(out_.critical);
    each_run(s, [&](const UnitRun& run, double m) { write_units(run, times_of(s, run), m); });
    for (std::size_t c = 0; c < work_of(s).passes.size(); ++c) {
      const ChunkPasses& pass = work_of(s).passes[c];
      const double m = rounds(c);
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

  const UnitTime& times_of(std::size_t stage, const UnitRun& run) {
    return times_.of(run, units_of(stage).groups);
  }

  void write_units(const UnitRun& run, const UnitTime& time, double m) {
    for (std::size_t p = 0; p < kPartCount; ++p) {
      const PartTime& part = time.parts[p];
      for (std::size_t k = 0; k < kKernelNames.size(); ++k) {
        add({.kind = TimeKind::compute,
             .what = kKernelNames[k],
             .unit = name_of_unit(run),
             .phase = kPartNames[p],
             .time = part.kernels[k] * m},
            run.count);
      }
      add_exposed(part.exposed, m, name_of_unit(run), kPartNames[p], run.count);
    }
  }

  void write_end(std::size_t s) {
    add_exposed(work_of(s).reduce, 1, {}, "reduce");
    Seconds update;
    Seconds widest;
    std::size_t slowest = s;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      update = std::max(update, work_of(i).update);
      const Seconds messages = work_of(i).messages.update.total();
      if (messages <= widest) continue;
      widest = messages;
      slowest = i;
    }
    add({.kind = TimeKind::update, .what = "optimizer", .phase = "update", .time = update});
    const StageWork& last = work_of(slowest);
    add_exposed(last.after, 1, {}, "update");
    add_exposed(last.messages.scalars, 1, {}, "update");
    add({.kind = TimeKind::host, .what = "data and logging", .time = timing_.host_per_step});
  }

  void count_flops() {
    const double tokens =
        static_cast<double>(samples_per_step(job_)) * static_cast<double>(job_.batch.sequence);
    out_.tokens = tokens;
    out_.model_flops = in_flops(flops_per_token(job_.model, job_.batch.sequence).training) * tokens;
    out_.hardware_flops = out_.model_flops;
    const auto devices = static_cast<double>(devices_of(job_.placement));
    const double each = devices / static_cast<double>(stages_.size());
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      each_run(s, [&](const UnitRun& run, double m) {
        out_.hardware_flops += times_of(s, run)[WorkPart::again].counted_flops * m * each *
                               static_cast<double>(run.count);
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
  const std::vector<Stage>& stages_;
  const StageKinds& kinds_;
  MessageTimer timer_;
  UnitTimes times_;
  std::vector<StageWork> work_;  // by kind of stage
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

namespace {

double part_of_peak(const TimeDerivation& time, double flops) {
  const double possible = in_flops_per_second(time.peak) * in_seconds(time.step);
  return possible > 0 ? flops / possible : 0;
}

}  // namespace

double utilisation(const TimeDerivation& time) { return part_of_peak(time, time.model_flops); }

double hardware_utilisation(const TimeDerivation& time) {
  return part_of_peak(time, time.hardware_flops);
}

TimeDerivation derive_time(const Job& job) { return derive_time(job, prepare(job)); }

TimeDerivation derive_time(const Job& job, const Prepared& prepared) {
  if (!job.cluster || job.cluster->groups.empty()) return {};
  return time_of(lay_out_whole(job, prepared));
}

TimeDerivation time_of(const LaidOut& laid_out) { return StepTimer(laid_out).time(); }

}  // namespace placet
