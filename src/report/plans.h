// Plans for people and as JSON (schema placet.plans/1, docs/formats.md).
#pragma once

#include <string>

#include "report/plan_sheet.h"
#include "report/style.h"

namespace placet {

std::string plans_text(const PlanSheet& sheet, const TextStyle& style);
std::string plans_json(const PlanSheet& sheet);
/// A self-contained page.
std::string plans_html(const PlanSheet& sheet);

/// One line while a search runs: "1,234 of 5,678,900 plans judged or excluded, best 12.3 s".
std::string progress_text(const PlanProgress& progress);

}  // namespace placet
