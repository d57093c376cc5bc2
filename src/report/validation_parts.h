// The words of validations. Inside of report/validation.
#pragma once

#include <string>
#include <vector>

#include "report/validation.h"

namespace placet {

/// "3.14 %"; with a sign: "+3.14 %".
std::string percent(double share);
std::string signed_percent(double share);

/// A figure of a prediction, in its unit.
std::string figure_text(const Prediction& prediction, double value);

/// Numbers in the order of their size, words in that of the alphabet.
std::vector<std::string> names_in_order(const SummaryTable& summaries);

/// The totals, and each group of rows; the one that is not scored is not in the totals.
SummaryTable memory_groups(const Validation& validation);
SummaryTable time_groups(const Validation& validation);

/// What the table has, what was assumed of it, and what is not free of fitting.
std::vector<std::string> sentences_of(const Validation& validation);

/// How well layouts are ranked; empty without groups.
std::string ranking_text(const Validation& validation);

/// Whether the tolerance is kept; empty if none was asked for.
std::string tolerance_text(const Validation& validation, const ValidationReport& report);

}  // namespace placet
