#include "check/order.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "check/numbering.h"
#include "units/at.h"

namespace placet {
namespace {

constexpr std::size_t kMostRaces = 8;

/// How many instructions that are followed a queue has begun; 0: none. No device runs 2^32 in two
/// steps.
using Time = std::uint32_t;

/// By queue, the time up to which all is done.
using Clock = std::array<Time, kStreamCount>;

void learn(Clock& clock, const Clock& other) {
  for (std::size_t s = 0; s < clock.size(); ++s) clock[s] = std::max(clock[s], other[s]);
}

struct Access {
  std::uint32_t writer = 0;  // queue of the last write
  Time written = 0;          // 0: it was never written
  Clock read{};              // by queue, its last read since
  const Instruction* wrote = nullptr;
  const Instruction* reader = nullptr;  // the last
};

/// By family, whether a class touches it on several queues. All accesses on one queue are in order.
std::vector<bool> on_several_queues(const Program& program, const DeviceClass& own) {
  std::vector<unsigned> queues(program.families.size(), 0);
  for_each_written_instruction(program, own.body, [&](const Instruction& i) {
    for (const auto* refs : {&i.inputs, &i.outputs}) {
      for (const BufferRef& ref : *refs)
        queues[at(ref.family)] |= 1U << static_cast<unsigned>(i.stream);
    }
  });
  std::vector<bool> out;
  out.reserve(queues.size());
  for (const unsigned each : queues) out.push_back((each & (each - 1)) != 0);
  return out;
}

/// What of a body has to do with the order of queues.
struct Act {
  const Instruction* instruction = nullptr;  // a record, a wait, or what touches a buffer in `refs`
  std::vector<std::pair<const BufferRef*, bool>> refs;  // true: it is written, allocated or freed
  const Call* call = nullptr;
  const Loop* loop = nullptr;
  std::vector<Act> inside;  // of a loop
};

class Queues {
 public:
  Queues(const Program& program, int device_class)
      : program_(program),
        class_(device_class),
        several_(on_several_queues(program, program.classes[at(device_class)])),
        numbering_(program, device_class, several_),
        accesses_(numbering_.size()) {
    procedures_.resize(program.procedures.size());
    body_ = acts_of(program.classes[at(device_class)].body);
  }

  /// Steps are counted from 1.
  void run_step(int step) {
    step_ = step;
    run(body_, {});
  }

  std::vector<Breach> races;

 private:
  using Acts = std::vector<Act>;

  Acts acts_of(const std::vector<Step>& body) {
    Acts out;
    for (const Step& step : body) {
      if (std::optional<Act> act = act_of(step)) out.push_back(std::move(*act));
    }
    return out;
  }

  /// None: nothing of the step has to do with the order of queues.
  std::optional<Act> act_of(const Step& step) {
    if (const auto* call = std::get_if<Call>(&step.what)) {
      if (!acts_of(call->procedure).empty()) return Act{.call = call};
      return std::nullopt;
    }
    if (const auto* loop = std::get_if<Loop>(&step.what)) {
      Acts inside = acts_of(loop->body);
      if (!inside.empty()) return Act{.loop = loop, .inside = std::move(inside)};
      return std::nullopt;
    }
    const auto& i = std::get<Instruction>(step.what);
    Act act = act_of(i);
    const bool orders = i.kind == InstructionKind::record || i.kind == InstructionKind::wait;
    if (orders || !act.refs.empty()) return act;
    return std::nullopt;
  }

  const Acts& acts_of(int procedure) {
    std::optional<Acts>& known = procedures_[at(procedure)];
    if (!known) known = acts_of(program_.procedures[at(procedure)].body);
    return *known;
  }

  Act act_of(const Instruction& i) const {
    Act out{.instruction = &i};
    const bool frees = i.kind == InstructionKind::free;
    for (const BufferRef& ref : i.inputs) {
      if (several_[at(ref.family)]) out.refs.emplace_back(&ref, frees);
    }
    for (const BufferRef& ref : i.outputs) {
      if (several_[at(ref.family)]) out.refs.emplace_back(&ref, true);
    }
    return out;
  }

  void run(const Acts& acts, const Arguments& a) {
    for (const Act& act : acts) run(act, a);
  }

  void run(const Act& act, const Arguments& a) {
    if (act.instruction != nullptr) return run_one(act, a);
    if (act.call != nullptr) {
      return run(*procedures_[at(act.call->procedure)], arguments_of(*act.call, a));
    }
    for_each_round(*act.loop, a, [&](const Arguments& inner) { run(act.inside, inner); });
  }

  static Arguments arguments_of(const Call& call, const Arguments& a) {
    return {.unit = value_of(call.unit, a), .micro_batch = value_of(call.micro_batch, a)};
  }

  void run_one(const Act& act, const Arguments& a) {
    const Instruction& i = *act.instruction;
    if (i.step != 0 && i.step != step_) return;
    instruction_ = &i;
    arguments_ = a;
    queue_ = static_cast<std::size_t>(i.stream);
    if (i.kind == InstructionKind::record) {
      events_[i.event] = known_[queue_];
    } else if (i.kind == InstructionKind::wait) {
      wait_for(i.event);
    } else {
      touch(act.refs, ++known_[queue_][queue_]);
    }
  }

  void wait_for(int event) {
    const auto found = events_.find(event);
    if (found != events_.end()) learn(known_[queue_], found->second);
  }

  void touch(const std::vector<std::pair<const BufferRef*, bool>>& refs, Time now) {
    for (const auto& [ref, writes] : refs) {
      if (writes) {
        write(*ref, now);
      } else {
        read(*ref, now);
      }
    }
  }

  Access& access(const BufferRef& ref) { return accesses_[numbering_.of(ref, arguments_)]; }

  void race(const BufferRef& ref, const char* what, const Instruction* other) {
    if (races.size() >= kMostRaces) return;
    races.push_back(
        {.what = "'" + program_.families[at(ref.family)].name + "' is " + what,
         .origin = {.device_class = class_,
                    .instruction = instruction_,
                    .arguments = arguments_,
                    .step = 0},
         .other = {
             .device_class = class_, .instruction = other, .arguments = arguments_, .step = 0}});
  }

  void require_written(const BufferRef& ref, const Access& a, const char* what) {
    if (known_[queue_][a.writer] >= a.written) return;
    race(ref, what, a.wrote);
  }

  void read(const BufferRef& ref, Time now) {
    Access& a = access(ref);
    require_written(ref, a, "read although what writes it may not be done");
    a.read[queue_] = now;
    a.reader = instruction_;
  }

  void write(const BufferRef& ref, Time now) {
    Access& a = access(ref);
    const bool frees = instruction_->kind == InstructionKind::free;
    require_written(ref, a,
                    frees ? "freed although what writes it may not be done"
                          : "written although another write may not be done");
    for (std::size_t s = 0; s < a.read.size(); ++s) {
      if (a.read[s] <= known_[queue_][s]) continue;
      race(ref,
           frees ? "freed although it may still be read" : "written although it may still be read",
           a.reader);
      break;
    }
    a = {.writer = static_cast<std::uint32_t>(queue_),
         .written = now,
         .read = {},
         .wrote = instruction_};
  }

  const Program& program_;
  int class_ = 0;
  int step_ = 1;
  std::vector<bool> several_;                    // by family
  std::vector<std::optional<Acts>> procedures_;  // as far as they are called
  Acts body_;
  const Instruction* instruction_ = nullptr;
  Arguments arguments_;
  std::size_t queue_ = 0;
  std::array<Clock, kStreamCount> known_{};
  std::unordered_map<int, Clock> events_;
  Numbering numbering_;
  std::vector<Access> accesses_;
};

}  // namespace

std::vector<Breach> find_races(const Program& program) {
  std::vector<Breach> races;
  for (int c = 0; c < static_cast<int>(program.classes.size()); ++c) {
    Queues queues(program, c);
    for (int step = 1; step <= 2 && queues.races.empty(); ++step) queues.run_step(step);
    races.insert(races.end(), queues.races.begin(), queues.races.end());
  }
  return races;
}

}  // namespace placet
