// One unit on a device, as the rules of memory, communication and time see it. Inside of derive.
#pragma once

#include "derive/layout.h"
#include "units/at.h"

namespace placet {

/// A local unit with all that is known of it, recomputed or not. The layout outlives it.
struct UnitView {
  UnitView(const Layout& of, int number, bool recomputed)
      : layout(of),
        job(*of.job),
        local(of.units[at(number)]),
        kind(job.model.kinds[at(local.kind)]),
        prepared(of.prepared->kinds[at(local.kind)]),
        plan(recomputed ? prepared.recomputed : prepared.plain) {}

  /// Whether gradients that an operator makes are parts of a sum over tensor axes.
  bool gives_parts(const Operator& op) const {
    return layout.tensor_degree > 1 && job.profile.parts_stand_apart &&
           (op.region == Region::parallel || op.kind == OpKind::dispatch);
  }

  const Layout& layout;
  const Job& job;
  const LocalUnit& local;
  const UnitKind& kind;
  const PreparedKind& prepared;
  const SavedPlan& plan;
};

}  // namespace placet
