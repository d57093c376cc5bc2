// Lowered jobs are the training of one device, in two independent opinions.
#include <gtest/gtest.h>

#include "lower/catalogue_jobs.h"

namespace placet::testing {
namespace {

class FewJobs : public ::testing::TestWithParam<CatalogueJob> {};

TEST_P(FewJobs, AreEquivalentAndEqual) { EXPECT_EQ(fault_of(GetParam()), ""); }

INSTANTIATE_TEST_SUITE_P(OfTheCatalogue, FewJobs, ::testing::ValuesIn(few_catalogue_jobs()));

}  // namespace
}  // namespace placet::testing
