// How axes cut one dim of a tensor: even parts, heads that several neighbours hold, segments that
// are cut each by its own index (docs/theory.md §2, Compute before storage). Inside of layout.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "derive/divider.h"
#include "model/model.h"
#include "profile/job.h"

namespace placet {

/// A dim on a device after some axes have cut it.
struct CutDim {
  std::int64_t length = 0;
  std::int64_t replicated = 0;  // of these, what `replicas` neighbours hold
  std::int64_t replicas = 1;
};

class DimCutter {
 public:
  DimCutter(const Job& job, const Divider& divider);

  /// After the axes of `mask` cut it; kv heads that are fewer than the degree are shared by
  /// neighbours, else query heads stand where their kv head does. Case: 8 query heads on 4 kv heads
  /// over shares 2,2,1,3: 2, 2, 0 and 4 (kv heads 1, 1, 0, 2), not 2, 2, 1 and 3.
  CutDim cut(const Dim& dim, AxisMask mask) const;

  /// A dim made of segments, each cut by its own index. Case: 48 query heads of 128 and the key and
  /// value of one head over 8 devices: 6 x 128 + 2 x 128 = 1024 rows, the last 256 on all 8.
  CutDim cut(const std::vector<Dim>& segments, AxisMask mask) const;

  /// A dim as the profile stores it: the vocabulary padded.
  Dim padded(Dim dim) const;

 private:
  /// Pieces of a dim that stay together under a cut.
  std::int64_t groups_of(const Dim& dim, std::int64_t degree) const;

  const Placement& placement_;
  const ModelFigures& figures_;
  const Divider& divider_;
  std::int64_t vocabulary_multiple_ = 1;  // an engine may pad to the degree of all tensor axes
};

}  // namespace placet
