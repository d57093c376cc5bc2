// Runs of step programs on real numbers, for people and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "execute/run.h"
#include "placement/finding.h"
#include "report/style.h"
#include "report/verdict.h"

namespace placet {

/// A figure that was derived beside the same one measured.
struct Beside {
  std::string what;
  std::optional<std::int64_t> derived;  // none: the derivation has no such figure
  std::int64_t measured = 0;
};

struct RunSheet {
  JudgedProgram judged;
  RealRun run;
  bool as_it_is = true;      // the job's own program, not one made small
  std::vector<Beside> sent;  // bytes of a step by collective and axes, and in all
  std::vector<Beside> held;  // bytes at rest and at the peak
  bool is_watched = false;
  bool tells_times = false;         // which differ from call to call, as the next does
  std::int64_t resident_bytes = 0;  // memory of the largest of the run's processes, at most
  std::string corpus;  // the file of text that was trained on; empty: samples were drawn
  std::string saved;   // the folder with the state after the last step; empty: none

  bool is_good() const { return run.equal && run.watched.empty(); }
};

/// One line for a step: its loss, and whether one device has the same bits.
std::string step_text(const StepLoss& step);
std::string run_text(const RunSheet& sheet, const TextStyle& style);
/// A self-contained page.
std::string run_page(const RunSheet& sheet);
/// What each rank did when, for chrome://tracing and Perfetto: one process per rank, one thread for
/// what it computes and one for messages.
std::string ran_trace_json(const RunSheet& sheet);
/// Schema placet.run/1.
std::string run_json(const RunSheet& sheet, const std::vector<Finding>& rules = {});

}  // namespace placet
