#include "search/device_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "units/at.h"

namespace placet {

namespace {

/// Micro-batches that a device holds of each chunk at one instant: of a backward in two parts at
/// that which holds most, whatever waits there and runs beside them.
const std::vector<std::int64_t>& held_at_once(const PipelineInFlight& in_flight, std::size_t d) {
  if (in_flight.moments.empty()) return in_flight.held[d];
  const auto all = [](const WorkMoment& moment) {
    return std::accumulate(moment.held.begin(), moment.held.end(), std::int64_t{0});
  };
  return std::ranges::max_element(in_flight.moments[d], {}, all)->held;
}

std::optional<std::size_t> last_kind_of(const DeviceChunk& chunk) {
  if (chunk.runs.empty()) return std::nullopt;
  return at(chunk.runs.back().kind);
}

}  // namespace

DeviceBounds::DeviceBounds(const BoundFacts& facts, const PipelineShape& pipeline,
                           const PipelineInFlight& in_flight, std::int64_t micro_batches)
    : facts_(facts),
      pipeline_(pipeline),
      rounds_(rounds_of(pipeline.schedule, micro_batches)),
      may_recompute_(pipeline.units.front().size(), false) {
  devices_.reserve(pipeline.devices.size());
  for (std::size_t d = 0; d < pipeline.devices.size(); ++d) {
    devices_.push_back(device_of(d, held_at_once(in_flight, d)));
    if (!in_flight.moments.empty()) devices_.back().last.reset();
  }
}

DeviceBounds::Device DeviceBounds::device_of(std::size_t d, const std::vector<std::int64_t>& held) {
  const std::vector<DeviceChunk>& chunks = pipeline_.devices[d];
  Device out;
  out.first.resize(may_recompute_.size(), 0);
  out.kept.resize(may_recompute_.size(), 0);
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    if (held[c] > 0) out.last = last_kind_of(chunks[c]);
    for (const KindRun& run : chunks[c].runs) {
      const std::size_t kind = at(run.kind);
      if (c == 0) out.first[kind] += run.count;
      out.kept[kind] += held[c] * run.count;
      if (run.may_recompute) out.may_recompute += run.count;
      if (run.may_recompute) may_recompute_[kind] = true;
    }
    out.most_held = std::max(out.most_held, held[c]);
  }
  return out;
}

DeviceBounds::Exchange DeviceBounds::exchange_of(const WorkPair& work) const {
  constexpr double kMost = std::numeric_limits<double>::infinity();
  Exchange out{.saved = 0, .device = kMost, .host = kMost};
  for (std::size_t k = 0; k < may_recompute_.size(); ++k) {
    if (!may_recompute_[k]) continue;
    const UnitCost& plain = (*work.plain)[k];
    const UnitCost& again = (*work.again)[k];
    out.saved = std::max(out.saved, plain.kept - again.kept);
    out.device =
        std::min(out.device, again.forward + again.backward - plain.forward - plain.backward);
    out.host = std::min(out.host, again.forward_host + again.backward_host - plain.forward_host -
                                      plain.backward_host);
  }
  return out;
}

DeviceBounds::Pass DeviceBounds::pass_over(const std::vector<std::int32_t>& units,
                                           const WorkCosts& costs) {
  Pass out;
  for (std::size_t k = 0; k < costs.size(); ++k) {
    out.forward += units[k] * costs[k].forward;
    out.forward_host += units[k] * costs[k].forward_host;
    out.backward += units[k] * costs[k].backward;
    out.backward_host += units[k] * costs[k].backward_host;
  }
  return out;
}

std::int64_t DeviceBounds::kept_of(const Device& own, const WorkPair& work,
                                   const WorkCosts& costs) {
  std::int64_t bytes = 0;
  if (own.last) {
    const UnitCost& plain = (*work.plain)[*own.last];
    const UnitCost& again = (*work.again)[*own.last];
    bytes = std::max<std::int64_t>(0, std::min(plain.most - plain.kept, again.most - again.kept));
  }
  for (std::size_t k = 0; k < costs.size(); ++k) bytes += own.kept[k] * costs[k].kept;
  return bytes;
}

PathPiece DeviceBounds::piece_of(std::size_t d, const WorkCosts& base, double again,
                                 const Exchange& exchange) const {
  const Pass all = pass_over(pipeline_.units[d], base);
  double device = all.forward + all.backward;
  double host = all.forward_host + all.backward_host;
  if (again > 0) {
    device += again * exchange.device;
    host += again * exchange.host;
  }
  const std::vector<DeviceChunk>& chunks = pipeline_.devices[d];
  const auto passes =
      static_cast<double>(chunks.size()) + static_cast<double>(chunks_with_backward(chunks));
  const Pass first = pass_over(devices_[d].first, base);
  PathPiece out{.own = rounds_ * (std::max(device, host) + passes * facts_.host_per_pass),
                .forward = std::max(first.forward, first.forward_host) + facts_.host_per_pass};
  if (chunks.front().runs_backward) {
    out.backward = std::max(first.backward, first.backward_host) + facts_.host_per_pass;
  }
  return out;
}

DeviceBounds::Least DeviceBounds::least(const WorkPair& work, RecomputedPart part,
                                        const std::vector<std::int64_t>& rest, double limit) const {
  const bool some = part == RecomputedPart::some;
  const WorkCosts& base = some ? *work.plain : *work.again;
  const Exchange exchange = some ? exchange_of(work) : Exchange{};
  Least out;
  LongestPath path(pipeline_.schedule);
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const Device& own = devices_[d];
    out.bytes = std::max(out.bytes, rest[d] + kept_of(own, work, *work.again));
    double again = 0;
    if (some && exchange.saved > 0) {
      const double more = static_cast<double>(rest[d] + kept_of(own, work, base)) - limit;
      again = std::ceil(more / static_cast<double>(own.most_held * exchange.saved));
      again = std::clamp<double>(again, 0, own.may_recompute);
    }
    path.add(piece_of(d, base, again, exchange));
  }
  const bool fits = static_cast<double>(out.bytes) <= limit;
  out.step = fits ? path.seconds() + facts_.host_per_step : std::numeric_limits<double>::infinity();
  return out;
}

}  // namespace placet
