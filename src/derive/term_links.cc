// Over which link a message goes: where the members of its groups stand on the levels of the
// cluster (docs/theory.md §5, links).
#include <algorithm>

#include "derive/derivation.h"
#include "derive/layout.h"
#include "derive/stage_devices.h"
#include "units/at.h"
#include "units/checked.h"

namespace placet {
namespace {

/// Where the groups of a collective stand. A group that is a part of its axes is of neighbours
/// along them, or of every `apart`th; places of use on several stages stand anywhere on them.
RankBlock block_of(const Placement& placement, const CommunicationTerm& term, AxisMask layers) {
  const bool anywhere = (term.axes & layers) != 0;
  std::int64_t left = anywhere ? degree_of(placement, term.axes) : term.group;
  std::int64_t skip = anywhere ? 1 : term.apart;
  std::int64_t stride = 1;
  RankBlock block;
  for (std::size_t a = placement.axes.size(); a-- > 0;) {
    const std::int64_t degree = placement.axes[a].degree;
    if ((term.axes & axis_bit(static_cast<int>(a))) != 0) {
      const std::int64_t step = std::min(skip, degree);
      const std::int64_t take = std::clamp<std::int64_t>(left, 1, degree / step);
      block.span += (take - 1) * step * stride;
      if (take > 1) block.size = checked_multiply(stride, step * take, "devices");
      left /= take;
      skip /= step;
    }
    stride = checked_multiply(stride, degree, "devices");
  }
  return block;
}

/// Two stages of a pipeline: ranks `first` + c and `first` + `distance` + c, for c below `stride`,
/// and the same in each further block of `size` ranks.
struct Boundary {
  std::int64_t first = 0;
  std::int64_t distance = 0;
  std::int64_t stride = 1;
  std::int64_t size = 1;
};

/// Whether some pair lies on two sides of a multiple of `domain`.
bool crosses_domain(const Boundary& b, std::int64_t devices, std::int64_t domain) {
  const std::int64_t blocks = std::min(devices / b.size, domain);
  for (std::int64_t o = 0; o < blocks; ++o) {
    const std::int64_t base = o * b.size + b.first;
    if ((base + b.distance + b.stride - 1) / domain > base / domain) return true;
  }
  return false;
}

/// Whether some pair lies in two groups of devices: of the pairs that begin before its end, the
/// last one reaches furthest.
bool crosses_groups(const Boundary& b, std::int64_t devices, const Cluster& cluster) {
  std::int64_t end = 0;
  for (const DeviceGroup& group : cluster.groups) {
    end += group.count;
    if (end >= devices) return false;
    if (end <= b.first) continue;
    const std::int64_t blocks = std::min(devices / b.size - 1, (end - 1 - b.first) / b.size);
    if (end <= b.first + blocks * b.size + b.distance + b.stride - 1) return true;
  }
  return false;
}

/// The slowest of the levels that the pairs cross, of devices of these groups.
const Level& level_of_boundary(const Cluster& cluster, const GroupSet& groups, const Boundary& b,
                               std::int64_t devices) {
  if (crosses_groups(b, devices, cluster)) return cluster.between_groups;
  const Level* slowest = nullptr;
  for (const std::size_t g : groups) {
    const std::vector<Level>& levels = cluster.groups[g].levels;
    std::size_t l = 0;
    while (l + 1 < levels.size() && crosses_domain(b, devices, levels[l].devices)) ++l;
    if (slowest == nullptr || levels[l].bandwidth < slowest->bandwidth) slowest = &levels[l];
  }
  return *slowest;
}

/// The only axis of the mask; -1: none, or several.
int only_axis(const Placement& placement, AxisMask mask) {
  int found = -1;
  for (std::size_t a = 0; a < placement.axes.size(); ++a) {
    if ((mask & axis_bit(static_cast<int>(a))) == 0 || placement.axes[a].degree == 1) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(a);
  }
  return found;
}

/// Devices of the pipeline to which one of its devices sends: those of the stages after its own,
/// in backward of those before.
std::vector<std::int64_t> peers_of(const Schedule& schedule, std::int64_t degree, int device,
                                   Phase phase) {
  std::vector<std::int64_t> peers;
  const std::int64_t stages = virtual_stages(schedule, degree);
  for (std::int64_t c = 0; c < schedule.chunks; ++c) {
    const std::int64_t own = hosted_stage(schedule, degree, device, c);
    const std::int64_t other = phase == Phase::forward ? own + 1 : own - 1;
    if (other < 0 || other >= stages) continue;
    const std::int64_t peer = host_of(schedule, degree, other, c).device;
    if (peer != device) peers.push_back(peer);
  }
  return peers;
}

/// Messages between stages: the slowest of the boundaries that the device sends over. With none to
/// send to: its innermost links.
const Level& level_of_send(const Job& job, const CommunicationTerm& term, int stage, int axis) {
  const Placement& placement = job.placement;
  const GroupSet groups = groups_of_stage(*job.cluster, placement, stage);
  const std::int64_t degree = placement.axes[at(axis)].degree;
  AxisMask inner = 0;
  for (std::size_t a = at(axis) + 1; a < placement.axes.size(); ++a) {
    inner |= axis_bit(static_cast<int>(a));
  }
  const std::int64_t stride = degree_of(placement, inner);
  const Level* slowest = nullptr;
  for (const std::int64_t peer : peers_of(job.schedule, degree, stage, term.phase)) {
    const auto [low, high] = std::minmax({peer, static_cast<std::int64_t>(stage)});
    const Boundary boundary{.first = low * stride,
                            .distance = (high - low) * stride,
                            .stride = stride,
                            .size = stride * degree};
    const Level& own = level_of_boundary(*job.cluster, groups, boundary, devices_of(placement));
    if (slowest == nullptr || own.bandwidth < slowest->bandwidth) slowest = &own;
  }
  return slowest != nullptr ? *slowest : level_of(*job.cluster, groups, RankBlock{});
}

}  // namespace

const Level& level_of_term(const Job& job, const CommunicationTerm& term, int stage) {
  AxisMask layers = 0;
  for (std::size_t a = 0; a < job.placement.axes.size(); ++a) {
    if (job.placement.axes[a].how.cut == Cut::layer) layers |= axis_bit(static_cast<int>(a));
  }
  const int axis = only_axis(job.placement, term.axes & layers);
  const bool to_neighbour = term.collective == Collective::send_recv && axis >= 0;
  if (to_neighbour && degree_of(job.placement, term.axes & ~layers) == 1) {
    return level_of_send(job, term, stage, axis);
  }
  const RankBlock block = block_of(job.placement, term, layers);
  if (degree_of(job.placement, term.axes & layers) > 1) return level_of(*job.cluster, block);
  return level_of(*job.cluster, groups_of_stage(*job.cluster, job.placement, stage), block);
}

}  // namespace placet
