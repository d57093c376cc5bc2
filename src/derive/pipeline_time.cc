#include "derive/pipeline_time.h"

#include <algorithm>
#include <array>

#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr double kNotYet = -1;

/// Works through the orders of all devices, each as far as its inputs are there, round and round.
class PipelineRun {
 public:
  explicit PipelineRun(const PipelineWork& work)
      : work_(work), form_(work.form), message_(in_seconds(work.message)) {
    const auto cells = at(pipeline_cells(form_));
    forward_.assign(cells, kNotYet);
    backward_.assign(cells, kNotYet);
    devices_.resize(work.devices.size());
    for (std::int64_t d = 0; d < form_.degree; ++d) {
      Device& device = devices_[at(d)];
      device.order = work_of(form_, d);
      device.seats.reserve(work.devices[at(d)].size());
      for (std::size_t c = 0; c < work.devices[at(d)].size(); ++c) {
        device.seats.push_back(make_seat(d, static_cast<std::int64_t>(c)));
      }
    }
  }

  PipelineTime run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (Device& device : devices_) moved = advance(device) || moved;
    }
    PipelineTime out;
    for (const Device& device : devices_) {
      ensure(device.next == device.order.size(), "the order of work does not deadlock");
      out.busy.push_back(seconds(device.busy));
      out.sending.push_back(seconds(device.sending));
      out.end.push_back(seconds(device.clock));
      out.whole = std::max(out.whole, out.end.back());
    }
    return out;
  }

 private:
  /// A chunk on its device: where its virtual stage's times stand, and how long its work takes.
  struct Seat : PipelineSeat {
    std::array<double, 4> length{};  // by Work::Kind
  };

  struct Device {
    std::vector<Work> order;
    std::vector<Seat> seats;  // by chunk
    std::size_t next = 0;
    double clock = 0;
    double busy = 0;
    double sending = 0;
  };

  Seat make_seat(std::int64_t device, std::int64_t chunk) const {
    const ChunkTime& t = work_.devices[at(device)][at(chunk)];
    return {seat_of(form_, device, chunk),
            {in_seconds(t.forward), in_seconds(t.backward),
             in_seconds(t.backward - t.backward_weight), in_seconds(t.backward_weight)}};
  }

  bool advance(Device& device) {
    const std::size_t before = device.next;
    while (device.next < device.order.size() && start(device, device.order[device.next])) {
      ++device.next;
    }
    return device.next > before;
  }

  /// Runs one piece of work if its inputs are there.
  bool start(Device& device, const Work& w) {
    const Seat& seat = device.seats[at(w.chunk)];
    const std::int64_t cell = seat.first_cell + w.micro_batch;
    const double ready = ready_at(seat, cell, w.kind);
    if (ready < 0) return false;
    const double length = seat.length[static_cast<std::size_t>(w.kind)];
    device.clock = std::max(device.clock, ready) + length;
    device.busy += length;
    finish(device, seat, cell, w.kind);
    return true;
  }

  /// When the input of the work is on its device; negative: not known yet.
  double ready_at(const Seat& seat, std::int64_t cell, Work::Kind kind) const {
    if (kind == Work::Kind::backward_weight) return 0;
    if (kind == Work::Kind::forward) {
      return seat.receives(kind) ? arrived(forward_[at(cell - form_.micro_batches)]) : 0;
    }
    return seat.receives(kind) ? arrived(backward_[at(cell + form_.micro_batches)])
                               : forward_[at(cell)];
  }

  double arrived(double sent) const { return sent < 0 ? sent : sent + message_; }

  void finish(Device& device, const Seat& seat, std::int64_t cell, Work::Kind kind) {
    if (kind == Work::Kind::backward_weight) return;
    const bool forward = kind == Work::Kind::forward;
    (forward ? forward_ : backward_)[at(cell)] = device.clock;
    if (!seat.sends(kind) || !work_.sender_waits) return;
    device.clock += message_;
    device.busy += message_;
    device.sending += message_;
  }

  const PipelineWork& work_;
  const PipelineForm& form_;
  double message_;
  std::vector<Device> devices_;
  std::vector<double> forward_, backward_;  // when done, by direction, stage, micro-batch
};

Seconds backward_of(const PipelineForm& form, const ChunkTime& chunk, std::int64_t stage) {
  return form.backward.runs_in(stage) ? chunk.backward : Seconds();
}

/// Forward and backward of every virtual stage; of two directions, whose stages are the same, the
/// shorter one.
std::vector<ChunkTime> stage_times(const PipelineWork& work) {
  const PipelineForm& form = work.form;
  std::vector<ChunkTime> stages(at(virtual_stages(form.schedule, form.degree)));
  std::vector<bool> known(stages.size(), false);
  for (std::int64_t d = 0; d < form.degree; ++d) {
    for (std::size_t c = 0; c < work.devices[at(d)].size(); ++c) {
      const std::size_t s =
          at(hosted_stage(form.schedule, form.degree, d, static_cast<std::int64_t>(c)));
      const ChunkTime& own = work.devices[at(d)][c];
      const Seconds backward = backward_of(form, own, static_cast<std::int64_t>(s));
      ChunkTime& least = stages[s];
      least.forward = known[s] ? std::min(least.forward, own.forward) : own.forward;
      least.backward = known[s] ? std::min(least.backward, backward) : backward;
      known[s] = true;
    }
  }
  return stages;
}

}  // namespace

PipelineSeat seat_of(const PipelineForm& form, std::int64_t device, std::int64_t chunk) {
  const std::int64_t stages = virtual_stages(form.schedule, form.degree);
  const std::int64_t stage = hosted_stage(form.schedule, form.degree, device, chunk);
  const std::int64_t direction = form.schedule.hosting == Hosting::bidirectional ? chunk : 0;
  return {.first_cell = (direction * stages + stage) * form.micro_batches,
          .first = stage == 0,
          .last = stage + 1 == stages,
          .hands_back = form.backward.hands_back(stage)};
}

std::int64_t pipeline_cells(const PipelineForm& form) {
  const std::int64_t directions = form.schedule.hosting == Hosting::bidirectional ? 2 : 1;
  return directions * virtual_stages(form.schedule, form.degree) * form.micro_batches;
}

std::vector<Work> work_of(const PipelineForm& form, std::int64_t device) {
  std::vector<Work> out = order_of_work(form.schedule, form.degree, device, form.micro_batches);
  std::erase_if(out, [&](const Work& work) {
    return work.kind != Work::Kind::forward &&
           !form.backward.runs_in(hosted_stage(form.schedule, form.degree, device, work.chunk));
  });
  return out;
}

Seconds least_pipeline_time(const PipelineWork& work) {
  const PipelineForm& form = work.form;
  const std::vector<ChunkTime> stages = stage_times(work);
  const bool both_ways = form.schedule.hosting == Hosting::bidirectional;
  const double m = static_cast<double>(form.micro_batches);
  Seconds longest;
  for (std::int64_t d = 0; d < form.degree; ++d) {
    std::int64_t first = virtual_stages(form.schedule, form.degree);
    Seconds own;
    for (std::size_t c = 0; c < work.devices[at(d)].size(); ++c) {
      const ChunkTime& chunk = work.devices[at(d)][c];
      const std::int64_t stage =
          hosted_stage(form.schedule, form.degree, d, static_cast<std::int64_t>(c));
      own += (chunk.forward + backward_of(form, chunk, stage)) * (both_ways ? m / 2 : m);
      first = std::min(first, stage);
    }
    for (std::int64_t s = 0; s < first; ++s) {
      own += stages[at(s)].forward;
      if (!splits_backward(form.schedule.order)) own += stages[at(s)].backward;
    }
    longest = std::max(longest, own);
  }
  return longest;
}

PipelineTime pipeline_time(const PipelineWork& work) { return PipelineRun(work).run(); }

}  // namespace placet
