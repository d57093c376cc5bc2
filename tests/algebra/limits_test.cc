// Programs that are refused before they run, and the sizes that decide it.
#include <gtest/gtest.h>

#include "algebra/small_step.h"
#include "algebra/verify.h"
#include "units/error.h"

namespace placet {
namespace {

std::string refusal(const Program& program, const VerifyOptions& options = {}) {
  try {
    verify(program, options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(LimitsTest, TooManyRanksInstructionsElementsOrProducts) {
  const Program program = small_step({.data = 2});
  EXPECT_NE(refusal(program, {.limits = {.ranks = 1}}).find("too many ranks"), std::string::npos);
  EXPECT_NE(refusal(program, {.limits = {.instructions = 10}}).find("instructions"),
            std::string::npos);
  EXPECT_NE(refusal(program, {.limits = {.elements = 10}}).find("elements"), std::string::npos);
  EXPECT_NE(refusal(program, {.limits = {.products = 10}}).find("products"), std::string::npos);
  EXPECT_EQ(refusal(program), "");
}

// A loop of a billion rounds is counted, not opened up.
TEST(LimitsTest, ALongLoop) {
  Program program = small_step({});
  Loop& loop = program.classes[0].body.emplace_back().what.emplace<Loop>();
  loop.last = 1'000'000'000;
  EXPECT_NE(refusal(program).find("instructions"), std::string::npos);
}

TEST(LimitsTest, ProceduresInACircle) {
  Program program = small_step({});
  program.procedures.push_back({.name = "round"});
  program.procedures[0].body.emplace_back().what.emplace<Call>();
  program.classes[0].body.emplace_back().what.emplace<Call>();
  EXPECT_NE(refusal(program).find("nested too deeply"), std::string::npos);
}

TEST(LimitsTest, RanksOfNoClassOrTwo) {
  Program none = small_step({.data = 2});
  none.classes[0].box = {{0}, {}};
  EXPECT_NE(refusal(none).find("of no device class"), std::string::npos);
  Program two = small_step({.data = 2});
  two.classes.push_back(two.classes[0]);
  EXPECT_NE(refusal(two).find("of two device classes"), std::string::npos);
}

TEST(LimitsTest, NumbersOfWhatDoesNotExist) {
  Program family = small_step({});
  nth(family, InstructionKind::alloc).what().outputs[0].family = 99;
  EXPECT_NE(refusal(family).find("no family"), std::string::npos);
  Program dim = small_step({});
  dim.families[0].type.pieces[0].dims[0].dim = 99;
  EXPECT_NE(refusal(dim).find("that it lacks"), std::string::npos);
  Program micro_batch = small_step({.micro_batches = 2});
  for (const InstructionPlace& place : instructions_of(micro_batch)) {
    if (place.what().label == "count") place.what().inputs[0].micro_batch = {.offset = 2};
  }
  EXPECT_NE(refusal(micro_batch).find("micro-batch 2, which does not exist"), std::string::npos);
}

TEST(LimitsTest, BuffersThatAreNotPartsOfTheReference) {
  Program dims = small_step({});
  dims.classes[0].initial[0].pieces[0].unit = 1;  // "w" said to be the other parameter
  EXPECT_NE(verify(dims).stuck.value_or("").find("has other dims than 'v'"), std::string::npos);
  Program pieces = small_step({});
  pieces.classes[0].initial[0].pieces.emplace_back();
  EXPECT_NE(verify(pieces).stuck.value_or("").find("number of pieces"), std::string::npos);
}

}  // namespace
}  // namespace placet
