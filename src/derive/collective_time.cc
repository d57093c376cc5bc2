#include "derive/collective_time.h"

#include <algorithm>
#include <cmath>

#include "derive/kernel_time.h"

namespace placet {
namespace {

double real(std::int64_t n) { return static_cast<double>(n); }

/// Bytes per second that one link of the level carries for such groups.
double link_rate(const Level& level, const GroupPlace& place) {
  const double measured = in_bytes_per_second(level.bandwidth_of_all);
  if (measured > 0 && place.block >= level.devices) return measured;
  return in_bytes_per_second(level.bandwidth) * level.efficiency;
}

/// The same of all-to-alls.
double exchange_rate(const Level& level, const GroupPlace& place) {
  if (level.exchange_efficiency == 0) return link_rate(level, place);
  return in_bytes_per_second(level.bandwidth) * level.exchange_efficiency;
}

/// Bytes per second at which a member of the group sends across level l.
double bandwidth_at(const std::vector<Level>& levels, const GroupPlace& place, std::size_t l) {
  const double links = l == 0 ? 1.0 : real(place.inside[l - 1]);
  return link_rate(levels[l], place) * links;
}

std::int64_t domains_at(const GroupPlace& place, std::size_t l) {
  const std::int64_t below = l == 0 ? 1 : place.inside[l - 1];
  return std::max<std::int64_t>(1, place.inside[l] / below);
}

/// The levels on which the group has more than one domain of the level below.
bool crosses(const GroupPlace& place, std::size_t l) { return domains_at(place, l) > 1; }

double narrowest(const std::vector<Level>& levels, const GroupPlace& place) {
  double least = 0;
  for (std::size_t l = 0; l < place.inside.size(); ++l) {
    if (!crosses(place, l)) continue;
    const double here = bandwidth_at(levels, place, l);
    least = least == 0 ? here : std::min(least, here);
  }
  return least;
}

/// Latency of going round a ring once: every step waits for the slowest of its links, which one of
/// the members has to pass.
double ring_latency(const std::vector<Level>& levels, const GroupPlace& place) {
  double slowest = 0;
  for (std::size_t l = 0; l < place.inside.size(); ++l) {
    if (crosses(place, l)) slowest = std::max(slowest, in_seconds(levels[l].latency));
  }
  return slowest * real(place.size - 1);
}

/// Latency of climbing a tree over the wider levels, from rings inside the innermost.
double tree_latency(const std::vector<Level>& levels, const GroupPlace& place) {
  double sum = 0;
  for (std::size_t l = 0; l < place.inside.size(); ++l) {
    if (!crosses(place, l)) continue;
    const double domains = real(domains_at(place, l));
    sum += in_seconds(levels[l].latency) * (l == 0 ? domains - 1 : std::ceil(std::log2(domains)));
  }
  return sum;
}

/// The measured curve of the widest group that is not larger than the group's.
const BusCurve* curve_for(const std::vector<Level>& levels, const GroupPlace& place) {
  for (std::size_t l = 0; l < place.inside.size(); ++l) {
    if (!crosses(place, l)) continue;
    if (place.inside[l] != place.size) return nullptr;  // wider levels are crossed as well
    const BusCurve* best = nullptr;
    for (const BusCurve& curve : levels[l].all_reduce) {
      if (curve.group <= place.size || best == nullptr) best = &curve;
    }
    return l == 0 ? best : nullptr;
  }
  return nullptr;
}

/// Below the smallest measured message time stays as it is there.
double curve_time(const BusCurve& curve, double payload, double sent) {
  const auto& points = curve.gigabytes_per_second.points;
  const double least = points.front().x;
  if (payload < least) return sent / payload * least / (points.front().y * 1e9);
  return sent / (value_at(curve.gigabytes_per_second, payload) * 1e9);
}

/// `choices`: copies of a token, of which a level carries the first to each domain of the level
/// below, which may be a single device; 1: all of them.
Seconds all_to_all_time(const std::vector<Level>& levels, const GroupPlace& place, double payload,
                        std::int64_t choices) {
  double longest = 0;
  double latency = 0;
  for (std::size_t l = 0; l < place.inside.size(); ++l) {
    if (!crosses(place, l)) continue;
    const std::int64_t below = l == 0 ? 1 : place.inside[l - 1];
    const double copies = first_copies(choices, place.size / std::max<std::int64_t>(1, below));
    const double leaving = copies * payload * real(place.inside[l] - below) / real(place.size);
    longest = std::max(longest, leaving / exchange_rate(levels[l], place));
    latency = std::max(latency, in_seconds(levels[l].latency) * real(domains_at(place, l) - 1));
  }
  return seconds(longest + latency);
}

Seconds broadcast_time(const std::vector<Level>& levels, const GroupPlace& place, double payload) {
  const double rate = narrowest(levels, place);
  return rate == 0 ? Seconds() : seconds(tree_latency(levels, place) + payload / rate);
}

std::size_t widest_level(const GroupPlace& place) {
  std::size_t widest = 0;
  for (std::size_t l = 0; l < place.inside.size(); ++l) {
    if (crosses(place, l)) widest = l;
  }
  return widest;
}

/// One message to a neighbour along the axes: over the widest level that neighbours cross.
Seconds send_time(const std::vector<Level>& levels, const GroupPlace& place, double payload) {
  const Level& level = levels[widest_level(place)];
  return level.latency + seconds(payload / link_rate(level, place));
}

/// Of several groups of devices: the levels of the first, and the link that joins them.
std::vector<Level> joined_levels(const Cluster& cluster) {
  if (cluster.groups.size() < 2) return {};
  std::vector<Level> levels = cluster.groups.front().levels;
  levels.push_back(cluster.between_groups);
  return levels;
}

/// The levels of the cluster, given those that are joined.
const std::vector<Level>& levels_of(const Cluster& cluster, const std::vector<Level>& joined) {
  return joined.empty() ? cluster.groups.front().levels : joined;
}

/// One more axis of the group: so many of its members as find room in a domain of each level.
void widen(GroupPlace& place, const std::vector<Level>& levels, std::int64_t degree,
           std::int64_t stride) {
  place.size *= degree;
  place.block = std::max(place.block, degree * stride);
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const bool last = l + 1 == levels.size();
    const std::int64_t room = std::max<std::int64_t>(1, levels[l].devices / stride);
    place.inside[l] *= last ? degree : std::min(degree, room);
  }
}

GroupPlace place_on(const std::vector<Level>& levels, const Placement& placement, AxisMask axes) {
  GroupPlace place;
  place.inside.assign(levels.size(), 1);
  std::int64_t stride = 1;
  for (std::size_t a = placement.axes.size(); a-- > 0;) {
    const std::int64_t degree = placement.axes[a].degree;
    if ((axes >> a & 1U) != 0) widen(place, levels, degree, stride);
    stride *= degree;
  }
  return place;
}

/// A part of an axis, the innermost neighbours or every `apart`th.
GroupPlace narrowed(GroupPlace place, std::int64_t group, std::int64_t apart) {
  place.size = group;
  place.block = std::min(place.block, group * apart);
  for (std::int64_t& inside : place.inside) {
    inside = std::clamp<std::int64_t>(inside / apart, 1, group);
  }
  return place;
}

bool cuts_experts(const AxisPlacement& axis) {
  const auto is_cut = [](const How& how) { return how.cut == Cut::expert; };
  return is_cut(axis.how) || std::ranges::any_of(axis.overrides, is_cut, &Override::how);
}

Seconds collective_time(const std::vector<Level>& levels, const GroupPlace& place,
                        const CommunicationTerm& term, std::int64_t choices) {
  const double payload = static_cast<double>(in_bytes(term.payload));
  switch (term.collective) {
    case Collective::all_reduce:
      return all_reduce_time(levels, place, payload);
    case Collective::reduce_scatter:
    case Collective::all_gather:
      return scatter_time(levels, place, payload);
    case Collective::all_to_all:
      return all_to_all_time(levels, place, payload, choices);
    case Collective::broadcast:
      return broadcast_time(levels, place, payload);
    case Collective::send_recv:
      return send_time(levels, place, payload);
    case Collective::host_copy:
      break;
  }
  return {};
}

}  // namespace

double first_copies(std::int64_t choices, std::int64_t domains) {
  if (choices <= 1 || domains <= 1) return 1;
  const double n = real(domains);
  return n * (1 - std::pow(1 - 1 / n, real(choices))) / real(choices);
}

GroupPlace place_of(const Cluster& cluster, const Placement& placement, AxisMask axes) {
  return place_on(levels_of(cluster, joined_levels(cluster)), placement, axes);
}

Seconds all_reduce_time(const std::vector<Level>& levels, const GroupPlace& place, double payload) {
  if (place.size <= 1 || payload <= 0) return {};
  const double sent = 2 * payload * real(place.size - 1) / real(place.size);
  if (const BusCurve* curve = curve_for(levels, place)) {
    return seconds(curve_time(*curve, payload, sent));
  }
  const double rate = narrowest(levels, place);
  if (rate == 0) return {};
  const double latency = std::min(ring_latency(levels, place), tree_latency(levels, place));
  return seconds(2 * latency + sent / rate);
}

Seconds scatter_time(const std::vector<Level>& levels, const GroupPlace& place, double payload) {
  if (place.size <= 1 || payload <= 0) return {};
  if (curve_for(levels, place) != nullptr) return all_reduce_time(levels, place, payload) / 2.0;
  const double rate = narrowest(levels, place);
  if (rate == 0) return {};
  const double sent = payload * real(place.size - 1) / real(place.size);
  return seconds(ring_latency(levels, place) + sent / rate);
}

std::vector<double> level_use(const std::vector<Level>& levels, const GroupPlace& place) {
  const double rate = narrowest(levels, place);
  std::vector<double> use(levels.size(), 0);
  for (std::size_t l = 0; l < levels.size(); ++l) {
    if (crosses(place, l)) use[l] = rate / bandwidth_at(levels, place, l);
  }
  return use;
}

MessageTimer::MessageTimer(const Job& job) : job_(job) {
  if (job.cluster) joined_ = joined_levels(*job.cluster);
}

const GroupPlace& MessageTimer::place(AxisMask axes) {
  for (const auto& [known, place] : places_) {
    if (known == axes) return place;
  }
  const std::vector<Level>& levels = levels_of(*job_.cluster, joined_);
  return places_.emplace_back(axes, place_on(levels, job_.placement, axes)).second;
}

Seconds MessageTimer::call(const CommunicationTerm& term) {
  if (!job_.cluster || job_.cluster->groups.empty()) return {};
  if (term.collective == Collective::host_copy) {
    const DeviceGroup& group = job_.cluster->groups.front();
    return term.payload / (term.nvme ? nvme_rate(group) : group.host_link);
  }
  const std::vector<Level>& levels = levels_of(*job_.cluster, joined_);
  const GroupPlace& own = place(term.axes);
  const bool part = term.group < own.size && term.collective != Collective::send_recv;
  const std::int64_t choices = choices_of(term);
  return part ? collective_time(levels, narrowed(own, term.group, term.apart), term, choices)
              : collective_time(levels, own, term, choices);
}

std::int64_t MessageTimer::choices_of(const CommunicationTerm& term) const {
  const bool first_only = job_.profile.timing.exchanges_once_per_domain;
  if (!first_only || term.collective != Collective::all_to_all) return 1;
  for (std::size_t a = 0; a < job_.placement.axes.size(); ++a) {
    const bool is_in = (term.axes >> a & 1U) != 0;
    if (is_in && cuts_experts(job_.placement.axes[a])) return job_.model.figures.experts_per_token;
  }
  return 1;
}

const std::vector<Level>& MessageTimer::levels() const { return levels_of(*job_.cluster, joined_); }

std::vector<double> MessageTimer::use(AxisMask axes) { return level_use(levels(), place(axes)); }

std::vector<double> MessageTimer::use_of_send(AxisMask axes) {
  std::vector<double> use(levels().size(), 0);
  use[widest_level(place(axes))] = 1;
  return use;
}

Seconds MessageTimer::all(const CommunicationTerm& term) {
  return call(term) * static_cast<double>(term.count);
}

Seconds MessageTimer::host(const CommunicationTerm& term) {
  if (!job_.cluster || job_.cluster->groups.empty()) return {};
  const DeviceGroup& group = job_.cluster->groups.front();
  const std::int64_t near = std::min(term.group, place(term.axes).inside.front());
  const Seconds each =
      group.host_per_neighbour * real(near - 1) + group.host_per_member * real(term.group - near);
  return each * real(term.count);
}

Seconds MessageTimer::copies(const CommunicationTerm& term) const {
  const EngineTiming& timing = job_.profile.timing;
  if (timing.launches_per_member == 0 || !job_.cluster || term.group <= 1) return {};
  const Seconds shortest = slowest_group(*job_.cluster).device.rates.kernel;
  const std::int64_t launches = timing.launches_per_member * (term.group - 1) * term.count;
  return std::max(timing.host_per_launch, shortest) * real(launches);
}

Seconds call_time(const Job& job, const CommunicationTerm& term) {
  return MessageTimer(job).call(term);
}

Seconds term_time(const Job& job, const CommunicationTerm& term) {
  return MessageTimer(job).all(term);
}

}  // namespace placet
