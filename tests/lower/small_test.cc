// Small programs of the same shape as large ones.
#include "lower/small.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lower/catalogue_jobs.h"

namespace placet::testing {
namespace {

std::int64_t extent_of(const Program& program, const std::string& dim) {
  const auto found = std::ranges::find(program.dims, dim, &LogicalDim::name);
  return found == program.dims.end() ? 0 : found->extent;
}

// A causal attention sees the first token alone from the first token: each of two parts has two.
TEST(SmallTest, NoPartIsTheFirstTokenAlone) {
  const Program gathered = lower_small(load({"llama-3.1-8b", "dp=2:zero1 cp=2:gather+zero1"}));
  EXPECT_EQ(extent_of(gathered, "token"), 4);
  const Program exchanged = lower_small(load({"qwen2.5-7b", "dp=2:zero1 cp=2:heads+zero1"}));
  EXPECT_EQ(extent_of(exchanged, "token"), 4);
}

// Axes are as short as divisors of their degrees; of a large prime as of any other degree.
TEST(SmallTest, AxesAreDivisorsOfTheirDegrees) {
  const auto devices = [](const std::string& placement) {
    const Program program = lower_small(load({"llama-3.1-8b", placement}));
    std::int64_t all = 1;
    for (std::size_t a = 0; a + 1 < program.axes.size(); ++a) all *= program.axes[a].degree;
    return all;
  };
  EXPECT_EQ(devices("dp=128:zero1"), 2);
  EXPECT_EQ(devices("dp=9:zero1"), 3);
  EXPECT_EQ(devices("dp=97:zero1"), 2);
  EXPECT_EQ(devices("cp=4:ring+zero1"), 4);
  EXPECT_EQ(devices("cp=6:ring+zero1"), 3);
  EXPECT_EQ(devices("cp=2:ring+zero1"), 2);
}

// A table of learned positions has a row for every token.
TEST(SmallTest, PositionsAreAsManyAsTokens) {
  const Program program = lower_small(load({"gpt2", "dp=2:zero1 cp=2:gather+zero1"}));
  EXPECT_EQ(extent_of(program, "token"), 4);
  EXPECT_EQ(extent_of(program, "position"), 4);
}

// Where attention has all tokens, two are enough, and other dims have one entry in each part.
TEST(SmallTest, OtherDimsAreAsShortAsTheirDivisionsAllow) {
  const Program program = lower_small(load({"llama-3.1-8b", "dp=2:zero1 tp=2:tp"}));
  EXPECT_EQ(extent_of(program, "token"), 2);
  EXPECT_EQ(extent_of(program, "ffn"), 2);
}

// 50257 tokens over two devices are 25129 and 25128: of three, the first has two.
TEST(SmallTest, DimsThatDoNotDivideDoNotDivideEither) {
  const Program program = lower_small(load({"gpt2", "dp=2:ddp tp=2:tp+sp"}));
  EXPECT_EQ(extent_of(program, "vocab"), 3);
  EXPECT_EQ(extent_of(program, "ffn"), 2);
}

}  // namespace
}  // namespace placet::testing
