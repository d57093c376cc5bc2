// What a wrong placement is told: the character, the reason, the nearest right spelling.
#include <gtest/gtest.h>

#include <ostream>

#include "placement/grammar.h"
#include "placement/words.h"
#include "units/error.h"

namespace placet {
namespace {

InputFault fault_of(const std::string& text) {
  try {
    (void)testing::parse(text);
  } catch (const InputError& error) {
    return error.fault();
  }
  return {.where = "no error"};
}

struct Case {
  std::string text;
  int character;         // counted from 1
  std::string contains;  // part of the message
  std::string nearest = "";
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.text; }

class GrammarErrorTest : public ::testing::TestWithParam<Case> {};

TEST_P(GrammarErrorTest, NamesPlaceReasonAndNearestSpelling) {
  const Case& one = GetParam();
  const InputFault fault = fault_of(one.text);
  EXPECT_EQ(fault.where, "placement, character " + std::to_string(one.character))
      << describe(fault);
  EXPECT_NE(describe(fault).find(one.contains), std::string::npos) << describe(fault);
  EXPECT_EQ(fault.nearest, one.nearest) << describe(fault);
}

INSTANTIATE_TEST_SUITE_P(
    Axes, GrammarErrorTest,
    ::testing::Values(
        Case{"", 1, "no axis is given"}, Case{"   ", 1, "no axis is given"},
        Case{"=8:whole", 1, "'=' is not the name of an axis"},
        Case{"8=8:whole", 1, "'8' is not the name of an axis"},
        Case{"an-axis-with-a-name-of-forty-characters=8:whole", 1, "at most 31 characters"},
        Case{"dp", 1, "'dp' is followed by no degree"},
        Case{"dp:whole", 1, "expected NAME=DEGREE:HOW"},
        Case{"dp=:whole", 4, "':' is not a degree"}, Case{"dp=", 4, "the text ends"},
        Case{"dp=0:whole", 4, "'0' is not a degree; expected a whole number from 1 to 2147483648"},
        Case{"dp=-8:whole", 4, "'-' is not a degree"},
        Case{"dp=2147483649:whole", 4, "'2147483649' is not a degree"},
        Case{"dp=99999999999999999999:whole", 4, "is not a degree"},
        Case{"dp=8.5:whole", 5, "'.' does not belong here; expected ':'"},
        Case{"dp=8 whole", 6, "expected ':', then how the axis is used, or '[' and shares"},
        Case{"dp=8", 5, "the text ends; expected ':'"},
        Case{"dp=8:whole dp=2:whole", 12, "'dp' names two axes", "dp2"},
        Case{"a=2147483648:whole b=2147483648:whole c=2:whole", 41,
             "the product of the degrees overflow"},
        Case{"dp=8:whole kept", 12, "'kept' is followed by no degree"},
        Case{"dp=8:whole tp=", 15, "the text ends"}));

INSTANTIATE_TEST_SUITE_P(
    Shares, GrammarErrorTest,
    ::testing::Values(Case{"pp=4[]:in-turn", 6, "']' is not a share"},
                      Case{"pp=4[1,]:in-turn", 8, "']' is not a share"},
                      Case{"pp=4[1,2:in-turn", 9, "expected ',' and a further share, or ']'"},
                      Case{"pp=4[1,x]:in-turn", 8, "'x' is not a share"},
                      Case{"pp=4[1,2]in-turn", 10, "expected ':', then how the axis is used"}));

INSTANTIATE_TEST_SUITE_P(
    Terms, GrammarErrorTest,
    ::testing::Values(
        Case{"dp=8:", 6, "a term is missing"}, Case{"dp=8:whole+", 12, "a term is missing"},
        Case{"dp=8:+whole", 6, "'+' stands where a term is missing"},
        Case{"dp=8:whole++kept", 12, "'+' stands where a term is missing"},
        Case{"dp=8:whoel", 6, "'whoel' is not a known term", "whole"},
        Case{"dp=8:kpet", 6, "'kpet' is not a known term", "kept"},
        Case{"dp=8:bacth(R,R,R,R)", 6, "'bacth' is not a known term", "batch"},
        Case{"dp=8:WHOLE", 6, "'WHOLE' is not a known term", "whole"},
        Case{"dp=8:whole()", 6, "'whole' has 1 arguments; expected the word alone", "whole"},
        Case{"dp=8:whole(2)", 6, "expected the word alone", "whole"},
        Case{"dp=8:keep", 6, "leaves open what the axis cuts", "batch(R,R,R,R)+keep"},
        Case{"dp=8:whole+sp", 12, "'sp' needs a tensor cut, but the axis cuts the batch"}));

INSTANTIATE_TEST_SUITE_P(
    Cuts, GrammarErrorTest,
    ::testing::Values(
        Case{"dp=8:batch", 6, "'batch' has 0 modes", "batch(R,R,R,R)"},
        Case{"dp=8:batch(R,R,R)", 6, "'batch' has 3 modes", "batch(R,R,R,R)"},
        Case{"dp=8:batch(R,R,R,R,R)", 6, "'batch' has 5 modes", "batch(R,R,R,R)"},
        Case{"dp=8:batch(R,X,R,R)", 14, "'X' does not fit batch; expected R, S, S*, M or O", "R"},
        Case{"dp=8:batch(R,s*,R,R)", 14, "'s*' does not fit batch", "S*"},
        Case{"dp=8:batch(R,,R,R)", 14, "an argument is missing"},
        Case{"dp=8:batch(R,S,R,R", 19, "the text ends; expected ',' and a further argument"},
        Case{"dp=8:batch(R,S,R,R))", 20, "')' is not the name of an axis"},
        Case{"tp=8:tensor(S,S,S,R,hiden)", 21, "'hiden' does not fit tensor", "hidden"},
        Case{"tp=8:tensor(S,S,S,R,token)", 21, "expected an index: hidden, head"}));

INSTANTIATE_TEST_SUITE_P(
    Options, GrammarErrorTest,
    ::testing::Values(
        Case{"dp=8:whole+offload", 12, "'offload' has 0 arguments; expected 1 to 2 in parentheses"},
        Case{"dp=8:whole+offload(optimiser)", 20, "'optimiser' does not fit offload", "optimizer"},
        Case{"dp=8:whole+offload(optimizer=0)", 20, "expected a fraction above 0 and at most 1"},
        Case{"dp=8:whole+offload(optimizer=1.5)", 20, "expected a fraction above 0"},
        Case{"dp=8:whole+offload(optimizer=3/2)", 20, "expected a fraction above 0"},
        Case{"dp=8:whole+offload(optimizer=1/0)", 20, "expected a fraction above 0"},
        Case{"dp=8:whole+offload(optimizer,disk)", 30, "'disk' does not fit offload", "nvme"},
        Case{"dp=8:whole+update(gpu)", 19, "'gpu' does not fit update; expected host or device"},
        Case{"dp=8:whole+prefetch(-1)", 21,
             "'-1' does not fit prefetch; expected a whole number from 0"},
        Case{"dp=8:whole+prefetch", 12, "expected 1 in parentheses"},
        Case{"dp=8:whole+keep(1)", 12, "expected the word alone", "keep"},
        Case{"pp=4:looped", 6, "'looped' has 0 arguments; expected 1 to 2 in parentheses"},
        Case{"pp=4:looped(x)", 13, "'x' does not fit looped"},
        Case{"pp=4:in-turn(2)", 6, "expected the word alone", "in-turn"}));

INSTANTIATE_TEST_SUITE_P(
    Clashes, GrammarErrorTest,
    ::testing::Values(
        Case{"tp=8:tp+whole", 9, "'whole' sets parameters to R, but 'tp' sets it to S", "tp"},
        Case{"dp=8:whole+keep+optimizer-sharded", 17,
             "sets optimizer to S, but 'whole' sets it to R", "whole+keep"},
        Case{"dp=8:keep+kept+keep-step", 16, "sets gathered parameters to kept over the step",
             "keep+kept"},
        Case{"cp=4:ring+in-turn", 11, "sets cut to layer, but 'ring' sets it to sequence", "ring"},
        Case{"cp=4:ring+gather", 11, "sets attention to gather, but 'ring' sets it to ring",
             "ring"},
        Case{"pp=4:looped(2)+looped(3)", 16, "sets schedule to looped(3)", "looped(2)"},
        Case{"dp=8:batch(R,S,R,R)+batch(R,R,R,R)", 21, "sets optimizer to R, but 'batch(R,S,R,R)'",
             "batch(R,S,R,R)"},
        Case{"ep=8:ep+experts-whole", 9, "sets cut of experts to batch, but 'ep' sets it to expert",
             "ep"},
        Case{"dp=8:whole+update(host)+update(device)", 25, "sets update to device",
             "whole+update(host)"},
        Case{"dp=8:whole;experts:ep+optimizer-sharded", 23,
             "sets parameters to R, but 'ep' sets it to S", "ep"}));

INSTANTIATE_TEST_SUITE_P(
    Classes, GrammarErrorTest,
    ::testing::Values(
        Case{"dp=8:whole;", 12, "a class is missing"},
        Case{"dp=8:whole;expert:ep", 12, "'expert' is not a class of tensors", "experts"},
        Case{"dp=8:whole;norms", 17, "expected ':', then how the class is placed"},
        Case{"dp=8:whole;norms:", 18, "a term is missing"},
        Case{"dp=8:whole;blocks:kept", 18, "':' is not the number of a block"},
        Case{"dp=8:whole;blocks 3:kept", 20, "expected '-' and the last block"},
        Case{"dp=8:whole;blocks 3-1:kept", 19, "'3-1' runs backwards", "1-3"},
        Case{"cp=4:ring;norms:gather", 17,
             "'gather' is a realisation, which holds for a whole axis"},
        Case{"dp=8:whole;norms:host-inputs", 18, "'host-inputs' says nothing of norms"},
        Case{"dp=8:whole;norms:sp", 18, "'sp' needs a tensor cut"}));

TEST(GrammarErrorTest, CaretStandsUnderTheCharacter) {
  const InputFault fault = fault_of("dp=8:whoel");
  EXPECT_EQ(
      describe(fault),
      "placement, character 6: 'whoel' is not a known term; expected a strategy, a realisation, "
      "a cut such as batch(R,S,R,R), or an option; did you mean 'whole'?\n"
      "  dp=8:whoel\n"
      "       ^");
}

TEST(GrammarErrorTest, LongTextIsShownInPart) {
  const InputFault fault = fault_of(std::string(200, ' ') + "dp=8:whoel" + std::string(200, ' '));
  EXPECT_EQ(fault.where, "placement, character 206");
  EXPECT_LT(fault.excerpt.size(), 250U);
  const std::size_t line = fault.excerpt.find('\n');
  const std::size_t caret = fault.excerpt.find('^');
  EXPECT_EQ(fault.excerpt[caret - line - 1], 'w');
}

TEST(GrammarErrorTest, ControlCharactersAreNotPrinted) {
  const InputFault fault = fault_of("dp=8:\x01\x02");
  for (char c : describe(fault)) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 32);
}

TEST(GrammarErrorTest, LimitsAreKept) {
  EXPECT_EQ(fault_of(std::string(kLongestPlacement + 1, 'a')).where, "placement");
  std::string axes;
  for (std::size_t i = 0; i <= kMostAxes; ++i) axes += "a" + std::to_string(i) + "=1:whole ";
  EXPECT_EQ(fault_of(axes).problem, "too many axes");
  std::string terms = "dp=8:whole";
  for (std::size_t i = 0; i < kMostTerms; ++i) terms += "+keep";
  EXPECT_EQ(fault_of(terms).problem, "too many terms");
  std::string classes = "dp=8:whole";
  for (std::size_t i = 0; i <= kMostClasses; ++i) classes += ";norms:whole";
  EXPECT_EQ(fault_of(classes).problem, "too many classes");
  std::string shares = "dp=8[1";
  for (std::size_t i = 0; i < kMostShares; ++i) shares += ",1";
  EXPECT_EQ(fault_of(shares + "]:whole").problem, "too many shares");
  EXPECT_EQ(fault_of("dp=8:batch(" + std::string(60000, '(')).where, "placement, character 12");
}

}  // namespace
}  // namespace placet
