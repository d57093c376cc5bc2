#include "check/order.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "check/numbering.h"
#include "check/periods.h"
#include "check/repeating.h"
#include "units/at.h"

namespace placet {
namespace {

constexpr std::size_t kMostRaces = 8;
/// Periods that are compared before it is given up to leave any out.
constexpr int kMostComparedPeriods = 4;

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

/// What a class executes: an act, or those of a procedure.
struct ActOrCall {
  const Act* act = nullptr;
  const std::vector<Act>* procedure = nullptr;
  Arguments arguments;
};

/// All periods of a class, or, where they are alike, only the first ones (docs/theory.md §6.5).
enum class Extent : std::uint8_t { all, shortened };

class Queues {
 public:
  Queues(const Program& program, int device_class, Extent extent)
      : program_(program),
        class_(device_class),
        several_(on_several_queues(program, program.classes[at(device_class)])),
        numbering_(program, device_class, several_),
        accesses_(numbering_.size()) {
    procedures_.resize(program.procedures.size());
    body_ = acts_of(program.classes[at(device_class)].body);
    list();
    if (extent == Extent::shortened) find_stretch();
  }

  /// Steps are counted from 1.
  void run_step(int step) {
    step_ = step;
    std::size_t next = 0;
    if (stretch_) next = run_shortened();
    run(next, list_.size());
  }

  bool leaves_out() const { return stretch_.has_value(); }

  std::vector<Breach> races;

 private:
  using Acts = std::vector<Act>;
  using Listed = std::vector<ActOrCall>;

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

  void list() {
    for (const Act& act : body_) {
      if (act.loop != nullptr && repeats_in_list(*act.loop)) {
        const Loop& loop = *act.loop;
        const std::int64_t by = loop.last < loop.first ? -1 : 1;
        list_.add_rounds(round_of(act, loop.first), round_of(act, loop.first + by),
                         rounds_of(loop));
        continue;
      }
      Listed items;
      add(act, {}, items);
      for (const ActOrCall& item : items) list_.add(item);
    }
  }

  Listed round_of(const Act& loop, std::int64_t value) {
    Listed out;
    for (const Act& act : loop.inside) add(act, {.micro_batch = value}, out);
    return out;
  }

  void add(const Act& act, const Arguments& a, Listed& out) {
    if (act.loop != nullptr) {
      for_each_round(*act.loop, a, [&](const Arguments& inner) {
        for (const Act& one : act.inside) add(one, inner, out);
      });
    } else if (act.call != nullptr) {
      out.push_back({.act = nullptr,
                     .procedure = &*procedures_[at(act.call->procedure)],
                     .arguments = arguments_of(*act.call, a)});
    } else {
      out.push_back({.act = &act, .procedure = nullptr, .arguments = a});
    }
  }

  void run(std::size_t first, std::size_t last) {
    for (std::size_t k = first; k < last; ++k) {
      const auto& [act, procedure, a] = list_[k];
      if (act != nullptr) {
        run_one(*act, a);
      } else {
        run(*procedure, a);
      }
    }
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

  // --- periods

  /// Where what a wait of the list waits for was recorded, and what of that stands before a place.
  void find_stretch() {
    std::vector<Passage> passages;
    passages.reserve(list_.size());
    std::unordered_map<int, std::size_t> recorded;
    std::vector<int> begun(list_.size() + 1, 0);  // waits that a place stands in the middle of
    for (std::size_t k = 0; k < list_.size(); ++k) {
      Passage& one = passages.emplace_back(passage_of(list_[k]));
      if (one.instruction == nullptr) {
        recorded.clear();  // the procedure may record the same events
        continue;
      }
      if (one.instruction->kind == InstructionKind::record) recorded[one.instruction->event] = k;
      if (one.instruction->kind != InstructionKind::wait) continue;
      const auto found = recorded.find(one.instruction->event);
      one.follows = found != recorded.end();
      if (!one.follows) continue;
      one.event = static_cast<std::int64_t>(k - found->second);
      ++begun[found->second + 1];
      --begun[k + 1];
    }
    stretch_ = stretch_of(program_, passages);
    if (stretch_) begin_between_waits(begun);
  }

  Passage passage_of(const ActOrCall& one) {
    if (one.procedure == nullptr) {
      return {.instruction = one.act->instruction, .arguments = one.arguments};
    }
    const auto [found, fresh] = follow_calls_.try_emplace(one.procedure, false);
    if (fresh) found->second = follows_call(*one.procedure);
    return {.whole = one.procedure, .follows = found->second, .arguments = one.arguments};
  }

  /// Acts of their own: none waits for what was recorded outside of them.
  bool follows_call(const Acts& acts) const {
    std::unordered_set<int> recorded;
    const auto is_own = [&](const Instruction& i) {
      if (i.kind == InstructionKind::record) recorded.insert(i.event);
      return i.kind != InstructionKind::wait || recorded.contains(i.event);
    };
    return std::ranges::all_of(acts, [&](const Act& act) {
      return act.instruction != nullptr && act.instruction->step == 0 && is_own(*act.instruction) &&
             std::ranges::all_of(act.refs, [&](const auto& ref) {
               return placet::follows_call(program_, *ref.first);
             });
    });
  }

  /// No wait of a period is to be for what was recorded in the one before.
  void begin_between_waits(const std::vector<int>& begun) {
    int open = 0;
    std::size_t begin = 0;
    for (; begin < stretch_->begin; ++begin) open += begun[begin];
    while (begin < stretch_->begin + stretch_->period && (open += begun[begin]) > 0) ++begin;
    stretch_->begin = begin;
    if (open > 0) stretch_.reset();
  }

  /// What is known and what was touched at the beginning of a period.
  struct Cut {
    std::array<Clock, kStreamCount> known{};
    std::vector<std::vector<Access>> accesses;  // by track, by micro-batch from its first
  };

  Cut cut(const Tracks& tracks) {
    Cut out{.known = known_, .accesses = {}};
    for (const auto& [name, track] : tracks.all()) {
      const Access* first = accesses_of(track) + track.first;
      out.accesses.emplace_back(first, first + (track.last - track.first + 1));
    }
    return out;
  }

  /// By micro-batch: those of one family and unit have numbers one after the other.
  Access* accesses_of(const Track& track) { return &accesses_[numbering_.of(track.at(0), {})]; }

  static std::span<const Act> acts_of(const ActOrCall& one) {
    return one.act != nullptr ? std::span(one.act, 1) : std::span(*one.procedure);
  }

  Tracks touched_in(std::size_t first, std::size_t last) const {
    Tracks out(program_);
    for (std::size_t k = first; k < last; ++k) {
      const ActOrCall item = list_[k];
      for (const Act& one : acts_of(item)) {
        for (const auto& [ref, writes] : one.refs) out.touch(*ref, item.arguments, false);
      }
    }
    return out;
  }

  /// Up to where nothing is left out any more; returns where that is.
  std::size_t run_shortened() {
    std::size_t next = stretch_->begin;
    run(0, next);
    for (int k = 0; k < kMostComparedPeriods && next + 3 * stretch_->period <= stretch_->end; ++k) {
      const std::size_t last = next + stretch_->period;
      const Tracks tracks = touched_in(next, last);
      const Cut before = cut(tracks);
      run(next, last);
      const auto left = static_cast<std::int64_t>((stretch_->end - last) / stretch_->period);
      const Periods periods{.shift = stretch_->shift, .more = left - 1};
      if (periods.more > 0 && is_repeated(before, tracks, periods, next)) {
        leave_out(before, tracks, periods, next);
        return last + stretch_->period * static_cast<std::size_t>(periods.more);
      }
      next = last;
    }
    return next;
  }

  /// How many acts of each queue are in a period.
  Clock acts_since(const Cut& before) const {
    Clock out{};
    for (std::size_t s = 0; s < out.size(); ++s) out[s] = known_[s][s] - before.known[s][s];
    return out;
  }

  static Clock later(Clock clock, const Clock& by, std::int64_t times) {
    for (std::size_t s = 0; s < clock.size(); ++s) clock[s] += by[s] * static_cast<Time>(times);
    return clock;
  }

  /// What all of these queues know.
  Clock known_to_all(const std::array<bool, kStreamCount>& queues) const {
    Clock out;
    out.fill(std::numeric_limits<Time>::max());
    for (std::size_t q = 0; q < queues.size(); ++q) {
      for (std::size_t s = 0; queues[q] && s < out.size(); ++s) {
        out[s] = std::min(out[s], known_[q][s]);
      }
    }
    return out;
  }

  static Access later(Access a, const Clock& by, std::int64_t times) {
    const auto add = [&](Time& time, std::size_t queue) {
      if (time > 0) time += by[queue] * static_cast<Time>(times);
    };
    add(a.written, a.writer);
    for (std::size_t s = 0; s < a.read.size(); ++s) add(a.read[s], s);
    return a;
  }

  /// Whether queues that know so much may touch a buffer after `other` if they may after `one`.
  static bool asks_no_more(const Access& other, const Access& one, const Clock& known) {
    const bool written =
        other.written == 0 || (one.written > 0 && one.writer == other.writer &&
                               other.written <= std::max(one.written, known[one.writer]));
    for (std::size_t s = 0; s < known.size(); ++s) {
      if (other.read[s] > std::max(one.read[s], known[s])) return false;
    }
    return written;
  }

  /// What is touched no later than that may have been touched then.
  static Access no_earlier(Access a, const Clock& known) {
    if (a.written > 0) a.written = std::max(a.written, known[a.writer]);
    for (std::size_t s = 0; s < known.size(); ++s) a.read[s] = std::max(a.read[s], known[s]);
    return a;
  }

  std::array<bool, kStreamCount> queues_of(std::size_t first) const {
    std::array<bool, kStreamCount> out{};
    for (std::size_t k = first; k < first + stretch_->period; ++k) {
      for (const Act& one : acts_of(list_[k])) {
        out[static_cast<std::size_t>(one.instruction->stream)] = true;
      }
    }
    return out;
  }

  /// Whether queues know of later micro-batches what they knew of these a period before, and
  /// buffers ask for no more.
  bool is_repeated(const Cut& before, const Tracks& tracks, const Periods& periods,
                   std::size_t first) {
    const Clock by = acts_since(before);
    const auto used = queues_of(first);
    for (std::size_t q = 0; q < known_.size(); ++q) {
      if (used[q] && known_[q] != later(before.known[q], by, 1)) return false;
    }
    const Clock known = known_to_all(used);
    auto list = before.accesses.begin();
    return std::ranges::all_of(tracks.all(), [&](const auto& entry) {
      const Track& track = entry.second;
      const Access* own = accesses_of(track);
      return repeats(
          track, periods, *list++, [&](std::int64_t m) -> const Access& { return own[m]; },
          [&](const Access& a, const Access& b) {
            return asks_no_more(b, later(a, by, 1), known);
          });
    });
  }

  void leave_out(const Cut& before, const Tracks& tracks, const Periods& periods,
                 std::size_t first) {
    const Clock by = acts_since(before);
    const auto used = queues_of(first);
    for (std::size_t q = 0; q < known_.size(); ++q) {
      if (used[q]) known_[q] = later(known_[q], by, periods.more);
    }
    const Clock known = known_to_all(used);
    for (const auto& [name, track] : tracks.all()) {
      Access* own = accesses_of(track);
      placet::leave_out(
          track, periods, [&](std::int64_t m) -> const Access& { return own[m]; },
          [&](std::int64_t m, const Access& a, std::int64_t times) {
            own[m] = no_earlier(later(a, by, times), known);
          });
    }
    forget_events(first + stretch_->period,
                  stretch_->period * static_cast<std::size_t>(periods.more));
  }

  /// What is recorded in items that are left out is known to nobody.
  void forget_events(std::size_t first, std::size_t count) {
    for (std::size_t k = first; k < first + count; ++k) {
      const Act* act = list_[k].act;
      if (act != nullptr && act->instruction->event >= 0) events_.erase(act->instruction->event);
    }
  }

  const Program& program_;
  int class_ = 0;
  int step_ = 1;
  std::vector<bool> several_;                    // by family
  std::vector<std::optional<Acts>> procedures_;  // as far as they are called
  Acts body_;
  Repeating<ActOrCall> list_;
  std::optional<Stretch> stretch_;
  std::unordered_map<const Acts*, bool> follow_calls_;
  const Instruction* instruction_ = nullptr;
  Arguments arguments_;
  std::size_t queue_ = 0;
  std::array<Clock, kStreamCount> known_{};
  std::unordered_map<int, Clock> events_;
  Numbering numbering_;
  std::vector<Access> accesses_;
};

std::vector<Breach> races_of(const Program& program, int device_class, Extent extent) {
  Queues queues(program, device_class, extent);
  for (int step = 1; step <= 2 && queues.races.empty(); ++step) queues.run_step(step);
  // Where periods are left out, less is known than in fact: a race may be none.
  if (queues.races.empty() || !queues.leaves_out()) return std::move(queues.races);
  return races_of(program, device_class, Extent::all);
}

}  // namespace

std::vector<Breach> find_races(const Program& program) {
  std::vector<Breach> races;
  for (int c = 0; c < static_cast<int>(program.classes.size()); ++c) {
    std::ranges::move(races_of(program, c, Extent::shortened), std::back_inserter(races));
  }
  return races;
}

}  // namespace placet
