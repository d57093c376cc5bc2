// What a step is made of, piece by piece, before anything is said about what runs beside what: the
// parts of every unit in a pass, the messages of states, the update (docs/theory.md §7.4). derive's
// own time folds these pieces into a closed form; `simulate` plays them as events. Both read the
// same costs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "derive/derivation.h"
#include "derive/pipeline_time.h"
#include "derive/prepared.h"
#include "derive/unit_time.h"

namespace placet {

/// What a message occupies of one link while it runs, 0 to 1.
struct LinkUse {
  int link = 0;  // position in StepParts::links
  double part = 1;
  friend bool operator==(const LinkUse&, const LinkUse&) = default;
};

/// A collective along some axes.
struct MessagePart {
  AxisMask axes = 0;  // none: a copy to or from host memory
  std::string_view what;
  Collective collective = Collective::all_reduce;
  Seconds time;  // alone on its links
  Bytes bytes;   // that a device sends
  friend bool operator==(const MessagePart&, const MessagePart&) = default;
};

/// One part of one unit over a micro-batch.
struct UnitPart {
  int unit = 0;  // position in Model::units, on the first stage of its kind
  std::string_view name;
  WorkPart part = WorkPart::forward;
  Seconds kernels;
  Seconds weights;    // of these: gradients of weights, which split schedules put off
  AxisTimes exposed;  // messages of values that the device waits for
  AxisTimes hidden;   // those that run beside the kernels
  Seconds wait;       // for the host
  Seconds host;       // what the host needs to launch it
};

/// A chunk's work on a micro-batch, in order: backward begins with the last unit.
struct ChunkParts {
  std::vector<UnitPart> forward;
  std::vector<UnitPart> backward;  // recomputation of a unit before its backward
  std::int64_t units = 0;          // that the chunk hosts
  bool runs_backward = true;       // something here or before it is trained
};

/// Stages that are alike share it.
struct StageParts {
  std::vector<ChunkParts> chunks;
  // Of all chunks together, over one micro-batch: a chunk has an equal part of each, of those of
  // backward if it runs backward.
  std::vector<MessagePart> forward_gathers;
  std::vector<MessagePart> backward_gathers;
  std::vector<MessagePart> backward_reductions;
  // Once per step.
  std::vector<MessagePart> reduce;
  Seconds update;
  AxisTimes after;    // parameters gathered after the update: what the next forward does not hide
  AxisTimes scalars;  // norms, flags, losses
  double message_share = 0;  // that computation and a message of a state lose beside each other
  std::int64_t units = 0;
};

/// A link that messages share: a level of the cluster, or the way to host memory (the last one).
struct LinkPart {
  std::string name;
};

struct StepParts {
  const Job* job = nullptr;
  PipelineForm form;
  Seconds message;  // of one micro-batch's stream to the next stage
  Bytes message_bytes;
  std::vector<LinkUse> message_use;
  bool sender_waits = true;
  bool gathers_beside = false;  // of parameters, beside what a pass computes
  bool gathers_beside_backward = false;
  bool reductions_beside = false;
  Seconds host_per_pass;
  Seconds host_per_step;
  std::vector<StageParts> kinds;
  std::vector<std::size_t> of_stage;    // by stage: its kind
  std::vector<std::vector<int>> shift;  // by stage, chunk: of units, from the first of its kind
  std::vector<LinkPart> links;
  std::vector<std::pair<AxisMask, std::vector<LinkUse>>> uses;  // of collectives, by their axes

  const StageParts& stage(std::size_t s) const { return kinds[of_stage[s]]; }
  std::size_t stages() const { return of_stage.size(); }
  const std::vector<LinkUse>& use_of(AxisMask axes) const;
};

/// REQUIRES: the job has a cluster with devices, and the placement means something. The job must
/// live as long as what is given.
StepParts step_parts(const Job& job, const Prepared& prepared);

}  // namespace placet
