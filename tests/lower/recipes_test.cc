// Well-known public trainings (recipes.json): each is proved on its small program, run over a
// finite field, and says what it leaves out.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "algebra/verify.h"
#include "catalog/job.h"
#include "check/check.h"
#include "lower/small.h"

namespace placet::testing {
namespace {

using RecipeJson = nlohmann::json;

const RecipeJson& recipes() {
  static const RecipeJson kAll =
      RecipeJson::parse(std::ifstream(PLACET_SOURCE_DIR "/tests/lower/recipes.json"))["recipes"];
  return kAll;
}

JobRequest request_of(const RecipeJson& job) {
  const auto text = [&](const char* key) {
    return job.contains(key) ? std::optional(job.at(key).get<std::string>()) : std::nullopt;
  };
  JobRequest request{.model = text("model"), .placement = text("placement")};
  request.sequence = job.at("seq").get<std::int64_t>();
  request.global_batch = job.at("global_batch").get<std::int64_t>();
  request.micro_batch = job.at("micro_batch").get<std::int64_t>();
  request.optimizer = text("optimizer");
  request.balance_loss = text("balance_loss");
  request.recompute = text("recompute");
  request.lora = text("lora");
  if (job.contains("clip")) request.clip = job.at("clip").get<double>();
  return request;
}

class Recipe : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Recipe, IsJudgedRight) {
  const RecipeJson& recipe = recipes()[GetParam()];
  const Job job = load_job(find_catalog(), request_of(recipe.at("job")));
  const Program program = lower_small(job);
  EXPECT_TRUE(check(program).equivalent);
  EXPECT_TRUE(verify(program).equal);
  EXPECT_EQ(job.model.left_out, recipe.at("leaves_out").get<std::vector<std::string>>());
}

INSTANTIATE_TEST_SUITE_P(OfThePublic, Recipe, ::testing::Range<std::size_t>(0, recipes().size()));

TEST(Recipes, AreAsManyAsTheTheorySays) { EXPECT_EQ(recipes().size(), 34U); }

}  // namespace
}  // namespace placet::testing
