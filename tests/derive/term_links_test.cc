// Which link a message crosses: hosts of 8 devices, two of them.
#include <gtest/gtest.h>

#include <utility>

#include "derive/derivation.h"
#include "derive/small_llama.h"
#include "schedule/schedule.h"

namespace placet {
namespace {

Job on_hosts_of_eight(std::vector<AxisPlacement> axes) {
  Job job = plain_job(build_model(small_architecture(1)), std::move(axes), 8, 16);
  DeviceGroup group;
  group.count = devices_of(job.placement);
  group.per_host = 8;
  group.levels = {
      {.link = "inside", .devices = 8, .bandwidth = gigabytes_per_second(100)},
      {.link = "outside", .devices = group.count, .bandwidth = gigabytes_per_second(10)}};
  job.cluster = Cluster{.name = "test", .groups = {group}, .between_groups = {}};
  return job;
}

/// Position of a level of the first group.
int number_of(const Job& job, const Level& level) {
  return static_cast<int>(&level - job.cluster->groups.front().levels.data());
}

// Ranks 0..15: the axis is on both hosts, two neighbours (14, 15) on one; of three, 6, 7 and 8 are
// on two; and so are every eighth.
TEST(TermLinks, APartOfAnAxisCrossesWhatItsMembersDo) {
  const Job job = on_hosts_of_eight({axis("tp", 16, Cut::tensor, kTensorWhole)});
  const auto level = [&](std::int64_t group, std::int64_t apart) {
    return number_of(job,
                     level_of_term(job, {.axes = axis_bit(0), .group = group, .apart = apart}, 0));
  };
  EXPECT_EQ(level(16, 1), 1);
  EXPECT_EQ(level(2, 1), 0);
  EXPECT_EQ(level(8, 1), 0);
  EXPECT_EQ(level(3, 1), 1);
  EXPECT_EQ(level(2, 8), 1);
  EXPECT_EQ(level(2, 4), 0);
}

// dp=4 tp=4: neighbours along dp stand 4 apart, ranks 0 and 4, or 8 and 12; four of them on both.
TEST(TermLinks, OfAnOuterAxisToo) {
  const Job job =
      on_hosts_of_eight({axis("dp", 4, Cut::batch), axis("tp", 4, Cut::tensor, kTensorWhole)});
  const auto level = [&](std::int64_t group) {
    return number_of(job, level_of_term(job, {.axes = axis_bit(0), .group = group}, 0));
  };
  EXPECT_EQ(level(2), 0);
  EXPECT_EQ(level(4), 1);
}

const Level& link_of_send(const Job& job, int stage, Phase phase) {
  return level_of_term(
      job, {.axes = axis_bit(0), .collective = Collective::send_recv, .phase = phase, .group = 2},
      stage);
}

int level_of_send(const Job& job, int stage, Phase phase) {
  return number_of(job, link_of_send(job, stage, phase));
}

// 16 stages of one device: 7 and 8 stand on two hosts, all other neighbours on one.
TEST(TermLinks, StagesSendOverWhatLiesBetweenThem) {
  const Job job = on_hosts_of_eight({axis("pp", 16, Cut::layer, kStages)});
  for (int stage = 0; stage < 16; ++stage) {
    EXPECT_EQ(level_of_send(job, stage, Phase::forward), stage == 7 ? 1 : 0) << stage;
    EXPECT_EQ(level_of_send(job, stage, Phase::backward), stage == 8 ? 1 : 0) << stage;
  }
}

// Two stages a device, in a loop: the last device sends to the first. In a vee the second stage of
// device 7 comes from 8, and its activations go to 6.
TEST(TermLinks, SeveralStagesOfADeviceCrossTheSlowestOfTheirBoundaries) {
  Job job = on_hosts_of_eight({axis("pp", 16, Cut::layer, kStages)});
  job.schedule = {.hosting = Hosting::loop, .order = Order::interleaved, .chunks = 2};
  EXPECT_EQ(level_of_send(job, 15, Phase::forward), 1);
  EXPECT_EQ(level_of_send(job, 3, Phase::forward), 0);
  job.schedule.hosting = Hosting::vee;
  EXPECT_EQ(level_of_send(job, 7, Phase::forward), 1);
  EXPECT_EQ(level_of_send(job, 8, Phase::forward), 1);
  EXPECT_EQ(level_of_send(job, 15, Phase::forward), 0);
}

// Stages of 4 devices: 0 and 1 on the first host, 2 and 3 on the second. With a batch axis outside,
// the same in each pipeline.
TEST(TermLinks, StagesOfSeveralDevices) {
  const Job job = on_hosts_of_eight(
      {axis("pp", 4, Cut::layer, kStages), axis("tp", 4, Cut::tensor, kTensorWhole)});
  EXPECT_EQ(level_of_send(job, 0, Phase::forward), 0);
  EXPECT_EQ(level_of_send(job, 1, Phase::forward), 1);
  EXPECT_EQ(level_of_send(job, 2, Phase::forward), 0);
}

// Two hosts of 8 with slow links inside, two with fast ones: a stage's messages cross its own; two
// stages of different devices meet between them, and what all ranks sum up there too.
TEST(TermLinks, StagesHaveTheLinksOfTheirDevices) {
  Job job = on_hosts_of_eight(
      {axis("pp", 4, Cut::layer, kStages), axis("tp", 8, Cut::tensor, kTensorWhole)});
  Cluster& cluster = *job.cluster;
  cluster.groups.front().count = 16;
  cluster.groups.push_back(cluster.groups.front());
  cluster.groups[1].levels[0] = {
      .link = "quick", .devices = 8, .bandwidth = gigabytes_per_second(400)};
  cluster.between_groups = {.link = "between", .devices = 32, .bandwidth = gigabytes_per_second(1)};
  const CommunicationTerm sum{.axes = axis_bit(1), .group = 8};
  EXPECT_EQ(level_of_term(job, sum, 0).link, "inside");
  EXPECT_EQ(level_of_term(job, sum, 3).link, "quick");
  EXPECT_EQ(link_of_send(job, 0, Phase::forward).link, "outside");
  EXPECT_EQ(link_of_send(job, 1, Phase::forward).link, "between");
  EXPECT_EQ(link_of_send(job, 2, Phase::forward).link, "outside");
  const CommunicationTerm all{.axes = axis_bit(0) | axis_bit(1), .group = 32};
  EXPECT_EQ(level_of_term(job, all, 3).link, "between");
  // Whichever stands first.
  std::swap(cluster.groups[0], cluster.groups[1]);
  EXPECT_EQ(level_of_term(job, sum, 0).link, "quick");
  EXPECT_EQ(level_of_term(job, sum, 3).link, "inside");
}

}  // namespace
}  // namespace placet
