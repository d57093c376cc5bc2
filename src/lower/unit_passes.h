// One unit forward and backward as procedures (docs/theory.md §6.5). Inside of lower/.
#pragma once

#include <vector>

#include "lower/parameters.h"
#include "lower/writer.h"

namespace placet {

/// What all units of a job share.
struct Lowering {
  const Job& job;
  const ModelReference& model;
  const Mesh& mesh;
  const Layouts& layouts;
  Program& program;
  Writer& writer;
};

/// Procedures of one kind of unit.
struct UnitProcedures {
  int forward = -1;
  int backward = -1;
};

/// The stream that enters unit u, and its gradient, of micro-batch j.
BufferRef stream_buffer(Lowering& in, bool gradient, std::int64_t units_further);
Spread stream_spread(Lowering& in);

/// Buffers of what a micro-batch brings: token ids, labels, weights.
BufferRef input_buffer(Lowering& in, int input);
/// The number of weighted tokens of the step.
BufferRef count_buffer(Lowering& in);
/// The weighted sum of the losses of all tokens of the step.
BufferRef loss_buffer(Lowering& in);

/// Writes both procedures of a kind of the reference. `recomputed`: forward keeps only the unit's
/// input, and backward runs it again. Notes in the plans along which axes gradients are partial.
UnitProcedures write_unit(Lowering& in, UnitParameters& parameters, int kind, bool recomputed);

}  // namespace placet
