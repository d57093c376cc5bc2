#include "derive/step_parts.h"

#include <algorithm>

#include "derive/kernel_time.h"
#include "derive/laid_out.h"
#include "derive/stage_time.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

class PartsWriter {
 public:
  explicit PartsWriter(const LaidOut& laid_out)
      : laid_out_(laid_out),
        layout_(laid_out.layout),
        job_(*layout_.job),
        timer_(job_),
        times_(layout_, laid_out.messages, timer_) {}

  StepParts parts() {
    write_facts();
    for (const Level& level : timer_.levels()) out_.links.push_back({level.link});
    out_.links.push_back({"host link"});
    const StageKinds& kinds = laid_out_.kinds;
    out_.of_stage = kinds.of_stage;
    out_.kinds.resize(kinds.units.size());
    std::vector<const Stage*> first(kinds.units.size(), nullptr);
    for (std::size_t s = 0; s < laid_out_.stages.size(); ++s) {
      const std::size_t kind = kinds.of_stage[s];
      const Stage& stage = laid_out_.stages[s];
      if (first[kind] == nullptr) {
        write_stage(out_.kinds[kind], stage, kind);
        first[kind] = &stage;
      }
      out_.shift.push_back(shift_of(stage, *first[kind]));
    }
    return std::move(out_);
  }

 private:
  static std::vector<int> shift_of(const Stage& stage, const Stage& first) {
    std::vector<int> shift;
    for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
      const bool empty = stage.chunks[c].empty();
      shift.push_back(empty ? 0 : stage.chunks[c].front() - first.chunks[c].front());
    }
    return shift;
  }

  void write_facts() {
    const EngineTiming& timing = job_.profile.timing;
    out_.job = &job_;
    out_.form = {.degree = static_cast<std::int64_t>(laid_out_.stages.size()),
                 .micro_batches = layout_.micro_batches,
                 .backward = laid_out_.stages.front().backward};
    if (laid_out_.stages.size() > 1) out_.form.schedule = job_.schedule;
    out_.sender_waits = timing.sender_waits(job_.schedule.chunks);
    out_.gathers_beside = timing.runs_beside(Overlap::gathers);
    out_.gathers_beside_backward = out_.gathers_beside && !timing.gathers_after_reductions;
    out_.reductions_beside = timing.runs_beside(Overlap::reductions);
    out_.host_per_pass = timing.host_per_pass;
    out_.host_per_step = timing.host_per_step;
  }

  void write_stage(StageParts& stage, const Stage& hosted, std::size_t kind) {
    const StageUnits& units = laid_out_.kinds.units[kind];
    const CommunicationClass& traffic = laid_out_.kinds.traffic[kind];
    for (std::size_t c = 0; c < hosted.chunks.size(); ++c) {
      stage.chunks.push_back(chunk_parts(units, c));
      stage.units += stage.chunks.back().units;
    }
    for (const CommunicationTerm& term : traffic.terms) add_message(stage, term, units.groups);
    const StageWork work = stage_work(
        layout_, hosted, units, step_messages(layout_, traffic, units.groups, timer_), times_);
    out_.message = std::max(out_.message, work.messages.boundary);
    stage.update = work.update;
    stage.message_share = message_share(*job_.cluster, units.groups);
    stage.after = work.after;
    stage.scalars = work.messages.scalars;
    remember_uses(stage.after);
    remember_uses(stage.scalars);
  }

  ChunkParts chunk_parts(const StageUnits& units, std::size_t chunk) {
    ChunkParts out{.runs_backward = units.runs_backward[chunk]};
    run_chunk(units, chunk, {}, times_, [&](const PassPart& part) {
      (part.part == WorkPart::forward ? out.forward : out.backward).push_back(unit_part(part));
      remember_uses(part.time->exposed);
      remember_uses(part.time->hidden);
    });
    for (std::size_t r = units.chunk_begin(chunk); r < units.chunk_ends[chunk]; ++r) {
      out.units += units.runs[r].count;
    }
    // Units come from the last to the first, the parts of one as they are.
    std::stable_sort(out.backward.begin(), out.backward.end(),
                     [](const UnitPart& a, const UnitPart& b) { return a.unit > b.unit; });
    return out;
  }

  UnitPart unit_part(const PassPart& part) const {
    const int unit = part.run->first + static_cast<int>(part.number);
    const PartTime& time = *part.time;
    return {.unit = unit,
            .name = job_.model.kinds[at(layout_.units[at(part.run->local)].kind)].name,
            .part = part.part,
            .kernels = time.computing(),
            .weights = part.part == WorkPart::backward ? part.weights : Seconds(),
            .exposed = time.exposed,
            .hidden = time.hidden,
            .wait = part.wait,
            .host = time.host};
  }

  void add_message(StageParts& stage, const CommunicationTerm& term, const GroupSet& devices) {
    const double m = static_cast<double>(micro_batches_of_chunk(layout_));
    switch (place_in_step(term)) {
      case StepPlace::boundary:
        if (term.collective != Collective::send_recv) break;
        out_.message_use = used_links(timer_.use_of_send(term.axes));
        out_.message_bytes = term.payload;
        break;
      case StepPlace::forward:
        push(stage.forward_gathers, term, {.devices = devices, .rounds = m});
        break;
      case StepPlace::backward:
        push(term.state == State::gradients ? stage.backward_reductions : stage.backward_gathers,
             term, {.devices = devices, .rounds = m});
        break;
      case StepPlace::reduce:
        push(stage.reduce, term, {.devices = devices, .rounds = 1});
        break;
      case StepPlace::unit:
      case StepPlace::update:
      case StepPlace::scalars:
        break;
    }
  }

  /// Where and how often a message is sent.
  struct Sent {
    const GroupSet& devices;
    double rounds = 1;
  };
  void push(std::vector<MessagePart>& to, const CommunicationTerm& term, const Sent& sent) {
    const Seconds time = time_in_step(term, sent.devices, timer_) / sent.rounds;
    if (time == Seconds()) return;
    remember_use(term.axes);
    to.push_back({.axes = term.axes,
                  .what = term.what,
                  .collective = term.collective,
                  .time = time,
                  .bytes = bytes(in_bytes(term.sent) / static_cast<std::int64_t>(sent.rounds))});
  }

  void remember_uses(const AxisTimes& times) {
    for (const auto& part : times.parts) remember_use(part.first);
  }

  void remember_use(AxisMask axes) {
    for (const auto& known : out_.uses) {
      if (known.first == axes) return;
    }
    const auto host = static_cast<int>(out_.links.size()) - 1;
    out_.uses.emplace_back(axes, axes == 0 ? std::vector<LinkUse>{{.link = host, .part = 1}}
                                           : used_links(timer_.use(axes)));
  }

  static std::vector<LinkUse> used_links(const std::vector<double>& use) {
    std::vector<LinkUse> out;
    for (std::size_t l = 0; l < use.size(); ++l) {
      if (use[l] > 0) out.push_back({.link = static_cast<int>(l), .part = use[l]});
    }
    return out;
  }

  const LaidOut& laid_out_;
  const Layout& layout_;
  const Job& job_;
  MessageTimer timer_;
  UnitTimes times_;
  StepParts out_;
};

}  // namespace

const std::vector<LinkUse>& StepParts::use_of(AxisMask axes) const {
  const auto known =
      std::ranges::find_if(uses, [&](const auto& entry) { return entry.first == axes; });
  ensure(known != uses.end(), "the links of a message's axes are known");
  return known->second;
}

StepParts step_parts(const Job& job, const Prepared& prepared) {
  return PartsWriter(lay_out_whole(job, prepared)).parts();
}

}  // namespace placet
