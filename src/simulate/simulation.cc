#include "simulate/simulation.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "simulate/flows.h"
#include "simulate/pass_steps.h"
#include "simulate/ports.h"
#include "simulate/step_record.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr int kWorkKinds = 4;

/// A message of a state that waits for its turn on its lane.
struct Issued {
  const MessagePart* message = nullptr;
  double time = 0;
  double bytes = 0;
};

/// One lane of messages of states of a device: one after the other.
struct MessageQueue {
  std::deque<Issued> waiting;
  bool busy = false;
  std::size_t done = 0;  // since the pass began
};

/// Whom the end of a flow concerns.
struct Duty {
  enum class Kind : std::uint8_t { step, gather, reduction, message };
  Kind kind = Kind::step;
  int stage = 0;
  Slice slice;
  std::int64_t cell = -1;  // of a message between stages
  bool forward = true;
};

struct Device {
  std::vector<Work> order;
  std::vector<PipelineSeat> seats;                                   // by chunk
  std::vector<std::array<std::vector<PassStep>, kWorkKinds>> steps;  // by chunk, kind of work
  std::vector<std::array<std::int64_t, kWorkKinds>> last;  // place in the order of the last
  std::size_t next = 0;                                    // in the order
  std::size_t step = 0;                                    // in the pass
  bool in_pass = false;
  bool sending = false;     // it waits for its own message
  bool blocked = false;     // in a step, or before one that it waits for
  double waits_since = -1;  // for messages of states
  double host_clock = 0;    // until when its host has launched
  std::int64_t units_reduced = 0;
  MessageQueue gathers, reductions;
  std::array<std::deque<std::int64_t>, 2> outbox;  // cells to send: forward, backward
  std::array<bool, 2> outbox_busy{};
  double done = -1;      // its order of work
  double finished = -1;  // and its reductions
};

/// What computation loses to messages beside it, by device.
std::vector<double> shares_of(const StepParts& parts) {
  std::vector<double> out;
  for (std::size_t s = 0; s < parts.stages(); ++s) out.push_back(parts.stage(s).message_share);
  return out;
}

class StepRun {
 public:
  StepRun(const StepParts& parts, const SimulateChoice& choice)
      : parts_(parts),
        degree_(static_cast<std::int64_t>(parts.stages())),
        ports_(parts),
        clock_(shares_of(parts), ports_.count()),
        record_(parts, choice) {
    const auto cells = at(pipeline_cells(parts.form));
    sent_[0].assign(cells, -1);
    sent_[1].assign(cells, -1);
    arrived_[0].assign(cells, 0);
    arrived_[1].assign(cells, 0);
    devices_.resize(parts.stages());
    for (std::int64_t d = 0; d < degree_; ++d) set_up(d);
  }

  Simulation run() {
    for (std::int64_t d = 0; d < degree_; ++d) advance(d);
    wake();
    while (const std::optional<FlowEnd> end = clock_.next()) finish(end->flow);
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      ensure(devices_[d].finished >= 0, "the events of a step do not deadlock");
      record_.simulation.stages[d].finished = seconds(devices_[d].finished);
    }
    record_.end_step();
    add_links();
    return std::move(record_.simulation);
  }

 private:
  // --- set up

  void set_up(std::int64_t d) {
    Device& device = devices_[at(d)];
    const StageParts& stage = parts_.stage(at(d));
    device.order = work_of(parts_.form, d);
    device.steps.resize(stage.chunks.size());
    device.last.resize(stage.chunks.size());
    const PassStepsChoice how{.whole = !record_.simulation.by_unit,
                              .slower = record_.slower(at(d))};
    for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
      const auto chunk = static_cast<std::int64_t>(c);
      device.seats.push_back(seat_of(parts_.form, d, chunk));
      host_of_[device.seats.back().first_cell] = d;
    }
    for (std::size_t i = 0; i < device.order.size(); ++i) {
      const Work& work = device.order[i];
      const auto kind = static_cast<std::size_t>(work.kind);
      device.last[at(work.chunk)][kind] = static_cast<std::int64_t>(i);
      std::vector<PassStep>& steps = device.steps[at(work.chunk)][kind];
      if (steps.empty()) steps = pass_steps(parts_, stage, at(work.chunk), work.kind, how);
    }
  }

  // --- a device

  /// Goes on with the order of work until the device has to wait for something.
  void advance(std::int64_t d) {
    Device& device = devices_[at(d)];
    while (!device.blocked && device.done < 0) {
      if (!device.in_pass && !begin_pass(d)) return;
      if (device.step < steps_of(device).size()) {
        take_step(d);
      } else {
        end_pass(d);
      }
    }
  }

  const std::vector<PassStep>& steps_of(const Device& device) const {
    const Work& work = device.order[device.next];
    return device.steps[at(work.chunk)][static_cast<std::size_t>(work.kind)];
  }

  /// False: its input is not there yet, or there is no more work.
  bool begin_pass(std::int64_t d) {
    Device& device = devices_[at(d)];
    if (device.next == device.order.size()) {
      end_work(d);
      return false;
    }
    if (!is_ready(device)) return false;
    device.in_pass = true;
    device.step = 0;
    device.gathers.done = 0;
    device.waits_since = -1;
    device.host_clock = std::max(device.host_clock, clock_.now());
    return true;
  }

  bool is_ready(const Device& device) const {
    const Work& work = device.order[device.next];
    const PipelineSeat& seat = device.seats[at(work.chunk)];
    const std::int64_t cell = seat.first_cell + work.micro_batch;
    const bool forward = work.kind == Work::Kind::forward;
    if (seat.receives(work.kind)) return arrived_[forward ? 0 : 1][at(cell)] != 0;
    // The last stage's backward begins with what its forward has made.
    return forward || work.kind == Work::Kind::backward_weight || sent_[0][at(cell)] >= 0;
  }

  void take_step(std::int64_t d) {
    Device& device = devices_[at(d)];
    const PassStep& step = steps_of(device)[device.step];
    switch (step.kind) {
      case PassStep::Kind::run:
        run_step(d, step);
        return;
      case PassStep::Kind::issue:
        issue(d, device.gathers, {step.message, step.time, step.bytes});
        break;
      case PassStep::Kind::await:
        if (device.gathers.done < step.pieces) {
          if (device.waits_since < 0) device.waits_since = clock_.now();
          device.blocked = true;
          return;
        }
        end_wait(d);
        break;
      case PassStep::Kind::reduced:
        if (is_last(device)) issue_reductions(d, 1);
        break;
    }
    ++device.step;
  }

  /// Whether the pass is the last of its kind on its chunk.
  bool is_last(const Device& device) const {
    const Work& work = device.order[device.next];
    return device.last[at(work.chunk)][static_cast<std::size_t>(work.kind)] ==
           static_cast<std::int64_t>(device.next);
  }

  void end_wait(std::int64_t d) {
    Device& device = devices_[at(d)];
    if (device.waits_since < 0) return;
    Slice slice = slice_of(d, Doing::gather);
    slice.begin = seconds(device.waits_since);
    device.waits_since = -1;
    record(slice);
  }

  Slice slice_of(std::int64_t d, Doing doing) const {
    const Device& device = devices_[at(d)];
    Slice slice{.stage = static_cast<int>(d), .doing = doing, .begin = seconds(clock_.now())};
    if (device.next < device.order.size()) {
      slice.chunk = static_cast<int>(device.order[device.next].chunk);
      slice.micro_batch = device.order[device.next].micro_batch;
    }
    return slice;
  }

  /// Alike stages share their steps; the positions of their units differ.
  int unit_of(std::int64_t d, const PassStep& step) const {
    if (step.unit < 0 || at(d) >= parts_.shift.size()) return step.unit;
    const Device& device = devices_[at(d)];
    return step.unit + parts_.shift[at(d)][at(device.order[device.next].chunk)];
  }

  void run_step(std::int64_t d, const PassStep& step) {
    Device& device = devices_[at(d)];
    record_host(d, step);
    if (step.time <= 0) {
      ++device.step;
      return;
    }
    device.blocked = true;
    Slice slice = slice_of(d, step.doing);
    slice.unit = unit_of(d, step);
    slice.axes = step.axes;
    const bool backward = device.order[device.next].kind != Work::Kind::forward;
    start({.role = FlowStart::Role::pass,
           .device = static_cast<int>(d),
           .work = step.time,
           .lets_reductions = backward && step.doing != Doing::launch && is_last(device),
           .ports =
               step.doing == Doing::collective ? ports_.of(d, step.axes) : ports_.beside(d, step)},
          {.kind = Duty::Kind::step, .stage = static_cast<int>(d), .slice = slice});
  }

  void end_pass(std::int64_t d) {
    Device& device = devices_[at(d)];
    const Work work = device.order[device.next];
    const PipelineSeat& seat = device.seats[at(work.chunk)];
    const std::int64_t cell = seat.first_cell + work.micro_batch;
    device.in_pass = false;
    if (work.kind != Work::Kind::backward_weight) {
      const bool forward = work.kind == Work::Kind::forward;
      sent_[forward ? 0 : 1][at(cell)] = clock_.now();
      if (seat.sends(work.kind)) send(d, cell, forward);
    }
    ++device.next;
  }

  void end_work(std::int64_t d) {
    Device& device = devices_[at(d)];
    device.done = clock_.now();
    const StageParts& stage = parts_.stage(at(d));
    issue_reductions(d, std::max<std::int64_t>(1, stage.units) - device.units_reduced);
    clock_.release(static_cast<int>(d));
    finish_device(d);
  }

  void finish_device(std::int64_t d) {
    Device& device = devices_[at(d)];
    if (device.done < 0 || device.finished >= 0) return;
    if (device.reductions.busy || !device.reductions.waiting.empty()) return;
    device.finished = clock_.now();
    if (device.finished > device.done) {
      Slice slice{.stage = static_cast<int>(d), .doing = Doing::reduce};
      slice.begin = seconds(device.done);
      record(slice);
    }
  }

  // --- messages of states

  void issue_reductions(std::int64_t d, std::int64_t units) {
    Device& device = devices_[at(d)];
    const StageParts& stage = parts_.stage(at(d));
    const auto all = static_cast<double>(std::max<std::int64_t>(1, stage.units));
    if (!parts_.reductions_beside && device.done < 0) return;
    if (units <= 0) return;
    device.units_reduced += units;
    const double part = static_cast<double>(units) / all;
    for (const MessagePart& message : stage.reduce) {
      issue(d, device.reductions,
            {&message, in_seconds(message.time) * part,
             static_cast<double>(in_bytes(message.bytes)) * part});
    }
  }

  void issue(std::int64_t d, MessageQueue& queue, Issued message) {
    queue.waiting.push_back(message);
    start_message(d, queue);
  }

  void start_message(std::int64_t d, MessageQueue& queue) {
    while (!queue.busy && !queue.waiting.empty()) {
      const Issued next = queue.waiting.front();
      queue.waiting.pop_front();
      if (next.time <= 0) {
        ++queue.done;
        continue;
      }
      queue.busy = true;
      const bool reduction = &queue == &devices_[at(d)].reductions;
      Slice slice = slice_of(d, reduction ? Doing::reduce : Doing::gather);
      slice.lane = reduction ? Lane::reductions : Lane::gathers;
      slice.axes = next.message->axes;
      slice.what = next.message->what;
      slice.bytes = next.bytes;
      start({.role = reduction ? FlowStart::Role::reduction : FlowStart::Role::beside,
             .device = static_cast<int>(d),
             .work = next.time,
             .ports = ports_.of(d, next.message->axes)},
            {.kind = reduction ? Duty::Kind::reduction : Duty::Kind::gather,
             .stage = static_cast<int>(d),
             .slice = slice});
    }
  }

  // --- messages between stages

  /// The device that computes next with what was sent from `cell`.
  std::int64_t receiver(std::int64_t cell, bool forward) const {
    const std::int64_t m = parts_.form.micro_batches;
    return host_of_.at((cell / m + (forward ? 1 : -1)) * m);
  }

  void send(std::int64_t d, std::int64_t cell, bool forward) {
    Device& device = devices_[at(d)];
    if (in_seconds(parts_.message) <= 0) {
      arrive(cell, forward);
      return;
    }
    device.sending = parts_.sender_waits;
    device.blocked = device.blocked || device.sending;
    device.outbox[forward ? 0 : 1].push_back(cell);
    start_sending(d, forward);
  }

  void start_sending(std::int64_t d, bool forward) {
    Device& device = devices_[at(d)];
    const std::size_t way = forward ? 0 : 1;
    if (device.outbox_busy[way] || device.outbox[way].empty()) return;
    const std::int64_t cell = device.outbox[way].front();
    device.outbox[way].pop_front();
    device.outbox_busy[way] = true;
    Slice slice{.stage = static_cast<int>(d),
                .lane = forward ? Lane::next : Lane::previous,
                .doing = Doing::send,
                .micro_batch = cell % parts_.form.micro_batches,
                .what = forward ? "activations" : "gradients",
                .bytes = static_cast<double>(in_bytes(parts_.message_bytes)),
                .begin = seconds(clock_.now())};
    start({.device = static_cast<int>(d),
           .work = in_seconds(parts_.message),
           .ports = ports_.between(d, receiver(cell, forward))},
          {.kind = Duty::Kind::message,
           .stage = static_cast<int>(d),
           .slice = slice,
           .cell = cell,
           .forward = forward});
  }

  void arrive(std::int64_t cell, bool forward) {
    const std::int64_t m = parts_.form.micro_batches;
    arrived_[forward ? 0 : 1][at(cell + (forward ? m : -m))] = 1;
    woken_.push_back(receiver(cell, forward));
  }

  // --- events

  void start(FlowStart flow, const Duty& duty) {
    const int number = clock_.start(std::move(flow));
    if (at(number) >= duties_.size()) duties_.resize(at(number) + 1);
    duties_[at(number)] = duty;
  }

  void finish(int flow) {
    const Duty duty = duties_[at(flow)];
    const std::int64_t d = duty.stage;
    Device& device = devices_[at(d)];
    record(duty.slice);
    switch (duty.kind) {
      case Duty::Kind::step:
        device.blocked = false;
        ++device.step;
        break;
      case Duty::Kind::gather:
        device.gathers.busy = false;
        ++device.gathers.done;
        start_message(d, device.gathers);
        if (device.waits_since >= 0) device.blocked = false;
        break;
      case Duty::Kind::reduction:
        device.reductions.busy = false;
        start_message(d, device.reductions);
        finish_device(d);
        break;
      case Duty::Kind::message:
        end_message(duty);
        break;
    }
    advance(d);
    wake();
  }

  /// Devices whose input has arrived.
  void wake() {
    while (!woken_.empty()) {
      const std::int64_t other = woken_.back();
      woken_.pop_back();
      advance(other);
    }
  }

  void end_message(const Duty& duty) {
    Device& device = devices_[at(duty.stage)];
    device.outbox_busy[duty.forward ? 0 : 1] = false;
    arrive(duty.cell, duty.forward);
    if (device.sending) {
      device.sending = false;
      device.blocked = false;
      Slice waited = duty.slice;
      waited.lane = Lane::compute;
      record(waited);
    }
    start_sending(duty.stage, duty.forward);
  }

  // --- what is kept

  /// Of something that ends now.
  void record(Slice slice) {
    slice.end = seconds(clock_.now());
    record_.keep(slice);
  }

  void record_host(std::int64_t d, const PassStep& step) {
    if (step.host <= 0) return;
    Slice slice = slice_of(d, Doing::launch);
    double& launched = devices_[at(d)].host_clock;
    slice.lane = Lane::host;
    slice.unit = unit_of(d, step);
    slice.begin = seconds(launched);
    launched += step.host;
    slice.end = seconds(launched);
    record_.keep(slice);
  }

  void add_links() {
    for (std::int64_t s = 0; s < degree_; ++s) {
      for (int l = 0; l < ports_.links(); ++l) {
        const double busy =
            std::max(clock_.used(ports_.out_of(s, l)), clock_.used(ports_.into(s, l)));
        if (busy > 0) record_.simulation.links.push_back({static_cast<int>(s), l, seconds(busy)});
      }
    }
  }

  const StepParts& parts_;
  std::int64_t degree_;
  Ports ports_;
  FlowClock clock_;
  StepRecord record_;
  std::vector<Device> devices_;
  std::vector<Duty> duties_;  // by flow
  std::array<std::vector<double>, 2> sent_;
  std::array<std::vector<char>, 2> arrived_;
  std::map<std::int64_t, std::int64_t> host_of_;  // device by first cell of a virtual stage
  std::vector<std::int64_t> woken_;
};

}  // namespace

std::string_view name_of(Doing doing) {
  static constexpr std::array<std::string_view, kDoingCount> kNames = {
      "forward", "recomputation", "backward", "weights", "collective",   "gather", "launch",
      "send",    "reduction",     "wait",     "update",  "after_update", "host"};
  return kNames[static_cast<std::size_t>(doing)];
}

std::string_view name_of(Lane lane) {
  static constexpr std::array<std::string_view, kLaneCount> kNames = {
      "compute", "host", "gathers", "reductions", "to next stage", "to previous stage"};
  return kNames[static_cast<std::size_t>(lane)];
}

Simulation simulate(const StepParts& parts, const SimulateChoice& choice) {
  return StepRun(parts, choice).run();
}

}  // namespace placet
