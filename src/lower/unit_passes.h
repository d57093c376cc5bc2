// One unit forward and backward as procedures (docs/theory.md §6.4). Inside of lower/.
#pragma once

#include <vector>

#include "layout/step_plan.h"
#include "lower/parameters.h"
#include "lower/writer.h"

namespace placet {

/// What all units of a job share.
struct Lowering {
  const Job& job;
  const StepPlan& step;
  const ModelReference& model;
  const Mesh& mesh;
  const Layouts& layouts;
  Program& program;
  Writer& writer;
};

/// What backward makes again of a unit's values, in place of keeping them: nothing, what the job's
/// modules make, or all that follows from the unit's input.
enum class Again : std::uint8_t { nothing, modules, everything };

/// Procedures of one kind of unit. The two parts of backward are there if the schedule splits it;
/// none of backward, -1, where neither the unit nor anything before it is trained.
struct UnitProcedures {
  int forward = -1;
  int backward = -1;
  int backward_inputs = -1;
  int backward_weights = -1;
};

/// The stream that enters unit u, and its gradient, of micro-batch j.
BufferRef stream_buffer(Lowering& in, bool gradient, std::int64_t units_further);
Spread stream_spread(Lowering& in);

/// Buffers of what a micro-batch brings: token ids, labels, weights.
BufferRef input_buffer(Lowering& in, int input);
/// The number of weighted tokens of the step.
BufferRef count_buffer(Lowering& in);
/// One of the numbers that last from step to step (Reference::numbers).
BufferRef number_buffer(Lowering& in, std::size_t number);
/// The weighted sum of the losses of all tokens of the step.
BufferRef loss_buffer(Lowering& in);

/// Writes the procedures of a kind of the reference. Notes in the plans along which axes gradients
/// are partial.
UnitProcedures write_unit(Lowering& in, UnitParameters& parameters, int kind, Again again);

}  // namespace placet
