// The time of a step, as text, as JSON (schema placet.timeline/1, docs/formats.md) and as a page.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "derive/step_parts.h"
#include "derive/time.h"
#include "report/judged.h"
#include "report/style.h"
#include "simulate/simulation.h"
#include "validate/error_band.h"

namespace placet {

/// A stage that is supposed to compute slower.
struct Straggler {
  int stage = 0;
  double factor = 1;
};

/// What is known of one step. REQUIRES: the time is known.
struct Timeline {
  const Judged& judged;
  const TimeDerivation& time;  // closed form: the estimate of plans
  const StepParts& parts;
  const Simulation& simulated;
  std::vector<Finding> findings;  // of the rules, then what to change first
  std::vector<Straggler> stragglers;
  Seconds undisturbed;               // simulated step without stragglers
  std::optional<ErrorBand> similar;  // measured runs of the nearest kind
};

/// "similar runs: ±4.9 % (72 of megatron on h100-sxm, dense)"; bias where it is most of the error.
std::string similar_runs_text(const ErrorBand& band, const TextStyle& style);

std::string timeline_text(const Timeline& timeline, const TextStyle& style);
std::string timeline_json(const Timeline& timeline);
/// Of a placement that means nothing: no figures, only findings.
std::string timeline_json(const Judged& judged);
std::string timeline_html(const Timeline& timeline);

/// What takes most of the step, in a word: "arithmetic", "memory bandwidth", "waiting for other
/// stages", "collectives over dp", "the host", "the update".
std::string binding_text(const Job& job, const TimeDerivation& time);

/// Exposed communication by axes; of layer axes: senders that wait.
std::vector<std::pair<std::string, Seconds>> exposed_by_axes(const Job& job,
                                                             const TimeDerivation& time);

/// "products of block over tp, forward".
std::string name_of_term(const Job& job, const TimeTerm& term);

/// The busiest device of each link: seconds at full bandwidth, by position in StepParts::links.
std::vector<Seconds> busy_links(const StepParts& parts, const Simulation& simulated);

/// The stage that computes most, and how much longer than the mean: 0.1 is 10 %.
struct Pace {
  int stage = 0;
  double above_mean = 0;
};
Pace pace_of(const Simulation& simulated);

/// Seconds of the stage's own work: passes, recomputation included.
Seconds computing(const SimulatedStage& stage);

/// Its waits for messages.
Seconds waiting(const SimulatedStage& stage);

/// Amount over time; 0 where there is none.
double rate_of(double amount, Seconds time);

/// Seconds for people: "1.23 s", "45.6 ms", "789 us".
std::string human_seconds(Seconds time);

}  // namespace placet
