#include "units/error.h"

#include <gtest/gtest.h>

#include <string>

namespace placet {
namespace {

TEST(InputErrorTest, SaysWhereWhatAllowedAndNearest) {
  const InputError error({.where = "--placement, character 6",
                          .value = "bacth",
                          .allowed = "a cut",
                          .nearest = "batch"});
  EXPECT_STREQ(error.what(),
               "--placement, character 6: 'bacth' is not known; expected a cut; "
               "did you mean 'batch'?");
}

TEST(InputErrorTest, SaysThatAKeyIsMissing) {
  const InputFault fault{.where = "h100.json: memory.bytes", .allowed = "a whole number"};
  EXPECT_EQ(describe(fault), "h100.json: memory.bytes: missing; expected a whole number");
}

TEST(InputErrorTest, AProblemOfItsOwnReplacesTheUsualWording) {
  const InputFault fault{.where = "job.toml: axes.tp", .value = "8", .problem = "is set twice"};
  EXPECT_EQ(describe(fault), "job.toml: axes.tp: '8' is set twice");
}

TEST(InputErrorTest, WithoutANearestSpellingTheValueIsNotValid) {
  EXPECT_EQ(describe({.where = "--seq", .value = "-4"}), "--seq: '-4' is not valid");
}

TEST(InputErrorTest, SpellsControlCharactersOut) {
  EXPECT_EQ(describe({.where = "a\x1b[2J.json", .value = std::string("x\0y\n", 4)}),
            "a\\x1b[2J.json: 'x\\x00y\\x0a' is not valid");
}

TEST(InputErrorTest, KeepsItsParts) {
  const InputFault fault{
      .where = "a", .value = "b", .problem = "c", .allowed = "d", .nearest = "e"};
  EXPECT_EQ(InputError(fault).fault(), fault);
}

TEST(EnsureTest, IsSilentWhereTheAssumptionHolds) {
  EXPECT_NO_THROW(ensure(true, "one and one are two"));
}

TEST(EnsureTest, NamesTheAssumptionAndThePlace) {
  try {
    ensure(false, "one and one are three");
    FAIL() << "ensure(false) returned";
  } catch (const InternalError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("expected that one and one are three"), std::string::npos) << text;
    EXPECT_NE(text.find("tests/units/error_test.cc:"), std::string::npos) << text;
  }
}

// The same build in another folder must print the same bytes.
TEST(EnsureTest, DoesNotPrintWhereTheRepositoryLies) {
  try {
    fail_internally("this line is never reached");
  } catch (const InternalError& error) {
    EXPECT_EQ(std::string(error.what()).find(PLACET_SOURCE_DIR), std::string::npos) << error.what();
  }
}

TEST(DescribeTest, LeavesOutTheMiddleOfLongValues) {
  const std::string text =
      describe({.where = "MODEL",
                .value = std::string(250, 'a') + std::string(1'000, 'b') + std::string(250, 'c')});
  EXPECT_EQ(text, "MODEL: '" + std::string(250, 'a') + " ... (1000 bytes) ... " +
                      std::string(250, 'c') + "' is not valid");
}

// A full-width 8 is three bytes; a first one alone is no character.
TEST(DescribeTest, ShowsWholeCharactersOnly) {
  EXPECT_EQ(describe({.where = "W", .value = "\xef\xbc\x98"}), "W: '\xef\xbc\x98' is not valid");
  EXPECT_EQ(describe({.where = "W", .value = "a\xef"}), "W: 'a\\xef' is not valid");
  EXPECT_EQ(describe({.where = "W", .value = "\xc0\xaf"}), "W: '\\xc0\\xaf' is not valid");
}

}  // namespace
}  // namespace placet
