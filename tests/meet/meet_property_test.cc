// The closed forms of derive() and the sums of the step program are the same figures, to the byte.
#include <gtest/gtest.h>

#include <iostream>

#include "meet/meet_jobs.h"

namespace placet::testing {
namespace {

/// Jobs that part are shown, at most so many.
constexpr std::size_t kMostShown = 5;

std::string report(const Tallied& tallied) {
  std::string text = std::to_string(tallied.jobs) + " jobs, " + std::to_string(tallied.lowered) +
                     " of them lowered, " + std::to_string(tallied.checked) + " checked";
  for (const auto& [why, times] : tallied.refused) {
    text += "\n" + std::to_string(times) + " not lowered: " + why;
  }
  for (std::size_t i = 0; i < tallied.parted.size() && i < kMostShown; ++i) {
    text += "\n" + tallied.parted[i];
  }
  return text;
}

class TwoDerivations : public ::testing::TestWithParam<int> {};

TEST_P(TwoDerivations, MeetInMessagesAndRest) {
  MeetJobs jobs(static_cast<std::uint32_t>(700 + GetParam()), dense_models());
  const Tallied tallied = jobs.compare(600, {Figure::messages, Figure::rest});
  EXPECT_GE(tallied.lowered, 100);
  EXPECT_TRUE(tallied.parted.empty()) << tallied.parted.size() << " part\n" << report(tallied);
  std::cout << report(tallied) << "\n";
}

INSTANTIATE_TEST_SUITE_P(OfDenseModels, TwoDerivations, ::testing::Range(0, 4));

}  // namespace
}  // namespace placet::testing
