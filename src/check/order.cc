#include "check/order.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "check/numbering.h"
#include "units/at.h"

namespace placet {
namespace {

constexpr std::size_t kMostRaces = 8;

/// How many instructions a queue has begun; 0: none. No device runs 2^32 in two steps.
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

class Queues {
 public:
  Queues(const Program& program, int device_class)
      : program_(program),
        class_(device_class),
        numbering_(program, device_class),
        accesses_(numbering_.size()) {}

  /// Steps are counted from 1.
  void run_step(int step) {
    for_each_instruction(program_, program_.classes[at(class_)].body, {},
                         [&](const Instruction& i, const Arguments& a) {
                           if (i.step == 0 || i.step == step) run(i, a);
                         });
  }

  std::vector<Breach> races;

 private:
  void run(const Instruction& i, const Arguments& a) {
    instruction_ = &i;
    arguments_ = a;
    queue_ = static_cast<std::size_t>(i.stream);
    if (i.kind == InstructionKind::record) {
      events_[i.event] = known_[queue_];
      return;
    }
    if (i.kind == InstructionKind::wait) {
      if (const auto found = events_.find(i.event); found != events_.end()) {
        learn(known_[queue_], found->second);
      }
      return;
    }
    const Time now = ++known_[queue_][queue_];
    for (const BufferRef& ref : i.inputs) {
      if (i.kind == InstructionKind::free) {
        write(ref, now);
      } else {
        read(ref, now);
      }
    }
    for (const BufferRef& ref : i.outputs) write(ref, now);
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
