// Many random jobs of each dialect.
#include <gtest/gtest.h>

#include "round_trip.h"

namespace placet {
namespace {

TEST(RoundTripTest, ManyRandomJobsReadAsTheyWereWritten) { round_trips(5000); }

}  // namespace
}  // namespace placet
