#include "check/both_judges.h"

#include <gtest/gtest.h>

#include "algebra/verify.h"
#include "check/check.h"
#include "program/fault.h"

namespace placet::testing {

std::pair<int, int> equal_and_wrong(const Program& program, const std::string& fault) {
  int equal = 0;
  int wrong = 0;
  const std::size_t matches = list_matches(program, fault_from(fault + ")")).size();
  for (std::size_t n = 1; n <= matches; ++n) {
    const Fault one = fault_from(fault + ", nth=" + std::to_string(n) + ")");
    const Program mutant = with_faults(program, {one});
    const bool is_equal = verify(mutant).equal;
    EXPECT_EQ(check(mutant).equivalent, is_equal) << one.text;
    ++(is_equal ? equal : wrong);
  }
  return {equal, wrong};
}

}  // namespace placet::testing
