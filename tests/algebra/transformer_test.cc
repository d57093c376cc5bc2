// Whole models: their references against programs that divide the samples, on all devices.
#include <gtest/gtest.h>

#include "algebra/data_parallel.h"
#include "algebra/small_step.h"
#include "algebra/verify.h"
#include "model/build.h"
#include "model/shapes.h"
#include "program/wellformed.h"

namespace placet {
namespace {

ModelReference reference_of(const Architecture& architecture, std::int64_t samples) {
  return reference_of(build_model(architecture),
                      {.samples = samples, .tokens = 4, .rules = {{"m", "v"}}, .clips = true});
}

void expect_equal(const Architecture& architecture) {
  const Program program = data_parallel(reference_of(architecture, 5), 2, 2);
  require_wellformed(program, {.where = "data parallel"});
  const Verification v = verify(program);
  EXPECT_TRUE(v.equal) << v.stuck.value_or("") << (v.witness.empty() ? "" : v.witness[0].tensor);
  EXPECT_LT(v.error_probability, 1e-12);
}

TEST(TransformerTest, GatedMlpAndGroupedHeads) { expect_equal(small_llama(2)); }

TEST(TransformerTest, ASharedEmbedding) {
  Architecture a = small_llama(1);
  a.head.tied = true;
  expect_equal(a);
}

TEST(TransformerTest, BiasesAndAFusedProjection) {
  Architecture a = small_gpt();
  for (auto& shape : a.shapes) {
    for (Sublayer& sublayer : shape) {
      for (Branch& branch : sublayer.branches) {
        if (auto* attention = std::get_if<Attention>(&branch.mixer)) attention->dropout = 0;
      }
    }
  }
  expect_equal(a);
  // Dropout: numbers drawn for another name, and positions counted within the device's own part.
  Program key = data_parallel(reference_of(a, 4), 2, 1);
  Program positions = key;
  std::size_t drawing = 0;
  for (std::size_t i = 0; i < instructions_of(key).size(); ++i) {
    Instruction& what = instructions_of(key)[i].what();
    if (what.label != "dropout") continue;
    if (drawing++ == 0) what.key.name = "another";
    instructions_of(positions)[i].what().positions.clear();
  }
  EXPECT_GT(drawing, 0U);
  EXPECT_FALSE(verify(key).equal);
  EXPECT_FALSE(verify(positions).equal);
}

TEST(TransformerTest, ChosenExperts) { expect_equal(small_moe()); }

TEST(TransformerTest, EightDevices) {
  const Verification v = verify(data_parallel(reference_of(small_llama(2), 8), 8, 1));
  EXPECT_TRUE(v.equal) << v.stuck.value_or("");
  EXPECT_EQ(v.ranks, 8);
}

// One application of the backward pass left out: found by some parameter, in the first step or the
// second.
TEST(TransformerTest, AMissingShareOfAGradient) {
  const Program program = data_parallel(reference_of(small_llama(1), 4), 2, 1);
  std::size_t found = 0;
  std::size_t tried = 0;
  for (std::size_t n = 0;; ++n) {
    Program mutant = program;
    std::vector<InstructionPlace> sums;
    for (const InstructionPlace& place : instructions_of(mutant)) {
      if (place.what().kind == InstructionKind::accumulate) sums.push_back(place);
    }
    if (n == sums.size()) break;
    sums[n].body->erase(sums[n].body->begin() + static_cast<std::ptrdiff_t>(sums[n].index));
    ++tried;
    if (!verify(mutant).equal) ++found;
  }
  // All of them: what flows nowhere, such as the gradient of the largest logit, is not made.
  EXPECT_EQ(found, tried);
  EXPECT_GT(tried, 30U);
}

}  // namespace
}  // namespace placet
