// What one device holds and computes: the local sizes of every parameter and value of a job, and
// along which axes each tensor is cut, sharded or partial (docs/theory.md §2, §4.2).
//
// Sizes are those of the fullest device of its class, or of one given rank.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "derive/prepared.h"
#include "layout/step_plan.h"
#include "profile/job.h"

namespace placet {

/// One parameter of a unit on one device. "Along an axis" is a bit of a mask.
struct LocalParameter {
  std::int64_t elements = 0;  // the device computes with, after compute cuts, padding included
  std::int64_t padding = 0;   // of these, padding of the vocabulary
  AxisMask cut = 0;           // the axis divides the tensor itself
  AxisMask partial = 0;       // its gradient is P along the axis
  AxisMask shared = 0;        // of these: a tensor cut leaves it whole between cut work
  AxisMask rests_in_part =
      0;                    // Θ rests divided, used whole: gathered for use (S*, O of batch cuts)
  AxisMask persistent = 0;  // Θ would rest divided, but is small and stays whole
  AxisMask materialized = 0;           // Θ = M
  std::array<AxisMask, 4> divided{};   // by state: axes that divide the bytes at rest (beyond cut)
  AxisMask scattered_each = 0;         // G is reduced to its owner per micro-batch (S, O)
  AxisMask deferred = 0;               // G is reduced to its owner once, after the last micro-batch
  std::optional<Dtype> waits_in;       // what G is added up in meanwhile
  AxisMask consumed = 0;               // G = M
  AxisMask owned = 0;                  // Ω = S or O: the update runs on a part
  AxisMask regathered = 0;             // Ω = S*: the update sees it whole
  std::int64_t replicas = 1;           // kv heads shared by this many neighbours of the tensor axes
  AxisMask replica_axes = 0;           // along these
  std::int64_t replicated = 0;         // of `elements`, those of such heads
  std::array<std::int64_t, 3> rest{};  // elements at rest of Θ, Ω, G; host part included
  bool trainable = true;
  bool narrow = false;     // only products in fewer bits take it (PreparedParameter)
  Keep keep = Keep::none;  // the least of the axes it is gathered from
  AxisMask kept = 0;       // axes whose gather stays from forward to backward, at least
  AxisMask kept_step = 0;  // of these: over the micro-batches of a step
  std::int64_t rows = 1;   // local length of its first dim
  /// Its last two dims, as optimizers that are not elementwise see them: local lengths (one row if
  /// there is only one dim), and the axes that cut them.
  std::int64_t matrix_rows = 1, matrix_columns = 1;
  AxisMask cut_rows = 0, cut_columns = 0;
  std::array<Rational, 3> on_host{};  // fraction of Θ, Ω, G kept off the device
  std::array<bool, 3> on_nvme{};      // that fraction is on NVMe, not in host memory
  std::optional<Medium> update;       // where the update is told to run
};

/// A unit kind as seen under one set of block-range overrides.
struct LocalUnit {
  int kind = 0;
  std::vector<LocalParameter> parameters;
  std::vector<std::int64_t> values;  // elements by value, on roots and others alike
  std::vector<std::int64_t>
      gathered;  // elements of the same value whole on a parallel region's input
};

struct Layout {
  const Job* job = nullptr;
  const Prepared* prepared = nullptr;
  StepPlan plan;
  std::optional<std::vector<std::int64_t>> coordinates;  // of the device; none: the fullest
  std::vector<LocalUnit> units;                          // distinct local units
  std::vector<int> unit_of;          // by position in Model::units: index into `units`
  std::int64_t micro_batches = 1;    // per step
  std::int64_t micro_batch = 1;      // samples of a micro-batch on this device
  std::int64_t tokens = 0;           // of a sample on this device inside parallel regions
  std::int64_t residual_tokens = 0;  // on the residual stream
  std::int64_t data_degree = 1;      // product of axes that cut samples or tokens of dense work
  std::int64_t tensor_degree = 1;
  std::int64_t stages = 1;  // product of layer axes
  AxisMask batch_axes = 0, sequence_axes = 0, tensor_axes = 0, layer_axes = 0;  // of dense tensors
  AxisMask split_residual_axes = 0;  // tensor axes whose residual stream is divided (A = S*)
  bool cuts_both_sides = false;  // some tensor axis cuts the stream's columns and other indices too
};

/// Axes over which a parameter is gathered for use: it rests in part along them, or is rebuilt from
/// state that does.
AxisMask gathered_axes(const LocalParameter& parameter);

/// Axes that divide a parameter's row of elements, in the order in which messages do: what Θ keeps
/// divided before what is gathered after the update, scatters of the micro-batch before those at
/// the end of the step, so that each is a beginning of what divides it further.
std::array<AxisMask, 5> row_order(const LocalParameter& parameter);

/// What shards of the parameter are cut of: the engine's grain, or its own for what is gathered for
/// use.
ShardGrain grain_of(const Profile& profile, const LocalParameter& parameter);

/// The elements with padding up to a multiple: 10 to a multiple of 4 is 12. Throws
/// std::overflow_error past 2^63.
std::int64_t padded(std::int64_t elements, std::int64_t multiple);

/// Product of the degrees of the axes in `mask`.
std::int64_t degree_of(const Placement& placement, AxisMask mask);

/// Those of the axes in `mask` that have more than one device.
AxisMask real_axes(const Placement& placement, AxisMask mask);

/// The largest and the smallest share of `total` pieces over the axes in `mask`, by their shares.
/// Case: 11 over an axis with shares 4,4,3: 4 and 3.
std::int64_t largest_part(const Placement& placement, std::int64_t total, AxisMask mask);
std::int64_t smallest_part(const Placement& placement, std::int64_t total, AxisMask mask);

/// The share of `total` pieces over the axes in `mask` that the device laid out has. The second: of
/// a parameter's elements, in the order in which its axes divide them.
std::int64_t own_part(const Layout& layout, std::int64_t total, AxisMask mask);
std::int64_t own_part(const Layout& layout, const LocalParameter& parameter, std::int64_t total,
                      AxisMask mask);

/// Lays a job out for the fullest device, or for the rank with these coordinates (one per axis).
Layout lay_out(const Job& job, const Prepared& prepared,
               const std::optional<std::vector<std::int64_t>>& coordinates = std::nullopt);

/// The same for the fullest device, without the sizes of values: LocalUnit::values and
/// LocalUnit::gathered are empty.
Layout lay_out_parameters(const Job& job, const Prepared& prepared);

/// Micro-batches that go through a chunk in a step: in a bidirectional pipeline each direction has
/// half of them.
std::int64_t micro_batches_of_chunk(const Layout& layout);

/// Whether the stages do backward in two parts, for values and for weights.
bool splits_backward(const Layout& layout);

}  // namespace placet
