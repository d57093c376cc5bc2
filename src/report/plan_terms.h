// What plans come to over a whole training, over ever less memory and over numbers of devices.
// Inside of report/plans.
#pragma once

#include <string>
#include <vector>

#include "report/plan_sheet.h"
#include "report/style.h"

namespace placet {

/// Empty where it was not asked for.
std::string training_text(const PlanSheet& sheet, const TextStyle& style);
std::string front_text(const PlanSheet& sheet, const TextStyle& style);
std::string scale_text(const PlanSheet& sheet, const TextStyle& style);

inline constexpr std::size_t kBelow = 5;  // columns before what stands below a row

/// Text in lines of the style's width, all behind `indent` blanks, cut at blanks.
std::string in_lines(const TextStyle& style, const std::string& text, std::size_t indent);

/// A table with lines below each of its last rows. REQUIRES: no more of them than rows.
std::string with_below(const std::string& table, const std::vector<std::string>& below);

}  // namespace placet
