#include "search/plan_bounds.h"

#include <algorithm>
#include <limits>

#include "derive/kernel_time.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

void add(const UnitCost& cost, double times, PassSums& out) {
  out.forward += cost.forward * times;
  out.forward_host += cost.forward_host * times;
  out.backward += cost.backward * times;
  out.backward_host += cost.backward_host * times;
  out.weights += cost.weights * times;
  out.longest_backward += cost.longest_backward * times;
  out.longest_weights += cost.longest_weights * times;
}

/// By part of the pipeline.
void add_passes(const PipelineShape& pipeline, const WorkPair& work, const Recompute& recompute,
                Counting counting, std::vector<PassSums>& out) {
  out.assign(pipeline.parts.size(), {});
  for (std::size_t part = 0; part < out.size(); ++part) {
    for (const KindRun& run : pipeline.parts[part]) {
      const std::int32_t again = recomputed_of(run, recompute, counting);
      if (run.count > again) add((*work.plain)[at(run.kind)], run.count - again, out[part]);
      if (again > 0) add((*work.again)[at(run.kind)], again, out[part]);
    }
  }
}

bool goes_both_ways(const Schedule& schedule) { return schedule.hosting == Hosting::bidirectional; }

/// What is left of messages beside `room` seconds of work, as the step's time counts it.
double left_beside(double all, bool beside, double room, double pieces, double share) {
  if (!beside || all == 0) return all;
  const double open = std::max(all / std::max(1.0, pieces), all - room);
  return open + (all - open) * share;
}

/// Chunks have equal parts of a device's messages in their passes.
StepCosts::Device of_each_chunk(StepCosts::Device device, const std::vector<DeviceChunk>& chunks) {
  const std::int64_t back = chunks_with_backward(chunks);
  device.forward /= static_cast<double>(chunks.size());
  if (back > 0) device.backward /= static_cast<double>(back);
  return device;
}

}  // namespace

std::int64_t chunks_with_backward(const std::vector<DeviceChunk>& chunks) {
  return std::ranges::count(chunks, true, &DeviceChunk::runs_backward);
}

BoundFacts bound_facts(const Job& job) {
  const EngineTiming& timing = job.profile.timing;
  double share = 1;  // the least of any device
  for (const DeviceGroup& group : job.cluster->groups) {
    share = std::min(share, group.device.rates.message_share);
  }
  return {.host_per_pass = in_seconds(timing.host_per_pass),
          .host_per_step = in_seconds(timing.host_per_step),
          .gathers_beside = timing.runs_beside(Overlap::gathers),
          .reductions_beside = timing.runs_beside(Overlap::reductions),
          .update_beside = timing.runs_beside(Overlap::update),
          .sender_waits = timing.sender_waits(2),
          .plain_sender_waits = timing.sender_waits(1),
          .message_share = share};
}

double rounds_of(const Schedule& schedule, std::int64_t micro_batches) {
  return static_cast<double>(micro_batches) / (goes_both_ways(schedule) ? 2 : 1);
}

LongestPath::LongestPath(const Schedule& schedule)
    : fills_(!goes_both_ways(schedule)), drains_(fills_ && !splits_backward(schedule.order)) {}

void LongestPath::add(const PathPiece& piece) {
  end_ = std::max(end_, piece.own + before_ + piece.reduce);
  whole_ = std::max(whole_, piece.own + before_ + drain_);
  least_reduce_ = std::min(least_reduce_, piece.reduce);
  // In two directions the last device begins at once.
  if (fills_) before_ += piece.forward;
  if (drains_) drain_ += piece.backward;
}

StepBound::StepBound(const BoundFacts& facts, const PipelineShape& pipeline,
                     std::int64_t micro_batches)
    : facts_(facts), pipeline_(pipeline) {
  both_ways_ = goes_both_ways(pipeline.schedule);
  rounds_ = rounds_of(pipeline.schedule, micro_batches);
  const auto degree = static_cast<std::int64_t>(pipeline.devices.size());
  own_.resize(pipeline.devices.size());
  reduce_.resize(pipeline.devices.size());
  forward_.resize(at(virtual_stages(pipeline.schedule, degree)));
  backward_.resize(forward_.size());
}

StepBound::ChunkPass StepBound::pass_over(const DeviceChunk& chunk,
                                          const StepCosts::Device& own) const {
  const PassSums& pass = passes_[at(chunk.part)];
  const double units = std::max(1, chunk.count);
  const auto whole = [&](double device_time, double host_time, double sent) {
    const double busy = std::max(device_time, host_time) + facts_.host_per_pass;
    return busy + left_beside(sent, facts_.gathers_beside, busy, units, facts_.message_share);
  };
  ChunkPass out{.forward = whole(pass.forward, pass.forward_host, own.forward)};
  if (chunk.runs_backward) out.backward = whole(pass.backward, pass.backward_host, own.backward);
  return out;
}

void StepBound::add_device(std::size_t device, const Given& given) {
  const StepCosts::Device own = given.of(device);
  const std::vector<DeviceChunk>& chunks = pipeline_.devices[device];
  const StepCosts::Device each = of_each_chunk(own, chunks);
  const double message = sender_waits() ? given.messages.boundary : 0;
  double all = 0;
  double last_backward = 0;  // at most: what gradients are reduced beside
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const DeviceChunk& chunk = chunks[c];
    ChunkPass pass = pass_over(chunk, each);
    if (chunk.sends_forward) pass.forward += message;
    if (chunk.sends_backward) pass.backward += message;
    all += pass.forward + pass.backward;
    last_backward += passes_[at(chunk.part)].longest_backward;
    if (both_ways_ && c > 0) continue;  // the other direction's stage, hosted elsewhere too
    forward_[at(chunk.stage)] = pass.forward;
    backward_[at(chunk.stage)] = pass.backward;
  }
  own_[device] = all * rounds_;
  reduce_[device] = left_beside(own.reduce, facts_.reductions_beside, last_backward, own.units,
                                facts_.message_share);
}

void StepBound::copy_device(std::size_t from, std::size_t to) {
  own_[to] = own_[from];
  reduce_[to] = reduce_[from];
  const std::vector<DeviceChunk>& chunks = pipeline_.devices[from];
  for (std::size_t c = 0; c < (both_ways_ ? 1 : chunks.size()); ++c) {
    const auto target = at(pipeline_.devices[to][c].stage);
    forward_[target] = forward_[at(chunks[c].stage)];
    backward_[target] = backward_[at(chunks[c].stage)];
  }
}

double StepBound::longest() const {
  LongestPath path(pipeline_.schedule);
  // A device's first work is that of its first chunk.
  for (std::size_t d = 0; d < own_.size(); ++d) {
    path.add(
        {.own = own_[d], .reduce = reduce_[d], .forward = forward_[d], .backward = backward_[d]});
  }
  return path.seconds();
}

void StepBound::add_devices(const Given& given) {
  for (std::size_t d = 0; d < own_.size(); ++d) {
    const std::size_t like = at(pipeline_.like[d]);
    if (like < d && given.of(like) == given.of(d)) {
      copy_device(like, d);
    } else {
      add_device(d, given);
    }
  }
}

/// Of the last device: the update and the messages after it, and the host once per step.
double StepBound::after_backward(const WorkPair& work, const StepCosts& messages) const {
  double after = messages.after;
  if (facts_.update_beside) {
    const double open = after / static_cast<double>(work.plain->size());
    after = open + (after - open) * facts_.message_share;
  }
  return messages.update + after + facts_.host_per_step;
}

double StepBound::least(const WorkPair& work, const Recompute& recompute, const StepCosts& messages,
                        Counting counting) {
  add_passes(pipeline_, work, recompute, counting, passes_);
  add_devices({messages});
  return longest() + after_backward(work, messages);
}

double StepBound::least_by_order(const WorkPair& work, const Recompute& recompute,
                                 const StepCosts& messages, WorkFlow& flow) {
  const Given given{messages};
  add_passes(pipeline_, work, recompute, Counting::exact, passes_);
  add_devices(given);
  std::vector<PieceLengths> lengths;
  for (std::size_t d = 0; d < pipeline_.devices.size(); ++d) {
    const std::vector<DeviceChunk>& chunks = pipeline_.devices[d];
    const StepCosts::Device each = of_each_chunk(given.of(d), chunks);
    for (const DeviceChunk& chunk : chunks) {
      const ChunkPass pass = pass_over(chunk, each);
      const PassSums& sums = passes_[at(chunk.part)];
      // No more is left of a backward whose weights' part takes longer.
      const double inputs = std::max(0.0, pass.backward - sums.longest_weights);
      lengths.push_back({pass.forward, pass.backward, inputs, sums.weights});
    }
  }
  const FlowMessages between{.time = messages.boundary, .sender_waits = sender_waits()};
  return flow.seconds(lengths, between, reduce_) + after_backward(work, messages);
}

namespace {

/// What is left of messages beside any amount of work: one of so many pieces, and the share that
/// computation loses.
double least_left(const BoundFacts& facts, double all, bool beside, double pieces) {
  if (!beside) return all;
  const double open = all / std::max(1.0, pieces);
  return open + (all - open) * facts.message_share;
}

/// Gradients reduced once and parameters gathered after the update: of the first the device with
/// least, of the second that with most.
double least_exchange(const BoundFacts& facts, const PipelineShape& pipeline,
                      const StateCosts& states) {
  double least = std::numeric_limits<double>::infinity();
  double after = 0;
  for (const std::vector<std::int32_t>& units : pipeline.unlike) {
    double reduce = 0;
    double own_after = 0;
    double count = 0;
    for (std::size_t k = 0; k < states.size(); ++k) {
      reduce += units[k] * states[k].reduce;
      own_after += units[k] * states[k].after;
      count += units[k];
    }
    after = std::max(after, own_after);
    least = std::min(least, least_left(facts, reduce, facts.reductions_beside, count));
  }
  const auto pieces = static_cast<double>(states.size());
  return least + least_left(facts, after, facts.update_beside, pieces);
}

}  // namespace

double least_end(const BoundFacts& facts, const PipelineShape& pipeline, const StateCosts& states) {
  return update_of(pipeline, states) + least_exchange(facts, pipeline, states);
}

EasedWork eased(const WorkPair& work) {
  EasedWork out{.plain = *work.plain, .again = *work.again};
  for (std::size_t k = 0; k < out.plain.size(); ++k) {
    UnitCost& plain = out.plain[k];
    UnitCost& again = out.again[k];
    plain.forward = std::min(plain.forward, again.forward);
    plain.forward_host = std::min(plain.forward_host, again.forward_host);
    plain.backward_host = std::min(plain.backward_host, again.backward_host);
    // Both parts of a backward that is split are to be no longer.
    const double inputs = std::min(plain.backward - plain.weights, again.backward - again.weights);
    plain.weights = std::min(plain.weights, again.weights);
    plain.backward = inputs + plain.weights;
    plain.longest_backward = std::max(plain.longest_backward, again.longest_backward);
    plain.longest_weights = std::max(plain.longest_weights, again.longest_weights);
    again.longest_backward = plain.longest_backward;
    again.longest_weights = plain.longest_weights;
    // What the fullest moments need beyond what is kept stays the same.
    const std::int64_t more = std::max<std::int64_t>(0, again.kept - plain.kept);
    again.kept -= more;
    again.most -= more;
    again.most_forward -= more;
    again.most_inputs -= more;
    again.waiting = std::min(again.waiting, plain.waiting);
  }
  return out;
}

double least_messages(const BoundFacts& facts, const PipelineShape& pipeline,
                      const StateCosts& states, std::int64_t micro_batches) {
  const auto m = static_cast<double>(micro_batches);
  // In two directions a device has its units twice, each of which sees half of the micro-batches.
  const double part = rounds_of(pipeline.schedule, 1);
  double least = std::numeric_limits<double>::infinity();
  for (const std::vector<std::int32_t>& units : pipeline.unlike) {
    double gathers = 0;
    double count = 0;
    for (std::size_t k = 0; k < states.size(); ++k) {
      gathers += part * units[k] * (m * states[k].each + states[k].once);
      count += units[k];
    }
    least = std::min(least, least_left(facts, gathers, facts.gathers_beside, count));
  }
  // The path that sets the step may have the gathers of one device and the reductions of another.
  return least + least_exchange(facts, pipeline, states);
}

WholeStates whole_states(const BoundFacts& facts, const std::vector<std::int32_t>& units,
                         const StateCosts& states) {
  const auto left = [&](bool beside) { return beside ? facts.message_share : 1.0; };
  WholeStates out{.once = update_seconds(states, units)};
  for (std::size_t k = 0; k < states.size(); ++k) {
    const UnitStateCost& own = states[k];
    out.each += units[k] * own.each * left(facts.gathers_beside);
    out.once += units[k] * (own.once * left(facts.gathers_beside) +
                            own.reduce * left(facts.reductions_beside) +
                            own.after * left(facts.update_beside));
    out.rest += units[k] * (own.parameters + own.kept_step + own.optimizer);
    out.gradients += units[k] * own.gradients;
  }
  return out;
}

double least_mean_step(const BoundFacts& facts, const WholeModel& model,
                       const WholeStates& states) {
  const auto m = static_cast<double>(model.micro_batches);
  const double all = m * (model.work + states.each) + states.once;
  return all / static_cast<double>(model.degree) + facts.host_per_step;
}

std::int64_t least_mean_rest(std::int64_t degree, const WholeStates& states, bool grows) {
  return (states.rest + (grows ? 0 : states.gradients)) / degree;
}

double update_of(const PipelineShape& pipeline, const StateCosts& states) {
  double most = 0;
  for (const std::vector<std::int32_t>& units : pipeline.unlike) {
    most = std::max(most, update_seconds(states, units));
  }
  return most;
}

namespace {

/// Bytes that one micro-batch leaves on a chunk, and what the chunk's last unit needs beyond its
/// own while it runs: whole, forward, and for the values' part of a split backward. All of them are
/// kept then.
struct ChunkBytes {
  std::int64_t kept = 0;
  std::int64_t waiting = 0;
  std::int64_t beyond = 0;
  std::int64_t beyond_forward = 0;
  std::int64_t beyond_inputs = 0;
};

ChunkBytes chunk_bytes(const std::vector<KindRun>& runs, const WorkPair& work,
                       const Recompute& recompute, Counting counting) {
  ChunkBytes out;
  for (const KindRun& run : runs) {
    const std::int32_t again = recomputed_of(run, recompute, counting);
    const UnitCost& plain = (*work.plain)[at(run.kind)];
    const UnitCost& redone = again > 0 ? (*work.again)[at(run.kind)] : plain;
    out.kept += plain.kept * (run.count - again) + redone.kept * again;
    out.waiting += plain.waiting * (run.count - again) + redone.waiting * again;
    const auto beyond = [&](std::int64_t UnitCost::*most) {
      const std::int64_t least = std::min(plain.*most - plain.kept, redone.*most - redone.kept);
      return std::max<std::int64_t>(0, least);
    };
    out.beyond = beyond(&UnitCost::most);
    out.beyond_forward = beyond(&UnitCost::most_forward);
    out.beyond_inputs = beyond(&UnitCost::most_inputs);
  }
  return out;
}

/// Of a device, by part of the pipeline.
struct DeviceBytes {
  const std::vector<DeviceChunk>& chunks;
  const std::vector<ChunkBytes>& parts;

  const ChunkBytes& of(std::size_t chunk) const { return parts[at(chunks[chunk].part)]; }
};

/// Where backward is whole: the last chunk in flight runs.
std::int64_t bytes_held(const DeviceBytes& device, const std::vector<std::int64_t>& held) {
  std::int64_t bytes = 0;
  std::int64_t beyond = 0;
  for (std::size_t c = 0; c < device.chunks.size(); ++c) {
    if (held[c] == 0) continue;
    bytes += held[c] * device.of(c).kept;
    beyond = device.of(c).beyond;
  }
  return bytes + beyond;
}

/// Of the piece of work that runs, with its last unit.
std::int64_t bytes_running(const ChunkBytes& chunk, Work::Kind kind) {
  switch (kind) {
    case Work::Kind::forward:
      return chunk.kept + chunk.beyond_forward;
    case Work::Kind::backward:
      return chunk.kept + chunk.beyond;
    case Work::Kind::backward_input:
      return chunk.kept + chunk.beyond_inputs;
    case Work::Kind::backward_weight:
      return chunk.waiting;
  }
  fail_internally("every kind of work has its bytes");
}

std::int64_t bytes_at(const DeviceBytes& device, const WorkMoment& moment) {
  std::int64_t bytes = bytes_running(device.of(at(moment.chunk)), moment.kind);
  for (std::size_t c = 0; c < device.chunks.size(); ++c) {
    bytes += moment.held[c] * device.of(c).kept + moment.waiting[c] * device.of(c).waiting;
  }
  return bytes;
}

/// Bytes at the fullest of some moments.
std::int64_t most_at(const DeviceBytes& device, const std::vector<WorkMoment>& moments) {
  std::int64_t most = 0;
  for (const WorkMoment& moment : moments) most = std::max(most, bytes_at(device, moment));
  return most;
}

}  // namespace

std::vector<std::int64_t> least_activations(const PipelineShape& pipeline, const WorkPair& work,
                                            const Recompute& recompute,
                                            const PipelineInFlight& in_flight, Counting counting) {
  std::vector<ChunkBytes> parts;
  parts.reserve(pipeline.parts.size());
  for (const std::vector<KindRun>& runs : pipeline.parts) {
    parts.push_back(chunk_bytes(runs, work, recompute, counting));
  }
  std::vector<std::int64_t> out;
  out.reserve(pipeline.devices.size());
  for (std::size_t d = 0; d < pipeline.devices.size(); ++d) {
    const DeviceBytes device{pipeline.devices[d], parts};
    const bool held_only = in_flight.moments.empty();
    out.push_back(held_only ? bytes_held(device, in_flight.held[d])
                            : most_at(device, in_flight.moments[d]));
  }
  return out;
}

namespace {

/// Bytes of gathered parameters on a device: those that stay over the step at any time; those that
/// stay to backward on chunks that hold micro-batches; the unit whose backward is whole and runs.
std::int64_t gathered_on(const PipelineShape& pipeline, std::size_t device,
                         const StateCosts& states, const PipelineInFlight& in_flight) {
  const std::vector<std::int32_t>& units = pipeline.units[device];
  const bool all = in_flight.all[device];
  std::int64_t bytes = 0;
  for (std::size_t k = 0; k < states.size(); ++k) {
    bytes += units[k] * (all ? states[k].kept : states[k].kept_step);
  }
  const std::vector<KindRun>& runs = pipeline.devices[device].back().runs;
  if (!all || !in_flight.moments.empty() || runs.empty()) return bytes;
  const UnitStateCost& last = states[at(runs.back().kind)];
  return bytes + last.gathered - last.kept;
}

}  // namespace

std::vector<std::int64_t> least_rest(const PipelineShape& pipeline, const StateCosts& states,
                                     const PipelineInFlight& in_flight, bool grows) {
  std::vector<std::int64_t> out;
  out.reserve(pipeline.units.size());
  for (std::size_t d = 0; d < pipeline.units.size(); ++d) {
    std::int64_t bytes = gathered_on(pipeline, d, states, in_flight);
    for (std::size_t k = 0; k < states.size(); ++k) {
      const UnitStateCost& cost = states[k];
      bytes +=
          pipeline.units[d][k] * (cost.parameters + cost.optimizer + (grows ? 0 : cost.gradients));
    }
    out.push_back(bytes);
  }
  return out;
}

namespace {

/// Whether every chunk of a device has micro-batches in flight at each of some moments, so that
/// what is kept for their backward is there. With one micro-batch in all nothing is kept beside the
/// weights' part of its own.
bool hold_all(const std::vector<WorkMoment>& moments, std::int64_t micro_batches) {
  return micro_batches > 1 && std::ranges::all_of(moments, [](const WorkMoment& moment) {
           for (std::size_t c = 0; c < moment.held.size(); ++c) {
             const bool runs = at(moment.chunk) == c;
             if (!runs && moment.held[c] + moment.waiting[c] == 0) return false;
           }
           return true;
         });
}

}  // namespace

PipelineInFlight in_flight_of(const PipelineShape& pipeline, std::int64_t micro_batches) {
  const auto degree = static_cast<std::int64_t>(pipeline.devices.size());
  PipelineInFlight out;
  if (degree > 1 && splits_backward(feasible_order(pipeline.schedule, degree))) {
    out.moments = fullest_moments(pipeline.schedule, degree, micro_batches);
    for (const std::vector<WorkMoment>& own : out.moments) {
      out.all.push_back(hold_all(own, micro_batches));
    }
    return out;
  }
  for (std::int64_t d = 0; d < degree; ++d) {
    out.held.push_back(degree == 1
                           ? std::vector<std::int64_t>(1, 1)
                           : held_micro_batches(pipeline.schedule, degree, d, micro_batches));
    out.held.back().resize(pipeline.devices[at(d)].size(), 0);
    out.all.push_back(std::ranges::all_of(out.held.back(), [](std::int64_t n) { return n > 0; }));
  }
  return out;
}

}  // namespace placet
