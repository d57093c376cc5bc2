#include "schedule/moments.h"

#include <algorithm>

#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

/// As many micro-batches as the order needs to show every moment: those that fill the pipeline, and
/// a round of its steady part; an odd number where the step has one.
std::int64_t telling_micro_batches(const Schedule& schedule, std::int64_t degree,
                                   std::int64_t micro_batches) {
  const Order order = feasible_order(schedule, degree);
  if (!splits_backward(order) || order == Order::split_table) return micro_batches;
  const std::int64_t enough = 2 * degree + 2;
  return micro_batches <= enough ? micro_batches : enough + micro_batches % 2;
}

bool is_forward(const Work& work) { return work.kind == Work::Kind::forward; }
bool moves_on(const Work& work) { return work.kind != Work::Kind::backward_weight; }

/// A value, or a gradient, by the work that it is for: its chunk and micro-batch there.
using Input = Work;

/// What goes from device to device, in the order in which it is sent, and what of it is there.
class Arrivals {
 public:
  Arrivals(const Schedule& schedule, std::int64_t degree, std::int64_t micro_batches)
      : schedule_(schedule),
        degree_(degree),
        stages_(virtual_stages(schedule, degree)),
        queues_(at(degree * degree)),
        taken_(at(degree * degree), 0) {
    there_.resize(at(2 * schedule.chunks * micro_batches), false);
    micro_batches_ = micro_batches;
  }

  /// Device `from` has done a piece of work.
  void send(std::int64_t from, const Work& work) {
    const std::int64_t stage = hosted_stage(schedule_, degree_, from, work.chunk);
    const std::int64_t next = is_forward(work) ? stage + 1 : stage - 1;
    if (!moves_on(work) || next < 0 || next >= stages_) return;
    const StageHost host = host_of(schedule_, degree_, next, work.chunk);
    const Work::Kind kind = is_forward(work) ? Work::Kind::forward : Work::Kind::backward;
    queue(from, host.device).push_back({kind, host.chunk, work.micro_batch});
  }

  /// Begins with the work of a device: nothing is there.
  void begin(std::int64_t device) {
    device_ = device;
    waiting_ = 0;
    std::fill(there_.begin(), there_.end(), false);
  }

  /// The device's next piece of work begins, and takes its input; those sent before it arrive. From
  /// the device itself they have arrived when they are made.
  void take(const Work& work) {
    const std::int64_t stage = hosted_stage(schedule_, degree_, device_, work.chunk);
    const std::int64_t before = is_forward(work) ? stage - 1 : stage + 1;
    if (!moves_on(work) || before < 0 || before >= stages_) return;
    const StageHost host = host_of(schedule_, degree_, before, work.chunk);
    const Work::Kind kind = is_forward(work) ? Work::Kind::forward : Work::Kind::backward;
    const Input needed{kind, work.chunk, work.micro_batch};
    if (host.device != device_) receive(host.device, needed);
    --waiting_;
  }

  /// The device has done it: what it hands to itself is there.
  void give(const Work& work) {
    const std::int64_t stage = hosted_stage(schedule_, degree_, device_, work.chunk);
    const std::int64_t next = is_forward(work) ? stage + 1 : stage - 1;
    if (!moves_on(work) || next < 0 || next >= stages_) return;
    if (host_of(schedule_, degree_, next, work.chunk).device == device_) ++waiting_;
  }

  std::int64_t waiting() const { return waiting_; }

 private:
  std::vector<Input>& queue(std::int64_t from, std::int64_t to) {
    return queues_[at(from * degree_ + to)];
  }

  std::size_t place_of(const Input& input) const {
    const std::int64_t way = is_forward(input) ? 0 : 1;
    return at((input.chunk * 2 + way) * micro_batches_ + input.micro_batch);
  }

  void receive(std::int64_t from, const Input& needed) {
    const std::vector<Input>& sent = queue(from, device_);
    std::size_t& next = taken_[at(from * degree_ + device_)];
    while (!there_[place_of(needed)]) {
      ensure(next < sent.size(), "what is needed has been sent");
      there_[place_of(sent[next++])] = true;
      ++waiting_;
    }
  }

  const Schedule& schedule_;
  std::int64_t degree_;
  std::int64_t stages_;
  std::int64_t micro_batches_ = 0;
  std::vector<std::vector<Input>> queues_;  // by sender and receiver
  std::vector<std::size_t> taken_;          // of each
  std::int64_t device_ = 0;
  std::int64_t waiting_ = 0;  // inputs that are there, and not taken
  std::vector<bool> there_;   // by input of the device, also once it is taken
};

bool covers(const std::vector<std::int64_t>& more, const std::vector<std::int64_t>& less) {
  return std::ranges::equal(more, less, std::ranges::greater_equal());
}

bool covers(const WorkMoment& more, const WorkMoment& less) {
  return more.kind == less.kind && more.chunk == less.chunk && covers(more.held, less.held) &&
         covers(more.waiting, less.waiting) && more.arrived >= less.arrived;
}

void add(const WorkMoment& now, std::vector<WorkMoment>& all) {
  const auto covered = [&](const WorkMoment& other) { return covers(other, now); };
  if (std::ranges::any_of(all, covered)) return;
  std::erase_if(all, [&](const WorkMoment& other) { return covers(now, other); });
  all.push_back(now);
}

std::vector<WorkMoment> moments_of_order(const std::vector<Work>& order, std::int64_t chunks,
                                         Arrivals& arrivals) {
  WorkMoment now{.held = std::vector<std::int64_t>(at(chunks), 0),
                 .waiting = std::vector<std::int64_t>(at(chunks), 0)};
  std::vector<WorkMoment> all;
  for (const Work& work : order) {
    now.kind = work.kind;
    now.chunk = work.chunk;
    std::int64_t& held = now.held[at(work.chunk)];
    std::int64_t& waiting = now.waiting[at(work.chunk)];
    if (work.kind == Work::Kind::backward_weight) --waiting;
    if (work.kind == Work::Kind::backward || work.kind == Work::Kind::backward_input) --held;
    arrivals.take(work);
    now.arrived = arrivals.waiting();
    add(now, all);
    arrivals.give(work);
    if (work.kind == Work::Kind::forward) ++held;
    if (work.kind == Work::Kind::backward_input) ++waiting;
  }
  return all;
}

}  // namespace

PipelineMoments fullest_moments(const Schedule& schedule, std::int64_t degree,
                                std::int64_t micro_batches) {
  const std::int64_t telling = telling_micro_batches(schedule, degree, micro_batches);
  std::vector<std::vector<Work>> orders;
  Arrivals arrivals(schedule, degree, telling);
  for (std::int64_t d = 0; d < degree; ++d) {
    orders.push_back(order_of_work(schedule, degree, d, telling));
    for (const Work& work : orders.back()) arrivals.send(d, work);
  }
  PipelineMoments out;
  for (std::int64_t d = 0; d < degree; ++d) {
    arrivals.begin(d);
    out.push_back(moments_of_order(orders[at(d)], schedule.chunks, arrivals));
  }
  return out;
}

}  // namespace placet
