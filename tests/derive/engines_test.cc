// What training engines send, as their code was read: kinds, formats, counts and bytes of each
// engine's tables, from its data file. The model is that of traffic.h (a block has 2336 elements, a
// value of the stream 8 x 16 x 2 = 256 bytes) unless a test says otherwise.
#include <gtest/gtest.h>

#include <algorithm>

#include "catalog/cluster_catalog.h"
#include "derive/engine_lines.h"

namespace placet {
namespace {

// Experts on a tensor axis cut no samples of dense work: only dp does.
TEST(Engines, ExpertsOnATensorAxisAreNoDataRanks) {
  const std::string placement = "dp=2:zero1 tp=2:tp+sp;experts:ep";
  const Job megatron =
      engine_job("megatron@2026", build_model(expert_architecture(1)), placement, 8, 2);
  EXPECT_EQ(std::ranges::count(extras(megatron),
                               "update all_reduce fp32 dp 8x1 loss and count of tokens"),
            1);
  const Job titan = engine_job("torchtitan@2026.02", build_model(expert_architecture(1)),
                               "dp=2:fsdp tp=2:tp+sp;experts:ep", 8, 2);
  EXPECT_EQ(
      std::ranges::count(extras(titan), "forward all_reduce int64 dp 8x1 count of valid tokens"),
      1);
}

// --- stages 0 to 3 by the placement (DeepSpeed)

/// Hidden 512, 8 heads of 64, an MLP of 1024, a vocabulary of 1000: all matrices are above 1e5
/// elements, norms below. A block: 4 x 262144 + 3 x 524288 + 2 x 512 = 2622464 elements; embedding
/// and head 512000 each, and a norm of 512.
Model large_model() {
  Architecture out = small_architecture(2);
  out.hidden = 512;
  out.embedding.vocabulary = 1000;
  out.embedding.width = 512;
  Attention& attention = attention_in(out);
  attention.heads = 8;
  attention.kv_heads = 8;
  attention.head_size = 64;
  attention.value_head_size = 64;
  attention.rotary_size = 64;
  std::get<Mlp>(out.shapes[0][1].branches[0].mixer).width = 1024;
  return build_model(out);
}

constexpr std::int64_t kMatrices = 2 * 2621440 + 2 * 512000;  // elements
constexpr std::int64_t kNorms = 5 * 512;
constexpr std::int64_t kAll = kMatrices + kNorms;

Job large_job(const std::string& placement, std::int64_t micro_batches) {
  return engine_job("deepspeed@0.19.2", large_model(), placement, 8, 4 * micro_batches);
}

// All in one bucket of less than 5e8 elements. 4 micro-batches of accumulation.
TEST(DeepSpeed, StagesZeroAndOneReduceAtTheBoundary) {
  const std::string bytes = std::to_string(2 * kAll);
  EXPECT_EQ(states(large_job("dp=4:ddp", 4)),
            Lines{"reduce all_reduce bf16 dp " + bytes + "x1 gradients"});
  EXPECT_EQ(states(large_job("dp=4:zero1", 4)),
            (Lines{"reduce all_reduce bf16 dp " + bytes + "x1 gradients",
                   "update all_gather bf16 dp " + bytes + "x1 updated parameters"}));
}

TEST(DeepSpeed, StageTwoAllReducesInEveryMicroBatch) {
  const std::string bytes = std::to_string(2 * kAll);
  EXPECT_EQ(states(large_job("dp=4:zero2", 4)),
            (Lines{"backward all_reduce bf16 dp " + bytes + "x4 gradients",
                   "update all_gather bf16 dp " + bytes + "x1 updated parameters"}));
}

/// Stage 3 as in models of billions of elements: what is gathered is freed after its use.
constexpr const char* kFreeing =
    "deepspeed@0.19.2+stage3_max_reuse_distance=0+stage3_max_live_parameters=0";

// The whole model is used again within 10^9 elements: it is gathered once in a micro-batch, and, as
// no more are gathered ahead than 10^9 either, in messages of 5 x 10^7. Of 9 x 10^8 elements the
// last block alone is looked at.
TEST(DeepSpeed, StageThreeKeepsWhatIsSoonUsedAgain) {
  const Job job = engine_job("deepspeed@0.19.2", bare_model(800'000, 4), "dp=4:zero3", 1, 4);
  EXPECT_EQ(states(job)[0], "forward all_gather bf16 dp 1600000x1 gathered parameters");
  EXPECT_EQ(states(job)[1], "backward reduce_scatter bf16 dp 1600000x1 gradients");
  const Job large = engine_job("deepspeed@0.19.2", bare_model(900'000'000, 9), "dp=4:zero3", 1, 4);
  EXPECT_EQ(states(large)[0], "forward all_gather bf16 dp 200000000x9 gathered parameters");
  EXPECT_EQ(states(large)[1], "backward all_gather bf16 dp 200000000x8 gathered parameters");
}

// Matrices gathered twice and all gradients scattered once per micro-batch; the norms, which stay
// gathered, once after the update.
TEST(DeepSpeed, StageThreeGathersTwiceAndScattersInEveryMicroBatch) {
  const Job job = engine_job(kFreeing, large_model(), "dp=4:zero3", 8, 16);
  EXPECT_EQ(payload(job, "gathered parameters"), 2 * 4 * 2 * kMatrices);
  EXPECT_EQ(payload(job, "gradients"), 4 * 2 * kAll);
  EXPECT_EQ(payload(job, "updated parameters"), 2 * kNorms);
  for (const std::string& line : states(job)) {
    EXPECT_TRUE(line.find("reduce_scatter") != std::string::npos ||
                line.find("all_gather") != std::string::npos)
        << line;
  }
}

// 6 tensors of 200e6 elements: a third one would take a bucket past 500e6. A tensor of 600e6 that
// is larger than a bucket goes alone.
TEST(DeepSpeed, BucketsHoldFiveHundredMillionElements) {
  const Job job = engine_job("deepspeed@0.19.2", bare_model(1'200'000'000, 6), "dp=4:zero1", 1, 4);
  EXPECT_EQ(states(job)[0], "reduce all_reduce bf16 dp 800000000x3 gradients");
  const Job wide = engine_job("deepspeed@0.19.2", bare_model(1'200'000'000, 2), "dp=4:zero1", 1, 4);
  EXPECT_EQ(states(wide)[0], "reduce all_reduce bf16 dp 1200000000x2 gradients");
}

// 7 elements over 4 ranks, padded to 2 x 4; in stage 3 each tensor to a multiple of 4.
TEST(DeepSpeed, FlatGroupsArePadded) {
  const Job flat = engine_job("deepspeed@0.19.2", bare_model(7, 1), "dp=4:zero1", 1, 4);
  EXPECT_EQ(states(flat)[1], "update all_gather bf16 dp 16x1 updated parameters");
}

TEST(DeepSpeed, SecondaryPartitionsGatherInsideTheirGroup) {
  const Job job = engine_job(kFreeing, bare_model(800'000, 1), "o=2:hpz i=2:zero3", 1, 4);
  EXPECT_EQ(states(job)[0], "forward all_gather bf16 o*i 1600000x1 gathered parameters");
  EXPECT_EQ(states(job)[1], "backward all_gather bf16 i 1600000x1 gathered parameters");
}

std::int64_t count_of(const Lines& lines, const std::string& line) {
  return std::ranges::count(lines, line);
}

Job quantised_job(const std::string& engine, const std::string& placement, std::int64_t samples) {
  Job job = engine_job(engine, large_model(), placement, 8, samples);
  job.cluster = load_cluster(repository_data(), "h100-sxm:2", {}, "cluster");  // 8 on a host
  return job;
}

// ZeRO++ on 2 hosts, one micro-batch. Of 512 x 512 elements (4 in each of 2 blocks):
// - gathered in int8; parts of 16384 elements in 4 blocks (3 would do, 2048 eights divide by 4),
//   4 x 16 constants of 4 bytes; in backward on the host, parts of 32768 in 8 blocks (5);
// - gradients in int4, 131072 bytes and 512 constants on a host, an eighth of both across hosts.
TEST(DeepSpeed, QuantisedWeightsAndGradients) {
  const std::string placement = "o=2:hpz i=8:zero3";
  const Lines weights = states(quantised_job(std::string(kFreeing) + "+qwz", placement, 16));
  const std::string gathered = " gathered parameters";
  const std::string constants = " constants of gathered parameters";
  EXPECT_EQ(count_of(weights, "forward all_gather int8 o*i 262144x8" + gathered), 1);
  EXPECT_EQ(count_of(weights, "forward all_gather fp32 o*i 256x8" + constants), 1);
  EXPECT_EQ(count_of(weights, "backward all_gather int8 i 262144x8" + gathered), 1);
  EXPECT_EQ(count_of(weights, "backward all_gather fp32 i 256x8" + constants), 1);
  const Lines both = states(quantised_job("deepspeed@0.19.2+zeropp", placement, 16));
  const std::string gradients = " quantised gradients";
  const std::string scales = " constants of quantised gradients";
  EXPECT_EQ(count_of(both, "backward all_to_all int4 i 131072x8" + gradients), 1);
  EXPECT_EQ(count_of(both, "backward all_to_all fp32 i 2048x8" + scales), 1);
  EXPECT_EQ(count_of(both, "backward all_to_all int4 o 16384x8" + gradients), 1);
  EXPECT_EQ(count_of(both, "backward all_to_all fp32 o 256x8" + scales), 1);
  const std::string norm = "backward reduce_scatter bf16 o*i 1024x";
  EXPECT_EQ(count_of(both, norm + "4 gradients"), 1) << "two in each block";
  EXPECT_EQ(count_of(both, norm + "1 gradients"), 1) << "the last";
}

// Hosts divide the devices, not axes: one axis over both hosts says the same.
TEST(DeepSpeed, QuantisedGradientsCrossHostsOnce) {
  const std::string engine = "deepspeed@0.19.2+zeropp";
  const std::string gradients = " quantised gradients";
  const Lines two = states(quantised_job(engine, "dp=16:zero3", 16));
  EXPECT_EQ(count_of(two, "backward all_to_all int4 dp/8 131072x8" + gradients), 1);
  EXPECT_EQ(count_of(two, "backward all_to_all int4 dp/2 16384x8" + gradients), 1);
  const Lines one = states(engine_job(engine, large_model(), "dp=16:zero3", 8, 16));
  EXPECT_EQ(count_of(one, "backward all_to_all int4 dp 131072x8" + gradients), 1) << "no cluster";
  // Two neighbours along a tensor axis leave room for 4 on a host; a half of the matrix is cut.
  const Lines apart = states(quantised_job(engine, "dp=8:zero3 tp=2:tp", 8));
  EXPECT_EQ(count_of(apart, "backward all_to_all int4 dp/4 65536x8" + gradients), 1);
  EXPECT_EQ(count_of(apart, "backward all_to_all int4 dp/2 16384x8" + gradients), 1);
}

// Eight neighbours along a tensor axis fill a host: all other devices along dp are across hosts. Of
// an eighth of the 262144 numbers the buffer has 16384 bytes.
TEST(DeepSpeed, QuantisedGradientsOfFullHostsAllCrossThem) {
  const std::string engine = "deepspeed@0.19.2+zeropp";
  Job job = quantised_job(engine, "dp=4:zero3 tp=8:tp", 4);
  job.cluster = load_cluster(repository_data(), "h100-sxm:4", {}, "cluster");
  const Lines lines = states(job);
  EXPECT_EQ(count_of(lines, "backward all_to_all int4 dp 16384x8 quantised gradients"), 1);
}

// No matrix divides by twice 3 devices; stage 2 all-reduces.
TEST(DeepSpeed, QuantisedGradientsFallBack) {
  const std::string engine = "deepspeed@0.19.2+zeropp";
  for (const std::string& line : states(engine_job(engine, large_model(), "dp=3:zero3", 8, 3))) {
    EXPECT_EQ(line.find("all_to_all"), std::string::npos) << line;
  }
  EXPECT_EQ(states(engine_job(engine, large_model(), "dp=4:zero2", 8, 4)),
            states(engine_job("deepspeed@0.19.2", large_model(), "dp=4:zero2", 8, 4)));
}

TEST(DeepSpeed, MicsReducesInsideThenAcrossAtTheBoundary) {
  const Job job =
      engine_job(kFreeing, bare_model(800'000, 1), "rep=2:mics-replica s=2:mics", 1, 16);
  EXPECT_EQ(states(job)[2], "backward reduce_scatter bf16 s 1600000x4 gradients");
  EXPECT_EQ(states(job)[3], "reduce all_reduce bf16 rep 800000x1 gradients");
}

TEST(DeepSpeed, FlagsAndNorms) {
  const Job job = engine_job("deepspeed@0.19.2", wide(2), "dp=2:zero1 tp=2:tp", 8, 4);
  EXPECT_EQ(clipped(job),
            (Lines{"update all_reduce(max) uint8 dp 1x1 overflow flag over data ranks",
                   "update all_reduce(max) uint8 tp 1x1 overflow flag over model ranks",
                   "update all_reduce fp32 dp 4x1 gradient norm over data ranks",
                   "update all_reduce fp32 tp 4x1 gradient norm over model ranks"}));
  const Job staged = engine_job("deepspeed@0.19.2", wide(2), "pp=2:1f1b dp=2:zero1", 8, 4);
  EXPECT_EQ(extras(staged, 1).back(), "update broadcast fp32 pp 8x1 loss over stages");
  EXPECT_EQ(extras(staged, 0).size() + 1, extras(staged, 1).size());  // the loss over data ranks
}

// 10 parts of 1e9 elements and one of 0.5e9 each have a norm of their own.
TEST(DeepSpeed, StageThreeSumsANormPerSubGroup) {
  const Job job =
      engine_job("deepspeed@0.19.2", bare_model(21'000'000'000, 42), "dp=2:zero3", 1, 2);
  EXPECT_EQ(clipped(job).back(),
            "update all_reduce fp64 dp 8x11 gradient norm of sub-groups over data ranks");
  const Job tensor = engine_job("deepspeed@0.19.2", wide(2), "dp=2:zero3 tp=2:tp", 8, 4);
  EXPECT_EQ(clipped(tensor).back(),
            "update all_reduce fp64 tp 8x1 gradient norm of sub-groups over model ranks");
}

// Parts of what crosses a boundary come with 7 + tp numbers: dims (1 + 3), parts, rank, tp + 1
// bounds. Whole tensors come alone.
TEST(DeepSpeed, PartsOfBoundariesComeWithMetadata) {
  const Job job = engine_job("deepspeed@0.19.2", wide(2), "pp=2:1f1b tp=4:tp", 8, 3);
  EXPECT_EQ(extras(job, 0)[0], "forward send_recv int64 pp 88x3 metadata of activations' parts");
  EXPECT_EQ(extras(job, 1)[0], "backward send_recv int64 pp 88x3 metadata of gradients' parts");
  const Job whole = engine_job("deepspeed@0.19.2", wide(2), "pp=2:1f1b", 8, 3);
  for (const std::string& line : extras(whole, 0)) {
    EXPECT_EQ(line.find("metadata"), std::string::npos) << line;
  }
}

// Ulysses: [s/usp, b, heads] x head size sent per tensor, mirrored in backward.
TEST(DeepSpeed, HeadsAreExchangedForTokens) {
  const Job job = engine_job("deepspeed@0.19.2", wide(1), "sp=2:ulysses+zero3", 8, 1);
  EXPECT_EQ(block(job).size(), 8U);
  EXPECT_EQ(block(job)[0], "forward all_to_all bf16 sp 128x1 attention.q_rotated");
  for (const std::string& line : states(job)) {
    const bool reduced = line.find("reduce_scatter") != std::string::npos;
    EXPECT_EQ(line.find("fp32") != std::string::npos, reduced) << line;
  }
}

// Slots travel, full or not: 4 experts x ceil(8 tokens x 2 / 4 x 1.25) = 20 entries of 16 elements
// in bf16, each way; without slots the largest load is agreed first.
TEST(DeepSpeed, ExpertsWithSlotsAreSentAllOfThem) {
  Job job =
      engine_job("deepspeed@0.19.2", build_model(expert_architecture(1)), "ep=2:ep+zero1", 8, 2);
  EXPECT_EQ(std::ranges::count(extras(job),
                               "forward all_reduce(max) int64 ep 8x1 largest load of an expert"),
            1);
  job.routing = {.kind = Routing::Kind::capacity, .capacity = Rational(5, 4)};
  Lines routed = block(job);
  std::erase_if(routed,
                [](const std::string& l) { return l.find("all_to_all") == std::string::npos; });
  EXPECT_EQ(routed.size(), 4U);
  for (const std::string& line : routed) {
    EXPECT_NE(line.find("bf16 ep 640x1 moe."), std::string::npos) << line;
  }
}

// --- FSDP2 (torchtitan, accelerate, plain PyTorch)

// Per unit: AG 2U, again in backward but for norm and output, RS 4U; in each of 4 micro-batches.
TEST(Torchtitan, FullyShardedUnits) {
  const Job job = engine_job("torchtitan@2026.02", wide(2), "dp=2:fsdp", 8, 8);
  EXPECT_EQ(states(job), (Lines{"forward all_gather bf16 dp 2048x4 gathered parameters",
                                "backward all_gather bf16 dp 2048x4 gathered parameters",
                                "backward reduce_scatter fp32 dp 4096x4 gradients",
                                "forward all_gather bf16 dp 4672x8 gathered parameters",
                                "backward all_gather bf16 dp 4672x8 gathered parameters",
                                "backward reduce_scatter fp32 dp 9344x8 gradients",
                                "forward all_gather bf16 dp 2080x4 gathered parameters",
                                "backward reduce_scatter fp32 dp 4160x4 gradients"}));
}

// The fp32 shard, 4U/2, all-reduced over the replicas after every reduce-scatter.
TEST(Torchtitan, HybridShardingAllReducesEveryShard) {
  const Job job = engine_job("torchtitan@2026.02", wide(2), "rep=2:ddp dp=2:fsdp", 8, 16);
  EXPECT_EQ(std::ranges::count(states(job), "backward all_reduce fp32 rep 4672x8 gradients"), 1);
}

// With a pipeline one AG and one RS per unit and step; nothing is gathered again.
TEST(Torchtitan, APipelineGathersAndScattersOncePerStep) {
  const Job job = engine_job("torchtitan@2026.02", wide(4), "pp=2:1f1b dp=2:fsdp", 8, 8);
  EXPECT_EQ(traffic(job, of_state(State::parameters), 0),
            (Lines{"forward all_gather bf16 dp 2048x1 gathered parameters",
                   "forward all_gather bf16 dp 4672x2 gathered parameters"}));
  EXPECT_EQ(traffic(job, of_state(State::gradients), 0),
            (Lines{"reduce reduce_scatter fp32 dp 4096x1 gradients",
                   "reduce reduce_scatter fp32 dp 9344x2 gradients"}));
}

// Dim 0 padded to a multiple of the group: 3 rows of a [3, 4]-like tensor over 2 are 4 rows. Here a
// vocabulary of 10 rows x 8 over 4: 12 rows, 192 bytes.
TEST(Torchtitan, RowsArePaddedToTheGroup) {
  const Job job =
      engine_job("torchtitan@2026.02", build_model(small_architecture(1)), "dp=4:fsdp", 8, 4);
  EXPECT_EQ(states(job)[0], "forward all_gather bf16 dp 192x1 gathered parameters");
}

// Forward AG, RS, AG, RS; backward 2 RS + 2 AG: the gathered input is kept. One AR per norm of 16,
// as backward made its gradient.
TEST(Torchtitan, TensorParallelismKeepsGatheredInputs) {
  const Job job = engine_job("torchtitan@2026.02", wide(1), "tp=2:tp+sp", 8, 1);
  EXPECT_EQ(block(job), (Lines{"forward all_gather bf16 tp 256x1 attention.norm.output",
                               "backward reduce_scatter bf16 tp 256x1 attention.norm.output",
                               "forward reduce_scatter bf16 tp 256x1 attention.o",
                               "backward all_gather bf16 tp 256x1 attention.o",
                               "forward all_gather bf16 tp 256x1 mlp.norm.output",
                               "backward reduce_scatter bf16 tp 256x1 mlp.norm.output",
                               "forward reduce_scatter bf16 tp 256x1 mlp.down",
                               "backward all_gather bf16 tp 256x1 mlp.down"}));
  EXPECT_EQ(states(job), (Lines{"reduce all_reduce bf16 tp 32x2 gradients of uncut tensors",
                                "reduce all_reduce bf16 tp 32x1 gradients of uncut tensors"}));
}

// AG of the input over tp, A2A of 8 tokens x 2 choices = 512 bytes and back, RS; mirrored.
TEST(Torchtitan, TokensAreMadeWholeBeforeTheyAreSent) {
  const Job job = engine_job("torchtitan@2026.02", build_model(expert_architecture(1)),
                             "ep=2:ep+fsdp tp=2:tp+sp", 8, 2);
  Lines routed = block(job);
  std::erase_if(routed, [](const std::string& l) { return l.find("moe.") == std::string::npos; });
  EXPECT_EQ(routed, (Lines{"forward all_gather bf16 tp 256x1 moe.dispatched",
                           "forward all_to_all bf16 ep 512x1 moe.dispatched",
                           "backward reduce_scatter bf16 tp 256x1 moe.dispatched",
                           "backward all_to_all bf16 ep 512x1 moe.dispatched",
                           "forward reduce_scatter bf16 tp 256x1 moe.experts.down",
                           "forward all_to_all bf16 ep 512x1 moe.experts.down",
                           "backward all_gather bf16 tp 256x1 moe.experts.down",
                           "backward all_to_all bf16 ep 512x1 moe.experts.down"}));
  EXPECT_EQ(std::ranges::count(extras(job), "forward all_to_all int64 ep 32x1 tokens per expert"),
            1);
}

// Keys and values are repeated to all 4 heads before they are gathered: 8 x 16 x 2 = 256 bytes.
TEST(Torchtitan, ContextParallelismGathersRepeatedKeys) {
  const Job job = engine_job("torchtitan@2026.02", wide(1), "cp=4:gather", 8, 1);
  EXPECT_EQ(block(job)[0], "forward all_gather bf16 cp 256x1 attention.core.keys_expanded");
}

// 4 tensors of 20e6 elements in fp32, 80e6 bytes each: the last passes the first bucket's 1 MiB,
// two together the 100 MiB of the others.
TEST(Torchtitan, ReplicasFillBuckets) {
  const Job job = engine_job("torchtitan@2026.02", bare_model(80'000'000, 4), "dp=2:ddp", 1, 2);
  EXPECT_EQ(states(job), (Lines{"reduce all_reduce fp32 dp 80000000x2 gradients",
                                "reduce all_reduce fp32 dp 160000000x1 gradients"}));
}

// Replicas alone: fp32 gradients, 13472 / 2 = 6736 elements, in one bucket of 100 MiB. A norm of
// each of 2 x 9 + 3 tensors.
TEST(Torchtitan, ReplicasReduceInBuckets) {
  const Job job = engine_job("torchtitan@2026.02", wide(2), "dp=2:ddp", 8, 2);
  EXPECT_EQ(states(job), Lines{"reduce all_reduce fp32 dp 26944x1 gradients"});
  EXPECT_EQ(clipped(job), Lines{"forward all_reduce int64 dp 8x1 count of valid tokens"});
  const Job hybrid = engine_job("torchtitan@2026.02", wide(2), "rep=2:ddp dp=2:fsdp", 8, 4);
  EXPECT_EQ(clipped(hybrid).back(), "update all_reduce fp32 dp 84x1 gradient norms");
}

// 4 experts on 8 shards: rows of 8 inside each expert are divided instead, 3 x 4 x 16 x 8 elements
// in all.
TEST(Torchtitan, FewExpertsAreCutInside) {
  const Job job = engine_job("torchtitan@2026.02", build_model(expert_architecture(1)),
                             "dp=4:fsdp ep=2:ep+fsdp", 8, 8);
  const Lines lines = states(job);
  // 2 experts a device, 4 shards: 3 x 2 x 16 x 8 elements of 2 bytes, nothing padded.
  EXPECT_EQ(std::ranges::count(lines, "forward all_gather bf16 dp 1536x1 gathered parameters"), 1);
  const Derivation derived = derive(job);
  EXPECT_TRUE(std::ranges::none_of(derived.findings, [](const Finding& f) {
    return f.rule == "compute-before-storage" && f.where.find("experts") != std::string::npos;
  }));
}

// The first stage holds the embedding and a block: 1 + 9 norms.
TEST(Torchtitan, Scalars) {
  const Job job = engine_job("torchtitan@2026.02", wide(2), "pp=2:1f1b dp=2:fsdp tp=2:tp+sp", 8, 2);
  EXPECT_EQ(clipped(job), (Lines{"forward all_reduce int64 dp 8x1 count of valid tokens",
                                 "update all_reduce fp32 tp 40x1 gradient norms over tensor axes",
                                 "update all_reduce fp32 dp 40x1 gradient norms beside tensor axes",
                                 "update all_reduce fp32 pp 4x1 gradient norm over stages"}));
  const Job replicas =
      engine_job("torchtitan@2026.02", wide(2), "rep=2:ddp dp=2:fsdp tp=2:tp+sp", 8, 4);
  EXPECT_EQ(clipped(replicas).back(),
            "update all_reduce fp32 dp 84x1 gradient norms beside tensor axes");
}

// Before mid 2025 embedding, last norm and output were one unit, 2048 + 2080 bytes, gathered once;
// of 3 blocks the last was not freed.
TEST(Torchtitan, ItsOlderRootUnitHeldBothEnds) {
  const Job job = engine_job("torchtitan@2025.06", wide(3), "dp=2:fsdp", 8, 4);
  EXPECT_EQ(states(job), (Lines{"forward all_gather bf16 dp 4128x2 gathered parameters",
                                "backward reduce_scatter fp32 dp 8256x2 gradients",
                                "forward all_gather bf16 dp 4672x6 gathered parameters",
                                "backward all_gather bf16 dp 4672x4 gathered parameters",
                                "backward reduce_scatter fp32 dp 9344x6 gradients"}));
}

// Gradients in bf16 and once per step; parameters gathered nearly twice per micro-batch.
TEST(Accelerate, ReducesBf16OncePerStep) {
  const Job job = engine_job("accelerate@1", wide(2), "dp=2:fsdp", 8, 8);
  EXPECT_EQ(states(job), (Lines{"forward all_gather bf16 dp 2048x4 gathered parameters",
                                "backward all_gather bf16 dp 2048x4 gathered parameters",
                                "reduce reduce_scatter bf16 dp 2048x1 gradients",
                                "forward all_gather bf16 dp 4672x8 gathered parameters",
                                "backward all_gather bf16 dp 4672x8 gathered parameters",
                                "reduce reduce_scatter bf16 dp 4672x2 gradients",
                                "forward all_gather bf16 dp 2080x4 gathered parameters",
                                "reduce reduce_scatter bf16 dp 2080x1 gradients"}));
}

// DistributedDataParallel: fp32, 13472 / 2 = 6736 elements, in one bucket of 25 MiB.
TEST(Pytorch, ReplicasReduceFp32InBuckets) {
  const Job job = engine_job("pytorch-ddp@2.11", wide(2), "dp=2:ddp", 8, 4);
  EXPECT_EQ(states(job), Lines{"reduce all_reduce fp32 dp 26944x1 gradients"});
}

// The norms of 1 + 2 x 9 + 2 tensors, 4 bytes each, summed over the ranks that hold parts: replicas
// hold the same. Beside a tensor axis along one axis after the other.
TEST(Pytorch, GradientNormsAreSummedOverThePartsOfTheGradients) {
  const Lines norms = {"update all_reduce fp32 dp 84x1 gradient norms"};
  for (const char* engine : {"pytorch@2.9", "pytorch@2.9+no-sync", "accelerate@1"}) {
    EXPECT_EQ(clipped(engine_job(engine, wide(2), "dp=2:fsdp", 8, 4)), norms) << engine;
    EXPECT_EQ(extras(engine_job(engine, wide(2), "dp=2:fsdp", 8, 4)), Lines{}) << engine;
    const Job hybrid = engine_job(engine, wide(2), "rep=2:ddp dp=2:fsdp", 8, 4);
    EXPECT_EQ(clipped(hybrid), norms) << engine;
  }
  EXPECT_EQ(clipped(engine_job("pytorch@2.9", wide(2), "dp=2:fsdp tp=2:tp+sp", 8, 4)),
            (Lines{"update all_reduce fp32 tp 84x1 gradient norms over tensor axes",
                   "update all_reduce fp32 dp 84x1 gradient norms beside tensor axes"}));
}

// One fp32 number, summed over the ranks that hold parts: replicas hold the same.
TEST(Pytorch, FlatParametersHaveOneNorm) {
  const Lines norm = {"update all_reduce fp32 dp 4x1 gradient norm"};
  EXPECT_EQ(clipped(engine_job("pytorch-fsdp1@2.0", wide(2), "dp=2:fsdp", 8, 4)), norm);
  const Job hybrid = engine_job("pytorch-fsdp1@2.0", wide(2), "rep=2:ddp dp=2:fsdp", 8, 4);
  EXPECT_EQ(clipped(hybrid), norm);
  EXPECT_EQ(extras(engine_job("pytorch-fsdp1@2.0", wide(2), "dp=2:fsdp", 8, 4)), Lines{});
}

// The rotation's buffers: half a head of 4 twice, in fp32. One int32 for each of 21 tensors.
TEST(Pytorch, ReplicasSendBuffersAndWhichParametersWereUsed) {
  const Job buffers = engine_job("pytorch-ddp@2.11+transformers", wide(2), "dp=2:ddp", 8, 4);
  EXPECT_EQ(extras(buffers), Lines{"forward broadcast fp32 dp 16x1 buffers of the rotation"});
  const Job unused = engine_job("pytorch-ddp@2.11+find-unused", wide(2), "dp=2:ddp", 8, 4);
  EXPECT_EQ(extras(unused), Lines{"reduce all_reduce int32 dp 84x1 map of used parameters"});
}

// --- fp32 accumulation without a scatter (nanotron)

// 2048 + 2 x 4672 + 2080 bytes in bf16 = 6736 elements: AR in fp32 once, AG in bf16 once.
TEST(Nanotron, DividedOptimizerStateStillAllReduces) {
  const Job job = engine_job("nanotron@2024.12", wide(2), "dp=2:zero1", 8, 8);
  EXPECT_EQ(states(job), (Lines{"reduce all_reduce fp32 dp 26944x1 gradients",
                                "update all_gather bf16 dp 13472x1 updated parameters"}));
}

// 4 tensors of 2.5e6 elements, 10e6 bytes: one passes the 1 MiB of the first bucket, three together
// the 25 MiB of the next.
TEST(Nanotron, WrappedReplicasReduceInBuckets) {
  const Job job = engine_job("nanotron@2024.12+ddp", bare_model(10'000'000, 4), "dp=2:ddp", 1, 2);
  EXPECT_EQ(states(job), (Lines{"reduce all_reduce fp32 dp 10000000x1 gradients",
                                "reduce all_reduce fp32 dp 30000000x1 gradients"}));
}

// Two int64 messages, of 7 and of 6 numbers, before each of 4 tensors either way.
TEST(Nanotron, EachTensorIsPrecededByMetadata) {
  const Job job = engine_job("nanotron@2024.12", wide(4), "pp=2:1f1b", 8, 4);
  EXPECT_EQ(extras(job, 0),
            (Lines{"forward send_recv int64 pp 56x4 first metadata of activations",
                   "forward send_recv int64 pp 48x4 second metadata of activations"}));
  EXPECT_EQ(extras(job, 1),
            (Lines{"backward send_recv int64 pp 56x4 first metadata of gradients",
                   "backward send_recv int64 pp 48x4 second metadata of gradients"}));
}

TEST(Nanotron, NormAndLossAreOneMessageEach) {
  const Job job = engine_job("nanotron@2024.12", wide(2), "dp=2:zero1 tp=2:tp+sp", 8, 4);
  EXPECT_EQ(clipped(job), (Lines{"update all_reduce fp32 tp 4x1 gradient norm",
                                 "update all_reduce fp32 dp 4x1 loss"}));
}

// --- bytes per step for plain data parallelism, side by side: P = 6736 parameters, a = 4

TEST(Engines, GradientAndParameterMessagesSideBySide) {
  const auto moved = [](const std::string& engine, const std::string& placement) {
    Job job = engine_job(engine, wide(2), placement, 8, 8);
    job.profile.vocabulary_multiple = 1;  // no padding, to count by P alone
    job.profile.align_elements = 1;
    job.profile.pad_total_elements = 1;
    job.profile.pad_elements = 1;
    job.profile.persistent_elements = 0;
    job.profile.reuse_elements = 0;
    return std::pair(payload(job, "gradients"),
                     payload(job, "gathered parameters") + payload(job, "updated parameters"));
  };
  constexpr std::int64_t P = 6736, head = 1040, a = 4;
  using Pair = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(moved("megatron@2026", "dp=2:ddp"), Pair(4 * P, 0));
  EXPECT_EQ(moved("megatron@2026", "dp=2:zero1"), Pair(4 * P, 2 * P));
  EXPECT_EQ(moved("megatron@2026+bf16-reduce", "dp=2:zero1"), Pair(2 * P, 2 * P));
  EXPECT_EQ(moved("deepspeed@0.19.2", "dp=2:ddp"), Pair(2 * P, 0));
  EXPECT_EQ(moved("deepspeed@0.19.2", "dp=2:zero1"), Pair(2 * P, 2 * P));
  EXPECT_EQ(moved("deepspeed@0.19.2", "dp=2:zero2"), Pair(2 * P * a, 2 * P));
  EXPECT_EQ(moved("deepspeed@0.19.2", "dp=2:zero3"), Pair(2 * P * a, 2 * a * 2 * P));
  EXPECT_EQ(moved("torchtitan@2026.02", "dp=2:fsdp"), Pair(4 * P * a, 2 * a * (2 * P - head)));
  EXPECT_EQ(moved("accelerate@1", "dp=2:fsdp"), Pair(2 * P, 2 * a * (2 * P - head)));
  EXPECT_EQ(moved("nanotron@2024.12", "dp=2:zero1"), Pair(4 * P, 2 * P));
}

// --- small tensors that stay whole: two norms in each of 2 blocks, and the last norm

TEST(Engines, EarlyVersionsGatherWhatStaysWholeInOneMessage) {
  const auto updated = [](const std::string& engine) {
    Job job = engine_job(engine, wide(2), "dp=2:zero3", 8, 8);
    job.profile.persistent_elements = 17;  // norms of 16 alone
    const Derivation derivation = derive(job);
    std::int64_t messages = 0;
    for (const CommunicationTerm& term : derivation.communication[0].terms) {
      if (term.what == "updated parameters") messages += term.count;
    }
    return messages;
  };
  EXPECT_EQ(updated("deepspeed@0.3"), 1);
  EXPECT_EQ(updated("deepspeed@0.19.2"), 5);
}

// --- every profile

TEST(Engines, EveryProfileLoadsAndDerivesAPlainJob) {
  for (const std::string& name : profile_names_with_options(repository_data())) {
    const Job job = engine_job(name, wide(2), "dp=2:ddp", 8, 2);
    EXPECT_GT(derive(job).peak, bytes(0)) << name;
    for (const Fact& fact : job.profile.facts) EXPECT_FALSE(fact.source.empty()) << name;
  }
}

}  // namespace
}  // namespace placet
