// The collectives of the plain theory, counted by hand.
//
// Model of most tests (traffic.h): hidden 16, 4 heads of 4, 2 kv heads, gated MLP of 32, vocabulary
// 64. A block: q and o 256 each, k and v 128 each, gate, up and down 512 each, two norms of 16:
// 2336 elements, 4672 bytes in bf16. Embedding 1024 elements, head 1024 + 16. One sample of 8
// tokens: a value of the stream has 8 x 16 x 2 = 256 bytes.
#include "derive/communication.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "catalog/training_catalog.h"
#include "derive/traffic.h"
#include "model/adapt.h"

namespace placet {
namespace {

/// Bytes that parameters and gradients cost, relative to whole replicas.
Rational ratio(const std::string& placement, std::int64_t micro_batches) {
  const Model model = bare_model(70'000'000'000, 80);
  const auto states = [&](const std::string& text) {
    return sent_by(written_job(model, text, 1, 8 * micro_batches), moves_states());
  };
  return states(placement) / states("dp=8:ddp");
}

// --- states on batch axes
// 80 units of 875e6 parameters in bf16: 1.75 GB each, one all-reduce per unit and step.
TEST(Communication, ReplicasAllReduceGradientsOncePerStep) {
  const Job job = written_job(bare_model(70'000'000'000, 80), "dp=8:ddp", 1, 32);
  EXPECT_EQ(of_states(job), Lines{"reduce all_reduce bf16 dp 1750000000x80 gradients"});
}

// All-reduce 2 Psi. Optimizer sharded: reduce-scatter Psi, gather Psi. Gradients too: the same at
// one micro-batch. Parameters too: two gathers and a reduce-scatter, 3 Psi.
TEST(Communication, AtOneMicroBatchShardingCostsOneOneAndThreeHalves) {
  EXPECT_EQ(ratio("dp=8:zero1", 1), Rational(1));
  EXPECT_EQ(ratio("dp=8:zero2", 1), Rational(1));
  EXPECT_EQ(ratio("dp=8:zero3", 1), Rational(3, 2));
}

// At m = 4: (1 + 1)/2; (4 + 1)/2; (8 + 4)/2.
TEST(Communication, AtFourMicroBatchesShardingCostsOneFiveHalvesAndSix) {
  EXPECT_EQ(ratio("dp=8:zero1", 4), Rational(1));
  EXPECT_EQ(ratio("dp=8:zero2", 4), Rational(5, 2));
  EXPECT_EQ(ratio("dp=8:zero3", 4), Rational(6));
}

// Kept to backward: one gather a micro-batch, (4 + 4)/2; kept over the step: (1 + 4)/2.
TEST(Communication, KeptGathersAreNotRepeated) {
  EXPECT_EQ(ratio("dp=8:zero3+keep", 4), Rational(4));
  EXPECT_EQ(ratio("dp=8:zero3+keep-step", 4), Rational(5, 2));
}

// Reduce-scatter over shard in each of 4 micro-batches; what is left, an eighth, over rep once.
TEST(Communication, HybridShardingReducesTheLeftoverOverTheReplicas) {
  const Job job = written_job(bare_model(800, 1), "rep=2:ddp shard=8:zero3", 1, 64);
  EXPECT_EQ(of_states(job), (Lines{"forward all_gather bf16 shard 1600x4 gathered parameters",
                                   "backward all_gather bf16 shard 1600x4 gathered parameters",
                                   "backward reduce_scatter bf16 shard 1600x4 gradients",
                                   "reduce all_reduce bf16 rep 200x1 gradients"}));
}

// One all-reduce over 32, 2 x 31/32 of 1600 = 3100 bytes; two, over 8 and 4, would send 5200.
TEST(Communication, AxesWithTheSameTransitionAreOneGroup) {
  const Job job = written_job(bare_model(800, 1), "rep=4:ddp dp=8:ddp", 1, 32);
  EXPECT_EQ(of_states(job), Lines{"reduce all_reduce bf16 rep*dp 1600x1 gradients"});
  EXPECT_EQ(sent_by(job, moves_states()), Rational(3100));
}

TEST(Communication, BatchAndSequenceAxesReduceTogether) {
  const Job job = written_job(wide(1), "dp=2:zero1 cp=2:ring+zero1", 8, 2);
  const Lines lines = of_states(job);
  EXPECT_EQ(lines[2], "reduce reduce_scatter bf16 dp*cp 4672x1 gradients");
  EXPECT_EQ(lines[3], "update all_gather bf16 dp*cp 4672x1 updated parameters");
}

// Splitting an axis into two with the same placement changes no bytes, whatever it divides.
TEST(Communication, SplittingAnAxisChangesNothing) {
  const auto sent = [](const std::string& text) {
    return sent_by(written_job(wide(4), text, 32, 16), [](const auto&) { return true; });
  };
  for (const std::string how : {"ddp", "zero1", "zero2", "zero3", "ring", "gather", "heads"}) {
    EXPECT_EQ(sent("a=4:" + how), sent("a=2:" + how + " b=2:" + how)) << how;
  }
  EXPECT_EQ(sent("a=2:zero1 t=2:tp+sp"), sent("a=2:zero1 t=2:tp+sp u=1:tp+sp"));
}

// Shares of 3/4 and 1/4: the device with the small share sends the other 3/4 of 4672 x 2.
TEST(Communication, UnevenSharesSendWhatTheSmallestDoesNotOwn) {
  const Job job = written_job(wide(2), "dp=2[3,1]:zero1", 8, 4);
  const Derivation derived = derive(job);
  const auto& terms = derived.communication[0].terms;
  const auto block = std::ranges::find_if(terms, [](const auto& t) { return t.unit == "block"; });
  EXPECT_EQ(block->sent, bytes(7008));
}

// 3 elements over 2 devices are 2 and 1: the one that owns 1 sends or receives 2 of bf16.
TEST(Communication, SharesOfAFewElementsAreWhole) {
  EXPECT_EQ(sent_per_call(Collective::all_gather, 6, 2, Dtype::bf16), 4);
  EXPECT_EQ(sent_per_call(Collective::all_reduce, 6, 2, Dtype::bf16), 8);
  EXPECT_EQ(sent_per_call(Collective::send_recv, 6, 2, Dtype::bf16), 6);
}

// ZeRO++ hpZ: forward gathers over both axes, backward over the inner one, where a copy was kept.
TEST(Communication, AGatherKeptAlongOneAxisIsRepeatedAlongTheOther) {
  const Job job = written_job(bare_model(800, 1), "o=2:hpz i=2:zero3", 1, 4);
  EXPECT_EQ(of_states(job), (Lines{"forward all_gather bf16 o*i 1600x1 gathered parameters",
                                   "backward all_gather bf16 i 1600x1 gathered parameters",
                                   "backward reduce_scatter bf16 o*i 1600x1 gradients"}));
}

// Consumed inside backward: reduced there, one message per unit, gathered after the update.
TEST(Communication, GradientsThatNeverRestAreReducedInBackward) {
  const Job job = written_job(bare_model(800, 1), "dp=2:batch(R,S,M,R)", 1, 2);
  EXPECT_EQ(of_states(job), (Lines{"backward reduce_scatter bf16 dp 1600x1 gradients",
                                   "update all_gather bf16 dp 1600x1 updated parameters"}));
}

// fp32 master and two moments, 12 bytes of 800 elements, gathered for an update that sees them
// whole.
TEST(Communication, OptimizerStateThatIsOnlyStoredInPartsIsGathered) {
  const Job job = written_job(bare_model(800, 1), "dp=2:batch(R,S*,R,R)", 1, 2);
  EXPECT_EQ(of_states(job),
            (Lines{"reduce all_reduce bf16 dp 1600x1 gradients",
                   "update all_gather uint8 dp 9600x1 optimizer state for the update"}));
}

// --- links

// Two hosts of 2. A block of `wide` over tp=2 all-reduces 8 tokens x 16 x 2 bytes twice forward and
// twice backward per micro-batch; replicas reduce half of 9,000-odd parameters once. At 64
// micro-batches the tensor axis sends more, and belongs inside the hosts.
TEST(Communication, TheBusiestAxisBelongsInsideTheHosts) {
  const auto advice = [](const char* placement) {
    Job job = written_job(wide(2), placement, 8, 128);
    const Level inside{.link = "inside", .devices = 2, .bandwidth = gigabytes_per_second(400)};
    const Level across{.link = "across", .devices = 4, .bandwidth = gigabytes_per_second(50)};
    job.cluster = Cluster{.name = "test",
                          .groups = {{.device = {.memory = gigabytes(1)},
                                      .count = 4,
                                      .per_host = 2,
                                      .levels = {inside, across}}}};
    return derive(job).findings;
  };
  const std::vector<Finding> outside = advice("tp=2:tp dp=2:ddp");
  ASSERT_EQ(outside.size(), 1U);
  EXPECT_EQ(outside[0].rule, "link-order");
  EXPECT_EQ(outside[0].where, "axis tp");
  EXPECT_EQ(outside[0].cure, "write tp after dp");
  EXPECT_TRUE(advice("dp=2:ddp tp=2:tp").empty());
}

// --- host memory

// Two micro-batches; half of 800 elements in bf16 is 800 bytes.
TEST(Communication, AHostThatUpdatesGetsGradientsAndGivesParameters) {
  const Job job = written_job(bare_model(800, 1), "dp=2:zero-offload", 1, 4);
  EXPECT_EQ(of_states(job), (Lines{"backward reduce_scatter bf16 dp 1600x2 gradients",
                                   "update all_gather bf16 dp 1600x1 updated parameters",
                                   "backward host_copy bf16 - 800x2 gradients to host",
                                   "update host_copy bf16 - 800x1 updated parameters from host"}));
}

TEST(Communication, ParametersOnTheHostComeInForEveryUse) {
  const Job job = written_job(bare_model(800, 1), "dp=2:zero-infinity", 1, 4);
  EXPECT_EQ(of_states(job), (Lines{"forward host_copy bf16 - 800x2 parameters from host",
                                   "forward all_gather bf16 dp 1600x2 gathered parameters",
                                   "backward host_copy bf16 - 800x2 parameters from host",
                                   "backward all_gather bf16 dp 1600x2 gathered parameters",
                                   "backward reduce_scatter bf16 dp 1600x2 gradients",
                                   "backward host_copy bf16 - 800x2 gradients to host"}));
}

// State on the host, update on the device: 12 bytes of 400 elements in and out.
TEST(Communication, StateOnTheHostComesInForAnUpdateOnTheDevice) {
  const Job job =
      written_job(bare_model(800, 1), "dp=2:zero1+offload(optimizer)+update(device)", 1, 2);
  EXPECT_EQ(of_states(job), (Lines{"reduce reduce_scatter bf16 dp 1600x1 gradients",
                                   "update all_gather bf16 dp 1600x1 updated parameters",
                                   "update host_copy uint8 - 4800x1 optimizer state from host",
                                   "update host_copy uint8 - 4800x1 optimizer state to host"}));
}

// Checkpoints of 4 blocks, 256 bytes each, over the host link and back in each of 2 micro-batches.
TEST(Communication, CheckpointsOnTheHostGoAndComeBack) {
  Job job = written_job(wide(4), "dp=2:ddp+host-checkpoints", 8, 4);
  job.recompute.kind = Recompute::Kind::full;
  EXPECT_EQ(of_block(job), (Lines{"forward host_copy uint8 - 256x8 kept for backward to host",
                                  "backward host_copy uint8 - 256x8 kept for backward from host"}));
}

// --- tensor axes

// Forward: after o and after down. Backward: the inputs of q, k, v together, of gate and up
// together.
TEST(Communication, AWholeStreamIsAllReducedFourTimesPerBlock) {
  const Job job = written_job(wide(2), "tp=2:tp", 8, 2);
  EXPECT_EQ(of_block(job), (Lines{"backward all_reduce bf16 tp 256x4 attention.norm.output",
                                  "forward all_reduce bf16 tp 256x4 attention.o",
                                  "backward all_reduce bf16 tp 256x4 mlp.norm.output",
                                  "forward all_reduce bf16 tp 256x4 mlp.down"}));
  EXPECT_EQ(of_states(job), Lines{});
}

// Forward 2 gathers and 2 reduce-scatters; backward 2 of each for gradients, and the two inputs of
// column-cut operators once more for the weights' gradient. Norm weights: 2 x 16 x 2 bytes a block.
TEST(Communication, ADividedStreamIsGatheredAndScattered) {
  const Job job = written_job(wide(1), "tp=2:tp+sp", 8, 1);
  EXPECT_EQ(of_block(job), (Lines{"forward all_gather bf16 tp 256x1 attention.norm.output",
                                  "backward all_gather bf16 tp 256x1 attention.norm.output",
                                  "backward reduce_scatter bf16 tp 256x1 attention.norm.output",
                                  "forward reduce_scatter bf16 tp 256x1 attention.o",
                                  "backward all_gather bf16 tp 256x1 attention.o",
                                  "forward all_gather bf16 tp 256x1 mlp.norm.output",
                                  "backward all_gather bf16 tp 256x1 mlp.norm.output",
                                  "backward reduce_scatter bf16 tp 256x1 mlp.norm.output",
                                  "forward reduce_scatter bf16 tp 256x1 mlp.down",
                                  "backward all_gather bf16 tp 256x1 mlp.down"}));
  EXPECT_EQ(of_states(job), (Lines{"reduce all_reduce bf16 tp 64x1 gradients",
                                   "reduce all_reduce bf16 tp 32x1 gradients"}));
}

// The embedding sums over the rows of the vocabulary; the head's input has a partial gradient; the
// loss exchanges its largest logit, the target's logit and the sum of exponentials, 8 fp32 each.
TEST(Communication, ACutVocabularySumsInEmbeddingHeadAndLoss) {
  const Job whole = written_job(wide(1), "tp=2:tp", 8, 1);
  EXPECT_EQ(traffic(whole, activations_of("embedding")),
            Lines{"forward all_reduce bf16 tp 256x1 embedding.output"});
  EXPECT_EQ(traffic(whole, activations_of("head")),
            (Lines{"backward all_reduce bf16 tp 256x1 head.norm.output",
                   "forward all_reduce(max) fp32 tp 32x1 loss.max",
                   "forward all_reduce fp32 tp 32x1 loss.target",
                   "forward all_reduce fp32 tp 32x1 loss.sum"}));
  const Job split = written_job(wide(1), "tp=2:tp+sp", 8, 1);
  EXPECT_EQ(traffic(split, activations_of("embedding")),
            (Lines{"forward reduce_scatter bf16 tp 256x1 embedding.output",
                   "backward all_gather bf16 tp 256x1 embedding.output"}));
  EXPECT_EQ(traffic(split, activations_of("head"))[2],
            "backward reduce_scatter bf16 tp 256x1 head.norm.output");
}

// Rank 2 on q and v, whose rows are cut: B is cut, A [2, 16] is whole and sees only its device's
// rows of B: 2 adapters x 32 elements x 2 bytes. The frozen rest has no gradient, and the
// embedding, frozen too, gets none back.
TEST(Communication, AnAdaptersFirstMatrixIsPartialUnderACutOfRows) {
  const Job job = written_job(with_lora(wide(1), {.rank = 2}), "tp=2:tp", 8, 1);
  EXPECT_EQ(of_states(job), Lines{"reduce all_reduce bf16 tp 128x1 gradients"});
  const Job split = written_job(with_lora(wide(1), {.rank = 2}), "tp=2:tp+sp", 8, 1);
  EXPECT_EQ(traffic(split, activations_of("embedding")),
            Lines{"forward reduce_scatter bf16 tp 256x1 embedding.output"});
}

// On o, whose columns are cut: A is cut, B [16, 2] whole and partial. Its result joins o's before
// either is whole: one reduction, as without an adapter. Before it nothing has a gradient.
TEST(Communication, AnAdaptersSumIsReducedOnce) {
  const Job job =
      written_job(with_lora(wide(1), {.rank = 2, .patterns = {"attention.o"}}), "tp=2:tp", 8, 1);
  EXPECT_EQ(of_block(job), (Lines{"forward all_reduce bf16 tp 256x1 attention.o",
                                  "backward all_reduce bf16 tp 256x1 mlp.norm.output",
                                  "forward all_reduce bf16 tp 256x1 mlp.down"}));
  EXPECT_EQ(of_states(job), Lines{"reduce all_reduce bf16 tp 64x1 gradients"});
}

// Two axes, one on heads, width and vocabulary, one on hidden: the residual stream has 128 bytes on
// a device. Along hidden the column-cut operators leave partial sums (q 8 x 8 x 2 = 128, k and v
// 64, gate and up 8 x 16 x 2 = 256), and the gradients of the row-cut ones' inputs are partial.
TEST(Communication, TwoTensorAxesCutBothSidesOfEveryMatrix) {
  const Job job = written_job(wide(1), "x=2:tp-2d-inner y=2:tp-2d-hidden", 8, 1);
  EXPECT_EQ(of_block(job), (Lines{"backward all_reduce bf16 x 128x1 attention.norm.output",
                                  "forward all_reduce bf16 y 128x1 attention.q",
                                  "forward all_reduce bf16 y 64x1 attention.k",
                                  "forward all_reduce bf16 y 64x1 attention.v",
                                  "backward all_reduce bf16 y 128x1 attention.context",
                                  "forward all_reduce bf16 x 128x1 attention.o",
                                  "backward all_reduce bf16 x 128x1 mlp.norm.output",
                                  "forward all_reduce bf16 y 256x1 mlp.gate",
                                  "forward all_reduce bf16 y 256x1 mlp.up",
                                  "backward all_reduce bf16 y 256x1 mlp.activation.output",
                                  "forward all_reduce bf16 x 128x1 mlp.down",
                                  "forward all_reduce fp32 y 32x2 norm.statistics",
                                  "backward all_reduce fp32 y 32x2 norm.gradient"}));
  EXPECT_EQ(of_states(job), Lines{});
}

// Biases sum over samples and tokens, which neither axis cuts, and the gradients that come to them
// are whole: that of q once the context's is, that of up once the activation's is. Those of q, k,
// v, gate and up are cut along x, those of o and down along y.
TEST(Communication, BiasesBetweenTwoTensorAxesAreWhole) {
  Architecture architecture = wide_architecture(1);
  Attention& attention = attention_in(architecture);
  attention.query.bias = "q_bias";
  attention.key.bias = "k_bias";
  attention.value.bias = "v_bias";
  attention.output.bias = "o_bias";
  auto& mlp = std::get<Mlp>(architecture.shapes[0][1].branches[0].mixer);
  mlp.gate.bias = "gate_bias";
  mlp.up.bias = "up_bias";
  mlp.down.bias = "down_bias";
  const Job job = written_job(build_model(architecture), "x=2:tp-2d-inner y=2:tp-2d-hidden", 8, 1);
  EXPECT_EQ(of_states(job), Lines{});
}

// Rank 2 on q and v. Along x, A [2, 16 / 2] is whole between cut work: 2 x 8 x 2 bytes for each of
// the two. Along y A's sum over hidden is P and goes on through B as it is, so that the gradient of
// B is P: of q 8 rows x 2, of v 4 rows x 2, 24 elements of 2 bytes.
TEST(Communication, BothMatricesOfAnAdapterArePartialAlongOneOfTwoTensorAxes) {
  const auto placement = "x=2:tp-2d-inner y=2:tp-2d-hidden";
  const Job job = written_job(with_lora(wide(1), {.rank = 2}), placement, 8, 1);
  EXPECT_EQ(of_states(job), (Lines{"reduce all_reduce bf16 x 64x1 gradients",
                                   "reduce all_reduce bf16 y 48x1 gradients"}));
}

// --- recomputation

TEST(Communication, FullRecomputationRepeatsForward) {
  Job job = written_job(wide(1), "tp=2:tp", 8, 1);
  job.recompute.kind = Recompute::Kind::full;
  EXPECT_EQ(of_block(job), (Lines{"backward all_reduce bf16 tp 256x1 attention.norm.output",
                                  "forward all_reduce bf16 tp 256x1 attention.o",
                                  "backward all_reduce bf16 tp 256x1 attention.o",
                                  "backward all_reduce bf16 tp 256x1 mlp.norm.output",
                                  "forward all_reduce bf16 tp 256x1 mlp.down",
                                  "backward all_reduce bf16 tp 256x1 mlp.down"}));
}

// An engine that stops where backward has what it needs does not run the last reduction again.
TEST(Communication, RecomputationMayStopBeforeTheLastReduction) {
  Job job = written_job(wide(1), "tp=2:tp", 8, 1);
  job.recompute.kind = Recompute::Kind::full;
  job.profile.recompute_stops_early = true;
  EXPECT_EQ(of_block(job).size(), 5U);
  EXPECT_EQ(of_block(job).back(), "forward all_reduce bf16 tp 256x1 mlp.down");
}

// Blocks are whole on every device and see the same tokens: nothing of them is sent, and their
// gradients are whole. 8 tokens x 16 x 2 bytes at the ends, three numbers per token in the loss.
TEST(Communication, ACutOfTheVocabularyAloneLeavesBlocksInPeace) {
  const Job job = written_job(build_model(wide_architecture(2)), "x=2:vocab-parallel", 8, 1);
  EXPECT_EQ(traffic(job, activations_of("block")), Lines{});
  EXPECT_EQ(traffic(job, moves_states()), Lines{});
  EXPECT_EQ(traffic(job, activations_of("embedding")),
            Lines{"forward all_reduce bf16 x 256x1 embedding.output"});
  const Lines head = traffic(job, activations_of("head"));
  ASSERT_EQ(head.size(), 4U);
  EXPECT_EQ(head[0], "backward all_reduce bf16 x 256x1 head.norm.output");
  EXPECT_EQ(head[1], "forward all_reduce(max) fp32 x 32x1 loss.max");
}

// The same of one class: attention is whole, the MLP is cut.
TEST(Communication, AClassThatATensorAxisLeavesWholeSendsNothing) {
  const Job job =
      written_job(build_model(wide_architecture(1)), "tp=2:tp;attention:tensor(S,S,S,R,ffn)", 8, 1);
  EXPECT_EQ(traffic(job, moves_states()), Lines{});
  EXPECT_EQ(traffic(job, activations_of("block")),
            (Lines{"backward all_reduce bf16 tp 256x1 mlp.norm.output",
                   "forward all_reduce bf16 tp 256x1 mlp.down"}));
}

TEST(Communication, SelectiveRecomputationRepeatsItsModulesOnly) {
  const Job plain = written_job(wide(1), "tp=2:tp+sp", 8, 1);
  Job core = plain;
  core.recompute = {.kind = Recompute::Kind::selective, .modules = {Module::core_attention}};
  EXPECT_EQ(of_block(core), of_block(plain));
  Job mlp = plain;
  mlp.recompute = {.kind = Recompute::Kind::selective, .modules = {Module::mlp}};
  Lines expected = of_block(plain);
  expected[6] = "backward all_gather bf16 tp 256x2 mlp.norm.output";  // recomputed, and for weights
  expected.insert(expected.begin() + 10, "backward reduce_scatter bf16 tp 256x1 mlp.down");
  Lines found = of_block(mlp);
  std::ranges::sort(expected);
  std::ranges::sort(found);
  EXPECT_EQ(found, expected);
}

// Parameters gathered for the recomputation stay for the backward of the unit: no third gather.
TEST(Communication, RecomputationGathersParametersNoMore) {
  const Job plain = written_job(wide(2), "dp=2:zero3", 8, 2);
  Job full = plain;
  full.recompute.kind = Recompute::Kind::full;
  EXPECT_EQ(of_states(full), of_states(plain));
}

TEST(Communication, DividedCheckpointsComeTogetherInBackward) {
  Job job = written_job(wide(1), "tp=2:tp+partitioned-checkpoints", 8, 1);
  job.recompute.kind = Recompute::Kind::full;
  EXPECT_EQ(of_block(job).back(), "backward all_gather bf16 tp 256x1 kept input");
}

// --- experts: each of 8 tokens goes to 2 experts: 2 x 256 bytes

TEST(Communication, TokensGoToTheirExpertsAndBackTwice) {
  const Job job = written_job(build_model(expert_architecture(1)), "ep=4:ep", 8, 4);
  EXPECT_EQ(of_block(job), (Lines{"forward all_to_all bf16 ep 512x1 moe.dispatched",
                                  "backward all_to_all bf16 ep 512x1 moe.dispatched",
                                  "forward all_to_all bf16 ep 512x1 moe.experts.down",
                                  "backward all_to_all bf16 ep 512x1 moe.experts.down"}));
  // Dense: attention 768, norms 32, router 4 x 16 = 64: 864 elements. Experts are nobody else's.
  EXPECT_EQ(of_states(job)[1], "reduce all_reduce bf16 ep 1728x1 gradients");
}

// Experts cut over tp: the 4 tokens of a device, 256 bytes routed, exchanged over ep, then gathered
// over tp to 512, and back.
TEST(Communication, CutExpertsGatherTheirTokens) {
  const Job job = written_job(build_model(expert_architecture(1)), "ep=2:ep tp=2:tp+sp", 8, 2);
  Lines found = of_block(job);
  std::erase_if(found, [](const std::string& line) { return !line.ends_with("moe.dispatched"); });
  EXPECT_EQ(found, (Lines{"forward all_to_all bf16 ep 256x1 moe.dispatched",
                          "forward all_gather bf16 tp 512x1 moe.dispatched",
                          "backward all_to_all bf16 ep 256x1 moe.dispatched",
                          "backward reduce_scatter bf16 tp 512x1 moe.dispatched"}));
  // Router and norms, 96 elements of every device's own tokens, sum over both axes; the rest over
  // ep.
  EXPECT_EQ(of_states(job)[1], "reduce all_reduce bf16 ep*tp 192x1 gradients");
}

// A whole stream: results are sums over the devices, as are the gradients of the tokens (where the
// shared expert's joins it) and of the router's weights, 8 tokens x 2 choices.
TEST(Communication, ExpertsOfAWholeStreamContributeToSums) {
  Architecture architecture = expert_architecture(1);
  Moe& moe = std::get<Moe>(architecture.shapes[0][1].branches[0].mixer);
  moe.shared = Mlp{.width = 8, .gate = {"sg"}, .up = {"su"}, .down = {"sd"}};
  const Job job = written_job(build_model(architecture), "tp=2:tp", 8, 1);
  EXPECT_EQ(of_block(job), (Lines{"backward all_reduce bf16 tp 256x1 attention.norm.output",
                                  "forward all_reduce bf16 tp 256x1 attention.o",
                                  "backward all_reduce bf16 tp 256x1 moe.norm.output",
                                  "backward all_reduce bf16 tp 32x1 moe.router.weights",
                                  "forward all_reduce bf16 tp 256x1 moe.combined",
                                  "forward all_reduce bf16 tp 256x1 shared_expert.down"}));
}

// Experts on fewer axes than the dense model: theirs are gradients of whole replicas along dp.
TEST(Communication, ExpertsReduceOverTheAxesThatRepeatThem) {
  const Job job =
      written_job(build_model(expert_architecture(1)), "dp=2:zero1 ep=2:ep+zero1", 8, 4);
  const Lines lines = of_states(job);
  EXPECT_EQ(lines[2], "reduce reduce_scatter bf16 dp*ep 1728x1 gradients");
  // 2 experts x 3 x 16 x 8 elements.
  EXPECT_EQ(lines[4], "reduce reduce_scatter bf16 dp 1536x1 gradients");
}

// All tokens at one device: it sends back what it got from all four. It has one expert, so that it
// gets each token once: 4 x 8 tokens x 16 x 2 = 1024 bytes of the 4 x 512 that all choices are.
// With two experts both choices of a token may fall to a device: 2 x 8 x 2 x 16 x 2 = 1024.
TEST(Communication, TheWorstRoutingReturnsMoreThanItSends) {
  Job job = written_job(build_model(expert_architecture(1)), "ep=4:ep", 8, 4);
  job.routing.kind = Routing::Kind::worst;
  EXPECT_EQ(of_block(job)[0], "forward all_to_all bf16 ep 512x1 moe.dispatched");
  EXPECT_EQ(of_block(job)[2], "forward all_to_all bf16 ep 1024x1 moe.experts.down");
  Job pairs = written_job(build_model(expert_architecture(1)), "ep=2:ep", 8, 4);
  pairs.routing.kind = Routing::Kind::worst;
  EXPECT_EQ(of_block(pairs)[2], "forward all_to_all bf16 ep 1024x2 moe.experts.down");
}

// --- layer axes

Lines crossing(const Job& job, std::size_t stage) {
  return traffic(
      job, [](const CommunicationTerm& t) { return t.what.starts_with("boundary"); }, stage);
}

TEST(Communication, StagesSendActivationsOnAndGradientsBack) {
  const Job job = written_job(wide(4), "pp=2:1f1b", 8, 4);
  EXPECT_EQ(crossing(job, 0), Lines{"forward send_recv bf16 pp 256x4 boundary activations"});
  EXPECT_EQ(crossing(job, 1), Lines{"backward send_recv bf16 pp 256x4 boundary gradients"});
}

// Four virtual stages on two devices: device 0 sends on from the first and the third.
TEST(Communication, InterleavedStagesSendOftener) {
  const Job job = written_job(wide(4), "pp=2:interleaved(2)", 8, 4);
  EXPECT_EQ(crossing(job, 0), (Lines{"forward send_recv bf16 pp 256x8 boundary activations",
                                     "backward send_recv bf16 pp 256x4 boundary gradients"}));
}

// A vee turns on the last device: stages 1 and 2 stand there together, and 3 with 0.
TEST(Communication, AVeeTurnsWithoutSending) {
  const Job job = written_job(wide(4), "pp=2:zb-v", 8, 4);
  EXPECT_EQ(crossing(job, 1), (Lines{"forward send_recv bf16 pp 256x4 boundary activations",
                                     "backward send_recv bf16 pp 256x4 boundary gradients"}));
}

// Two directions of 4 micro-batches each; a middle device sends on in both. Every tensor stands on
// two devices: 2 blocks' gradients are summed between them.
TEST(Communication, TwoDirectionsHostEveryBlockTwice) {
  const Job job = written_job(wide(4), "pp=4:dualpipe", 8, 8);
  EXPECT_EQ(crossing(job, 1), (Lines{"forward send_recv bf16 pp/2 256x8 boundary activations",
                                     "backward send_recv bf16 pp/2 256x8 boundary gradients"}));
  EXPECT_EQ(of_states(job, 1),
            Lines{"reduce all_reduce bf16 pp/2 9344x1 gradients of shared tensors"});
}

// The head's matrix is the embedding's: both hosts reduce their own over dp, then what is left of
// 2048 bytes between them.
TEST(Communication, ATiedMatrixIsReducedOverDataThenBetweenItsHosts) {
  Architecture architecture = wide_architecture(2);
  architecture.head.tied = true;
  const Job job = written_job(build_model(architecture), "pp=2:1f1b dp=2:zero1", 8, 4);
  const Lines shared{"reduce all_reduce bf16 pp 1024x1 gradients of shared tensors"};
  const auto is_shared = [](const CommunicationTerm& t) {
    return t.what == "gradients of shared tensors";
  };
  EXPECT_EQ(traffic(job, is_shared, 0), shared);
  EXPECT_EQ(traffic(job, is_shared, 1), shared);
  EXPECT_EQ(of_states(job, 1)[2], "reduce reduce_scatter bf16 dp 2080x1 gradients");
  // On one device it is one tensor: the head reduces its norm alone.
  const Job together = written_job(build_model(architecture), "dp=2:zero1", 8, 2);
  EXPECT_EQ(of_states(together)[4], "reduce reduce_scatter bf16 dp 32x1 gradients");
}

// Without sharding the gradient goes from partial to whole over dp and over its hosts at once: one
// group of 4 on 2048 bytes, 2 x 3/4 x 2048 = 3072, where two of 2 would send 2 x 2048.
TEST(Communication, ATiedMatrixThatIsWholeIsReducedInOneGroup) {
  Architecture architecture = wide_architecture(2);
  architecture.head.tied = true;
  const Job job = written_job(build_model(architecture), "pp=2:1f1b dp=2:ddp", 8, 4);
  for (const std::size_t stage : {std::size_t{0}, std::size_t{1}}) {
    const Lines lines = of_states(job, stage);
    EXPECT_EQ(std::ranges::count(lines, "reduce all_reduce bf16 pp*dp 2048x1 gradients"), 1)
        << ::testing::PrintToString(lines);
    EXPECT_TRUE(std::ranges::none_of(
        lines, [](const std::string& line) { return line.find("shared") != std::string::npos; }));
  }
}

// Every tensor stands twice: one group of both hosts and the two replicas.
TEST(Communication, TwoDirectionsReduceWithTheReplicas) {
  const Job job = written_job(wide(4), "pp=4:dualpipe dp=2:ddp", 8, 16);
  EXPECT_EQ(of_states(job, 1), Lines{"reduce all_reduce bf16 pp*dp/4 4672x2 gradients"});
}

// Each device's 4 tokens of 2 choices are 8 entries; its 2 experts take ceil(8 / 2 x 5/4) = 5 each.
TEST(Communication, ACapacityFillsTheSlotsOfAnExpert) {
  Job job = written_job(build_model(expert_architecture(1)), "ep=2:ep", 4, 2);
  const auto entries = [&] {
    const Prepared prepared = prepare(job);
    const Layout layout = lay_out(job, prepared);
    const LocalUnit& unit = layout.units[1];
    const UnitKind& kind = job.model.kinds[static_cast<std::size_t>(unit.kind)];
    for (std::size_t v = 0; v < kind.values.size(); ++v) {
      if (prepared.kinds[static_cast<std::size_t>(unit.kind)].values[v].routed) {
        return unit.values[v];
      }
    }
    return std::int64_t{0};
  };
  const std::int64_t balanced = entries();
  job.routing = {.kind = Routing::Kind::capacity, .capacity = Rational(5, 4)};
  EXPECT_EQ(entries() * 8, balanced * 10);
}

// Of 4 choices on 2 devices two are sent.
TEST(Communication, ATokenMayGoOnceToEachDevice) {
  Architecture architecture = expert_architecture(1);
  std::get<Moe>(architecture.shapes[0][1].branches[0].mixer).experts_per_token = 4;
  Job job = written_job(build_model(architecture), "ep=2:ep", 4, 2);
  const auto payload = [&] {
    const Derivation derivation = derive(job);
    for (const CommunicationTerm& term : derivation.communication[0].terms) {
      if (term.collective == Collective::all_to_all) return in_bytes(term.payload);
    }
    return std::int64_t{0};
  };
  const std::int64_t each = payload();
  job.profile.token_dispatch = TokenDispatch::exchange_once;
  EXPECT_EQ(payload() * 2, each);
}

// --- optimizers that see more than elements

// Every matrix of a block is cut by tp: the half of its own shard over dp, 1152 elements of
// matrices in two halves, put together along tp: 2304 elements / 2 (dp) x 2 bytes.
TEST(Communication, WholeMatricesAreGatheredForTheUpdate) {
  Job job = written_job(wide(1), "dp=2:zero1 tp=2:tp", 8, 2);
  job.optimizer.region = UpdateRegion::matrix;
  const std::string gather = "update all_gather bf16 tp 2304x1 matrices for the update";
  const Lines lines = of_states(job);
  EXPECT_EQ(std::ranges::count(lines, gather), 1);
}

// Shards of rows tear column sums: 16 columns in fp32 for each of the embedding's matrices.
TEST(Communication, TornSumsAreReducedForTheUpdate) {
  Job job = written_job(wide(1), "dp=2:zero1", 8, 2);
  job.optimizer.region = UpdateRegion::row_and_column;
  EXPECT_EQ(of_states(job)[1], "update all_reduce fp32 dp 64x1 column sums for the update");
}

// Matrices torn by tp=2 are put together for the update; embedding and head stay as they are.
TEST(Communication, OnlyMatricesThatAreUpdatedWholeAreGathered) {
  Job job = written_job(wide(1), "tp=2:tensor(S,S*,S,R)", 8, 1);
  job.optimizer = load_optimizer(repository_data(), "muon", "test");
  const Lines lines = traffic(job, [](const CommunicationTerm& t) {
    return t.what == "matrices for the update" && t.unit != "block";
  });
  EXPECT_EQ(lines, Lines{});
}

}  // namespace
}  // namespace placet
