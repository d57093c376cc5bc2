#include "derive/flat_buffers.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "derive/shared_tensors.h"
#include "units/at.h"
#include "units/checked.h"

namespace placet {
namespace {

/// Tensors that one buffer may hold: divided alike, in the same formats, on the same media.
struct BufferKind {
  std::int64_t run = -1;  // of the units that have one each; -1: one of all units
  std::array<AxisMask, 4> divided{};
  std::optional<Dtype> dtype;
  std::optional<Dtype> waits_in;
  std::array<Rational, 3> on_host{};
  std::array<bool, 3> on_nvme{};
  bool trainable = true;
  bool narrow = false;

  friend bool operator==(const BufferKind&, const BufferKind&) = default;
};

/// The tensors of one buffer.
struct FlatBuffer {
  BufferKind kind;
  const Parameter* declared = nullptr;  // any of them
  const LocalParameter* local = nullptr;
  std::int64_t elements = 0;  // of all
  std::int64_t aligned = 0;   // where each begins at a multiple
  std::int64_t buffers = 1;   // as many, of equal units
  StateBytes of_tensors;      // each by itself, of one buffer
};

bool is_elementwise(const Job& job, const Parameter& parameter) {
  return std::ranges::all_of(states_of(job.optimizer, parameter), [](const OptimizerState& state) {
    return state.extent == OptimizerState::Extent::element;
  });
}

bool has_shares(const Placement& placement, AxisMask axes) {
  for (std::size_t a = 0; a < placement.axes.size(); ++a) {
    const bool here = (axes & axis_bit(static_cast<int>(a))) != 0;
    if (here && !placement.axes[a].shares.empty()) return true;
  }
  return false;
}

class FlatBuffers {
 public:
  FlatBuffers(const Layout& layout, const Stage& stage) : layout_(layout), stage_(stage) {}

  /// The buffers of the next run of units.
  void add(const UnitRun& run) {
    ++run_;
    const LocalUnit& local = layout_.units[at(run.local)];
    const UnitKind& kind = layout_.job->model.kinds[at(local.kind)];
    for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
      if (is_second_use(layout_.job->model, stage_, kind.parameters[p])) continue;
      add(run, kind.parameters[p], local.parameters[p]);
    }
  }

  StateBytes beyond_tensors() const {
    StateBytes sum;
    for (const FlatBuffer& buffer : buffers_) {
      StateBytes more = bytes_of_whole(buffer);
      more -= buffer.of_tensors;
      sum += more * buffer.buffers;
    }
    return sum;
  }

 private:
  AxisMask axes_of(const LocalParameter& parameter) const {
    const auto& divided = parameter.divided;
    return real_axes(layout_.job->placement, divided[0] | divided[1] | divided[2]);
  }

  void add(const UnitRun& run, const Parameter& declared, const LocalParameter& local) {
    const Job& job = *layout_.job;
    const ShardGrain grain = grain_of(job.profile, local);
    const bool flat = grain == ShardGrain::unit || grain == ShardGrain::everything;
    const AxisMask axes = axes_of(local);
    if (!flat || axes == 0 || has_shares(job.placement, axes)) return;
    if (!declared.constants.empty() || !is_elementwise(job, declared)) return;
    const bool whole = grain == ShardGrain::everything;
    FlatBuffer& buffer = buffer_of({.run = whole ? -1 : run_,
                                    .divided = local.divided,
                                    .dtype = declared.dtype,
                                    .waits_in = local.waits_in,
                                    .on_host = local.on_host,
                                    .on_nvme = local.on_nvme,
                                    .trainable = local.trainable,
                                    .narrow = local.narrow});
    buffer.declared = &declared;
    buffer.local = &local;
    const std::int64_t times = whole ? run.count : 1;
    buffer.buffers = whole ? 1 : run.count;
    const std::int64_t aligned = padded(local.elements, job.profile.align_elements);
    buffer.elements += checked_multiply(times, local.elements, "flat buffers");
    buffer.aligned += checked_multiply(times, aligned, "flat buffers");
    buffer.of_tensors += state_bytes(job, declared, local) * times;
  }

  FlatBuffer& buffer_of(const BufferKind& kind) {
    const auto found = std::ranges::find(buffers_, kind, &FlatBuffer::kind);
    if (found != buffers_.end()) return *found;
    buffers_.push_back({.kind = kind});
    return buffers_.back();
  }

  /// The states of all tensors of a buffer as those of one. Parts of the optimizer have no padding
  /// on the fullest device.
  StateBytes bytes_of_whole(const FlatBuffer& buffer) const {
    const Job& job = *layout_.job;
    const std::int64_t degree = degree_of(job.placement, axes_of(*buffer.local));
    const std::int64_t multiple =
        std::lcm(checked_multiply(degree, job.profile.pad_elements, "flat buffers"),
                 job.profile.pad_total_elements);
    const std::int64_t whole = padded(buffer.aligned, multiple);
    LocalParameter all = *buffer.local;
    for (std::size_t s = 0; s < all.rest.size(); ++s) {
      const std::int64_t parts = degree_of(job.placement, all.divided[s]);
      const bool as_padded = parts > 1 || job.profile.flat_rest == FlatRest::copies;
      all.rest[s] = as_padded ? whole / parts : buffer.elements;
    }
    all.rest[1] = std::min(all.rest[1], buffer.elements);
    return state_bytes(job, *buffer.declared, all);
  }

  const Layout& layout_;
  const Stage& stage_;
  std::int64_t run_ = -1;
  std::vector<FlatBuffer> buffers_;
};

}  // namespace

StateBytes beyond_tensors(const Layout& layout, const Stage& stage, const StageUnits& units) {
  if (layout.job->profile.flat_rest == FlatRest::none) return {};
  FlatBuffers buffers(layout, stage);
  for (const UnitRun& run : units.runs) buffers.add(run);
  return buffers.beyond_tensors();
}

StateBytes beside_wholes(const Layout& layout, const Stage& stage, const StageUnits& units) {
  StateBytes sum;
  if (!layout.job->profile.parts_beside_whole) return sum;
  for (const UnitRun& run : units.runs) {
    const LocalUnit& local = layout.units[at(run.local)];
    const UnitKind& kind = layout.job->model.kinds[at(local.kind)];
    for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
      const LocalParameter& own = local.parameters[p];
      if (own.persistent == 0 || is_second_use(layout.job->model, stage, kind.parameters[p]))
        continue;
      LocalParameter part = own;
      part.rest = {own_part(layout, own, own.elements, own.persistent), 0, 0};
      part.trainable = false;
      sum += state_bytes(*layout.job, kind.parameters[p], part) * run.count;
    }
  }
  return sum;
}

}  // namespace placet
