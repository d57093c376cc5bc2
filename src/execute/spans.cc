#include "execute/spans.h"

#include "units/at.h"

namespace placet::execute {

SpanRecorder::SpanRecorder(const Program& program, const ranks::ProgramPlan& plan,
                           ranks::Mesh& mesh)
    : program_(program), plan_(plan), mesh_(mesh), start_(Clock::now()) {}

void SpanRecorder::before(std::size_t) { begin_ = Clock::now(); }

/// A collective is one operation for all that take part.
void SpanRecorder::after(std::size_t operation) {
  const auto end = Clock::now();
  const ranks::Operation& op = plan_.list.operations[operation];
  if (op.rank < 0) return;
  is_cut_short_ = is_cut_short_ || spans_.size() >= kMostSpans;
  if (is_cut_short_) return;
  const ranks::Listing& listing = *plan_.listings[at(plan_.classes[at(op.rank)])];
  const Instruction& what = *listing.instructions[at(op.instruction)].what;
  const std::chrono::duration<double> since = begin_ - start_;
  const std::chrono::duration<double> took = end - begin_;
  RanSpan span{.name = ranks::describe(what),
               .phase = std::string(name_of(what.phase)),
               .is_message = is_collective(what.kind),
               .rank = op.rank,
               .step = step_ + 1,
               .begin = since.count(),
               .seconds = took.count()};
  const bool is_met = span.is_message && what.kind != InstructionKind::send &&
                      what.kind != InstructionKind::receive;
  for (const int axis : what.axes) {
    if (span.is_message) span.axes.push_back(program_.axes[at(axis)].name);
  }
  const std::vector<int>* group = is_met ? mesh_.group(op.rank, what) : nullptr;
  if (group == nullptr) {
    spans_.push_back(std::move(span));
    return;
  }
  for (const int rank : *group) {
    span.rank = rank;
    spans_.push_back(span);
  }
}

}  // namespace placet::execute
