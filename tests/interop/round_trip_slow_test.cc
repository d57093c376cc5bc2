// Many random jobs of each dialect.
#include <gtest/gtest.h>

#include "round_trip.h"

namespace placet {
namespace {

class RoundTrip : public ::testing::TestWithParam<std::string> {};

TEST_P(RoundTrip, ManyRandomJobsReadAsTheyWereWritten) { round_trips(GetParam(), 5000); }

INSTANTIATE_TEST_SUITE_P(OfDialects, RoundTrip, ::testing::ValuesIn(sayable_dialects()));

}  // namespace
}  // namespace placet
