// The result of a search for plans with everything that reports say about it: placements as text,
// what binds, proofs, neighbours, margins.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "placement/strategy.h"
#include "search/explain.h"
#include "search/prove.h"

namespace placet {

/// A neighbour in words.
struct NeighbourLine {
  std::string axis;    // what is chosen otherwise
  std::string choice;  // and how: "tp=4", "full"
  std::optional<PlanFigures> figures;
  std::string against;  // why it is no plan: a rule, or memory
};

struct PlanLine {
  FoundPlan found;
  std::string placement;
  std::string recompute;
  std::string binds;
  std::optional<double> cost;  // of a step, US dollars
  bool pareto = false;         // none of the space is as good in time, memory and bytes sent
  PlanProof proof;
  std::vector<NeighbourLine> neighbours;
};

struct PlanSheet {
  const Job* base = nullptr;
  PlanGoal goal = PlanGoal::time;
  double memory_fraction = 1;
  std::string constraints;  // as they were asked for
  std::string command;      // flags that repeat the job, without placement
  PlanCounts counts;
  double seconds = 0;  // of the search
  std::vector<PlanLine> plans;
  std::vector<PlanMargin> margins;
  std::optional<PlanShortage> shortage;
  std::string shortage_placement;  // of the plan with least memory
};

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
