// Watching a run: in every step what each kernel reads, and what rests at its end, is compared with
// what kernels wrote, by random linear sketches; replicas by digests (docs/theory.md §6.11).
//
// What should be where is known from a program that was proven. What is executed may be another:
// with a fault in it, or with numbers that changed on the way.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "execute/machine.h"
#include "execute/watch_plan.h"
#include "execute/watched.h"

namespace placet::execute {

/// What both programs have: their plans, and where they run.
struct PlannedProgram {
  const Program& program;
  const ranks::ProgramPlan& plan;
};

template <class Numbers>
class Watch : public CallWatcher {
 public:
  /// `proven` says what should be, `run` what is executed over `memory`; both may be the same.
  /// `unit`: how far a stored number may be from what was to be stored, relative; 0: nothing.
  Watch(PlannedProgram proven, PlannedProgram run, ranks::Mesh& mesh, const Memory<Numbers>& memory,
        double unit);

  void begin_step(int step);
  void before(std::size_t operation) override;
  void after(std::size_t operation) override;
  void end_step();

  const std::vector<WatchFinding>& findings() const { return findings_; }
  std::int64_t compared() const { return compared_; }  // readings, in all steps

 private:
  using Stored = typename Numbers::Stored;
  /// Where what has an address in the proven plan stands in the executed one; -1: nowhere.
  std::int64_t moved(std::int64_t address) const;
  void write(const Writing& writing, std::int64_t address);
  /// The sketch of what is there; none where it has another size, which is reported.
  Sketch read(int reading, std::int64_t address, std::int64_t size);
  bool agree(const Sketch& expected, const Sketch& found, const Reading& reading) const;
  void compare_replicas();
  void report_replica(std::size_t region, std::size_t same);
  void compare_arguments(std::size_t operation);
  void report(const Reading& reading, std::string condition, std::vector<std::string> axes,
              std::string problem);
  std::vector<std::string> names_of(const std::vector<int>& axes) const;

  PlannedProgram proven_;
  PlannedProgram run_;
  ranks::Mesh& mesh_;
  const Memory<Numbers>& memory_;
  double unit_;
  WatchPlan plan_;
  SketchWeights weights_;
  std::vector<ranks::BufferPlace> buffers_;  // of the proven plan, by address
  std::vector<std::int64_t> places_;         // of these in the executed plan; -1: there is none
  std::vector<int> proven_operation_;        // by executed one; -1: there is none
  std::vector<Sketch> expected_;             // by reading
  std::vector<Sketch> rests_;                // by region
  std::vector<std::string> replicas_;        // by region: equal ones are replicas
  int step_ = 0;
  std::int64_t compared_ = 0;
  std::vector<WatchFinding> findings_;
};

extern template class Watch<CanonicalNumbers>;
extern template class Watch<PlainNumbers<float>>;
extern template class Watch<PlainNumbers<double>>;

}  // namespace placet::execute
