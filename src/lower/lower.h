// From a job to its step program (docs/theory.md §6.4): a short list of passes.
//
//   mesh       axes of the placement to axes of the program, split where key and value heads are
//              fewer than the devices that cut them
//   reference  what is claimed, from the model alone (program/model_reference.h)
//   layouts    how each dim is divided where: on the stream, between cut work, among experts
//   units      one procedure forward and one backward for each kind of unit
//   classes    the order of work of each stage, reduction and update
//   streams    movements on queues of their own, beside computation
//
// No strategy is known here, and nothing of the derivation: what is sent follows from where a value
// is made and where it is needed, once more and on its own.
#pragma once

#include <functional>
#include <string_view>

#include "profile/job.h"
#include "program/program.h"

namespace placet {

/// The step program of a job under the plain theory: an engine's own paths and messages do not take
/// part. Throws InputError for jobs without meaning, and for parts that have no form here yet.
Program lower(const Job& job);

/// Throws what `lower` throws for a job without a step program, without writing one.
void require_program(const Job& job);

/// The same as `lower`; `after` sees the program when the classes are written and when movements
/// have their queues, under the names "classes" and "streams". Each of these keeps to the grammar
/// (program/wellformed.h), which tests ask of them; it would take a sixth of the time of lowering.
using AfterPass = std::function<void(std::string_view pass, const Program& program)>;
Program lower(const Job& job, const AfterPass& after);

}  // namespace placet
