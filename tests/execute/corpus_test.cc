// Samples of a text: pieces of it, labels one byte further on.
#include "execute/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "execute/fill.h"
#include "lower/catalogue_jobs.h"
#include "lower/small.h"
#include "ranks/kernel_code.h"
#include "ranks/reference_run.h"
#include "units/error.h"

namespace placet::execute {
namespace {

const std::string kText =
    "\xff\x80 the quick brown fox jumps over the lazy dog, and then over another one";

class SamplesOfText : public ::testing::Test {
 protected:
  std::vector<std::vector<double>> ids_of(int step, const std::string& text) const {
    Meanings meanings;
    meanings.corpus = std::make_shared<const Corpus>(Corpus{.name = "text", .bytes = text});
    std::vector<std::vector<double>> all;
    for (const ranks::ReferenceTensor& tensor : reference_.tensors) {
      if (tensor.ref.kind != StateRef::Kind::input || tensor.below <= 0) continue;
      all.push_back(step_numbers(program_, reference_, tensor, meanings, step));
    }
    return all;
  }
  std::size_t tokens_in_sample() const {
    for (const ranks::ReferenceTensor& tensor : reference_.tensors) {
      if (tensor.below > 0) return static_cast<std::size_t>(tensor.extents.back());
    }
    return 0;
  }
  std::int64_t words() const {
    std::int64_t below = 256;
    for (const ranks::ReferenceTensor& tensor : reference_.tensors) {
      if (tensor.below > 0) below = std::min(below, tensor.below);
    }
    return below;
  }

  Program program_ = lower_small(testing::load({.model = "gpt2", .placement = "dp=2:ddp"}));
  ranks::KernelLibrary library_;
  ranks::ReferenceRun reference_ = ranks::ReferenceBuilder(program_, library_).build();
};

TEST_F(SamplesOfText, ArePiecesOfItAndLabelsFollow) {
  std::vector<double> folded;
  for (const char c : kText)
    folded.push_back(static_cast<double>(static_cast<unsigned char>(c) % words()));
  const auto all = ids_of(0, kText);
  ASSERT_EQ(all.size(), 2U);
  ASSERT_EQ(all[0].size(), all[1].size());
  const std::size_t tokens = tokens_in_sample();
  const std::size_t samples = all[0].size() / tokens;
  ASSERT_GT(samples, 1U);
  ASSERT_GT(tokens, 1U);
  for (std::size_t s = 0; s < samples; ++s) {
    std::vector<double> piece(all[0].begin() + static_cast<std::ptrdiff_t>(s * tokens),
                              all[0].begin() + static_cast<std::ptrdiff_t>((s + 1) * tokens));
    piece.push_back(all[1][(s + 1) * tokens - 1]);
    EXPECT_NE(std::ranges::search(folded, piece).begin(), folded.end());
    for (std::size_t t = 0; t + 1 < tokens; ++t) {
      EXPECT_EQ(all[1][s * tokens + t], all[0][s * tokens + t + 1]);
    }
  }
}

TEST_F(SamplesOfText, AreOthersInEachStepAndTheSameAgain) {
  std::set<std::vector<double>> different;
  for (int step = 0; step < 8; ++step) different.insert(ids_of(step, kText)[0]);
  EXPECT_GT(different.size(), 4U);
  EXPECT_EQ(ids_of(3, kText), ids_of(3, kText));
}

TEST_F(SamplesOfText, AShorterTextThanASampleIsRefused) {
  EXPECT_THROW(ids_of(0, "a"), InputError);
}

TEST(CorpusTest, ADigestTellsTextsApart) {
  const Corpus one{.name = "a", .bytes = "abc"};
  EXPECT_EQ(name_with_digest(one).size(), 1 + 1 + 16U);
  EXPECT_NE(digest_of(one), digest_of({.name = "a", .bytes = "abd"}));
  EXPECT_NE(digest_of(one), digest_of({.name = "a", .bytes = "abcc"}));
}

}  // namespace
}  // namespace placet::execute
