// Schedules that are written out: tables worked by hand against the rules, and what is wrong in
// one.
#include "schedule/work_table.h"

#include <gtest/gtest.h>

#include <sstream>

#include "schedule/moments.h"
#include "units/error.h"

namespace placet {
namespace {

TableRows rows(const std::vector<std::string>& lines) {
  TableRows out;
  for (const std::string& line : lines) {
    std::istringstream words(line);
    out.emplace_back();
    for (std::string word; words >> word;) out.back().push_back(word);
  }
  return out;
}

Schedule table(const std::vector<std::string>& lines) {
  return schedule_of_table(rows(lines), "mine", "mine.csv");
}

std::string problem(const std::vector<std::string>& lines) {
  try {
    table(lines);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

/// The rule does what the table says, on every device.
void expect_same_work(const Schedule& written, const Schedule& rule, std::int64_t degree,
                      std::int64_t micro_batches) {
  for (std::int64_t d = 0; d < degree; ++d) {
    EXPECT_EQ(order_of_work(written, degree, d, micro_batches),
              order_of_work(rule, degree, d, micro_batches))
        << d;
    EXPECT_EQ(held_micro_batches(written, degree, d, micro_batches),
              held_micro_batches(rule, degree, d, micro_batches))
        << d;
    for (std::int64_t c = 0; c < rule.chunks; ++c) {
      EXPECT_EQ(hosted_stage(written, degree, d, c), hosted_stage(rule, degree, d, c));
    }
  }
}

TEST(WorkTableTest, GPipeOnTwoStages) {
  expect_same_work(table({"0F0 0F1 0F2 0B0 0B1 0B2", "1F0 1F1 1F2 1B0 1B1 1B2"}),
                   {.order = Order::all_forward}, 2, 3);
}

TEST(WorkTableTest, OneForwardOneBackwardOnTwoStages) {
  // The first stage goes one forward ahead; so it holds 2, the last one 1.
  const Schedule written = table({"0F0 0F1 0B0 0F2 0B1 0B2", "1F0 1B0 1F1 1B1 1F2 1B2"});
  expect_same_work(written, {.order = Order::one_forward_one_backward}, 2, 3);
  EXPECT_EQ(held_micro_batches(written, 2, 0, 3), std::vector<std::int64_t>{2});
  EXPECT_EQ(held_micro_batches(written, 2, 1, 3), std::vector<std::int64_t>{1});
}

TEST(WorkTableTest, InterleavedOnTwoDevices) {
  // Two chunks, m = 2, device 0: warm-up 2 (2-0-1) + (2-1) 2 = 4, all forwards there are; device 1:
  // warm-up 2, then pairs. Backwards go through the second chunk first.
  expect_same_work(table({"0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1", "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1"}),
                   {.hosting = Hosting::loop, .order = Order::interleaved, .chunks = 2}, 2, 2);
}

TEST(WorkTableTest, ZeroBubbleOnTwoStages) {
  // ZB-H1: the last device lags its weights' part one micro-batch behind.
  const Schedule written =
      table({"0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2", "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2"});
  EXPECT_EQ(written.order, Order::split_table);
  expect_same_work(written, {.order = Order::split_single}, 2, 3);
  EXPECT_EQ(fullest_moments(written, 2, 3), fullest_moments({.order = Order::split_single}, 2, 3));
}

// Hanayo (arXiv:2308.15762, section 3): two waves over two devices are eight stages of which device
// 0 has 0, 3, 4 and 7: down, up, down, up.
TEST(WorkTableTest, WavesOnTwoDevices) {
  const Schedule written =
      table({"0F0 3F0 4F0 7F0 7B0 4B0 3B0 0B0", "1F0 2F0 5F0 6F0 6B0 5B0 2B0 1B0"});
  EXPECT_EQ(written.chunks, 4);
  EXPECT_EQ(virtual_stages(written, 2), 8);
  EXPECT_EQ(hosted_stage(written, 2, 0, 1), 3);
  EXPECT_EQ(hosted_stage(written, 2, 1, 2), 5);
  EXPECT_EQ(host_of(written, 2, 6, 0).device, 1);
  EXPECT_EQ(host_of(written, 2, 6, 0).chunk, 3);
  // One micro-batch over all four chunks at the turn of the last wave.
  EXPECT_EQ(held_micro_batches(written, 2, 0, 1), (std::vector<std::int64_t>{1, 1, 1, 1}));
}

TEST(WorkTableTest, IdleSlotsAndMessagesArePassedOver) {
  const Schedule written =
      schedule_of_table({{"0UNSHARD", "0F0", "0SEND_F0", "", "", "0RECV_B0", "0B0", "0REDUCE_GRAD"},
                         {"", "1RECV_F0", "1F0", "1B0", "1SEND_B0"}},
                        "mine", "mine.csv");
  EXPECT_EQ(written, table({"0F0 0B0", "1F0 1B0"}));
}

TEST(WorkTableTest, OtherNumbersOfMicroBatchesAreTold) {
  const Schedule written = table({"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"});
  EXPECT_EQ(unmet_need(written, 2, 2), "");
  EXPECT_EQ(unmet_need(written, 2, 3), "mine is a table of 2 micro-batches; a step of 3 is not");
  // A second round takes micro-batch 2 alone.
  using enum Work::Kind;
  EXPECT_EQ(order_of_work(written, 2, 1, 3), (std::vector<Work>{{forward, 0, 0},
                                                                {backward, 0, 0},
                                                                {forward, 0, 1},
                                                                {backward, 0, 1},
                                                                {forward, 0, 2},
                                                                {backward, 0, 2}}));
}

TEST(WorkTableTest, WhatCannotRunIsRefusedWithItsPlace) {
  EXPECT_EQ(problem({"0F0 0B0", "1F0 1C0"}),
            "mine.csv, row 2, slot 2: '1C0' is no action; expected stage, F, B, I or W, and "
            "micro-batch, such as 0F0; of less than 65536 stages and 1048576 micro-batches");
  EXPECT_EQ(problem({"0F0 0F1 0B0 0B1", "1F0 1B0 1F1"}),
            "mine.csv, row 2, slot 4: 1B1 is missing; expected every micro-batch from 0 to 1");
  EXPECT_EQ(problem({"0F0 0I0", "1F0 1B0"}),
            "mine.csv, row 1, slot 3: 0W0 is missing; expected every micro-batch from 0 to 0");
  EXPECT_EQ(problem({"0F0 0B0 0B0", "1F0 1B0"}),
            "mine.csv, row 1, slot 3: '0B0' stands out of turn; expected of each stage and "
            "micro-batch once F, then B, or I and W");
  EXPECT_EQ(problem({"0F0 0B0", "0F0 0B0"}),
            "mine.csv, row 2, slot 1: '0F0' works on a stage of another row too; expected each "
            "stage in one row");
  EXPECT_EQ(problem({"0F0 0B0", "2F0 2B0"}),
            "mine.csv: '1' is a stage of no row; expected stages 0 to 2");
  EXPECT_EQ(problem({"0F0 0B0 1F0 1B0", "2F0 2B0"}),
            "mine.csv, row 2, slot 1: '2F0' begins a row of 1 stages, the first has 2; expected as "
            "many in each row");
  // Device 0 wants the gradient of micro-batch 0 before it gives micro-batch 1, device 1 the other
  // way round.
  EXPECT_EQ(problem({"0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1"}),
            "mine.csv, row 1, slot 2: '0B0' waits for ever for 1B0; expected an order in which "
            "what a device waits for is not behind what waits for it");
}

// Rows in the opposite order of their stages: each action wakes the one device that waits for it.
TEST(WorkTable, ManyDevicesInAnyOrderComeToTheirEnds) {
  constexpr int kDevices = 2000;
  std::vector<std::string> lines;
  for (int d = 0; d < kDevices; ++d) {
    const std::string stage = std::to_string(kDevices - 1 - d);
    lines.push_back(stage + "F0 " + stage + "B0");
  }
  EXPECT_EQ(table(lines).table.stages.size(), 2000U);
}

}  // namespace
}  // namespace placet
