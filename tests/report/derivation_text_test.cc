#include "report/derivation_text.h"

#include <gtest/gtest.h>

#include <sstream>

#include "report/hand_made.h"
#include "report/human.h"
#include "report/memory_bars.h"

namespace placet {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(DerivationTextTest, SaysWhatIsAsked) {
  const std::string text = derivation_text(hand_made(), {.width = 100});
  EXPECT_TRUE(has(text, "tiny  1.00 K parameters, 8 devices of test:1\n")) << text;
  EXPECT_TRUE(has(text, "placement  pp=2:1f1b dp=4:zero1\n")) << text;
  EXPECT_TRUE(has(text, "32 samples of 128 tokens, 4 micro-batches of 2 per device")) << text;
  EXPECT_TRUE(has(text, "Memory  peak 45.0 GB per device, at update (stage 0, 4 devices)")) << text;
  EXPECT_TRUE(has(text, "20.0 GB   44.4 %")) << text;
  EXPECT_TRUE(has(text, "capacity     80.0 GB (74.5 GiB), 56.2 % used")) << text;
  EXPECT_TRUE(has(text, "dp    reduce scatter  gradients      4      2  12.0 GB  100 %  inside"))
      << text;
  EXPECT_TRUE(has(text, "experts  expert")) << text;
  EXPECT_TRUE(text.ends_with("fits: 45.0 GB of 80.0 GB per device (56 %)\n")) << text;
}

TEST(DerivationTextTest, IsPlainAsciiInAPipe) {
  for (const char c : derivation_text(hand_made(), {.width = 80})) {
    EXPECT_LT(static_cast<unsigned char>(c), 0x80U);
    EXPECT_NE(c, '\x1b');
  }
}

TEST(DerivationTextTest, KeepsToTheWidth) {
  for (const int width : {80, 100, 160}) {
    std::istringstream lines(derivation_text(hand_made(), {.unicode = true, .width = width}));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(columns_of(line), static_cast<std::size_t>(width)) << line;
    }
  }
}

TEST(DerivationTextTest, SamePrintsTheSame) {
  EXPECT_EQ(derivation_text(hand_made(), {}), derivation_text(hand_made(), {}));
}

TEST(DerivationTextTest, APipelineOfManyStagesIsShortened) {
  Judged judged = hand_made();
  for (int stage = 2; stage < 64; ++stage) {
    judged.derivation.memory.push_back(judged.derivation.memory[1]);
    judged.derivation.memory.back().stage = stage;
  }
  const std::string text = derivation_text(judged, {.width = 100});
  EXPECT_TRUE(has(text, "(40 classes between them are lower)")) << text;
}

TEST(FindingsTextTest, ErrorsFirstWithTheirCures) {
  const std::string text = findings_text(
      {{.rule = "traffic", .severity = Severity::advice, .where = "axis pp", .message = "m"},
       {.rule = "divisibility",
        .severity = Severity::error,
        .where = "axis tp",
        .message = "8 heads do not divide by 3",
        .cure = "tp=4"}},
      {.width = 80});
  EXPECT_EQ(text,
            "Findings\n"
            "  error     divisibility, axis tp\n"
            "            8 heads do not divide by 3\n"
            "            cure: tp=4\n"
            "  advice    traffic, axis pp\n"
            "            m\n\n");
}

TEST(ExplanationTest, ShowsTermsWithTheirFactors) {
  const std::string text = explanation_text(hand_made(), "optimizer", {.width = 120});
  EXPECT_TRUE(has(text, "moments of block")) << text;
  EXPECT_TRUE(has(text, "dp:1/4")) << text;
  EXPECT_TRUE(has(text, "20,000,000,000")) << text;
  EXPECT_FALSE(has(text, "kept")) << text;
  const std::string sent = explanation_text(hand_made(), "communication", {.width = 120});
  EXPECT_TRUE(has(sent, "8,000,000,000  12,000,000,000")) << sent;
}

TEST(ModelTextTest, CountsExactly) {
  const std::string text = model_text(hand_made().job->model, 128, {});
  EXPECT_TRUE(has(text, "parameters   1,000 (1.00 K)")) << text;
}

TEST(DerivationTextTest, SaysWhatIsTrained) {
  EXPECT_FALSE(has(derivation_text(hand_made(), {.width = 100}), "trained"));
  Judged judged = hand_made();
  Job job = *judged.job;
  job.model.kinds[0].parameters[0].trainable = false;
  job.model.kinds[0].parameters.push_back(
      {.name = "a.lora_A.weight", .dims = {{.index = Index::hidden, .size = 10, .parts = 10}}});
  judged.job = std::make_shared<const Job>(job);
  const std::string text = derivation_text(judged, {.width = 100});
  EXPECT_TRUE(
      has(text, "trained    10 of 1,010 parameters (0.99 %): a; frozen parameters rest in bf16\n"))
      << text;
}

// Letters stand in the bars of several classes unless blocks in colours do: they are explained.
TEST(MemoryTextTest, LettersAreExplainedWhereTheyAreUsed) {
  const auto with = [](bool colour, bool unicode) {
    return memory_text(hand_made(), {.colour = colour, .unicode = unicode, .width = 100});
  };
  const std::string legend = "P parameters, O optimizer, G gradients";
  EXPECT_TRUE(has(with(false, false), legend));
  EXPECT_TRUE(has(with(false, true), legend));
  EXPECT_TRUE(has(with(true, false), legend));
  EXPECT_FALSE(has(with(true, true), legend));
}

}  // namespace
}  // namespace placet
