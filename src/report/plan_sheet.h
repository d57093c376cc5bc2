// The result of a search for plans with everything that reports say about it: placements as text,
// what binds, proofs, neighbours, margins.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "placement/strategy.h"
#include "search/explain.h"
#include "search/prove.h"
#include "validate/error_band.h"

namespace placet {

/// A neighbour in words.
struct NeighbourLine {
  std::string axis;    // what is chosen otherwise
  std::string choice;  // and how: "tp=4", "full"
  std::optional<PlanFigures> figures;
  std::string against;  // why it is no plan: a rule, or memory
};

/// What tables say of a proof: proven, broken or open.
std::string_view proof_word(PlanProof::Kind kind);

struct PlanLine {
  FoundPlan found;
  std::string placement;
  std::string recompute;
  std::string binds;
  std::optional<double> cost;  // of a step, US dollars
  bool pareto = false;  // none of the list is as good in time, memory and bytes sent, and better
  PlanProof proof;
  std::vector<NeighbourLine> neighbours;
};

/// The best plan of so many devices, all else kept.
struct ScaleLine {
  std::int64_t devices = 0;
  std::optional<PlanLine> plan;  // none: nothing fits
  bool exact = true;
  bool empty = false;  // no plan keeps the rules and the constraints
};

/// The best plan of one kind of a mixed cluster's devices alone, all else kept.
struct KindAlone {
  std::string device;  // "h100-sxm"
  std::int64_t devices = 0;
  std::optional<PlanLine> plan;  // none: nothing fits
};

/// Words of a job that were said, as a job file spells them; empty: not said.
struct SaidWords {
  std::optional<std::string> precision, lora, loss, routing, balance_loss;
  std::optional<double> clip;
  std::vector<std::string> freeze;
  std::vector<std::string> ignore_keys;
};

/// What the answer took, in seconds. Proofs and explanations are made beside each other.
struct PlanSeconds {
  double reading = 0;      // of model, cluster and choices
  double search = 0;       // for the best plans
  double proofs = 0;       // of these
  double explanation = 0;  // neighbours, margins, or what stands against any plan
  double front = 0;        // --front
  double scale = 0;        // --scale
  double total = 0;        // from the call to the answer
};

struct PlanSheet {
  const Job* base = nullptr;
  const Choices* choices = nullptr;  // what was chosen from; none: not said
  SaidWords said;
  std::string goal = "time";  // as it was asked for
  double memory_fraction = 1;
  bool max_memory_given = false;  // the fraction is what was asked for
  std::string constraints;        // as they were asked for
  std::string command;            // flags that repeat the job, without placement
  PlanCounts counts;
  PlanSeconds seconds;
  std::vector<PlanLine> plans;
  std::vector<PlanMargin> margins;
  std::optional<PlanShortage> shortage;
  std::string shortage_placement;  // of the plan with least memory
  double train_tokens = 0;         // in all; 0: not asked for
  std::vector<PlanLine> front;     // time against memory (search/front.h); empty: not asked for
  bool front_whole = false;        // nothing is smaller than the last of it, by
  double front_step = 0.02;        // this part or more; 0: at all
  std::vector<ScaleLine> scale;
  double goodput = 1;                // part of the time that makes progress
  std::vector<std::string> prices;   // "h100-sxm $4.92 an hour (source)", of devices with a price
  std::optional<ErrorBand> similar;  // measured runs of the nearest kind
  // Of mixed clusters: where what of the best plan stands, and what each kind does alone.
  std::string stands;
  std::vector<KindAlone> alone;
};

/// What training on so many tokens takes with a plan.
struct TrainingRun {
  double steps = 0;
  double days = 0;
  double device_hours = 0;
  std::optional<double> cost;  // US dollars
};
TrainingRun training_run(const PlanSheet& sheet, const PlanLine& plan, std::int64_t devices);

/// The line of one plan, without proof and neighbours.
PlanLine plan_line(const PlanSpace& space, const Vocabulary& vocabulary, const FoundPlan& found);

/// The lines of the plans, without proofs and neighbours.
std::vector<PlanLine> plan_lines(const PlanSpace& space, const Vocabulary& vocabulary,
                                 const PlanResult& result);

/// A plan's neighbours in words.
std::vector<NeighbourLine> neighbour_lines(const PlanSpace& space, const Vocabulary& vocabulary,
                                           const PlanLine& plan,
                                           const std::vector<PlanNeighbour>& neighbours);

/// Its placement as text.
std::string placement_text(const PlanSpace& space, const Vocabulary& vocabulary, const Plan& plan);

/// Its recomputation as `--recompute` takes it: "every=2".
std::string recompute_text(const PlanSpace& space, const Plan& plan);

/// The flags that make the plan's job: `--placement "..." --micro-batch 1 --recompute every=2`.
std::string plan_flags(const PlanLine& plan);

}  // namespace placet
