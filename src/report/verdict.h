// Verdicts of the checker and of the algebraic run, for people and as JSON.
#pragma once

#include <string>

#include "algebra/verify.h"
#include "check/check.h"
#include "placement/finding.h"
#include "profile/job.h"
#include "report/style.h"

namespace placet {

/// A sentence, the five conditions, and each counterexample.
std::string verdict_text(const Verdict& verdict, const TextStyle& style);
/// Schema placet.verdict/1; with methods, why each is another training and what it keeps; with what
/// the rules of jobs say (derive/rules.h), as every subcommand says it.
std::string verdict_json(const Verdict& verdict, const std::vector<Method>& methods = {},
                         const std::vector<Finding>& rules = {});

/// Of a job without meaning, which has no step to judge: what the rules say.
std::string unjudged_text(const std::vector<Finding>& rules, const TextStyle& style);
std::string unjudged_json(const std::vector<Finding>& rules);

/// What a page says of the program that was judged.
struct JudgedProgram {
  std::string title;                  // model and placement, or a file
  std::vector<std::string> faults;    // that were put into it
  std::vector<std::string> accepted;  // what was left out of the judgement
  std::vector<Method> methods;
  std::string run_as;  // the small job that stands for it; empty: itself
};

/// The same as a page.
std::string verdict_page(const JudgedProgram& judged, const Verdict& verdict);
std::string verification_page(const JudgedProgram& judged, const Verification& run);

/// A sentence for each method: why it is another training, and what it keeps.
std::string methods_text(const std::vector<Method>& methods, const TextStyle& style);
/// One counterexample: the condition and the tensor, then a line for each part.
std::string finding_text(const CheckFinding& finding, const TextStyle& style);

/// A sentence, and the entries that differ.
std::string verification_text(const Verification& run, const TextStyle& style);
/// Schema placet.verdict/1 with the keys of the algebraic run. `verdict`, the checker's of the same
/// program, tells which conditions are broken where the run shows that values differ; what the run
/// does not show holds as far as it goes and is listed under "not_judged".
std::string verification_json(const Verification& run, Verdict verdict,
                              const std::vector<Finding>& rules = {});

}  // namespace placet
