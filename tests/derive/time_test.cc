#include "derive/time.h"

#include <gtest/gtest.h>

#include "derive/small_cluster.h"
#include "derive/small_llama.h"
#include "derive/traffic.h"
#include "model/gradients.h"

namespace placet {
namespace {

Job timed_job(std::vector<AxisPlacement> axes, std::int64_t devices, std::int64_t global) {
  Job job = plain_job(build_model(small_architecture(4)), std::move(axes), 16, global);
  job.cluster = small_cluster(devices);
  return job;
}

double sum_of_terms(const TimeDerivation& time) {
  double sum = 0;
  for (const TimeTerm& term : time.terms) sum += in_seconds(term.time);
  return sum;
}

TEST(Time, IsNotKnownWithoutACluster) {
  Job job = timed_job({axis("dp", 2, Cut::batch)}, 2, 4);
  job.cluster.reset();
  EXPECT_FALSE(derive_time(job).known);
}

TEST(Time, IsTheSumOfItsTerms) {
  const std::vector<std::vector<AxisPlacement>> placements = {
      {axis("dp", 2, Cut::batch)},
      {axis("dp", 2, Cut::batch, kAllSharded)},
      {axis("tp", 2, Cut::tensor, kTensorWhole)},
      {axis("pp", 2, Cut::layer, kStages), axis("dp", 2, Cut::batch)}};
  for (const auto& axes : placements) {
    const TimeDerivation time = derive_time(timed_job(axes, 4, 8));
    ASSERT_TRUE(time.known);
    EXPECT_GT(in_seconds(time.step), 0);
    EXPECT_NEAR(sum_of_terms(time), in_seconds(time.step), 1e-12);
    EXPECT_LT(utilisation(time), 1);
  }
}

// Embedding and blocks are frozen: the first of two stages has no backward, so that there its host
// does nothing for one either.
TEST(Time, StagesBelowWhatIsTrainedHaveNoBackward) {
  Job job = timed_job({axis("pp", 2, Cut::layer, kStages)}, 2, 8);
  for (UnitKind& kind : job.model.kinds) {
    for (Parameter& parameter : kind.parameters) parameter.trainable = kind.role == UnitRole::head;
  }
  job.model = with_gradients_needed(std::move(job.model));
  job.profile.timing.host_per_pass = milliseconds(1);
  const TimeDerivation time = derive_time(job);
  ASSERT_EQ(time.stages.size(), 2U);
  EXPECT_EQ(time.stages[0].chunks[0].backward, Seconds());
  EXPECT_GE(time.stages[0].chunks[0].forward, milliseconds(1));
  EXPECT_GE(time.stages[1].chunks[0].backward, milliseconds(1));
  EXPECT_NEAR(sum_of_terms(time), in_seconds(time.step), 1e-12);
}

// One device: no message, no bubble.
TEST(Time, OfOneDeviceHasNoCommunication) {
  const TimeDerivation time = derive_time(timed_job({axis("dp", 1, Cut::batch)}, 1, 2));
  EXPECT_EQ(total_of(time, TimeKind::exposed), Seconds());
  EXPECT_EQ(total_of(time, TimeKind::bubble), Seconds());
  EXPECT_GT(total_of(time, TimeKind::compute), Seconds());
}

// Per token and block, of 576 weights (q 64, k and v 32 each, o 64, the MLP 3 x 128): forward
// 2 x 576, and 4 x 16 x 8 of attention over 16 tokens of width 8: 1664. Backward runs the four
// blocks once more for 32 tokens: 1664 x 32 x 4 = 212,992 FLOPs beside the model's. A causal
// kernel, which skips half of the pairs, counts as one that does not.
TEST(Time, HardwareFlopsCountRecomputationAsModelFlopsAre) {
  for (const char* kernel : {"", "flash-2"}) {
    Job job = timed_job({axis("dp", 1, Cut::batch)}, 1, 2);
    job.profile.timing.attention_kernel = kernel;
    const TimeDerivation once = derive_time(job);
    EXPECT_EQ(once.hardware_flops, once.model_flops) << kernel;
    job.recompute.kind = Recompute::Kind::full;
    const TimeDerivation again = derive_time(job);
    EXPECT_EQ(again.model_flops, once.model_flops) << kernel;
    EXPECT_NEAR(again.hardware_flops - again.model_flops, 212'992, 1e-6) << kernel;
  }
}

// A host that needs a second per kernel is all that matters; one that needs nothing does not show.
TEST(Time, ADeviceWaitsForItsHost) {
  Job job = timed_job({axis("dp", 1, Cut::batch)}, 1, 2);
  job.profile.timing.host_per_launch = {};
  job.profile.timing.host_per_collective = {};
  EXPECT_NEAR(in_seconds(total_of(derive_time(job), TimeKind::launch)), 0, 1e-12);
  job.profile.timing.host_per_launch = seconds(1);
  const TimeDerivation slow = derive_time(job);
  EXPECT_GT(total_of(slow, TimeKind::launch), slow.step * 0.99);
}

// One block of four experts that all tokens of one device choose among. A launch takes so long that
// nothing else counts: a product per expert in place of one for all takes 3 more launches in each
// of three products forward, and as many in each of six backward.
TEST(Time, ExpertsMayBeLaunchedOneByOne) {
  Job job = plain_job(build_model(expert_architecture(1)), {axis("dp", 1, Cut::batch)}, 16, 1);
  job.cluster = small_cluster(1);
  job.profile.timing.host_per_launch = seconds(1);
  const Seconds together = total_of(derive_time(job), TimeKind::launch);
  job.profile.timing.launches_per_expert = 1;
  const Seconds apart = total_of(derive_time(job), TimeKind::launch);
  EXPECT_NEAR(in_seconds(apart - together), 27, 1e-3);
}

// Four devices that share everything: every collective of parameters or gradients copies the parts
// of three further members, a launch each, and nothing else in the step takes longer for it.
TEST(Time, PartsOfMembersMayBeCopiedOneByOne) {
  Job job = timed_job({axis("dp", 4, Cut::batch, kAllSharded)}, 4, 8);
  job.profile.timing.host_per_launch = seconds(1);
  const Seconds together = total_of(derive_time(job), TimeKind::exposed);
  job.profile.timing.launches_per_member = 1;
  const Seconds apart = total_of(derive_time(job), TimeKind::exposed);
  double collectives = 0;
  const Derivation derivation = derive(job);
  for (const CommunicationTerm& term : derivation.communication.front().terms) {
    const bool counts = term.state == State::parameters || term.state == State::gradients;
    if (counts) collectives += static_cast<double>(term.count);
  }
  ASSERT_GT(collectives, 0);
  EXPECT_NEAR(in_seconds(apart - together), 3 * collectives, 1e-3);
}

// A gather that follows the reduction before it has nothing left to hide behind; forward it has.
TEST(Time, GathersAfterReductionsAreWaitedFor) {
  Job job = timed_job({axis("dp", 4, Cut::batch, kAllSharded)}, 4, 8);
  const auto waited = [&](std::string_view phase) {
    double sum = 0;
    for (const TimeTerm& term : derive_time(job).terms) {
      if (term.kind == TimeKind::exposed && term.phase == phase) sum += in_seconds(term.time);
    }
    return sum;
  };
  const double forward = waited("forward");
  const double backward = waited("backward");
  job.profile.timing.overlaps = 1U << static_cast<unsigned>(Overlap::gathers);
  EXPECT_LT(waited("backward"), backward);
  job.profile.timing.gathers_after_reductions = true;
  EXPECT_NEAR(waited("backward"), backward, 1e-12);
  EXPECT_LT(waited("forward"), forward);
}

// What follows the routing takes the host longer than the device, what lies before it does not. A
// host that runs ahead of its device has some of it launched by then; one that waits has not.
TEST(Time, AHostThatWaitsForRoutingLosesItsLead) {
  Job job = plain_job(build_model(expert_architecture(4)), {axis("dp", 1, Cut::batch)}, 4096, 1);
  job.cluster = small_cluster(1);
  job.cluster->groups.front().device.rates.kernel = milliseconds(1);
  job.profile.timing.host_per_launch = microseconds(100);
  job.profile.timing.launches_per_expert = 20;
  const Seconds ahead = total_of(derive_time(job), TimeKind::launch);
  job.profile.timing.waits_for_routing = true;
  const Seconds waiting = total_of(derive_time(job), TimeKind::launch);
  EXPECT_GT(waiting, ahead);
  job.profile.timing.captures_launches = true;
  EXPECT_LT(total_of(derive_time(job), TimeKind::launch), ahead);
}

// The host launches more for router and dispatcher than the operators say. A recorded graph up to
// the dispatch spares those; what the experts launch remains.
TEST(Time, ARecordedGraphUpToTheDispatchSparesItsLaunches) {
  Job job = plain_job(build_model(expert_architecture(4)), {axis("dp", 1, Cut::batch)}, 4096, 1);
  job.cluster = small_cluster(1);
  job.profile.timing.host_per_launch = milliseconds(1);
  job.profile.timing.launches_per_expert = 20;
  const Seconds few = total_of(derive_time(job), TimeKind::launch);
  job.profile.timing.routing_launches = 50;
  const Seconds more = total_of(derive_time(job), TimeKind::launch);
  // Four blocks, forward and backward: 50 launches of 1 ms each.
  EXPECT_NEAR(in_seconds(more - few), 4 * 2 * 0.050, 1e-9);
  job.profile.timing.captures_to_routing = true;
  const Seconds recorded = total_of(derive_time(job), TimeKind::launch);
  EXPECT_LT(recorded, few);
  EXPECT_GT(recorded, Seconds());
}

// 800 elements on a device with 12 bytes of optimizer state each, read from NVMe and written back
// at 1000 bytes per second.
TEST(Time, StatesOnNvmeAreReadAndWrittenBack) {
  Job job = written_job(bare_model(1600, 4), "dp=2:zero3+offload(optimizer,nvme)", 1, 2);
  job.cluster = small_cluster(2);
  const Seconds host = total_of(derive_time(job), TimeKind::update);
  job.cluster->groups.front().nvme_link = gigabytes_per_second(1e-6);
  const Seconds nvme = total_of(derive_time(job), TimeKind::update);
  EXPECT_LT(host, seconds(1e-3));
  EXPECT_NEAR(in_seconds(nvme), 2 * 9600.0 / 1000, 1e-3);
}

TEST(Time, MessagesBesideComputationAreHidden) {
  Job job = timed_job({axis("dp", 16, Cut::batch)}, 16, 32);
  const Seconds open = total_of(derive_time(job), TimeKind::exposed);
  job.profile.timing.overlaps = 1U << static_cast<unsigned>(Overlap::reductions);
  EXPECT_LT(total_of(derive_time(job), TimeKind::exposed), open);
}

// Messages between stages hide where several virtual stages stand on a device; an engine may leave
// those of one to be waited for.
TEST(Time, StagesOfOneChunkMayWaitForTheirMessages) {
  Job job = timed_job({axis("pp", 2, Cut::layer)}, 2, 8);
  job.profile.timing.overlaps = 1U << static_cast<unsigned>(Overlap::stages);
  EXPECT_EQ(total_of(derive_time(job), TimeKind::send), Seconds());
  job.profile.timing.plain_sends_block = true;
  EXPECT_GT(total_of(derive_time(job), TimeKind::send), Seconds());
  job.schedule = {.hosting = Hosting::loop, .order = Order::interleaved, .chunks = 2};
  EXPECT_EQ(total_of(derive_time(job), TimeKind::send), Seconds());
}

// Two stages on devices of their own take what they take on a cluster of those devices alone.
TEST(Time, StagesGoAtThePaceOfTheirDevices) {
  const std::vector<AxisPlacement> axes = {axis("pp", 2, Cut::layer), axis("dp", 2, Cut::batch)};
  Job slow = timed_job(axes, 4, 8);
  slow.profile.timing.captures_launches = true;  // else small kernels wait for their host
  slow.cluster->groups.front().device.rates.memory = gigabytes_per_second(1);
  Job fast = slow;
  DeviceRates& rates = fast.cluster->groups.front().device.rates;
  rates.matmul[static_cast<std::size_t>(MatmulFormat::bf16)] = teraflops_per_second(150);
  rates.memory = gigabytes_per_second(4);
  Job mixed = slow;
  mixed.cluster->groups = {slow.cluster->groups.front(), fast.cluster->groups.front()};
  for (DeviceGroup& group : mixed.cluster->groups) group.count = 2;
  mixed.cluster->between_groups = slow.cluster->groups.front().levels.back();
  const std::vector<StageTime> both = derive_time(mixed).stages;
  const std::vector<StageTime> alone[] = {derive_time(slow).stages, derive_time(fast).stages};
  for (std::size_t s = 0; s < 2; ++s) {
    EXPECT_EQ(both[s].chunks[0].forward, alone[s][s].chunks[0].forward);
    EXPECT_EQ(both[s].chunks[0].backward, alone[s][s].chunks[0].backward);
    EXPECT_EQ(both[s].update, alone[s][s].update);
  }
  EXPECT_LT(both[1].chunks[0].forward, alone[0][1].chunks[0].forward);
  // With the data axis outside both stages have devices of both kinds.
  std::swap(mixed.placement.axes[0], mixed.placement.axes[1]);
  std::swap(slow.placement.axes[0], slow.placement.axes[1]);
  EXPECT_EQ(derive_time(mixed).stages[1].chunks[0].forward,
            derive_time(slow).stages[1].chunks[0].forward);
}

TEST(Time, RecomputationRunsForwardOnceMore) {
  Job job = timed_job({axis("dp", 1, Cut::batch)}, 1, 1);
  const Seconds plain = total_of(derive_time(job), TimeKind::compute);
  job.recompute = {.kind = Recompute::Kind::full};
  const TimeDerivation again = derive_time(job);
  EXPECT_GT(total_of(again, TimeKind::compute), plain);
  EXPECT_TRUE(std::ranges::any_of(
      again.terms, [](const TimeTerm& term) { return term.phase == "recomputation"; }));
}

TEST(Time, TwiceTheMicroBatchesTakeTwiceTheComputation) {
  const TimeDerivation one = derive_time(timed_job({axis("dp", 1, Cut::batch)}, 1, 8));
  const TimeDerivation two = derive_time(timed_job({axis("dp", 1, Cut::batch)}, 1, 16));
  EXPECT_NEAR(total_of(two, TimeKind::compute) / total_of(one, TimeKind::compute), 2.0, 1e-9);
  EXPECT_NEAR(two.model_flops / one.model_flops, 2.0, 1e-12);
}

}  // namespace
}  // namespace placet
