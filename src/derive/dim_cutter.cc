#include "derive/dim_cutter.h"

#include <algorithm>

#include "derive/layout.h"
#include "units/checked.h"
#include "units/shares.h"

namespace placet {
namespace {

std::int64_t multiple_of_vocabulary(const Placement& placement, const Profile& profile) {
  std::int64_t multiple = profile.vocabulary_multiple;
  if (!profile.vocabulary_multiple_times_tensor_degree) return multiple;
  for (const AxisPlacement& axis : placement.axes) {
    if (axis.how.cut != Cut::tensor) continue;
    multiple = checked_multiply(multiple, axis.degree, "vocabulary padding");
  }
  return multiple;
}

}  // namespace

DimCutter::DimCutter(const Job& job, const Divider& divider)
    : placement_(job.placement),
      figures_(job.model.figures),
      divider_(divider),
      vocabulary_multiple_(multiple_of_vocabulary(job.placement, job.profile)) {}

std::int64_t DimCutter::groups_of(const Dim& dim, std::int64_t degree) const {
  const bool follows = dim.index == Index::head && dim.parts == figures_.heads &&
                       figures_.kv_heads >= degree && figures_.heads % figures_.kv_heads == 0;
  return follows ? figures_.kv_heads : dim.parts;
}

CutDim DimCutter::cut(const Dim& dim, AxisMask mask) const {
  if (mask == 0) return {.length = dim.size};
  const std::int64_t degree = degree_of(placement_, mask);
  const std::int64_t parts = groups_of(dim, degree);
  const std::int64_t piece = dim.size / parts;
  if (dim.index == Index::kv_head && dim.parts < degree && degree % dim.parts == 0) {
    return {.length = piece, .replicated = piece, .replicas = degree / dim.parts};
  }
  return {.length = checked_multiply(divider_.share(parts, mask), piece, "elements")};
}

CutDim DimCutter::cut(const std::vector<Dim>& segments, AxisMask mask) const {
  CutDim sum;
  for (const Dim& segment : segments) {
    const CutDim one = cut(segment, mask);
    sum.length = checked_add(sum.length, one.length, "elements");
    sum.replicated = checked_add(sum.replicated, one.replicated, "elements");
    sum.replicas = std::max(sum.replicas, one.replicas);
  }
  return sum;
}

Dim DimCutter::padded(Dim dim) const {
  if (dim.index != Index::vocab) return dim;
  dim.size = checked_multiply(largest_share(dim.size, vocabulary_multiple_), vocabulary_multiple_,
                              "padded vocabulary");
  dim.parts = dim.size;
  return dim;
}

}  // namespace placet
