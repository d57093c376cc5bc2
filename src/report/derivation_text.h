// A derivation as text: what it needs, when it peaks, what it sends, what is wrong with it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/judged.h"
#include "report/style.h"

namespace placet {

/// The whole report: heading, mesh, memory, communication, findings, verdict.
std::string derivation_text(const Judged& judged, const TextStyle& style);

/// What `--explain` may ask for: "memory", "communication", or the name of a memory category.
std::vector<std::string> explainable();

/// All terms behind a number. REQUIRES: `what` is explainable.
std::string explanation_text(const Judged& judged, const std::string& what, const TextStyle& style);

/// A finding in one line, as every subcommand says it: "divisibility, axis tp: 12 heads do not
/// divide by 8 (cure: tp=6)".
std::string finding_words(const Finding& finding);

/// Findings with their reasons and cures; empty if there are none.
std::string findings_text(const std::vector<Finding>& findings, const TextStyle& style);

/// The model: counts, FLOPs and every tensor.
std::string model_text(const Model& model, std::int64_t sequence, const TextStyle& style);

}  // namespace placet
