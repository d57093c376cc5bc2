// What Megatron-LM sends, release by release, as its code was read. The model is that of traffic.h
// (a block has 2336 elements, a value of the stream 8 x 16 x 2 = 256 bytes) unless a test says
// otherwise.
#include <gtest/gtest.h>

#include <algorithm>

#include "catalog/model_catalog.h"
#include "derive/engine_lines.h"

namespace placet {
namespace {

// --- one message of whole gradients, fp32 accumulation (Megatron)

// Vocabulary padded to 128: 2 x 128 x 16 + 2 x 2336 + 16 = 8784 elements, 4 bytes each, once.
TEST(Megatron, ReplicasAllReduceFp32OncePerStep) {
  const Job job = engine_job("megatron@2026", wide(2), "dp=2:ddp", 8, 4);
  EXPECT_EQ(states(job), Lines{"reduce all_reduce fp32 dp 35136x1 gradients"});
}

// Each of 5 norms of 16 begins at a multiple of 64: + 5 x 48 = 9024; the end at one of
// lcm(2, 128): 9088. Reduce-scatter in fp32, gather in bf16.
TEST(Megatron, TheDistributedOptimizerScattersOnceAndGathersBf16) {
  const Job job = engine_job("megatron@2026", wide(2), "dp=2:zero1", 8, 4);
  EXPECT_EQ(states(job), (Lines{"reduce reduce_scatter fp32 dp 36352x1 gradients",
                                "update all_gather bf16 dp 18176x1 updated parameters"}));
}

TEST(Megatron, ReductionInBf16HalvesTheGradientMessage) {
  const Job job = engine_job("megatron@2026+bf16-reduce", wide(2), "dp=2:zero1", 8, 4);
  EXPECT_EQ(states(job)[0], "reduce reduce_scatter bf16 dp 18176x1 gradients");
}

// Two instances of the optimizer: what a shard has left is all-reduced between them.
TEST(Megatron, InstancesOfTheOptimizerAllReduceTheirShards) {
  const Job job =
      engine_job("megatron@2026", wide(2), "rep=2:optimizer-instances dp=2:zero1", 8, 8);
  EXPECT_EQ(states(job), (Lines{"reduce reduce_scatter fp32 dp 36352x1 gradients",
                                "reduce all_reduce fp32 rep 18176x1 gradients",
                                "update all_gather bf16 dp 18176x1 updated parameters"}));
}

TEST(Megatron, ContextRanksJoinTheDataGroup) {
  const Job job = engine_job("megatron@2026", wide(2), "dp=2:zero1 cp=2:ring+zero1", 8, 4);
  EXPECT_EQ(states(job)[0], "reduce reduce_scatter fp32 dp*cp 36352x1 gradients");
}

// Experts reduce over the ranks that repeat them: 2 of 4 experts x 3 x 16 x 8 x 4 bytes; their own
// buffer, apart from the dense one.
TEST(Megatron, ExpertsHaveABufferOfTheirOwn) {
  const Job job = engine_job("megatron@2026", build_model(expert_architecture(1)),
                             "dp=2:zero1 ep=2:ep+zero1", 8, 4);
  const Lines lines = states(job);
  EXPECT_EQ(std::ranges::count(lines, "reduce reduce_scatter fp32 dp 3072x1 gradients"), 1);
  EXPECT_TRUE(lines[0].starts_with("reduce reduce_scatter fp32 dp*ep "));
}

// Buckets of max(40e6, 1e6 x 2) elements, whole tensors of 25e6 (64 x 390625): the second one ends
// a bucket, at 50e6.
TEST(Megatron, OverlappedReductionGoesInBuckets) {
  const Job job =
      engine_job("megatron@2026+overlap", bare_model(100'000'000, 4), "dp=2:zero1", 1, 2);
  EXPECT_EQ(states(job), (Lines{"reduce reduce_scatter fp32 dp 200000000x2 gradients",
                                "update all_gather bf16 dp 100000000x2 updated parameters"}));
  // Five tensors of 20e6 per stage: two buckets of 40e6 and one of 20e6, both ways; on stages after
  // the first all in one.
  const Job staged = engine_job("megatron@2026+overlap", bare_model(200'000'000, 10),
                                "pp=2:1f1b dp=2:zero1", 1, 4);
  EXPECT_EQ(states(staged, 0).size(), 4U);
  EXPECT_EQ(states(staged, 1).size(), 2U);
}

// Megatron-FSDP, a unit per layer: reduced in every micro-batch, gathered twice in each.
TEST(Megatron, ItsShardedDataParallelismWorksByLayers) {
  const Job gradients = engine_job("megatron@2026+fsdp", wide(2), "dp=2:zero2", 8, 8);
  EXPECT_EQ(
      std::ranges::count(states(gradients), "backward reduce_scatter fp32 dp 9344x8 gradients"), 1);
  const Job all = engine_job("megatron@2026+fsdp", wide(2), "dp=2:zero3", 8, 8);
  EXPECT_EQ(
      std::ranges::count(states(all), "forward all_gather bf16 dp 4672x8 gathered parameters"), 1);
  EXPECT_EQ(std::ranges::count(states(all), "backward reduce_scatter fp32 dp 9344x8 gradients"), 1);
}

// tp without sequence parallelism: forward 2 AR of A, backward 2 AR of A, per layer and
// micro-batch.
TEST(Megatron, TensorParallelismWithAWholeStream) {
  const Job job = engine_job("megatron@2026", wide(2), "tp=2:tp", 8, 2);
  EXPECT_EQ(block(job), (Lines{"backward all_reduce bf16 tp 256x4 attention.norm.output",
                               "forward all_reduce bf16 tp 256x4 attention.o",
                               "backward all_reduce bf16 tp 256x4 mlp.norm.output",
                               "forward all_reduce bf16 tp 256x4 mlp.down"}));
}

// With it: forward 2 AG + 2 RS; backward 2 RS, 2 AG of output gradients, 2 AG of inputs again.
TEST(Megatron, TensorParallelismWithADividedStream) {
  const Job job = engine_job("megatron@2026", wide(1), "tp=2:tp+sp", 8, 1);
  const auto count = [&](std::string_view start) {
    return std::ranges::count_if(block(job), [&](const auto& l) { return l.starts_with(start); });
  };
  EXPECT_EQ(count("forward all_gather bf16 tp 256x1"), 2);
  EXPECT_EQ(count("forward reduce_scatter bf16 tp 256x1"), 2);
  EXPECT_EQ(count("backward reduce_scatter bf16 tp 256x1"), 2);
  EXPECT_EQ(count("backward all_gather bf16 tp 256x1"), 4);
  EXPECT_EQ(block(job).size(), 10U);
}

// Norms, 3 x 16 elements in fp32, whole and in one message, after the data-parallel reduction.
TEST(Megatron, NormsOfADividedStreamAreSummedInOneMessage) {
  const Job job = engine_job("megatron@2026", wide(1), "dp=2:zero1 tp=2:tp+sp", 8, 2);
  EXPECT_EQ(states(job).back(), "reduce all_reduce fp32 tp 192x1 gradients of uncut tensors");
}

// Embedding AR, or RS and in backward AG; output AR in backward, or AG, AG again and RS; the loss
// 3 AR of 8 tokens in fp32, fused 2, the second of twice the size.
TEST(Megatron, VocabularyParallelEnds) {
  const Job whole = engine_job("megatron@2026", wide(1), "tp=2:tp", 8, 1);
  EXPECT_EQ(traffic(whole, activations_of("embedding")),
            Lines{"forward all_reduce bf16 tp 256x1 embedding.output"});
  const Lines loss{"forward all_reduce(max) fp32 tp 32x1 loss.max",
                   "forward all_reduce fp32 tp 32x1 loss.target",
                   "forward all_reduce fp32 tp 32x1 loss.sum"};
  Lines head{"backward all_reduce bf16 tp 256x1 head.norm.output"};
  head.insert(head.end(), loss.begin(), loss.end());
  EXPECT_EQ(traffic(whole, activations_of("head")), head);
  const Job split = engine_job("megatron@2026+fused-loss", wide(1), "tp=2:tp+sp", 8, 1);
  EXPECT_EQ(traffic(split, activations_of("embedding")),
            (Lines{"forward reduce_scatter bf16 tp 256x1 embedding.output",
                   "backward all_gather bf16 tp 256x1 embedding.output"}));
  EXPECT_EQ(traffic(split, activations_of("head")),
            (Lines{"forward all_gather bf16 tp 256x1 head.norm.output",
                   "backward all_gather bf16 tp 256x1 head.norm.output",
                   "backward reduce_scatter bf16 tp 256x1 head.norm.output",
                   "forward all_reduce(max) fp32 tp 32x1 loss.max",
                   "forward all_reduce fp32 tp 64x1 loss.sums"}));
}

// Boundary [s/cp/tp, b, h] with a divided stream, else whole on every tensor rank.
TEST(Megatron, StagesSendOneTensorEachWay) {
  const auto crossing = [](const std::string& placement) {
    const Job job = engine_job("megatron@2026", wide(4), placement, 8, 2);
    return traffic(job, [](const auto& t) { return t.what == "boundary activations"; });
  };
  EXPECT_EQ(crossing("pp=2:1f1b tp=2:tp+sp"),
            Lines{"forward send_recv bf16 pp 128x2 boundary activations"});
  EXPECT_EQ(crossing("pp=2:1f1b tp=2:tp"),
            Lines{"forward send_recv bf16 pp 256x2 boundary activations"});
  EXPECT_EQ(crossing("pp=2:interleaved(2) tp=2:tp"),
            Lines{"forward send_recv bf16 pp 256x4 boundary activations"});
}

// The word embedding, 256/2 rows x 16 x 4 bytes, between first and last stage.
TEST(Megatron, TiedEmbeddingsAreSummedBetweenTheEnds) {
  Architecture architecture = wide_architecture(4);
  architecture.head.tied = true;
  const Job job =
      engine_job("megatron@2026", build_model(architecture), "pp=4:1f1b dp=2:zero1 tp=2:tp", 8, 8);
  const std::string line = "reduce all_reduce fp32 pp/2 8192x1 gradients of shared tensors";
  EXPECT_EQ(std::ranges::count(states(job, 0), line), 1);
  EXPECT_EQ(std::ranges::count(states(job, 1), line), 0);
  EXPECT_EQ(std::ranges::count(states(job, 3), line), 1);
}

// T = 4 tokens on a rank, k = 2: 4 x 2 x 16 x 2 = 256 bytes over ep, then 512 over the two ranks
// that cut an expert. 4 token A2A per layer and micro-batch, 2 AG and 2 RS. Probabilities: 8 in
// bf16, 16 over the cut. Counts: 4 experts x 4 ranks in int64; of the balance loss 4 over tp.
TEST(Megatron, TokensAreExchangedThenGatheredOverCutExperts) {
  Job job = engine_job("megatron@2026", build_model(expert_architecture(1)),
                       "ep=2:ep+zero1 tp=2:tp+sp", 8, 2);
  job.balance = BalanceScope::sequence;
  Lines routed = block(job);
  std::erase_if(routed, [](const std::string& l) { return l.find("moe.") == std::string::npos; });
  EXPECT_EQ(routed, (Lines{"forward all_to_all bf16 ep 256x1 moe.dispatched",
                           "forward all_gather bf16 tp 512x1 moe.dispatched",
                           "backward all_to_all bf16 ep 256x1 moe.dispatched",
                           "backward reduce_scatter bf16 tp 512x1 moe.dispatched",
                           "forward all_to_all bf16 ep 256x1 moe.experts.down",
                           "forward reduce_scatter bf16 tp 512x1 moe.experts.down",
                           "backward all_to_all bf16 ep 256x1 moe.experts.down",
                           "backward all_gather bf16 tp 512x1 moe.experts.down"}));
  const Lines own = extras(job);
  for (const std::string line :
       {"forward all_gather int64 ep*tp 128x1 tokens per expert",
        "forward all_to_all bf16 ep 16x1 probabilities to experts",
        "backward all_to_all bf16 ep 16x1 probabilities' gradients from experts",
        "forward all_gather bf16 tp 32x1 probabilities among cut experts",
        "backward reduce_scatter bf16 tp 32x1 probabilities' gradients among cut experts",
        "forward all_reduce int64 tp 32x1 counts of the balance loss"}) {
    EXPECT_EQ(std::ranges::count(own, line), 1) << line;
  }
}

// What the router sends follows the scope of its loss: nothing without one; a global one goes over
// data ranks too.
TEST(Megatron, CountsOfTheBalanceLossFollowItsScope) {
  Job job = engine_job("megatron@2026", build_model(expert_architecture(1)),
                       "dp=2:zero1 tp=2:tp+sp", 8, 2);
  const auto counts = [&](BalanceScope scope) {
    job.balance = scope;
    Lines lines = extras(job);
    std::erase_if(lines,
                  [](const std::string& l) { return l.find("balance") == std::string::npos; });
    return lines;
  };
  EXPECT_EQ(counts(BalanceScope::none), Lines{});
  EXPECT_EQ(counts(BalanceScope::micro_batch),
            Lines{"forward all_reduce int64 tp 32x1 counts of the balance loss"});
  EXPECT_EQ(counts(BalanceScope::global),
            Lines{"forward all_reduce int64 dp*tp 32x1 counts of the global balance loss"});
}

// Blocks that run again in backward send their tokens' counts and probabilities again.
TEST(Megatron, RecomputedRoutingSendsItsSmallMessagesAgain) {
  Job job = engine_job("megatron@2026", build_model(expert_architecture(2)), "ep=2:ep+zero1", 8, 2);
  const std::string once = "forward all_to_all bf16 ep 32x2 probabilities to experts";
  const std::string twice = "forward all_to_all bf16 ep 32x4 probabilities to experts";
  EXPECT_EQ(std::ranges::count(extras(job), once), 1);
  job.recompute.kind = Recompute::Kind::full;
  EXPECT_EQ(std::ranges::count(extras(job), twice), 1);
  const Lines back = extras(job);
  EXPECT_TRUE(std::ranges::any_of(back, [](const std::string& line) {
    return line == "backward all_to_all bf16 ep 32x2 probabilities' gradients from experts";
  }));
}

// A divided optimizer sums its norm inside one instance; experts without one have a group of their
// own.
TEST(Megatron, GradientNormsGoOverTheirOwners) {
  const Job instances =
      engine_job("megatron@2026", wide(2), "rep=2:optimizer-instances dp=2:zero1", 8, 4);
  EXPECT_EQ(clipped(instances)[0], "update all_reduce fp32 dp 4x1 gradient norm of sharded states");
  const Job experts =
      engine_job("megatron@2026", build_model(expert_architecture(1)), "dp=2:ddp ep=2:ep", 8, 4);
  EXPECT_EQ(clipped(experts)[0], "update all_reduce fp32 ep 4x1 gradient norm of experts");
}

// Context ranks make a bucket no larger: max(40e6, 1e6 x 2) elements of 4 bytes, here of tensors of
// 20e6.
TEST(Megatron, BucketsCountDataRanksAlone) {
  const Job job = engine_job("megatron@2026+overlap", bare_model(200'000'000, 10),
                             "dp=2:zero1 cp=32:ring+zero1", 64, 2);
  EXPECT_TRUE(states(job)[0].starts_with("reduce reduce_scatter fp32 dp*cp 160"));
}

// llama-3.1-8b: hidden 4096, ffn 14336, 8 of 32 heads for keys, 128256 words, padded to 1002 x 128.
// From the end: the output matrix; per block down (58.7e6), gate and up (117.4e6), and then the
// norm, o (16.8e6) and q, k, v (25.2e6), which end a bucket at 41947136. The norm before them goes
// with what comes next: the down matrix of the block below, the embedding below the first block.
// So does the norm before the output matrix.
TEST(Megatron, BucketsHoldWholeTensorsFromTheLastToTheFirst) {
  const Job job = engine_job("megatron@2026+overlap", load_model(repository_data(), "llama-3.1-8b"),
                             "dp=8:zero1", 1024, 8);
  const auto scatter = [](std::int64_t elements, int count) {
    return "reduce reduce_scatter fp32 dp " + std::to_string(4 * elements) + "x" +
           std::to_string(count) + " gradients";
  };
  const std::int64_t h = 4096, f = 14336, words = 128256;
  Lines lines = states(job);
  lines.resize(5);
  EXPECT_EQ(lines, (Lines{scatter(words * h, 1), scatter(h * f + h, 32), scatter(2 * h * f, 32),
                          scatter(h + h * h + h * 6144, 32), scatter(words * h + h, 1)}));
}

// bf16 with fp32 accumulation: all-reduce of whole gradients in bf16, then AG of parameters.
TEST(Megatron, UnderBf16OptimizerOfDeepSpeedGradientsStayWhole) {
  const Job job = engine_job("megatron-deepspeed@2022+bf16", wide(2), "dp=2:zero1", 8, 4);
  const Lines lines = states(job);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(lines[0].starts_with("reduce all_reduce bf16 dp "));
  EXPECT_TRUE(lines[1].starts_with("update all_gather bf16 dp "));
}

// allgather dispatcher: hidden states of all 4 x 4 tokens in forward, their results scattered; the
// mirror in backward. The routing map is one byte per token and expert: 16 x 4.
TEST(Megatron, TokensMayBeGatheredInstead) {
  const Job job = engine_job("megatron@2026+allgather", build_model(expert_architecture(1)),
                             "ep=2:ep+zero1 tp=2:tp+sp", 8, 2);
  Lines routed = block(job);
  std::erase_if(routed, [](const std::string& l) { return l.find("moe.") == std::string::npos; });
  EXPECT_EQ(routed, (Lines{"forward all_gather bf16 ep*tp 512x1 moe.dispatched",
                           "backward reduce_scatter bf16 ep*tp 512x1 moe.dispatched",
                           "forward reduce_scatter bf16 ep*tp 512x1 moe.experts.down",
                           "backward all_gather bf16 ep*tp 512x1 moe.experts.down"}));
  EXPECT_EQ(std::ranges::count(extras(job), "forward all_gather uint8 ep*tp 64x1 routing map"), 1);
}

// KV = 2 x 4 tokens x 8 x 2 = 128 bytes: forward 3 sends; backward KV, twice KV + dKV, dKV.
TEST(Megatron, ContextParallelRing) {
  const Job job = engine_job("megatron@2026", wide(1), "cp=4:ring", 16, 1);
  EXPECT_EQ(block(job), (Lines{"forward send_recv bf16 cp 128x3 attention.exchange",
                               "backward send_recv bf16 cp 128x1 attention.pieces",
                               "backward send_recv bf16 cp 256x2 attention.pieces_and_gradients",
                               "backward send_recv bf16 cp 128x1 attention.gradients"}));
}

// all_gather: AG of K and of V, 16 tokens x 8 x 2 = 256 bytes, in backward again, RS of dK and dV.
// a2a: q, k, v and back the output; the mirror: 4 tokens x 16 x 2 = 128 and 64 for k and v.
TEST(Megatron, ContextParallelGatherAndHeads) {
  const Job gather = engine_job("megatron@2026", wide(1), "cp=4:gather", 16, 1);
  EXPECT_EQ(block(gather), (Lines{"forward all_gather bf16 cp 256x1 attention.k_rotated",
                                  "forward all_gather bf16 cp 256x1 attention.v",
                                  "backward all_gather bf16 cp 256x1 attention.k_rotated",
                                  "backward all_gather bf16 cp 256x1 attention.v",
                                  "backward reduce_scatter bf16 cp 256x1 attention.k_rotated",
                                  "backward reduce_scatter bf16 cp 256x1 attention.v"}));
  const Job heads = engine_job("megatron@2026", wide(1), "cp=2:heads", 8, 1);
  EXPECT_EQ(block(heads), (Lines{"forward all_to_all bf16 cp 128x1 attention.q_rotated",
                                 "forward all_to_all bf16 cp 64x1 attention.k_rotated",
                                 "forward all_to_all bf16 cp 64x1 attention.v",
                                 "forward all_to_all bf16 cp 128x1 attention.context",
                                 "backward all_to_all bf16 cp 128x1 attention.context",
                                 "backward all_to_all bf16 cp 128x1 attention.q_rotated",
                                 "backward all_to_all bf16 cp 64x1 attention.k_rotated",
                                 "backward all_to_all bf16 cp 64x1 attention.v"}));
}

// Scalars once per step; the batch in each of 2 micro-batches, 8 tokens in int64, the mask in fp32;
// tokens on the first stage, labels on the last, both where they are one.
TEST(Megatron, ScalarsAndBatch) {
  const Job job = engine_job("megatron@2026", wide(2), "dp=2:ddp tp=2:tp", 8, 4);
  EXPECT_EQ(clipped(job), (Lines{"update all_reduce fp32 tp 4x1 gradient norm",
                                 "update all_reduce(min) int32 tp 4x1 success of the update",
                                 "update all_reduce(max) fp32 tp 4x1 largest gradient norm",
                                 "update all_reduce(max) fp32 tp 4x1 learning rate",
                                 "update all_reduce fp32 dp 8x1 loss and count of tokens",
                                 "forward broadcast int64 tp 64x2 tokens",
                                 "forward broadcast int64 tp 64x2 position ids",
                                 "forward broadcast int64 tp 64x2 labels",
                                 "forward broadcast fp32 tp 32x2 loss mask"}));
  const Job sharded = engine_job("megatron@2026", wide(2), "dp=2:zero1 tp=2:tp", 8, 4);
  EXPECT_EQ(clipped(sharded)[0],
            "update all_reduce fp32 dp*tp 4x1 gradient norm of sharded states");
  const Job staged = engine_job("megatron@2026", wide(3), "pp=3:1f1b tp=2:tp", 8, 1);
  EXPECT_EQ(std::ranges::count(clipped(staged, 0), "forward broadcast int64 tp 64x1 tokens"), 1);
  EXPECT_EQ(std::ranges::count(clipped(staged, 2), "forward broadcast int64 tp 64x1 labels"), 1);
  EXPECT_EQ(clipped(staged, 1).size(), 4U);
  EXPECT_EQ(clipped(staged, 1)[0], "update all_reduce fp32 pp*tp 4x1 gradient norm");
}

// 2021: fp16, each tensor rank sends half of the boundary, the receivers gather it.
TEST(Megatron, In2021BoundariesWereSentInParts) {
  const Job job = engine_job("megatron@2021", wide(4), "pp=2:1f1b tp=2:tp", 8, 2);
  const auto crossing = [](const auto& t) { return t.what.starts_with("boundary"); };
  EXPECT_EQ(traffic(job, crossing, 0),
            (Lines{"forward send_recv fp16 pp 128x2 boundary activations",
                   "backward all_gather fp16 tp 256x2 boundary gradients"}));
}

// Only the last stage counts tokens: int32 to the others, then summed over data and context ranks.
TEST(Megatron, LossesPerTokenCountTheTokensOfTheStep) {
  const std::string placement = "pp=2:1f1b dp=2:zero1 cp=2:ring+zero1";
  const auto counts = [&](const std::string& engine) {
    Lines lines = extras(engine_job(engine, wide(2), placement, 8, 4));
    std::erase_if(lines, [](const std::string& line) {
      return line.find("count of tokens over") == std::string::npos;
    });
    return lines;
  };
  EXPECT_EQ(counts("megatron@2026"), Lines{});
  EXPECT_EQ(counts("megatron@2026+per-token"),
            (Lines{"update broadcast int32 pp 4x1 count of tokens over stages",
                   "update all_reduce int32 dp*cp 4x1 count of tokens over data ranks"}));
}

}  // namespace
}  // namespace placet
