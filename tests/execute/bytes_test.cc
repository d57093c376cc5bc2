// What ranks send and hold in a step of a job of the catalogue, under an engine: counted at their
// communicators and in their buffers, it is what the program's own sums say, to the byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "amount.h"
#include "catalog/catalog.h"
#include "catalog/profile_catalog.h"
#include "derive/rules.h"
#include "execute/step_bytes.h"
#include "lower/catalogue_jobs.h"
#include "lower/small.h"
#include "units/error.h"

namespace placet::testing {
namespace {

bool is_refused(const Job& job) {
  return std::ranges::any_of(
      check_rules(job), [](const Finding& finding) { return finding.severity == Severity::error; });
}

std::string name_of(const CatalogueJob& job) {
  std::string text = job.engine + ": " + job.model + " " + job.placement;
  for (const std::string& more : {job.recompute, job.lora, job.balance, job.precision}) {
    if (!more.empty()) text += " " + more;
  }
  return text;
}

/// Jobs by their outcome.
struct BytesTold {
  int equal = 0;
  std::map<std::string, int> refused;  // why
};

void compare_bytes(const CatalogueJob& job, BytesTold& out) {
  try {
    const Job loaded = load(job);
    if (is_refused(loaded)) {
      ++out.refused["the rules"];
      return;
    }
    const std::vector<std::string> found = differences_in_step(lower_small(loaded));
    for (const std::string& text : found) ADD_FAILURE() << name_of(job) << ", " << text;
    if (found.empty()) ++out.equal;
  } catch (const InputError& error) {
    ++out.refused[error.what()];
  }
}

/// Jobs of an engine that are compared in daily work.
constexpr int kFewOfEngine = 40;

class BytesUnderEngine : public ::testing::TestWithParam<std::string> {};

TEST_P(BytesUnderEngine, AreThoseOfTheProgram) {
  std::vector<CatalogueJob> jobs = all_catalogue_jobs();
  std::seed_seq seed(GetParam().begin(), GetParam().end());
  std::shuffle(jobs.begin(), jobs.end(), std::mt19937(seed));
  BytesTold told;
  for (CatalogueJob& job : jobs) {
    if (!runs_all() && told.equal == kFewOfEngine) break;
    job.engine = GetParam();
    compare_bytes(job, told);
  }
  EXPECT_GT(told.equal, 0);
  std::cout << told.equal << " equal\n";
  for (const auto& [why, times] : told.refused) std::cout << times << " refused: " << why << "\n";
}

INSTANTIATE_TEST_SUITE_P(OfTheData, BytesUnderEngine,
                         ::testing::ValuesIn(profile_names(find_catalog())), name_of_engine);

}  // namespace
}  // namespace placet::testing
