// When each operation of a run began and how long it took, for a trace.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "execute/machine.h"
#include "execute/ran_span.h"
#include "ranks/plan.h"

namespace placet::execute {

/// Notes the operations of all ranks, until there are `kMostSpans`; later ones are left out.
class SpanRecorder : public CallWatcher {
 public:
  SpanRecorder(const Program& program, const ranks::ProgramPlan& plan, ranks::Mesh& mesh);

  void begin_step(int step) { step_ = step; }
  void before(std::size_t operation) override;
  void after(std::size_t operation) override;
  const std::vector<RanSpan>& spans() const { return spans_; }
  bool is_cut_short() const { return is_cut_short_; }  // some were left out

 private:
  using Clock = std::chrono::steady_clock;

  const Program& program_;
  const ranks::ProgramPlan& plan_;
  ranks::Mesh& mesh_;
  Clock::time_point start_;
  Clock::time_point begin_;
  int step_ = 0;
  std::vector<RanSpan> spans_;
  bool is_cut_short_ = false;
};

}  // namespace placet::execute
