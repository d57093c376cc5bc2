#include "derive/collective_time.h"

#include <algorithm>
#include <cmath>

#include "units/at.h"

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

/// Of several groups of devices: the levels of each, and the link that joins them.
std::vector<std::vector<Level>> joined_levels(const Cluster& cluster) {
  std::vector<std::vector<Level>> out;
  if (cluster.groups.size() < 2) return out;
  for (const DeviceGroup& group : cluster.groups) {
    out.push_back(group.levels);
    out.back().push_back(cluster.between_groups);
  }
  return out;
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

/// A part of an axis, the innermost neighbours or every `apart`th.
GroupPlace narrowed(GroupPlace place, std::int64_t group, std::int64_t apart) {
  place.size = group;
  place.block = std::min(place.block, group * apart);
  for (std::int64_t& inside : place.inside) {
    inside = std::clamp<std::int64_t>(inside / apart, 1, group);
  }
  return place;
}

/// Whether members of the axes' groups are of several stages.
bool joins_stages(const Placement& placement, AxisMask axes) {
  for (std::size_t a = 0; a < placement.axes.size(); ++a) {
    const AxisPlacement& axis = placement.axes[a];
    if ((axes >> a & 1U) != 0 && axis.how.cut == Cut::layer && axis.degree > 1) return true;
  }
  return false;
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

GroupPlace place_of(const std::vector<Level>& levels, const Placement& placement, AxisMask axes) {
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
  if (!job.cluster) return;
  all_ = all_groups(*job.cluster);
  joined_ = joined_levels(*job.cluster);
}

const std::vector<Level>& MessageTimer::levels_of(std::size_t group) const {
  return joined_.empty() ? job_.cluster->groups[group].levels : joined_[group];
}

const GroupPlace& MessageTimer::place(AxisMask axes, std::size_t group) {
  for (const Place& known : places_) {
    if (known.axes == axes && known.group == group) return known.place;
  }
  const GroupPlace place = place_of(levels_of(group), job_.placement, axes);
  return places_.emplace_back(axes, group, place).place;
}

template <class Time>
Seconds MessageTimer::longest(const CommunicationTerm& term, const GroupSet& devices, Time time) {
  Seconds out;
  for (const std::size_t g : joins_stages(job_.placement, term.axes) ? all_ : devices) {
    out = std::max(out, time(g));
  }
  return out;
}

Seconds MessageTimer::call_on(const CommunicationTerm& term, std::size_t group) {
  const std::vector<Level>& levels = levels_of(group);
  const GroupPlace& own = place(term.axes, group);
  const bool part = term.group < own.size && term.collective != Collective::send_recv;
  const GroupPlace place = part ? narrowed(own, term.group, term.apart) : own;
  return collective_time(levels, place, term, choices_of(term)) +
         further_broadcasts(levels, place, term);
}

std::int64_t MessageTimer::updated_tensors() const {
  std::int64_t tensors = 0;
  for (const Unit& unit : job_.model.units) {
    const auto& parameters = job_.model.kinds[at(unit.kind)].parameters;
    tensors += std::ranges::count_if(parameters,
                                     [](const Parameter& p) { return p.trainable && !p.tied; });
  }
  std::int64_t stages = 1;
  for (const AxisPlacement& axis : job_.placement.axes) {
    if (axis.how.cut == Cut::layer) stages *= axis.degree;
  }
  return std::max<std::int64_t>(1, tensors / stages);
}

Seconds MessageTimer::further_broadcasts(const std::vector<Level>& levels, const GroupPlace& place,
                                         const CommunicationTerm& term) const {
  const bool updated = term.phase == Phase::update && term.state == State::parameters &&
                       term.collective == Collective::all_gather;
  if (!job_.profile.timing.broadcasts_updates || !updated) return {};
  const std::int64_t owners = std::min(place.size, updated_tensors());
  return seconds(ring_latency(levels, place) * real(owners - 1));
}

Seconds MessageTimer::call(const CommunicationTerm& term, const GroupSet& devices) {
  return longest(term, devices, [&](std::size_t g) {
    const DeviceGroup& group = job_.cluster->groups[g];
    if (term.collective != Collective::host_copy) return call_on(term, g);
    return term.payload / (term.nvme ? nvme_rate(group) : group.host_link);
  });
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

const std::vector<Level>& MessageTimer::levels() const { return levels_of(0); }

std::vector<double> MessageTimer::use(AxisMask axes) { return level_use(levels(), place(axes, 0)); }

std::vector<double> MessageTimer::use_of_send(AxisMask axes) {
  std::vector<double> use(levels().size(), 0);
  use[widest_level(place(axes, 0))] = 1;
  return use;
}

Seconds MessageTimer::all(const CommunicationTerm& term, const GroupSet& devices) {
  return call(term, devices) * static_cast<double>(term.count);
}

Seconds MessageTimer::host(const CommunicationTerm& term, const GroupSet& devices) {
  return longest(term, devices, [&](std::size_t g) {
    const DeviceGroup& group = job_.cluster->groups[g];
    const std::int64_t near = std::min(term.group, place(term.axes, g).inside.front());
    const Seconds each =
        group.host_per_neighbour * real(near - 1) + group.host_per_member * real(term.group - near);
    return each * real(term.count);
  });
}

Seconds MessageTimer::copies(const CommunicationTerm& term, const GroupSet& devices) {
  const EngineTiming& timing = job_.profile.timing;
  if (timing.launches_per_member == 0 || term.group <= 1) return {};
  const std::int64_t launches = timing.launches_per_member * (term.group - 1) * term.count;
  return longest(term, devices, [&](std::size_t g) {
    const Seconds shortest = job_.cluster->groups[g].device.rates.kernel;
    return std::max(timing.host_per_launch, shortest) * real(launches);
  });
}

Seconds call_time(const Job& job, const CommunicationTerm& term) {
  if (!job.cluster) return {};
  return MessageTimer(job).call(term, all_groups(*job.cluster));
}

Seconds term_time(const Job& job, const CommunicationTerm& term) {
  return call_time(job, term) * real(term.count);
}

}  // namespace placet
