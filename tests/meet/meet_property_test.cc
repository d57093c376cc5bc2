// The closed forms of derive() and the sums of the step program are the same figures, to the byte.
#include <gtest/gtest.h>

#include <iostream>

#include "meet/meet_jobs.h"

namespace placet::testing {
namespace {

TEST(TwoDerivations, Meet) {
  MeetJobs jobs(7, {"gpt2", "llama-3.2-1b", "falcon-7b", "mistral-7b-v0.1", "gpt-neox-20b"});
  const Tallied tallied = jobs.compare(400, {Figure::messages, Figure::rest});
  std::cout << tallied.jobs << " jobs, " << tallied.lowered << " lowered; met: messages "
            << tallied.met.at(Figure::messages) << ", rest " << tallied.met.at(Figure::rest) << "\n";
  for (const auto& [why, times] : tallied.refused) std::cout << times << " " << why << "\n";
  for (const std::string& one : tallied.parted) std::cout << one << "\n";
}

}  // namespace
}  // namespace placet::testing
