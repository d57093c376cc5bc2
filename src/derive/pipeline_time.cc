#include "derive/pipeline_time.h"

#include <algorithm>

#include "units/error.h"

namespace placet {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

constexpr double kNotYet = -1;

/// Works through the orders of all devices, each as far as its inputs are there, round and round.
class PipelineRun {
 public:
  explicit PipelineRun(const PipelineWork& work)
      : work_(work),
        degree_(static_cast<std::int64_t>(work.devices.size())),
        stages_(virtual_stages(work.schedule, degree_)),
        directions_(work.schedule.hosting == Hosting::bidirectional ? 2 : 1),
        message_(in_seconds(work.message)) {
    const auto cells = at(directions_ * stages_ * work.micro_batches);
    forward_.assign(cells, kNotYet);
    backward_.assign(cells, kNotYet);
    clock_.assign(at(degree_), 0);
    sending_.assign(at(degree_), 0);
    busy_.assign(at(degree_), 0);
    next_.assign(at(degree_), 0);
    for (std::int64_t d = 0; d < degree_; ++d) {
      orders_.push_back(order_of_work(work.schedule, degree_, d, work.micro_batches));
    }
  }

  PipelineTime run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::int64_t d = 0; d < degree_; ++d) moved = advance(d) || moved;
    }
    PipelineTime out;
    for (std::int64_t d = 0; d < degree_; ++d) {
      ensure(next_[at(d)] == orders_[at(d)].size(), "the order of work does not deadlock");
      out.busy.push_back(seconds(busy_[at(d)]));
      out.sending.push_back(seconds(sending_[at(d)]));
      out.end.push_back(seconds(clock_[at(d)]));
      out.whole = std::max(out.whole, out.end.back());
    }
    return out;
  }

 private:
  struct Place {
    std::int64_t direction = 0;
    std::int64_t stage = 0;
    std::int64_t micro_batch = 0;
  };

  std::size_t cell(const Place& p, std::int64_t stage) const {
    return at((p.direction * stages_ + stage) * work_.micro_batches + p.micro_batch);
  }

  Place place_of(std::int64_t device, const Work& w) const {
    return {.direction = directions_ == 2 ? w.chunk : 0,
            .stage = hosted_stage(work_.schedule, degree_, device, w.chunk),
            .micro_batch = w.micro_batch};
  }

  bool advance(std::int64_t d) {
    bool moved = false;
    while (next_[at(d)] < orders_[at(d)].size() && start(d, orders_[at(d)][next_[at(d)]])) {
      ++next_[at(d)];
      moved = true;
    }
    return moved;
  }

  /// Runs one piece of work if its inputs are there.
  bool start(std::int64_t d, const Work& w) {
    const Place p = place_of(d, w);
    const double ready = ready_at(p, w.kind);
    if (ready < 0) return false;
    const double length = length_of(d, w);
    double& clock = clock_[at(d)];
    clock = std::max(clock, ready) + length;
    busy_[at(d)] += length;
    finish(d, p, w.kind);
    return true;
  }

  double length_of(std::int64_t d, const Work& w) const {
    const ChunkTime& t = work_.devices[at(d)][at(w.chunk)];
    switch (w.kind) {
      case Work::Kind::forward:
        return in_seconds(t.forward);
      case Work::Kind::backward:
        return in_seconds(t.backward);
      case Work::Kind::backward_input:
        return in_seconds(t.backward - t.backward_weight);
      case Work::Kind::backward_weight:
        return in_seconds(t.backward_weight);
    }
    return 0;
  }

  /// When the input of the work is on its device; negative: not known yet.
  double ready_at(const Place& p, Work::Kind kind) const {
    if (kind == Work::Kind::backward_weight) return 0;
    if (kind == Work::Kind::forward) {
      return p.stage == 0 ? 0 : arrived(forward_[cell(p, p.stage - 1)]);
    }
    if (p.stage + 1 == stages_) return forward_[cell(p, p.stage)];
    return arrived(backward_[cell(p, p.stage + 1)]);
  }

  double arrived(double sent) const { return sent < 0 ? sent : sent + message_; }

  void finish(std::int64_t d, const Place& p, Work::Kind kind) {
    if (kind == Work::Kind::backward_weight) return;
    const bool forward = kind == Work::Kind::forward;
    (forward ? forward_ : backward_)[cell(p, p.stage)] = clock_[at(d)];
    const bool sends = forward ? p.stage + 1 < stages_ : p.stage > 0;
    if (!sends || !work_.sender_waits) return;
    clock_[at(d)] += message_;
    busy_[at(d)] += message_;
    sending_[at(d)] += message_;
  }

  const PipelineWork& work_;
  std::int64_t degree_;
  std::int64_t stages_;
  std::int64_t directions_;
  double message_;
  std::vector<std::vector<Work>> orders_;
  std::vector<std::size_t> next_;
  std::vector<double> forward_, backward_;  // when done, by direction, stage, micro-batch
  std::vector<double> clock_, busy_, sending_;
};

/// Forward and backward of every virtual stage; of two directions, whose stages are the same, the
/// shorter one.
std::vector<ChunkTime> stage_times(const PipelineWork& work) {
  const auto degree = static_cast<std::int64_t>(work.devices.size());
  std::vector<ChunkTime> stages(at(virtual_stages(work.schedule, degree)));
  std::vector<bool> known(stages.size(), false);
  for (std::int64_t d = 0; d < degree; ++d) {
    for (std::size_t c = 0; c < work.devices[at(d)].size(); ++c) {
      const std::size_t s =
          at(hosted_stage(work.schedule, degree, d, static_cast<std::int64_t>(c)));
      const ChunkTime& own = work.devices[at(d)][c];
      ChunkTime& least = stages[s];
      least.forward = known[s] ? std::min(least.forward, own.forward) : own.forward;
      least.backward = known[s] ? std::min(least.backward, own.backward) : own.backward;
      known[s] = true;
    }
  }
  return stages;
}

bool splits_backward(Order order) {
  switch (order) {
    case Order::split_single:
    case Order::split_vee:
    case Order::bidirectional_split:
      return true;
    case Order::all_forward:
    case Order::one_forward_one_backward:
    case Order::interleaved:
      return false;
  }
  return false;
}

}  // namespace

Seconds least_pipeline_time(const PipelineWork& work) {
  const auto degree = static_cast<std::int64_t>(work.devices.size());
  const std::vector<ChunkTime> stages = stage_times(work);
  const bool both_ways = work.schedule.hosting == Hosting::bidirectional;
  const double m = static_cast<double>(work.micro_batches);
  Seconds longest;
  for (std::int64_t d = 0; d < degree; ++d) {
    std::int64_t first = virtual_stages(work.schedule, degree);
    Seconds own;
    for (std::size_t c = 0; c < work.devices[at(d)].size(); ++c) {
      const ChunkTime& chunk = work.devices[at(d)][c];
      own += (chunk.forward + chunk.backward) * (both_ways ? m / 2 : m);
      first = std::min(first, hosted_stage(work.schedule, degree, d, static_cast<std::int64_t>(c)));
    }
    for (std::int64_t s = 0; s < first; ++s) {
      own += stages[at(s)].forward;
      if (!splits_backward(work.schedule.order)) own += stages[at(s)].backward;
    }
    longest = std::max(longest, own);
  }
  return longest;
}

PipelineTime pipeline_time(const PipelineWork& work) { return PipelineRun(work).run(); }

}  // namespace placet
