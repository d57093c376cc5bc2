#include "derive/fit.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "derive/device_classes.h"
#include "derive/stage_devices.h"
#include "derive/stages.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

/// Stages beside one that decides are looked at where it comes this near a limit.
constexpr double kNear = 0.1;

Bytes sum_of(const std::array<Bytes, 4>& medium) {
  Bytes sum;
  for (const Bytes part : medium) sum += part;
  return sum;
}

/// A kind of host: what its processes use together of its memory and its NVMe drives.
struct HostUse {
  Bytes capacity, memory, nvme;

  std::int64_t room() const { return in_bytes(capacity) - in_bytes(memory); }
};

/// By group of devices. The devices of a host stand side by side, so the largest class with devices
/// of the group bounds each. A job of fewer devices has no more processes.
std::vector<HostUse> host_uses(const Job& job, const std::vector<MemoryClass>& classes) {
  const Cluster& cluster = *job.cluster;
  std::vector<HostUse> out(cluster.groups.size());
  for (const MemoryClass& own : classes) {
    for (const std::size_t g :
         groups_of_class(cluster, job.placement, own.stage, own.coordinates)) {
      out[g].memory = std::max(out[g].memory, sum_of(own.on_host));
      out[g].nvme = std::max(out[g].nvme, sum_of(own.on_nvme));
    }
  }
  for (std::size_t g = 0; g < out.size(); ++g) {
    const std::int64_t processes = std::min(cluster.groups[g].per_host, devices_of(job.placement));
    out[g].capacity = cluster.groups[g].host_memory;
    out[g].memory = out[g].memory * processes;
    out[g].nvme = out[g].nvme * processes;
  }
  return out;
}

/// The worst grade of all classes, and of the hosts.
void grade(Derivation& out) {
  out.fit = FitGrade::fits;
  for (MemoryClass& memory : out.memory) {
    memory.fit = grade_of(memory);
    out.fit = std::max(out.fit, memory.fit);
  }
  if (out.host_used > out.host_capacity && out.capacity > Bytes()) out.fit = FitGrade::too_large;
}

/// Blocks that are made again several at a time are not replayed: there the figure is the bytes
/// alive.
bool can_replay(const Job& job) {
  return job.profile.caches_blocks && job.recompute.kind != Recompute::Kind::uniform;
}

/// Replays the steps of one device of a class.
class Replays {
 public:
  Replays(const Job& job, const Prepared& prepared, const Layout* whole)
      : job_(job), prepared_(prepared), whole_(whole) {}

  void replay(MemoryClass& memory) {
    if (memory.replayed) return;
    const std::optional<Bytes> limit =
        memory.capacity > Bytes() ? std::optional(memory.capacity) : std::nullopt;
    note_reserved(reserve(layout_of(memory), memory.stage, limit), memory);
  }

  const Layout& whole() {
    if (whole_ == nullptr)
      whole_ = &layouts_.emplace_back(std::vector<std::int64_t>{}, lay_out(job_, prepared_)).second;
    return *whole_;
  }

 private:
  const Layout& layout_of(const MemoryClass& memory) {
    if (memory.coordinates.empty()) return whole();
    for (const auto& [coordinates, layout] : layouts_) {
      if (coordinates == memory.coordinates) return layout;
    }
    return layouts_.emplace_back(memory.coordinates, lay_out(job_, prepared_, memory.coordinates))
        .second;
  }

  const Job& job_;
  const Prepared& prepared_;
  const Layout* whole_;
  std::deque<std::pair<std::vector<std::int64_t>, Layout>> layouts_;  // by a class's coordinates
};

/// Classes of devices that host equal units: they differ in what they hold in flight, and in their
/// shares along uneven axes.
struct Alike {
  StageUnits units;
  std::vector<MemoryClass*> classes;  // the fullest first
};

std::vector<Alike> alike_classes(const Job& job, Replays& replays, Derivation& out) {
  const std::vector<StageUnits> units = units_by_stage(replays.whole(), stages_of(job));
  std::vector<Alike> groups;
  for (MemoryClass& memory : out.memory) {
    const StageUnits& own = units[at(memory.stage)];
    const auto same = std::ranges::find_if(
        groups, [&](const Alike& other) { return are_alike(other.units, own); });
    if (same == groups.end()) {
      groups.push_back({own, {&memory}});
    } else {
      same->classes.push_back(&memory);
    }
  }
  const auto part = [](const MemoryClass* memory) { return memory->peak / memory->capacity; };
  for (Alike& group : groups) std::ranges::stable_sort(group.classes, std::greater<>(), part);
  return groups;
}

/// Whether no class with equal units that holds less can be graded worse.
bool decides_for_all(const MemoryClass& memory) {
  const double part = needed(memory) / memory.capacity;
  return memory.fit == FitGrade::too_large || part < (1 - kFitMargin) * (1 - kNear);
}

void judge(const Job& job, Replays replays, Derivation& out) {
  if (!can_replay(job) || !runs(out) || out.capacity == Bytes()) return;
  for (const Alike& group : alike_classes(job, replays, out)) {
    for (MemoryClass* memory : group.classes) {
      replays.replay(*memory);
      memory->fit = grade_of(*memory);
      if (decides_for_all(*memory)) break;
    }
  }
  grade(out);
}

}  // namespace

std::string_view name_of(FitGrade grade) {
  switch (grade) {
    case FitGrade::fits:
      return "fits";
    case FitGrade::tight:
      return "tight";
    case FitGrade::too_large:
      return "does not fit";
  }
  fail_internally("every grade has a name");
}

Bytes most_needed(const Derivation& derivation) {
  Bytes most;
  for (const MemoryClass& memory : derivation.memory) most = std::max(most, needed(memory));
  return most;
}

FitGrade grade_of(const MemoryClass& memory) {
  if (memory.capacity == Bytes()) return FitGrade::fits;
  const double part = needed(memory) / memory.capacity;
  if (part > 1) return FitGrade::too_large;
  return part > 1 - kFitMargin || memory.gives_back ? FitGrade::tight : FitGrade::fits;
}

void note_reserved(const Reservation& own, MemoryClass& memory) {
  memory.outside = std::max(memory.outside, own.outside);
  memory.reserved = std::max(memory.peak - memory.outside, own.reserved);
  memory.gives_back = own.gives_back;
  memory.replayed = true;
}

void judge_capacity(const Job& job, Derivation& out) {
  if (!job.cluster || job.cluster->groups.empty()) return;
  out.capacity = smallest_memory(*job.cluster);
  const std::vector<Bytes> capacities = capacities_of(*job.cluster, job.placement, out.memory);
  for (std::size_t c = 0; c < out.memory.size(); ++c) out.memory[c].capacity = capacities[c];
  const std::vector<HostUse> hosts = host_uses(job, out.memory);
  const HostUse& tightest =
      *std::ranges::min_element(hosts, {}, [](const HostUse& own) { return own.room(); });
  out.host_capacity = tightest.capacity;
  out.host_used = tightest.memory;
  out.nvme_used = std::ranges::max(hosts, {}, &HostUse::nvme).nvme;
  grade(out);
}

void judge_reserved(const LaidOut& laid_out, const Prepared& prepared, Derivation& out) {
  const Job& job = *laid_out.layout.job;
  judge(job, Replays(job, prepared, &laid_out.layout), out);
}

void judge_reserved(const Job& job, const Prepared& prepared, Derivation& out) {
  judge(job, Replays(job, prepared, nullptr), out);
}

Finding tight_finding(const Derivation& out) {
  const bool cached = std::ranges::any_of(out.memory, &MemoryClass::gives_back);
  return {.rule = "tight-memory",
          .severity = Severity::warning,
          .message = cached
                         ? "the job runs only because the allocator gives cached blocks back when "
                           "the device is full, which takes time and may fail"
                         : "less of the device's memory is left than reserved memory is "
                           "predicted to: the job may run out of it",
          .cure = "a smaller micro-batch, more recomputation, or states divided over more devices"};
}

void reserve_shown(const Job& job, const Prepared& prepared, ShownClasses shown, Derivation& out) {
  if (!can_replay(job) || out.memory.empty()) return;
  Replays replays(job, prepared, nullptr);
  if (shown == ShownClasses::fullest) {
    replays.replay(*std::ranges::max_element(out.memory, {}, &MemoryClass::peak));
  } else {
    for (MemoryClass& memory : out.memory) replays.replay(memory);
  }
  grade(out);
}

}  // namespace placet
