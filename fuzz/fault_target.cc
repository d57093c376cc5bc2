// Faults, one per line, applied to a small program: what comes out is a program of the grammar or
// is refused.
#include <algorithm>
#include <string>
#include <vector>

#include "catalog/job.h"
#include "lower/small.h"
#include "program/fault.h"
#include "program/text.h"
#include "program/wellformed.h"
#include "target.h"

namespace placet::fuzz {
namespace {

constexpr std::size_t kMostFaults = 4;  // more of them do nothing that two do not

Program small_program() {
  return lower_small(load_job(find_catalog(), {.model = "gpt2",
                                               .placement = "pp=2:1f1b dp=2:zero2 tp=2:tp+sp",
                                               .sequence = 64,
                                               .global_batch = 8,
                                               .clip = 1}));
}

}  // namespace

std::string_view target_name() { return "fault"; }

void read_one(std::string_view text) {
  static const Program kProgram = small_program();
  std::vector<Fault> faults;
  while (!text.empty() && faults.size() < kMostFaults) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    faults.push_back(fault_from(std::string(line)));
  }
  const Program program = with_faults(kProgram, faults);
  require_wellformed(program, {.where = "program"});
  ensure(program_from(to_text(program), "print") == program,
         "the print of a program with faults reads as the same program");
}

}  // namespace placet::fuzz
