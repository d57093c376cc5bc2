// Predictions beside measurements, as text and as JSON.
#pragma once

#include <optional>
#include <string>

#include "report/style.h"
#include "validate/validation.h"

namespace placet {

struct ValidationReport {
  std::optional<double> tolerance;  // asked for: the mean error must not be larger
  bool constants = false;           // list the facts, too
};

/// Whether the judgement is good: without a tolerance always; otherwise if the mean absolute error
/// of the deciding figures is not above it, and there are any.
bool is_within(const Validation& validation, const ValidationReport& report);

/// Errors in all and by group, source, model and degree; fit against out of memory; the worst rows;
/// why rows were left out.
std::string validation_text(const Validation& validation, const ValidationReport& report,
                            const TextStyle& style);

/// The same as a page, with predicted figures drawn over measured ones.
std::string validation_html(const Validation& validation, const ValidationReport& report);

/// Schema placet.validation/1.
std::string validation_json(const Validation& validation, const ValidationReport& report);

}  // namespace placet
