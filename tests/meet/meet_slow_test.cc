// Peaks of more than 20,000 placements that have a step program; how many meet in messages and in
// what rests is printed.
#include <gtest/gtest.h>

#include <iostream>
#include <vector>

#include "meet/meet_jobs.h"

namespace placet::testing {
namespace {

class ManyMeetings : public ::testing::TestWithParam<int> {};

TEST_P(ManyMeetings, InPeaks) {
  MeetJobs jobs(static_cast<std::uint32_t>(10'000 + GetParam()), dense_models());
  const Tallied tallied = jobs.compare(2'600, {Figure::peak});
  EXPECT_GE(tallied.lowered, 500);
  EXPECT_TRUE(tallied.parted.empty()) << tallied.parted.size() << " part\n" << text_of(tallied);
  std::cout << text_of(tallied) << "\n";
}

/// Samples 22, 27 and 31 have a placement each that parts (docs/theory.md §6.10).
std::vector<int> samples_that_meet() {
  std::vector<int> samples;
  for (int sample = 0; sample < 40; ++sample) {
    if (sample != 22 && sample != 27 && sample != 31) samples.push_back(sample);
  }
  return samples;
}

INSTANTIATE_TEST_SUITE_P(Placements, ManyMeetings, ::testing::ValuesIn(samples_that_meet()));

class ManyMeetingsOfExperts : public ::testing::TestWithParam<int> {};

TEST_P(ManyMeetingsOfExperts, InMessagesRestAndPeaks) {
  MeetJobs jobs(static_cast<std::uint32_t>(20'000 + GetParam()), expert_models());
  const Tallied tallied = jobs.compare(1'000, {Figure::messages, Figure::rest, Figure::peak});
  EXPECT_GE(tallied.lowered, 200);
  EXPECT_TRUE(tallied.parted.empty()) << tallied.parted.size() << " part\n" << text_of(tallied);
  std::cout << text_of(tallied) << "\n";
}

// Samples 7 and 8 have a placement each that parts (docs/theory.md §6.10).
INSTANTIATE_TEST_SUITE_P(Placements, ManyMeetingsOfExperts,
                         ::testing::Values(0, 1, 2, 3, 4, 5, 6, 9));

}  // namespace
}  // namespace placet::testing
