#include "report/chart.h"

#include <gtest/gtest.h>

#include <string>

#include "hand_made.h"
#include "report/held_html.h"

namespace placet {
namespace {

std::string plain(double value) { return std::to_string(static_cast<int>(value)); }

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t i = text.find(part); i != std::string::npos; i = text.find(part, i + 1)) ++count;
  return count;
}

TEST(ChartTest, TicksAreRound) {
  EXPECT_EQ(ticks_of({"", 0, 5.24, plain}, 7), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(ticks_of({"", 27.1, 28.9, plain}, 4), (std::vector<double>{27.5, 28, 28.5}));
  EXPECT_EQ(ticks_of({"", 0, 100, plain}, 7), (std::vector<double>{0, 20, 40, 60, 80, 100}));
  EXPECT_EQ(ticks_of({"", -3, 3, plain}, 7), (std::vector<double>{-3, -2, -1, 0, 1, 2, 3}));
}

TEST(ChartTest, AnAxisHoldsItsValues) {
  const ChartAxis from_zero = axis_over("", {10, 50}, plain);
  EXPECT_EQ(from_zero.least, 0);
  EXPECT_GT(from_zero.most, 50);
  const ChartAxis close = axis_over("", {40, 50}, plain);
  EXPECT_GT(close.least, 30);
  EXPECT_LT(close.least, 40);
  const ChartAxis one = axis_over("", {0}, plain);
  EXPECT_LT(one.least, one.most);
}

TEST(ChartTest, WhatIsUpwardsStandsFartherFromTheUpperEdge) {
  const ChartAxis x{"time", 0, 10, plain};
  const ChartAxis y{"memory <GB>", 0, 4, plain};
  const std::string html = chart("name", x, y, "<circle/>", 100);
  EXPECT_NE(html.find("top:100.00%\">0<"), std::string::npos) << html;
  EXPECT_NE(html.find("top:25.00%\">3<"), std::string::npos) << html;
  EXPECT_NE(html.find("left:20.00%\">2<"), std::string::npos) << html;
  EXPECT_NE(html.find("memory &lt;GB&gt;"), std::string::npos) << html;
}

// Stage 0 keeps 5 GB while two micro-batches are in flight. One is from 0 to 2 s and from 4 s to
// the end of its backward pass at 9 s, two are between: steps of 2.5 GB on 40 GB at rest, of 84 GB
// that the chart is high.
TEST(HeldTest, MicroBatchesInFlightLieOnWhatRests) {
  const Judged judged = hand_made();
  Simulation simulated;
  simulated.step = seconds(10);
  simulated.stages.resize(2);
  const auto pass = [&](Doing doing, std::int64_t micro_batch, double begin, double end) {
    simulated.slices.push_back({.stage = 0,
                                .doing = doing,
                                .chunk = 0,
                                .micro_batch = micro_batch,
                                .begin = seconds(begin),
                                .end = seconds(end)});
  };
  pass(Doing::forward, 0, 0, 2);
  pass(Doing::forward, 1, 2, 3);
  pass(Doing::backward, 1, 3, 4);
  pass(Doing::backward, 0, 7, 9);
  const std::string html = held_html(judged, simulated);
  EXPECT_NE(html.find("at most 2 passes at once"), std::string::npos) << html;
  EXPECT_EQ(times(html, "class=\"c-activations\" x="), 3U) << html;
  for (const char* part : {"x=\"0.00%\" y=\"49.40%\" width=\"20.00%\" height=\"2.98%\"",
                           "x=\"20.00%\" y=\"46.43%\" width=\"20.00%\" height=\"5.95%\"",
                           "x=\"40.00%\" y=\"49.40%\" width=\"50.00%\" height=\"2.98%\""}) {
    EXPECT_NE(html.find(part), std::string::npos) << part << "\n" << html;
  }
  simulated.left_out = 1;
  EXPECT_EQ(held_html(judged, simulated), "");
}

}  // namespace
}  // namespace placet
