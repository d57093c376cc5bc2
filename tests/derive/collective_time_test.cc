#include "derive/collective_time.h"

#include <gtest/gtest.h>

#include "derive/small_cluster.h"
#include "derive/small_llama.h"

namespace placet {
namespace {

// Hosts of 8 devices at 100 GB/s inside, 10 GB/s per device outside; a step takes 1 us and 10 us.
Cluster hosts_of_eight(std::int64_t devices) { return small_cluster(devices); }

Placement two_axes() { return {{axis("dp", 4, Cut::batch), axis("tp", 4, Cut::tensor)}}; }

TEST(GroupPlace, CountsMembersPerDomain) {
  const std::vector<Level> levels = hosts_of_eight(16).groups.front().levels;
  EXPECT_EQ(place_of(levels, two_axes(), axis_bit(1)), (GroupPlace{4, {4, 4}, 4}));
  EXPECT_EQ(place_of(levels, two_axes(), axis_bit(0)), (GroupPlace{4, {2, 4}, 16}));
  EXPECT_EQ(place_of(levels, two_axes(), axis_bit(0) | axis_bit(1)), (GroupPlace{16, {8, 16}, 16}));
}

// Four devices of one host: 2 x 3/4 of 1 GB at 100 GB/s is 15 ms, and twice three steps of 1 us.
TEST(AllReduce, InsideAHost) {
  const auto levels = hosts_of_eight(16).groups.front().levels;
  EXPECT_NEAR(in_seconds(all_reduce_time(levels, {4, {4, 4}}, 1e9)), 15e-3 + 6e-6, 1e-12);
}

// Two hosts with eight members each: eight links of 10 GB/s side by side, under 100 GB/s inside.
// 2 x 15/16 of 1 GB at 80 GB/s. The tree has 7 steps inside and one outside, each way.
TEST(AllReduce, MembersOfAHostBringALinkEach) {
  const auto levels = hosts_of_eight(16).groups.front().levels;
  const double sent = 2.0 * 15 / 16 * 1e9;
  EXPECT_NEAR(in_seconds(all_reduce_time(levels, {16, {8, 16}}, 1e9)),
              sent / 80e9 + 2 * (7e-6 + 10e-6), 1e-12);
}

// One member per host: its own link. Round the ring once, 3 steps of 10 us: 3/4 of 1 GB at 10 GB/s.
TEST(AllGather, GoesRoundTheRingOnce) {
  const auto levels = hosts_of_eight(32).groups.front().levels;
  EXPECT_NEAR(in_seconds(scatter_time(levels, {4, {1, 4}}, 1e9)), 0.075 + 30e-6, 1e-12);
}

TEST(AllReduce, MeasuredCurvesStandForFormulas) {
  auto levels = hosts_of_eight(8).groups.front().levels;
  levels.front().all_reduce = {{.group = 4, .gigabytes_per_second = Curve{{{1e6, 50}, {1e9, 80}}}}};
  // 2 x 3/4 of 1 GB at 80 GB/s; a scatter half of it.
  EXPECT_NEAR(in_seconds(all_reduce_time(levels, {4, {4, 4}}, 1e9)), 1.5 / 80, 1e-12);
  EXPECT_NEAR(in_seconds(scatter_time(levels, {4, {4, 4}}, 1e9)), 0.75 / 80, 1e-12);
  // Below the smallest measured message time does not fall: 1.5e6 bytes at 50 GB/s.
  EXPECT_NEAR(in_seconds(all_reduce_time(levels, {4, {4, 4}}, 1e3)), 1.5e6 / 50e9, 1e-12);
}

// 16 devices on two hosts: a ring has 15 steps of 10 us. A model of three tensors has three owners,
// so that its broadcasts pass the ring twice more than the one gather of the same bytes.
TEST(AllGather, BroadcastsByOwnersPassTheRingOnceEach) {
  Job job = written_job(bare_model(800, 3), "dp=16:zero1", 1, 16);
  job.cluster = hosts_of_eight(16);
  const CommunicationTerm updated{.axes = axis_bit(0),
                                  .collective = Collective::all_gather,
                                  .state = State::parameters,
                                  .phase = Phase::update,
                                  .payload = bytes(800),
                                  .count = 1,
                                  .group = 16};
  const double once = in_seconds(call_time(job, updated));
  job.profile.timing.broadcasts_updates = true;
  EXPECT_NEAR(in_seconds(call_time(job, updated)) - once, 2 * 15 * 10e-6, 1e-12);
  CommunicationTerm used = updated;
  used.phase = Phase::forward;
  EXPECT_NEAR(in_seconds(call_time(job, used)), once, 1e-12);
}

// What was measured with groups over all hosts says nothing of narrower ones: round the ring once,
// 3/4 of 1 GB at 5 GB/s where the groups' block takes up all 32 devices, else at 10 GB/s.
TEST(AllGather, AMeasuredRateIsOfGroupsOverAllHosts) {
  auto levels = hosts_of_eight(32).groups.front().levels;
  levels.back().bandwidth_of_all = gigabytes_per_second(5);
  EXPECT_NEAR(in_seconds(scatter_time(levels, {4, {1, 4}, 32}, 1e9)), 0.15 + 30e-6, 1e-12);
  EXPECT_NEAR(in_seconds(scatter_time(levels, {4, {1, 4}, 16}, 1e9)), 0.075 + 30e-6, 1e-12);
}

// Two calls among four: 2 x 3 further members, of which 2 x 1 on the own host.
TEST(MessageTimer, CountsWhatTheHostNeedsPerMember) {
  Job job;
  job.placement = two_axes();
  job.cluster = hosts_of_eight(16);
  const CommunicationTerm term{.axes = axis_bit(0), .count = 2, .group = 4};
  EXPECT_EQ(MessageTimer(job).host(term, {0}), Seconds());
  job.cluster->groups.front().host_per_member = milliseconds(1);
  // Two of the four stand on the own host: one neighbour, for nothing so far, and two others.
  EXPECT_NEAR(in_seconds(MessageTimer(job).host(term, {0})), 4e-3, 1e-12);
  job.cluster->groups.front().host_per_neighbour = milliseconds(0.5);
  EXPECT_NEAR(in_seconds(MessageTimer(job).host(term, {0})), 5e-3, 1e-12);
}

TEST(CallTime, OfTheOtherCollectives) {
  Job job;
  job.placement = two_axes();
  job.cluster = hosts_of_eight(16);
  CommunicationTerm term{.axes = axis_bit(0), .payload = gigabytes(1), .count = 2, .group = 4};
  // Half of the buffer stays among the two members of a host (1/4 leaves for the other), 1/2 leaves
  // for the other host at 10 GB/s, and one step of 10 us.
  term.collective = Collective::all_to_all;
  EXPECT_NEAR(in_seconds(call_time(job, term)), 0.05 + 10e-6, 1e-12);
  term.collective = Collective::send_recv;
  EXPECT_NEAR(in_seconds(call_time(job, term)), 0.1 + 10e-6, 1e-12);
  term.collective = Collective::host_copy;
  EXPECT_NEAR(in_seconds(term_time(job, term)), 2 * 0.05, 1e-12);
  // NVMe of 2 GB/s per device; as fast as host memory where nothing is known of it.
  term.nvme = true;
  EXPECT_NEAR(in_seconds(term_time(job, term)), 2 * 0.05, 1e-12);
  job.cluster->groups.front().nvme_link = gigabytes_per_second(2);
  EXPECT_NEAR(in_seconds(term_time(job, term)), 2 * 0.5, 1e-12);
  job.cluster.reset();
  EXPECT_EQ(call_time(job, term), Seconds());
}

// 16 devices in two groups of 8; the second has half the rate to its host, half the bandwidth
// inside it, and a host that needs 1 ms per member.
TEST(MessageTimer, DevicesOfAStageWaitForTheSlowestOfTheirLinks) {
  Job job;
  job.placement = two_axes();
  job.cluster = hosts_of_eight(8);
  DeviceGroup slow = job.cluster->groups.front();
  slow.host_link = gigabytes_per_second(10);
  slow.host_per_neighbour = milliseconds(1);
  slow.levels.front().bandwidth = gigabytes_per_second(50);
  job.cluster->groups.push_back(slow);
  job.cluster->between_groups = slow.levels.back();
  MessageTimer timer(job);
  CommunicationTerm term{.axes = axis_bit(1),
                         .collective = Collective::host_copy,
                         .payload = gigabytes(1),
                         .count = 1,
                         .group = 4};
  EXPECT_NEAR(in_seconds(timer.call(term, {0})), 0.05, 1e-12);
  EXPECT_NEAR(in_seconds(timer.call(term, {1})), 0.1, 1e-12);
  EXPECT_NEAR(in_seconds(timer.call(term, {0, 1})), 0.1, 1e-12);
  EXPECT_EQ(timer.host(term, {0}), Seconds());
  EXPECT_EQ(timer.host(term, {1}), milliseconds(3));
  EXPECT_EQ(timer.host(term, {0, 1}), milliseconds(3));
  // 3/4 of 1 GB at 100 or 50 GB/s, and three steps of 1 us.
  term.collective = Collective::all_gather;
  EXPECT_NEAR(in_seconds(timer.call(term, {0})), 7.5e-3 + 3e-6, 1e-12);
  EXPECT_NEAR(in_seconds(timer.call(term, {1})), 15e-3 + 3e-6, 1e-12);
  EXPECT_NEAR(in_seconds(timer.call(term, {0, 1})), 15e-3 + 3e-6, 1e-12);
  // What joins stages waits for all groups, whoever sends.
  job.placement.axes[1].how.cut = Cut::layer;
  EXPECT_NEAR(in_seconds(timer.call(term, {0})), 15e-3 + 3e-6, 1e-12);
}

// Exchanges may reach another part of a link's bandwidth than rings do: 0.5 GB at half of 10 GB/s.
TEST(CallTime, ExchangesReachTheirOwnPartOfALink) {
  Job job;
  job.placement = {{axis("ep", 4, Cut::expert), axis("tp", 4, Cut::tensor)}};
  job.cluster = hosts_of_eight(16);
  job.cluster->groups.front().levels.back().exchange_efficiency = 0.5;
  CommunicationTerm term{.axes = axis_bit(0), .payload = gigabytes(1), .count = 1, .group = 4};
  term.collective = Collective::all_to_all;
  EXPECT_NEAR(in_seconds(call_time(job, term)), 0.1 + 10e-6, 1e-12);
}

// Two hosts of two members each, two choices per token. Of the half that leaves for the other host,
// 2 (1 - 1/4) / 2 = 3/4 are the first copy of their token there. Were the link outside without
// limit, the quarter that goes to the neighbour would count: of its copies 4 (1 - (3/4)^2) / 2 =
// 7/8 are the first on their device.
TEST(CallTime, TokensMayLeaveForAHostOnce) {
  Job job;
  job.placement = {{axis("ep", 4, Cut::expert), axis("tp", 4, Cut::tensor)}};
  job.cluster = hosts_of_eight(16);
  job.model.figures.experts_per_token = 2;
  CommunicationTerm term{.axes = axis_bit(0), .payload = gigabytes(1), .count = 1, .group = 4};
  term.collective = Collective::all_to_all;
  EXPECT_NEAR(in_seconds(call_time(job, term)), 0.05 + 10e-6, 1e-12);
  job.profile.timing.exchanges_once_per_domain = true;
  EXPECT_NEAR(in_seconds(call_time(job, term)), 0.0375 + 10e-6, 1e-12);
  job.cluster->groups.front().levels.back().bandwidth = gigabytes_per_second(1e9);
  EXPECT_NEAR(in_seconds(call_time(job, term)), 0.0025 * 7 / 8 + 10e-6, 1e-9);
  term.axes = axis_bit(1);  // no experts along it
  EXPECT_NEAR(in_seconds(call_time(job, term)), 0.0075 + 3e-6, 1e-12);
}

}  // namespace
}  // namespace placet
