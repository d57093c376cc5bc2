// Verdicts of the checker and of the algebraic run, for people and as JSON.
#pragma once

#include <string>

#include "algebra/verify.h"
#include "check/check.h"
#include "report/style.h"

namespace placet {

/// A sentence, the five conditions, and each counterexample.
std::string verdict_text(const Verdict& verdict, const TextStyle& style);
/// Schema placet.verdict/1.
std::string verdict_json(const Verdict& verdict);
/// One counterexample: the condition and the tensor, then a line for each part.
std::string finding_text(const CheckFinding& finding, const TextStyle& style);

/// A sentence, and the entries that differ.
std::string verification_text(const Verification& run, const Verdict& verdict,
                              const TextStyle& style);
/// Schema placet.verdict/1 with the keys of the algebraic run.
std::string verification_json(const Verification& run, const Verdict& verdict);

}  // namespace placet
