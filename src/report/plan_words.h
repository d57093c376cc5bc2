// What plans come to in words and cells, the same in text and on pages. Inside of report/plans.
#pragma once

#include <string>
#include <vector>

#include "report/plan_sheet.h"

namespace placet {

/// Its placement, micro-batch and recomputation.
std::string plan_words(const PlanLine& plan);

/// "1.909 s".
std::string step_words(Seconds step);

/// "84.8 GB (99 %)": of the smallest device.
std::string memory_words(const PlanSheet& sheet, const PlanFigures& figures);

/// "8584": tokens per second of one of so many devices.
std::string rate_words(const PlanFigures& figures, std::int64_t devices);

/// "broken: ..." or "not proven: ..."; empty: proven.
std::string proof_words(const PlanLine& plan);

/// The best plan with its figures, or that there is none.
std::string answer_words(const PlanSheet& sheet);

/// What was searched, and what that proves; plans that rules exclude, by rule; of what each plan is
/// the best. The second and the third may be empty.
std::string searched_words(const PlanSheet& sheet);
std::string rejected_words(const PlanSheet& sheet);
/// Which placements were candidates at all; empty: not known.
std::string space_words(const PlanSheet& sheet);
std::string variants_words(const PlanSheet& sheet);

/// What binds the first plan and what a step of it costs.
/// Of a mixed cluster: where what stands, and what mixing gains; empty for others.
std::vector<std::string> mixed_words(const PlanSheet& sheet);

std::string bound_words(const PlanSheet& sheet);

/// "+2.9 %", or "same".
std::string change_words(Seconds from, Seconds to);

/// "1.25x compute": what there is more of.
std::string margin_words(const PlanMargin& margin);

/// Cells of a plan with one choice changed: what, step, memory or what is against it, to what.
std::vector<std::string> neighbour_cells(const PlanLine& plan, const NeighbourLine& line);

/// More tokens per second than the first plan has, as a part: 0.029.
double gain_of(const PlanSheet& sheet, const PlanMargin& margin);

/// Why there is no plan, sentence by sentence. REQUIRES: a shortage.
std::vector<std::string> shortage_words(const PlanSheet& sheet);

/// What a step costs, or training where tokens were given; "-": no price.
std::string price_words(const PlanSheet& sheet, const PlanLine& plan, std::int64_t devices);

/// What is behind the last plan of the front.
std::string front_end_words(const PlanSheet& sheet);

/// Cells of the plans by number of devices: devices, step, tokens per second and device, these as a
/// part of the first plan's, memory, time of training, price. What stands below or beside them: the
/// plan.
std::vector<std::string> scale_cells(const PlanSheet& sheet, const ScaleLine& line);
std::string scale_words(const ScaleLine& line);

/// The command that says where the first plan's time goes. REQUIRES: one that repeats the job.
std::string simulate_words(const PlanSheet& sheet);

/// "3.5 days", "7.0 hours".
std::string duration(double days);

/// "$12.34 million", "$1,234.50", "$0.10"; below a cent two digits: "$0.0034".
std::string dollars(double amount);

}  // namespace placet
