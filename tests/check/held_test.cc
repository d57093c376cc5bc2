// What no device holds of parameters and states.
#include "check/held.h"

#include <gtest/gtest.h>

namespace placet::testing {
namespace {

/// Axes a and b of that degree, c of 2; a parameter [row/a column/b] of which these classes hold
/// their part.
Program held_by(std::int64_t degree, const std::vector<DeviceClass>& classes) {
  Program program;
  program.axes = {{.name = "a", .degree = degree},
                  {.name = "b", .degree = degree},
                  {.name = "c", .degree = 2},
                  {.name = "micro-batch", .degree = 1}};
  program.dims = {{.name = "row", .extent = degree}, {.name = "column", .extent = degree}};
  program.reference.rules = {{.kernel = 0, .states = {}}};
  ReferenceKind kind;
  kind.values.resize(1);
  kind.parameters = {{.name = "w"}};
  program.reference.kinds = {kind};
  program.reference.units = {{}};
  PieceType piece;
  piece.dims = {{.dim = 0, .by = {{0}}}, {.dim = 1, .by = {{1}}}};
  Family family{.name = "w"};
  family.type.pieces = {piece};
  program.families = {family};
  program.classes = classes;
  const StateRef parameter{.kind = StateRef::Kind::parameter};
  for (DeviceClass& c : program.classes) c.initial = {{.buffer = {}, .pieces = {parameter}}};
  return program;
}

/// By coordinates along a, b and c; none: all.
DeviceClass devices(std::vector<std::vector<std::int64_t>> box) {
  box.resize(3);
  return {.name = "c", .box = box, .initial = {}, .results = {}, .body = {}};
}

std::vector<std::int64_t> from_to(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> out;
  for (std::int64_t x = first; x <= last; ++x) out.push_back(x);
  return out;
}

TEST(HeldTest, ADiagonalIsNotAll) {
  const Program program = held_by(2, {devices({{0}, {0}}), devices({{1}, {1}})});
  const std::vector<Unheld> unheld = find_unheld(program);
  ASSERT_EQ(unheld.size(), 1);
  const CheckFinding finding = finding_on(program, unheld[0]);
  EXPECT_EQ(finding.expected, "every part of it on some device when the step begins");
  EXPECT_EQ(finding.difference, "no device has some part of it when the step begins");
  EXPECT_EQ(finding.found, "no class that 'holds' the part of 'w' at a 0, b 1");
  EXPECT_EQ(finding.fix, "let a class hold that part too, and update it there");
  EXPECT_TRUE(find_unheld(held_by(2, {devices({{0}, {}}), devices({{1}, {}})})).empty());
}

TEST(HeldTest, NothingIsNotAll) {
  Program program = held_by(2, {devices({})});
  program.classes[0].initial.clear();
  const std::vector<Unheld> unheld = find_unheld(program);
  ASSERT_EQ(unheld.size(), 1);
  const CheckFinding finding = finding_on(program, unheld[0]);
  EXPECT_EQ(finding.difference, "no device has it when the step begins");
  EXPECT_EQ(finding.found, "no class that 'holds' it");
  EXPECT_EQ(finding.fix,
            "let classes hold it that have all its parts between them, and update it there");
}

// 262,144 parts, along each axis two halves that are held alike: two blocks of four are held.
TEST(HeldTest, ABlockDiagonalOfManyDevicesIsNotAll) {
  const std::vector<std::int64_t> low = from_to(0, 255);
  const std::vector<std::int64_t> high = from_to(256, 511);
  std::vector<DeviceClass> classes{devices({low, low}), devices({high, high})};
  EXPECT_EQ(find_unheld(held_by(512, classes)).size(), 1);
  classes.push_back(devices({low, high}));
  EXPECT_EQ(find_unheld(held_by(512, classes)).size(), 1);
  classes.push_back(devices({high, low}));
  EXPECT_TRUE(find_unheld(held_by(512, classes)).empty());
}

// Two axes of 16,777,216 coordinates, of which classes name a few.
TEST(HeldTest, LargeAxesOfWhichLittleIsNamed) {
  constexpr std::int64_t kDegree = std::int64_t{1} << 24;
  std::vector<DeviceClass> classes;
  for (std::int64_t x = 0; x < 100; ++x) classes.push_back(devices({{}, {x}}));
  const std::vector<Unheld> unheld = find_unheld(held_by(kDegree, classes));
  ASSERT_EQ(unheld.size(), 1);
  EXPECT_EQ(unheld[0].place, (std::vector<std::int64_t>{0, 100}));
  classes.push_back(devices({{}, {}, {0}}));
  EXPECT_TRUE(find_unheld(held_by(kDegree, classes)).empty());
}

// At c 0 all is held. Those at c 1 tell 257 x 257 parts apart, which are not looked at.
TEST(HeldTest, WhatIsTooMuchToLookAtCountsAsNotHeld) {
  std::vector<DeviceClass> classes{devices({{}, {}, {0}})};
  EXPECT_TRUE(find_unheld(held_by(257, classes)).empty());
  for (std::int64_t x = 0; x < 257; ++x) classes.push_back(devices({{x}, {x}, {1}}));
  const Program program = held_by(257, classes);
  const std::vector<Unheld> unheld = find_unheld(program);
  ASSERT_EQ(unheld.size(), 1);
  EXPECT_EQ(finding_on(program, unheld[0]).difference,
            "whether devices have all of it when the step begins is not known");
}

}  // namespace
}  // namespace placet::testing
