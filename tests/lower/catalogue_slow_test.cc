// The whole list, and how long it is.
#include <gtest/gtest.h>

#include "lower/catalogue_jobs.h"
#include "units/error.h"

namespace placet::testing {
namespace {

TEST(WholeCatalogue, IsEquivalentAndEqual) {
  int proved = 0;
  for (const CatalogueJob& job : all_catalogue_jobs()) {
    std::string fault;
    try {
      fault = fault_of(job);
    } catch (const InputError& refused) {
      // A model that has too few heads or blocks for a placement, or parts without a form yet.
      std::printf("refused %s %s: %s\n", job.model.c_str(), job.placement.c_str(), refused.what());
      continue;
    } catch (const InternalError& broken) {
      fault = broken.what();
    }
    EXPECT_EQ(fault, "") << job.model << " " << job.placement << " " << job.recompute;
    if (fault.empty()) ++proved;
  }
  std::printf("%d jobs proved and run\n", proved);
  EXPECT_GE(proved, 300);
}

}  // namespace
}  // namespace placet::testing
