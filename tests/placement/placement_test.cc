#include "placement/placement.h"

#include <gtest/gtest.h>

#include "placement/mode_letters.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr std::array kModes = {R, S, G, M, O};
constexpr std::array kCuts = {Cut::batch, Cut::tensor, Cut::sequence, Cut::layer, Cut::expert};

std::string allowed(Cut cut, State state) {
  std::string text;
  for (Mode mode : kModes) {
    if (is_meaningful(cut, state, mode))
      text += (text.empty() ? "" : " ") + std::string(symbol_of(mode));
  }
  return text;
}

// The table of docs/theory.md §2, row by row.
TEST(PlacementTest, MeaningfulModesAreThoseOfTheTable) {
  using enum State;
  for (Cut cut : {Cut::batch, Cut::sequence}) {
    EXPECT_EQ(allowed(cut, parameters), "R S* M O");
    EXPECT_EQ(allowed(cut, optimizer), "R S S* O");
    EXPECT_EQ(allowed(cut, gradients), "R S M O");
  }
  EXPECT_EQ(allowed(Cut::batch, activations), "R M O");
  EXPECT_EQ(allowed(Cut::sequence, activations), "S M O");
  EXPECT_EQ(allowed(Cut::tensor, parameters), "S O");
  EXPECT_EQ(allowed(Cut::tensor, optimizer), "S S* O");
  EXPECT_EQ(allowed(Cut::tensor, gradients), "S M O");
  EXPECT_EQ(allowed(Cut::tensor, activations), "R S* M O");
  for (Cut cut : {Cut::layer, Cut::expert}) {
    EXPECT_EQ(allowed(cut, parameters), "S O");
    EXPECT_EQ(allowed(cut, optimizer), "S O");
    EXPECT_EQ(allowed(cut, gradients), "S M O");
  }
  EXPECT_EQ(allowed(Cut::layer, activations), "S M O");
  EXPECT_EQ(allowed(Cut::expert, activations), "R M O");
}

// tensor(S*,S,S,R): S* does not stand there; S keeps the bytes at rest. batch(S,...): S* does.
// sequence(.,.,.,R): no mode keeps all bytes, so the first allowed, S.
TEST(PlacementTest, NearestMeaningfulKeepsTheBytesAtRest) {
  EXPECT_EQ(nearest_meaningful(Cut::tensor, {G, S, S, R}), (Modes{S, S, S, R}));
  EXPECT_EQ(nearest_meaningful(Cut::batch, {S, S, S, R}), (Modes{G, S, S, R}));
  EXPECT_EQ(nearest_meaningful(Cut::batch, {R, M, G, S}), (Modes{R, O, S, R}));
  EXPECT_EQ(nearest_meaningful(Cut::sequence, {R, S, R, R}), (Modes{R, S, R, S}));
  EXPECT_EQ(nearest_meaningful(Cut::layer, {R, R, R, G}), (Modes{S, S, S, S}));
  EXPECT_EQ(nearest_meaningful(Cut::expert, {M, M, M, G}), (Modes{O, O, M, R}));
}

TEST(PlacementTest, NearestIsMeaningfulAndLeavesMeaningfulAlone) {
  for (Cut cut : kCuts) {
    EXPECT_EQ(nearest_meaningful(cut, default_modes(cut)), default_modes(cut));
    for (Mode a : kModes) {
      for (Mode b : kModes) {
        const Modes modes = nearest_meaningful(cut, {a, b, a, b});
        for (State state : kStates) EXPECT_TRUE(is_meaningful(cut, state, modes[state]));
      }
    }
  }
}

TEST(PlacementTest, DefaultsAreWhatACutMeansByItself) {
  EXPECT_EQ(default_modes(Cut::batch), (Modes{R, R, R, R}));
  EXPECT_EQ(default_modes(Cut::sequence), (Modes{R, R, R, S}));
  EXPECT_EQ(default_modes(Cut::tensor), (Modes{S, S, S, R}));
  EXPECT_EQ(default_modes(Cut::layer), (Modes{S, S, S, S}));
  EXPECT_EQ(default_modes(Cut::expert), (Modes{S, S, S, R}));
}

TEST(PlacementTest, DevicesAreTheProductOfTheDegrees) {
  Placement placement;
  EXPECT_EQ(devices_of(placement), 1);
  for (std::int64_t degree : {4, 8, 8}) placement.axes.emplace_back().degree = degree;
  EXPECT_EQ(devices_of(placement), 256);
  placement.axes.emplace_back().degree = INT64_MAX / 2;
  EXPECT_THROW((void)devices_of(placement), InputError);
}

TEST(PlacementTest, LastMatchingOverrideHolds) {
  AxisPlacement axis;
  axis.overrides = {{TensorClass::experts, {.cut = Cut::expert}},
                    {BlockRange{2, 3}, {.cut = Cut::tensor}},
                    {Checkpoints{}, {.cut = Cut::layer}}};
  const ClassSet experts = bit_of(TensorClass::experts);
  EXPECT_EQ(how_of(axis, experts, 1).cut, Cut::expert);
  EXPECT_EQ(how_of(axis, experts, 2).cut, Cut::tensor);
  EXPECT_EQ(how_of(axis, experts, std::nullopt).cut, Cut::expert);
  EXPECT_EQ(how_of(axis, bit_of(TensorClass::norms), 4).cut, Cut::batch)
      << "checkpoints are no class of parameters";
}

}  // namespace
}  // namespace placet
