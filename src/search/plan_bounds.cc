#include "search/plan_bounds.h"

#include <algorithm>

#include "derive/kernel_time.h"
#include "derive/pipeline_time.h"

namespace placet {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// One pass of a chunk over a micro-batch.
struct Pass {
  double forward = 0, forward_host = 0;
  double backward = 0, backward_host = 0;
  double weights = 0;

  void add(const UnitCost& cost, double times) {
    forward += cost.forward * times;
    forward_host += cost.forward_host * times;
    backward += cost.backward * times;
    backward_host += cost.backward_host * times;
    weights += cost.weights * times;
  }
};

Pass pass_of(const DeviceChunk& chunk, const WorkPair& work, const Recompute& recompute) {
  Pass out;
  for (const KindRun& run : chunk.runs) {
    const std::int64_t again = recomputed_of(run, recompute);
    out.add((*work.plain)[index(run.kind)], static_cast<double>(run.count - again));
    if (again > 0) out.add((*work.again)[index(run.kind)], static_cast<double>(again));
  }
  return out;
}

/// What is left of messages beside `room` seconds of work, as the step's time counts it.
double left_beside(double all, bool beside, double room, double pieces, double share) {
  if (!beside || all == 0) return all;
  const double open = std::max(all / std::max(1.0, pieces), all - room);
  return open + (all - open) * share;
}

/// Seconds by device, filled chunk by chunk.
class StepBound {
 public:
  StepBound(const BoundFacts& facts, const BoundedWork& work, const StepCosts& messages)
      : facts_(facts), work_(work), messages_(messages) {
    pipeline_.schedule = work.pipeline.schedule;
    pipeline_.micro_batches = work.micro_batches;
    for (std::size_t d = 0; d < work.pipeline.devices.size(); ++d) add_device(d);
  }

  double seconds() {
    double last = 0;
    double least_reduce = kNone;
    for (std::size_t d = 0; d < reduce_.size(); ++d) {
      last = std::max(last, own_[d] + fill_before(d) + reduce_[d]);
      least_reduce = std::min(least_reduce, reduce_[d]);
    }
    const double whole = in_seconds(least_pipeline_time(pipeline_));
    return std::max(last, whole + least_reduce) + messages_.update + after() +
           facts_.host_per_step;
  }

 private:
  static constexpr double kNone = 1e300;

  StepCosts::Device messages_of(std::size_t d) const {
    return d < messages_.devices.size() ? messages_.devices[d] : StepCosts::Device{};
  }

  void add_device(std::size_t d) {
    const std::vector<DeviceChunk>& chunks = work_.pipeline.devices[d];
    const StepCosts::Device messages = messages_of(d);
    const double share = 1.0 / static_cast<double>(chunks.size());
    const double rounds = rounds_of();
    std::vector<ChunkTime>& times = pipeline_.devices.emplace_back();
    double own = 0;
    double last_backward = 0;
    for (const DeviceChunk& chunk : chunks) {
      const Pass pass = pass_of(chunk, work_.work, work_.recompute);
      std::int64_t units = 0;
      for (const KindRun& run : chunk.runs) units += run.count;
      const double forward = whole(pass.forward, pass.forward_host, messages.forward * share, units) +
                             sent(chunk.sends_forward);
      const double backward =
          whole(pass.backward, pass.backward_host, messages.backward * share, units) +
          sent(chunk.sends_backward);
      times.push_back({.forward = placet::seconds(forward),
                       .backward = placet::seconds(backward),
                       .backward_weight = placet::seconds(pass.weights)});
      own += rounds * (forward + backward);
      last_backward += pass.backward;
    }
    own_.push_back(own);
    reduce_.push_back(left_beside(messages.reduce, facts_.reductions_beside, last_backward,
                                  messages.units, facts_.message_share));
  }

  double rounds_of() const {
    const auto m = static_cast<double>(work_.micro_batches);
    return work_.pipeline.schedule.hosting == Hosting::bidirectional ? m / 2 : m;
  }

  /// A sender that waits is busy until its message has arrived.
  double sent(bool sends) const {
    return sends && facts_.sender_waits ? messages_.boundary : 0;
  }

  double whole(double device, double host, double messages, std::int64_t units) const {
    const double busy = std::max(device, host) + facts_.host_per_pass;
    return busy + left_beside(messages, facts_.gathers_beside, busy,
                              static_cast<double>(std::max<std::int64_t>(1, units)),
                              facts_.message_share);
  }

  /// Forwards that the first work of a device waits for. Of pipelines in two directions, none.
  double fill_before(std::size_t d) const {
    if (pipeline_.schedule.hosting == Hosting::bidirectional) return 0;
    double fill = 0;
    for (std::size_t s = 0; s < d; ++s) fill += in_seconds(pipeline_.devices[s].front().forward);
    return fill;
  }

  double after() const {
    if (!facts_.update_beside) return messages_.after;
    const double pieces = static_cast<double>(std::max<std::size_t>(1, work_.work.plain->size()));
    const double open = messages_.after / pieces;
    return open + (messages_.after - open) * facts_.message_share;
  }

  const BoundFacts& facts_;
  const BoundedWork& work_;
  const StepCosts& messages_;
  PipelineWork pipeline_;
  std::vector<double> own_, reduce_;
};

}  // namespace

BoundFacts bound_facts(const Job& job) {
  const EngineTiming& timing = job.profile.timing;
  return {.host_per_pass = in_seconds(timing.host_per_pass),
          .host_per_step = in_seconds(timing.host_per_step),
          .gathers_beside = timing.runs_beside(Overlap::gathers),
          .reductions_beside = timing.runs_beside(Overlap::reductions),
          .update_beside = timing.runs_beside(Overlap::update),
          .sender_waits = timing.sends_block && !timing.runs_beside(Overlap::stages),
          .message_share = slowest_group(*job.cluster).device.rates.message_share};
}

double least_step(const BoundFacts& facts, const BoundedWork& work, const StepCosts& messages) {
  return StepBound(facts, work, messages).seconds();
}

double update_of(const PipelineShape& pipeline, const StateCosts& states) {
  double most = 0;
  for (const std::vector<std::int32_t>& units : pipeline.units) {
    double own = 0;
    for (std::size_t k = 0; k < states.size(); ++k) own += states[k].update * units[k];
    most = std::max(most, own);
  }
  return most;
}

std::vector<std::int64_t> least_activations(const BoundedWork& work,
                                            const std::vector<std::vector<std::int64_t>>& held) {
  std::vector<std::int64_t> out;
  for (std::size_t d = 0; d < work.pipeline.devices.size(); ++d) {
    const std::vector<DeviceChunk>& chunks = work.pipeline.devices[d];
    std::int64_t bytes = 0;
    std::int64_t beyond = 0;
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      if (held[d][c] > 0) beyond = 0;  // only units of the last chunk in flight are looked at
      for (const KindRun& run : chunks[c].runs) {
        const std::int64_t again = recomputed_of(run, work.recompute);
        const UnitCost& plain = (*work.work.plain)[index(run.kind)];
        const UnitCost& redone = again > 0 ? (*work.work.again)[index(run.kind)] : plain;
        bytes += held[d][c] * (plain.kept * (run.count - again) + redone.kept * again);
        if (held[d][c] == 0) continue;
        // The last unit of the chunk runs while all of them are kept.
        const UnitCost& last = again > 0 && redone.most - redone.kept < plain.most - plain.kept
                                   ? redone
                                   : plain;
        beyond = std::max<std::int64_t>(0, last.most - last.kept);
      }
    }
    out.push_back(bytes + beyond);
  }
  return out;
}

std::vector<std::int64_t> least_rest(const PipelineShape& pipeline, const StateCosts& states,
                                     bool grows) {
  std::vector<std::int64_t> out;
  for (const std::vector<std::int32_t>& units : pipeline.units) {
    std::int64_t bytes = 0;
    for (std::size_t k = 0; k < states.size(); ++k) {
      const UnitStateCost& cost = states[k];
      bytes += units[k] * (cost.parameters + cost.optimizer + (grows ? 0 : cost.gradients));
    }
    out.push_back(bytes);
  }
  return out;
}

std::vector<std::vector<std::int64_t>> held_of(const PipelineShape& pipeline,
                                               std::int64_t micro_batches) {
  const auto degree = static_cast<std::int64_t>(pipeline.devices.size());
  std::vector<std::vector<std::int64_t>> out;
  for (std::int64_t d = 0; d < degree; ++d) {
    out.push_back(degree == 1
                      ? std::vector<std::int64_t>(1, 1)
                      : held_micro_batches(pipeline.schedule, degree, d, micro_batches));
    out.back().resize(pipeline.devices[index(d)].size(), 0);
  }
  return out;
}

}  // namespace placet
