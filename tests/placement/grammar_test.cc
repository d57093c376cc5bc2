#include "placement/grammar.h"

#include <gtest/gtest.h>

#include "placement/mode_letters.h"
#include "placement/words.h"

namespace placet {
namespace {

using testing::parse;
using testing::print;

AxisPlacement axis(const char* name, std::int64_t degree, How how) {
  AxisPlacement out;
  out.axis = AxisName(name);
  out.degree = degree;
  out.how = how;
  return out;
}

TEST(GrammarTest, RawCutNamesTheCutAndFourModes) {
  const How how{.cut = Cut::batch, .modes = {G, S, S, R}};
  EXPECT_EQ(parse("dp=64:batch(S*,S,S,R)"), (Placement{{axis("dp", 64, how)}}));
  const How rare{.cut = Cut::sequence, .modes = {O, G, M, M}};
  EXPECT_EQ(parse("x=3:sequence(O,S*,M,M)"), (Placement{{axis("x", 3, rare)}}));
}

TEST(GrammarTest, StrategySetsModesAndSuggestsItsCut) {
  const How how{.cut = Cut::batch, .modes = {R, S, R, R}};
  EXPECT_EQ(parse("dp=8:optimizer-sharded"), (Placement{{axis("dp", 8, how)}}));
}

// The cut is set by one word and only suggested by the other; activations get the cut's default.
TEST(GrammarTest, WhatIsSetGoesBeforeWhatIsSuggested) {
  AxisPlacement expected = axis("cp", 4, {.cut = Cut::sequence, .modes = {R, S, R, S}});
  expected.attention = RealisationWord{"ring", {}};
  EXPECT_EQ(parse("cp=4:ring+optimizer-sharded"), Placement{{expected}});
  EXPECT_EQ(parse("cp=4:optimizer-sharded+ring"), Placement{{expected}});
  EXPECT_EQ(parse("cp=4:sequence(R,S,R,S)+ring"), Placement{{expected}});
}

TEST(GrammarTest, SuggestedRealisationHoldsOnItsOwnCutOnly) {
  const Placement swept = parse("cp=4:swept");
  EXPECT_EQ(swept.axes[0].attention, (RealisationWord{"ring", {}}));
  EXPECT_EQ(swept.axes[0].schedule, std::nullopt) << "a schedule is not for a sequence cut";
  EXPECT_EQ(parse("cp=4:swept+gather").axes[0].attention, (RealisationWord{"gather", {}}));
}

TEST(GrammarTest, WordMaySpeakOfAClassOfTensors) {
  AxisPlacement expected = axis("ep", 8, {.cut = Cut::batch, .modes = {R, S, R, R}});
  expected.overrides = {{TensorClass::experts, {.cut = Cut::expert, .modes = {S, S, S, R}}}};
  EXPECT_EQ(parse("ep=8:ep+optimizer-sharded"), Placement{{expected}});
}

TEST(GrammarTest, ClassWrittenOutReplacesTheImpliedOne) {
  AxisPlacement expected = axis("ep", 8, {.cut = Cut::batch, .modes = {R, R, R, R}});
  expected.overrides = {{TensorClass::experts, {.cut = Cut::batch, .modes = {R, S, R, R}}}};
  EXPECT_EQ(parse("ep=8:ep;experts:optimizer-sharded"), Placement{{expected}});
}

TEST(GrammarTest, TensorAxisMayServeExpertsOtherwise) {
  AxisPlacement expected = axis("tp", 8, {.cut = Cut::tensor, .modes = {S, S, S, G}});
  expected.overrides = {{TensorClass::experts, {.cut = Cut::expert, .modes = {S, S, S, R}}}};
  EXPECT_EQ(parse("tp=8:tp+sp;experts:ep"), Placement{{expected}});
  EXPECT_EQ(parse("tp=8:tp+sp+ep"), Placement{{expected}});
}

// A class whose terms name no cut starts from the cut and the modes of the axis, not its options.
TEST(GrammarTest, ClassWithoutACutStartsFromTheAxis) {
  AxisPlacement expected = axis("tp", 8, {.cut = Cut::tensor, .modes = {S, S, S, R}});
  expected.how.keep = Keep::backward;
  expected.overrides = {{Checkpoints{}, {.cut = Cut::tensor, .modes = {S, S, S, G}}}};
  EXPECT_EQ(parse("tp=8:tp+keep;checkpoints:sp"), Placement{{expected}});
}

TEST(GrammarTest, BlocksAreAClassOfTheirOwn) {
  AxisPlacement expected = axis("dp", 8, {.cut = Cut::batch, .modes = {R, S, R, R}});
  expected.overrides = {{BlockRange{0, 3}, {.cut = Cut::batch, .modes = {G, S, S, R}}},
                        {TensorClass::norms, {.cut = Cut::batch, .modes = {R, R, R, R}}}};
  EXPECT_EQ(parse("dp=8:optimizer-sharded;blocks 0-3:all-sharded;norms:whole"),
            Placement{{expected}});
}

TEST(GrammarTest, LaterClassesWin) {
  const Placement placement = parse("dp=8:whole;norms:all-sharded;blocks 2-3:optimizer-sharded");
  const AxisPlacement& dp = placement.axes[0];
  const ClassSet norms = bit_of(TensorClass::norms);
  EXPECT_EQ(how_of(dp, norms, 1).modes, (Modes{G, S, S, R}));
  EXPECT_EQ(how_of(dp, norms, 2).modes, (Modes{R, S, R, R}));
  EXPECT_EQ(how_of(dp, 0, std::nullopt).modes, (Modes{R, R, R, R}));
}

TEST(GrammarTest, OptionsSetTheirComponents) {
  How how{.cut = Cut::batch, .modes = {G, S, S, R}};
  how.keep = Keep::step;
  how.prefetch = 2;
  how.offload[0] = Offload{.medium = Medium::nvme};
  how.offload[1] = Offload{.fraction = Rational(1, 2)};
  how.offload[3] = Offload{.medium = Medium::nvme, .fraction = Rational(1, 3)};
  how.update = Medium::device;
  EXPECT_EQ(parse("dp=8:all-sharded+keep-step+prefetch(2)+offload(parameters,nvme)"
                  "+offload(optimizer=0.5)+offload(activations=1/3,nvme)+update(device)"),
            (Placement{{axis("dp", 8, how)}}));
}

TEST(GrammarTest, FractionsAreReadExactly) {
  const auto fraction = [](const char* text) {
    const Placement placement = parse(std::string("dp=8:whole+offload(optimizer=") + text + ")");
    return placement.axes[0].how.offload[1]->fraction;
  };
  EXPECT_EQ(fraction("0.5"), Rational(1, 2));
  EXPECT_EQ(fraction("0.125"), Rational(1, 8));
  EXPECT_EQ(fraction("2/6"), Rational(1, 3));
  EXPECT_EQ(fraction("1"), Rational(1));
  EXPECT_EQ(fraction("0.000000001"), Rational(1, 1000000000));
}

TEST(GrammarTest, TensorCutsMayNameOtherIndices) {
  How rows{.cut = Cut::tensor, .modes = {S, S, S, R}};
  rows.tensor_indices = bit_of(Index::hidden);
  How both = rows;
  both.tensor_indices = bit_of(Index::hidden) | bit_of(Index::ffn);
  EXPECT_EQ(parse("a=2:tensor(S,S,S,R,hidden) b=2:tensor(S,S,S,R,ffn,hidden)"),
            (Placement{{axis("a", 2, rows), axis("b", 2, both)}}));
  EXPECT_EQ(print(parse("b=2:tensor(S,S,S,R,ffn,hidden)")), "b=2:tensor(S,S,S,R,hidden,ffn)");
}

TEST(GrammarTest, SharesAndArgumentsOfASchedule) {
  AxisPlacement expected = axis("pp", 4, {.cut = Cut::layer, .modes = {S, S, S, S}});
  expected.shares = {22, 20, 20, 18};
  expected.schedule = RealisationWord{"looped", {2, 8}};
  EXPECT_EQ(parse("pp=4[22,20,20,18]:looped(2,8)"), Placement{{expected}});
}

TEST(GrammarTest, WhitespaceIsFree) {
  EXPECT_EQ(
      parse(" dp = 8 [ 4 , 4 ] :\n all-sharded + keep ; blocks 0 - 3 : whole\t+ offload( optimizer "
            "= 0.5 , nvme ) \r\n tp=2 :tp "),
      parse("dp=8[4,4]:all-sharded+keep;blocks 0-3:whole+offload(optimizer=0.5,nvme) tp=2:tp"));
}

// --- printing

TEST(GrammarPrintTest, SaysItInTheFewestTerms) {
  EXPECT_EQ(print(parse("dp=64:batch(S*,S,S,R)")), "dp=64:all-sharded");
  EXPECT_EQ(print(parse("dp=8:all-sharded+keep")), "dp=8:kept");
  EXPECT_EQ(print(parse("cp=4:sequence(R,S,R,S)+ring")), "cp=4:ring+optimizer-sharded");
  EXPECT_EQ(print(parse("tp=8:tensor(S,S,S,S*)")), "tp=8:tp+sp");
  EXPECT_EQ(print(parse("tp=8:tensor(S,S*,S,R)")), "tp=8:tensor(S,S*,S,R)");
  EXPECT_EQ(print(parse("ep=8:optimizer-sharded;experts:expert(S,S,S,R)")),
            "ep=8:ep+optimizer-sharded");
  EXPECT_EQ(print(parse("tp=8:tp;experts:batch(R,R,R,R)")), "tp=8:experts-whole+tp");
}

TEST(GrammarPrintTest, OrderOfTheTermsIsFixed) {
  EXPECT_EQ(
      print(parse("cp=4:update(host)+optimizer-sharded+offload(optimizer)+prefetch(1)+keep+ring")),
      "cp=4:ring+optimizer-sharded+keep+prefetch(1)+offload(optimizer)+update(host)");
}

TEST(GrammarPrintTest, FractionsAreDecimalWhereTheyEnd) {
  EXPECT_EQ(print(parse("d=2:whole+offload(optimizer=5/10)")), "d=2:whole+offload(optimizer=0.5)");
  EXPECT_EQ(print(parse("d=2:whole+offload(optimizer=1/16)")),
            "d=2:whole+offload(optimizer=0.0625)");
  EXPECT_EQ(print(parse("d=2:whole+offload(optimizer=1/3,nvme)")),
            "d=2:whole+offload(optimizer=1/3,nvme)");
  EXPECT_EQ(print(parse("d=2:whole+offload(optimizer=1.0)")), "d=2:whole+offload(optimizer)");
}

TEST(GrammarPrintTest, WithoutWordsEverythingIsRaw) {
  const Placement placement = parse("dp=8:all-sharded tp=4:tp+sp ep=2:ep");
  const std::string text = print_placement(placement, Vocabulary{});
  EXPECT_EQ(text,
            "dp=8:batch(S*,S,S,R) tp=4:tensor(S,S,S,S*) "
            "ep=2:batch(R,R,R,R);experts:expert(S,S,S,R)");
  EXPECT_EQ(parse_placement(text, Vocabulary{}), placement);
}

TEST(GrammarPrintTest, SecondNamesNeverPrint) {
  Vocabulary words = testing::vocabulary();
  Strategy second = *find_strategy(words, "all-sharded");
  second.name = "a";
  second.prints_as = "all-sharded";
  words.strategies.push_back(second);
  words = ordered(words);
  EXPECT_EQ(print_placement(parse_placement("dp=8:a", words), words), "dp=8:all-sharded");
}

TEST(GrammarPrintTest, OneAxisAndOneCut) {
  EXPECT_EQ(print_axis(parse("pp=4[3,3,2,2]:in-turn").axes[0], testing::vocabulary()),
            "pp=4[3,3,2,2]:in-turn");
  EXPECT_EQ(print_cut(Cut::tensor, {S, S, S, R}), "tensor(S,S,S,R)");
}

}  // namespace
}  // namespace placet
