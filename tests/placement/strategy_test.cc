#include "placement/strategy.h"

#include <gtest/gtest.h>

#include "placement/words.h"
#include "units/error.h"

namespace placet {
namespace {

using testing::cut;
using testing::modes;
using testing::strategy;

std::string message_of(const Vocabulary& words) {
  try {
    (void)ordered(words);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(StrategyTest, VocabularyIsOrderedAndWordsAreFound) {
  const Vocabulary words = ordered(
      {.strategies = {strategy("b", cut(Cut::batch), {}), strategy("a", cut(Cut::layer), {})}});
  EXPECT_EQ(words.strategies[0].name, "a");
  EXPECT_EQ(find_strategy(words, "b")->meaning.sets.cut, Cut::batch);
  EXPECT_EQ(find_strategy(words, "c"), nullptr);
  EXPECT_EQ(find_realisation(words, "a"), nullptr);
}

TEST(StrategyTest, WordsOfTheGrammarCannotBeNames) {
  EXPECT_EQ(message_of({.strategies = {strategy("keep", cut(Cut::batch), {})}}),
            "vocabulary: 'keep' is a word of the placement grammar itself; expected another name");
  EXPECT_EQ(message_of({.strategies = {strategy("Zero", cut(Cut::batch), {})}}),
            "vocabulary: 'Zero' is not a word; expected lower-case letters, digits and '-'");
  EXPECT_EQ(message_of({.strategies = {strategy("x", cut(Cut::batch), {})},
                        .realisations = {testing::realisation(Realisation::Kind::schedule, "x")}}),
            "vocabulary: 'x' names two things; expected one meaning per word");
}

TEST(StrategyTest, TermsThatSetOneComponentDifferentlyClash) {
  const std::vector<Meaning> terms = {
      {modes(Mode::replicated, Mode::sharded, std::nullopt), {}, {}},
      {cut(Cut::tensor), {}, {}},
      {modes(std::nullopt, Mode::replicated, std::nullopt), {}, {}}};
  const Clash clash{
      .earlier = 0, .later = 2, .component = "optimizer", .earlier_value = "S", .later_value = "R"};
  EXPECT_EQ(clash_of(terms), clash);
  EXPECT_EQ(clash_of_last(terms), clash);
  EXPECT_EQ(clash_of_last(std::span(terms).first(2)), std::nullopt);
}

TEST(StrategyTest, SettingTheSameTwiceAndSuggestingOtherwiseIsNoClash) {
  const Meaning term{cut(Cut::tensor, Mode::sharded), {}, {}};
  const Meaning doubt{{}, cut(Cut::batch, Mode::replicated), {}};
  EXPECT_EQ(clash_of(std::vector<Meaning>{term, term, doubt}), std::nullopt);
}

TEST(StrategyTest, ClassesClashToo) {
  const Meaning a{{}, {}, {{TensorClass::experts, cut(Cut::expert), {}}}};
  const Meaning b{{}, {}, {{TensorClass::experts, cut(Cut::tensor), {}}}};
  const auto clash = clash_of(std::vector<Meaning>{a, b});
  ASSERT_TRUE(clash.has_value());
  EXPECT_EQ(clash->component, "cut of experts");
}

TEST(StrategyTest, ComposedClassesStandInTheOrderOfTheirSelectors) {
  const Meaning a{
      cut(Cut::batch),
      {},
      {{Checkpoints{}, modes(std::nullopt, std::nullopt, std::nullopt, Mode::offloaded), {}}}};
  const Meaning b{
      {},
      {},
      {{TensorClass::head, cut(Cut::tensor), {}}, {TensorClass::experts, cut(Cut::expert), {}}}};
  const Composed composed = compose(std::vector<Meaning>{a, b});
  ASSERT_EQ(composed.overrides.size(), 3U);
  EXPECT_EQ(spell(composed.overrides[0].selector), "experts");
  EXPECT_EQ(spell(composed.overrides[1].selector), "head");
  EXPECT_EQ(spell(composed.overrides[2].selector), "checkpoints");
  EXPECT_EQ(composed.overrides[2].how.cut, Cut::batch) << "from the axis";
  EXPECT_EQ(composed.overrides[2].how.modes.activations, Mode::offloaded);
}

TEST(StrategyTest, NothingIsComposedWithoutACut) {
  EXPECT_FALSE(compose(std::vector<Meaning>{{modes(Mode::replicated, {}, {}), {}, {}}}).how);
}

TEST(StrategyTest, SpellsSelectors) {
  EXPECT_EQ(spell(BlockRange{0, 3}), "blocks 0-3");
  EXPECT_EQ(spell(Checkpoints{}), "checkpoints");
  EXPECT_EQ(spell(TensorClass::shared_experts), "shared-experts");
}

}  // namespace
}  // namespace placet
