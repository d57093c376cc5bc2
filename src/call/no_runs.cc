// A page runs nothing: kernels for numbers, of a finite field too, and files of states are the
// program's.
#include "algebra/verify.h"
#include "call/experiments.h"
#include "call/runs.h"
#include "units/error.h"

namespace placet {
namespace {

[[noreturn]] void refuse_runs(const std::string& where) {
  throw InputError({.where = where,
                    .problem = "is what the program placet does on your machine, not a page",
                    .allowed = "derive, simulate, plan, compare, check or lint"});
}

}  // namespace

RanProgram ran_of(const Catalog&, const RunRequest&, const JobRequest&) { refuse_runs("run"); }
Verification verify(const Program&, const VerifyOptions&) { refuse_runs("verify"); }
Experiment experiment_of(const Catalog&, const std::string&, const ExperimentSetting&) {
  refuse_runs("run.experiment");
}

}  // namespace placet
