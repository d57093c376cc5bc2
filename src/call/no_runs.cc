// A page runs nothing: kernels for numbers and files of states are the program's.
#include "call/experiments.h"
#include "call/runs.h"
#include "units/error.h"

namespace placet {
namespace {

[[noreturn]] void refuse_runs(const std::string& where) {
  throw InputError({.where = where,
                    .problem = "is what the program placet does on your machine, not a page",
                    .allowed = "derive, simulate, plan, compare, check or verify"});
}

}  // namespace

RanProgram ran_of(const Catalog&, const RunRequest&, const JobRequest&) { refuse_runs("run"); }
Experiment experiment_of(const Catalog&, const std::string&) { refuse_runs("run.experiment"); }

}  // namespace placet
