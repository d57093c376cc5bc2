#include "schedule/schedule.h"

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "units/checked.h"
#include "units/error.h"
#include "units/shares.h"

namespace placet {
namespace {

/// A device in its pipeline, and how much work the step has.
struct Seat {
  std::int64_t degree = 1;
  std::int64_t device = 0;
  std::int64_t micro_batches = 0;
};

/// Micro-batches that go through chunk `chunk`: all, or those of its direction.
std::int64_t micro_batches_of(const Schedule& schedule, const Seat& seat, std::int64_t chunk) {
  if (schedule.hosting != Hosting::bidirectional) return seat.micro_batches;
  return share_of(seat.micro_batches, 2, chunk);
}

std::int64_t group_of(const Schedule& schedule, std::int64_t degree) {
  return schedule.group > 0 ? schedule.group : degree;
}

/// Collects the order of work. Orders are written for as many micro-batches as they need to fill;
/// work on those beyond the step's is left out, which breaks no dependency, as work depends only on
/// work on the same micro-batch.
class WorkList {
 public:
  WorkList(const Schedule& schedule, const Seat& seat) {
    for (std::int64_t c = 0; c < schedule.chunks; ++c) {
      count_.push_back(micro_batches_of(schedule, seat, c));
    }
    forwards_.assign(count_.size(), 0);
    backwards_.assign(count_.size(), 0);
    std::int64_t pieces = 0;
    for (const std::int64_t micro_batches : count_) pieces += kPieces * micro_batches;
    work_.reserve(static_cast<std::size_t>(pieces));
  }

  /// The next forward, or backward, of a chunk.
  void forward(std::int64_t chunk) { add(Work::Kind::forward, chunk, next(forwards_, chunk)); }
  void backward(std::int64_t chunk) { add(Work::Kind::backward, chunk, next(backwards_, chunk)); }
  /// The input's part of the next backward; its weights' part waits in line.
  void backward_input(std::int64_t chunk) {
    const std::int64_t micro_batch = next(backwards_, chunk);
    add(Work::Kind::backward_input, chunk, micro_batch);
    waiting_.push_back({Work::Kind::backward_weight, chunk, micro_batch});
  }
  /// The weights' part that has waited longest, of any chunk or of one.
  void weight() { take_weight(waiting_.begin()); }
  void weight_of(std::int64_t chunk) {
    take_weight(std::ranges::find(waiting_, chunk, &Work::chunk));
  }
  void add(Work::Kind kind, std::int64_t chunk, std::int64_t micro_batch) {
    if (micro_batch >= count_[static_cast<std::size_t>(chunk)]) return;
    work_.push_back({kind, chunk, micro_batch});
  }

  std::vector<Work> take() && { return std::move(work_); }

 private:
  static constexpr std::int64_t kPieces = 3;  // of a micro-batch, at most

  static std::int64_t next(std::vector<std::int64_t>& counters, std::int64_t chunk) {
    return counters[static_cast<std::size_t>(chunk)]++;
  }
  void take_weight(const std::deque<Work>::const_iterator& it) {
    ensure(it != waiting_.end(), "a weights' part follows an input's part");
    add(it->kind, it->chunk, it->micro_batch);
    waiting_.erase(it);
  }

  std::vector<std::int64_t> count_;
  std::vector<std::int64_t> forwards_;
  std::vector<std::int64_t> backwards_;
  std::deque<Work> waiting_;
  std::vector<Work> work_;
};

template <class Step>
void repeat(std::int64_t times, Step step) {
  for (std::int64_t i = 0; i < times; ++i) step(i);
}

void all_forward(const Schedule& schedule, const Seat& seat, WorkList& list) {
  repeat(schedule.chunks, [&](std::int64_t c) {
    repeat(micro_batches_of(schedule, seat, c), [&](std::int64_t) { list.forward(c); });
  });
  repeat(schedule.chunks, [&](std::int64_t i) {
    const std::int64_t c = schedule.chunks - 1 - i;
    repeat(micro_batches_of(schedule, seat, c), [&](std::int64_t) { list.backward(c); });
  });
}

std::int64_t warm_up(const Seat& seat) {
  return std::min(seat.degree - seat.device - 1, seat.micro_batches);
}

void one_forward_one_backward(const Seat& seat, WorkList& list) {
  const std::int64_t warm = warm_up(seat);
  repeat(warm, [&](std::int64_t) { list.forward(0); });
  repeat(seat.micro_batches - warm, [&](std::int64_t) {
    list.forward(0);
    list.backward(0);
  });
  repeat(warm, [&](std::int64_t) { list.backward(0); });
}

// 1F1B whose weights' part lags `device` micro-batches behind the input's: the last device, which
// waits longest at the end, keeps the most work for then, and every device holds as many
// micro-batches as the first (ZB-H1, arXiv:2401.10241 section 2.1).
void split_single(const Seat& seat, WorkList& list) {
  const std::int64_t warm = warm_up(seat);
  const auto backward = [&](std::int64_t i) {
    list.backward_input(0);
    if (i >= seat.device) list.weight();
  };
  repeat(warm, [&](std::int64_t) { list.forward(0); });
  repeat(seat.micro_batches - warm, [&](std::int64_t i) {
    list.forward(0);
    backward(i);
  });
  repeat(warm, [&](std::int64_t i) { backward(seat.micro_batches - warm + i); });
  repeat(std::min(seat.device, seat.micro_batches), [&](std::int64_t) { list.weight(); });
}

/// Micro-batches that the order is written for: those of the step, unless the last group would not
/// fill the pipeline, which would end in a deadlock; then the next multiple of the group.
std::int64_t planned_micro_batches(const Schedule& schedule, const Seat& seat) {
  const std::int64_t group = group_of(schedule, seat.degree);
  const std::int64_t last_group = seat.micro_batches % group;
  const bool fills = last_group == 0 || last_group >= seat.degree;
  return fills ? seat.micro_batches : seat.micro_batches - last_group + group;
}

std::int64_t interleaved_warm_up(const Schedule& schedule, const Seat& seat) {
  const std::int64_t fill = 2 * (seat.degree - seat.device - 1);
  const std::int64_t chunks = (schedule.chunks - 1) * group_of(schedule, seat.degree);
  return std::min(fill + chunks, planned_micro_batches(schedule, seat) * schedule.chunks);
}

// Groups of micro-batches go through chunk after chunk (arXiv:2104.04473 section 2.2; the last
// group may be smaller). Position k of the list of forwards, and of that of backwards.
std::vector<Work> interleaved_table(const Schedule& schedule, const Seat& seat) {
  const std::int64_t group = group_of(schedule, seat.degree);
  const std::int64_t planned = planned_micro_batches(schedule, seat);
  std::vector<Work> table;
  table.reserve(static_cast<std::size_t>(planned * schedule.chunks));
  for (std::int64_t first = 0; first < planned; first += group) {
    const std::int64_t last = std::min(first + group, planned);
    for (std::int64_t c = 0; c < schedule.chunks; ++c) {
      for (std::int64_t m = first; m < last; ++m) table.push_back({Work::Kind::forward, c, m});
    }
  }
  return table;
}

void interleaved(const Schedule& schedule, const Seat& seat, WorkList& list) {
  const std::vector<Work> table = interleaved_table(schedule, seat);
  const auto total = static_cast<std::int64_t>(table.size());
  const std::int64_t warm = interleaved_warm_up(schedule, seat);
  const auto forward = [&](std::int64_t k) {
    const Work& work = table[static_cast<std::size_t>(k)];
    list.add(Work::Kind::forward, work.chunk, work.micro_batch);
  };
  const auto backward = [&](std::int64_t k) {
    const Work& work = table[static_cast<std::size_t>(k)];
    list.add(Work::Kind::backward, schedule.chunks - 1 - work.chunk, work.micro_batch);
  };
  repeat(warm, forward);
  repeat(total - warm, [&](std::int64_t i) {
    forward(warm + i);
    backward(i);
  });
  repeat(warm, [&](std::int64_t i) { backward(total - warm + i); });
}

// Zero bubble over a vee (ZB-V, arXiv:2401.10241 section 6; the same order as in
// https://github.com/pytorch/pytorch, ScheduleZBVZeroBubble). Chunk 0 runs down the devices, chunk
// 1 back up.
void split_vee(const Seat& seat, WorkList& list) {
  const std::int64_t p = seat.degree;
  const std::int64_t d = seat.device;
  const std::int64_t count = std::max(2 * p - 1, seat.micro_batches);
  std::int64_t forwards = 2 * (p - d) - 1 + d;  // of chunk 0, so far
  const auto whole_backward = [&](std::int64_t chunk) {
    list.backward_input(chunk);
    list.weight_of(chunk);
  };
  repeat(2 * (p - d) - 1, [&](std::int64_t) { list.forward(0); });
  repeat(d, [&](std::int64_t) {
    list.forward(1);
    list.forward(0);
  });
  repeat(p - d, [&](std::int64_t) {
    list.forward(1);
    whole_backward(1);
  });
  for (std::int64_t second = p; second < forwards || forwards < count; ++second) {
    if (forwards < count) {
      list.forward(0);
      ++forwards;
    }
    whole_backward(0);
    list.forward(1);
    whole_backward(1);
  }
  repeat(d, [&](std::int64_t) {
    list.backward_input(0);
    list.backward_input(1);
  });
  repeat(p - d, [&](std::int64_t) {
    list.backward_input(0);
    list.weight_of(0);
  });
  repeat(d, [&](std::int64_t) { list.weight_of(1); });
  repeat(d, [&](std::int64_t) { list.weight_of(0); });
}

/// Two streams of work that meet: over a pipeline walked from both ends, or over a vee.
struct Pairing {
  std::int64_t half = 1;   // devices from an end of the pipeline to its middle
  std::int64_t depth = 0;  // of this device, from its end: 0 .. half-1
  std::int64_t count = 0;  // micro-batches of one stream
  std::int64_t near = 0;   // chunk of the stream that enters at the device's own end
  std::int64_t far = 1;    // chunk of the other
};

Pairing pairing_of(const Schedule& schedule, const Seat& seat) {
  if (schedule.hosting != Hosting::bidirectional) {
    return {seat.degree, seat.device, std::max(2 * seat.degree, seat.micro_batches), 0, 1};
  }
  const bool upper = seat.device < seat.degree / 2;
  const std::int64_t count = std::max(seat.degree, largest_share(seat.micro_batches, 2));
  return {seat.degree / 2, upper ? seat.device : seat.degree - 1 - seat.device, count,
          upper ? 0 : 1, upper ? 1 : 0};
}

// DualPipe (arXiv:2412.19437 section 3.2.1, its eight phases as the authors' published code runs
// them): forwards of one stream overlap backwards of the other; near the ends the backward is split
// and the weights' parts fill the gaps.
void bidirectional_split(const Pairing& pair, WorkList& list) {
  const std::int64_t inner = pair.half - pair.depth - 1;
  repeat(2 * inner, [&](std::int64_t) { list.forward(pair.near); });
  repeat(pair.depth + 1, [&](std::int64_t) {
    list.forward(pair.near);
    list.forward(pair.far);
  });
  repeat(inner, [&](std::int64_t) {
    list.backward_input(pair.far);
    list.weight();
    list.forward(pair.far);
  });
  repeat(pair.count - 2 * pair.half + pair.depth + 1, [&](std::int64_t) {
    list.forward(pair.near);
    list.backward(pair.far);
    list.forward(pair.far);
    list.backward(pair.near);
  });
  repeat(inner, [&](std::int64_t) {
    list.backward(pair.far);
    list.forward(pair.far);
    list.backward(pair.near);
  });
  // Of the last 2 (depth + 1) backwards the second half is split.
  const auto late = [&](std::int64_t chunk, std::int64_t position) {
    if (position > pair.depth) return list.backward_input(chunk);
    return list.backward(chunk);
  };
  repeat(pair.depth + 1, [&](std::int64_t i) {
    late(pair.far, 2 * i);
    late(pair.near, 2 * i + 1);
  });
  repeat(inner, [&](std::int64_t) {
    list.weight();
    list.backward_input(pair.near);
  });
  repeat(pair.depth + 1, [&](std::int64_t) { list.weight(); });
}

/// The rows of a table, as often as the micro-batches of the step ask for.
void table_row(const Schedule& schedule, const Seat& seat, WorkList& list) {
  const std::vector<Work>& row = schedule.table.work.at(static_cast<std::size_t>(seat.device));
  const std::int64_t round = schedule.table.micro_batches;
  for (std::int64_t first = 0; first < seat.micro_batches; first += round) {
    for (const Work& work : row) list.add(work.kind, work.chunk, first + work.micro_batch);
  }
}

/// How many of the first `taken` entries of the interleaved table are of chunk `chunk` and of the
/// step's micro-batches.
std::int64_t of_chunk(const Schedule& schedule, const Seat& seat, std::int64_t taken,
                      std::int64_t chunk) {
  const std::int64_t group = group_of(schedule, seat.degree);
  const std::int64_t last_group = seat.micro_batches % group;
  const std::int64_t whole = (seat.micro_batches - last_group) * schedule.chunks;
  const std::int64_t round = group * schedule.chunks;
  const std::int64_t planned_last = planned_micro_batches(schedule, seat) % group;
  const std::int64_t stride = planned_last == 0 ? group : planned_last;
  const std::int64_t in_whole = std::min(taken, whole);
  const std::int64_t in_last = taken - in_whole;
  return in_whole / round * group +
         std::clamp<std::int64_t>(in_whole % round - chunk * group, 0, group) +
         std::clamp<std::int64_t>(in_last - chunk * stride, 0, last_group);
}

std::vector<std::int64_t> held_all_forward(const Schedule& schedule, const Seat& seat) {
  std::vector<std::int64_t> held;
  for (std::int64_t c = 0; c < schedule.chunks; ++c) {
    held.push_back(micro_batches_of(schedule, seat, c));
  }
  return held;
}

std::vector<std::int64_t> held_interleaved(const Schedule& schedule, const Seat& seat) {
  const std::int64_t total = planned_micro_batches(schedule, seat) * schedule.chunks;
  const std::int64_t taken = std::min(interleaved_warm_up(schedule, seat) + 1, total);
  std::vector<std::int64_t> held;
  for (std::int64_t c = 0; c < schedule.chunks; ++c) {
    held.push_back(of_chunk(schedule, seat, taken, c));
  }
  return held;
}

std::vector<std::int64_t> held_paired(const Schedule& schedule, const Seat& seat) {
  const Pairing pair = pairing_of(schedule, seat);
  std::vector<std::int64_t> held(2);
  held[static_cast<std::size_t>(pair.near)] =
      std::min(micro_batches_of(schedule, seat, pair.near), 2 * pair.half - pair.depth);
  held[static_cast<std::size_t>(pair.far)] =
      std::min(micro_batches_of(schedule, seat, pair.far), pair.depth + 1);
  return held;
}

}  // namespace

std::int64_t virtual_stages(const Schedule& schedule, std::int64_t degree) {
  switch (schedule.hosting) {
    case Hosting::single:
    case Hosting::bidirectional:
      return degree;
    case Hosting::loop:
    case Hosting::vee:
    case Hosting::table:
      return checked_multiply(degree, schedule.chunks, "virtual stages");
  }
  fail_internally("every hosting has its stages");
}

std::int64_t hosted_stage(const Schedule& schedule, std::int64_t degree, std::int64_t device,
                          std::int64_t chunk) {
  ensure(device >= 0 && device < degree, "a device lies on the axis");
  ensure(chunk >= 0 && chunk < schedule.chunks, "a chunk is one of the device's");
  switch (schedule.hosting) {
    case Hosting::single:
      return device;
    case Hosting::loop:
      return chunk * degree + device;
    case Hosting::vee:
      return chunk == 0 ? device : 2 * degree - 1 - device;
    case Hosting::bidirectional:
      return chunk == 0 ? device : degree - 1 - device;
    case Hosting::table:
      return schedule.table.stages.at(static_cast<std::size_t>(device))
          .at(static_cast<std::size_t>(chunk));
  }
  fail_internally("every hosting places its stages");
}

namespace {

StageHost host_in_table(const WorkTable& table, std::int64_t stage) {
  for (std::size_t device = 0; device < table.stages.size(); ++device) {
    const auto chunk = std::ranges::find(table.stages[device], stage);
    if (chunk == table.stages[device].end()) continue;
    return {static_cast<std::int64_t>(device), chunk - table.stages[device].begin()};
  }
  fail_internally("a table hosts every stage");
}

}  // namespace

StageHost host_of(const Schedule& schedule, std::int64_t degree, std::int64_t stage,
                  std::int64_t chunk) {
  ensure(stage >= 0 && stage < virtual_stages(schedule, degree), "a stage is one of the pipeline");
  switch (schedule.hosting) {
    case Hosting::single:
      return {stage, 0};
    case Hosting::loop:
      return {stage % degree, stage / degree};
    case Hosting::vee:
      return stage < degree ? StageHost{stage, 0} : StageHost{2 * degree - 1 - stage, 1};
    case Hosting::bidirectional:
      return {chunk == 0 ? stage : degree - 1 - stage, chunk};
    case Hosting::table:
      return host_in_table(schedule.table, stage);
  }
  fail_internally("every hosting places its stages");
}

std::vector<Work> order_of_work(const Schedule& schedule, std::int64_t degree, std::int64_t device,
                                std::int64_t micro_batches) {
  const Seat seat{degree, device, micro_batches};
  WorkList list(schedule, seat);
  switch (feasible_order(schedule, degree)) {
    case Order::all_forward:
      all_forward(schedule, seat, list);
      break;
    case Order::one_forward_one_backward:
      one_forward_one_backward(seat, list);
      break;
    case Order::interleaved:
      interleaved(schedule, seat, list);
      break;
    case Order::split_single:
      split_single(seat, list);
      break;
    case Order::split_vee:
      split_vee(seat, list);
      break;
    case Order::bidirectional_split:
      bidirectional_split(pairing_of(schedule, seat), list);
      break;
    case Order::table:
    case Order::split_table:
      table_row(schedule, seat, list);
      break;
  }
  return std::move(list).take();
}

InterleavedOrder interleaved_order(const Schedule& schedule, std::int64_t degree,
                                   std::int64_t device, std::int64_t micro_batches) {
  const Seat seat{degree, device, micro_batches};
  return {.group = group_of(schedule, degree),
          .planned = planned_micro_batches(schedule, seat),
          .warm_up = interleaved_warm_up(schedule, seat)};
}

std::vector<std::int64_t> held_micro_batches(const Schedule& schedule, std::int64_t degree,
                                             std::int64_t device, std::int64_t micro_batches) {
  const Seat seat{degree, device, micro_batches};
  switch (feasible_order(schedule, degree)) {
    case Order::all_forward:
      return held_all_forward(schedule, seat);
    case Order::one_forward_one_backward:
      return {std::min(micro_batches, degree - device)};
    case Order::interleaved:
      return held_interleaved(schedule, seat);
    case Order::split_single:
      return {std::min(micro_batches, degree)};
    case Order::split_vee:
      return {std::min(micro_batches, 2 * degree - 1 - device),
              std::min(micro_batches, device + 1)};
    case Order::bidirectional_split:
      return held_paired(schedule, seat);
    case Order::table:
    case Order::split_table:
      return held_along(order_of_work(schedule, degree, device, micro_batches), schedule.chunks);
  }
  fail_internally("every order holds micro-batches");
}

std::vector<std::int64_t> held_along(const std::vector<Work>& order, std::int64_t chunks) {
  std::vector<std::int64_t> held(static_cast<std::size_t>(chunks), 0);
  std::vector<std::int64_t> most = held;
  std::int64_t all = 0;
  std::int64_t largest = 0;
  for (const Work& work : order) {
    const bool begins = work.kind == Work::Kind::forward;
    if (work.kind == Work::Kind::backward_input) continue;  // until the weights' part is done
    held[static_cast<std::size_t>(work.chunk)] += begins ? 1 : -1;
    all += begins ? 1 : -1;
    if (all <= largest) continue;
    largest = all;
    most = held;
  }
  return most;
}

Order feasible_order(const Schedule& schedule, std::int64_t degree) {
  const bool odd_pairing = schedule.order == Order::bidirectional_split &&
                           schedule.hosting == Hosting::bidirectional && degree % 2 != 0;
  return odd_pairing ? Order::all_forward : schedule.order;
}

std::vector<std::int64_t> even_blocks(std::int64_t blocks, std::int64_t stages) {
  std::vector<std::int64_t> shares;
  for (std::int64_t s = 0; s < stages; ++s) shares.push_back(share_of(blocks, stages, s));
  return shares;
}

namespace {

std::string unmet_need_of_table(const Schedule& schedule, std::int64_t micro_batches) {
  if (micro_batches == schedule.table.micro_batches) return "";
  return schedule.name + " is a table of " + std::to_string(schedule.table.micro_batches) +
         " micro-batches; a step of " + std::to_string(micro_batches) + " is not";
}

}  // namespace

std::string unmet_need(const Schedule& schedule, std::int64_t degree, std::int64_t micro_batches) {
  if (schedule.hosting == Hosting::table) return unmet_need_of_table(schedule, micro_batches);
  const std::int64_t group = group_of(schedule, degree);
  const std::string given = std::to_string(micro_batches);
  if (schedule.order == Order::interleaved) {
    if (group < degree) {
      return schedule.name + " needs groups of at least the degree " + std::to_string(degree) +
             " micro-batches; " + std::to_string(group) + " is less";
    }
    const std::int64_t last_group = micro_batches % group;
    if (last_group == 0 || last_group >= degree) return "";
    if (group > degree) {
      return schedule.name + " needs at least the degree " + std::to_string(degree) +
             " micro-batches in the last group of " + std::to_string(group) + "; of " + given +
             ", " + std::to_string(last_group) + " remain";
    }
    return schedule.name + " needs micro-batches to be a multiple of the degree " +
           std::to_string(degree) + "; " + given + " is not";
  }
  if (schedule.order != Order::bidirectional_split) return "";
  const bool both_ends = schedule.hosting == Hosting::bidirectional;
  if (both_ends && degree % 2 != 0) {
    return schedule.name + " needs an even degree; " + std::to_string(degree) + " is odd";
  }
  if (both_ends && micro_batches % 2 != 0) {
    return schedule.name + " needs an even number of micro-batches; " + given + " is odd";
  }
  if (micro_batches >= 2 * degree) return "";
  return schedule.name + " needs at least twice the degree " + std::to_string(degree) +
         " in micro-batches; " + given + " is less";
}

bool splits_backward(Order order) {
  switch (order) {
    case Order::split_single:
    case Order::split_vee:
    case Order::bidirectional_split:
    case Order::split_table:
      return true;
    case Order::all_forward:
    case Order::one_forward_one_backward:
    case Order::interleaved:
    case Order::table:
      return false;
  }
  return false;
}

}  // namespace placet
