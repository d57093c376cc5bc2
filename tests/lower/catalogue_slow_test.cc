// The whole list, and how long it is.
#include <gtest/gtest.h>

#include "catalog/model_catalog.h"
#include "check/check.h"
#include "check/disguise.h"
#include "lower/catalogue_jobs.h"
#include "lower/lower.h"
#include "program/text.h"
#include "program/wellformed.h"
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
    if (!fault.empty()) continue;
    ++proved;
    for (const Program& program : {lower(load(job)), lower_small(load(job))}) {
      EXPECT_TRUE(is_right(disguised(program))) << job.model << " " << job.placement;
    }
  }
  std::printf("%d jobs proved and run\n", proved);
  EXPECT_GE(proved, 300);
}

TEST(WholeCatalogue, ReadsBackInFullSize) {
  int read = 0;
  for (const std::string& model : model_names(find_catalog())) {
    for (const char* placement : {"dp=2:zero1 tp=2:tp", "pp=2:1f1b dp=2:zero3"}) {
      try {
        const Program program = lower(load({model, placement}));
        require_wellformed(program, {.where = "program"});
        EXPECT_TRUE(program_from(to_text(program), "program") == program) << model;
        ++read;
      } catch (const InputError& refused) {
        const std::string why = refused.what();
        EXPECT_NE(why.find("no step program yet"), std::string::npos) << model << ": " << why;
      }
    }
  }
  EXPECT_GE(read, 250);
}

}  // namespace
}  // namespace placet::testing
