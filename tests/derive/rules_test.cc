#include "derive/rules.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "derive/rule_jobs.h"

namespace placet {
namespace {

Finding only_finding(const Job& job) {
  const std::vector<Finding> findings = check_rules(job);
  EXPECT_EQ(findings.size(), 1U);
  for (std::size_t i = 1; i < findings.size(); ++i) {
    ADD_FAILURE() << findings[i].rule << ": " << findings[i].message;
  }
  return findings.empty() ? Finding{} : findings.front();
}

void expect(const Job& job, const Finding& expected) {
  const Finding found = only_finding(job);
  EXPECT_EQ(found.rule, expected.rule);
  EXPECT_EQ(found.severity, expected.severity);
  EXPECT_EQ(found.where, expected.where);
  EXPECT_EQ(found.message, expected.message);
  EXPECT_EQ(found.cure, expected.cure);
}

TEST(RulesTest, GoodJobsHaveNoFindings) {
  for (const char* placement :
       {"dp=8:batch(R,R,R,R)", "dp=8:batch(S*,S,S,R)", "dp=4:batch(R,S,R,R) tp=8:tensor(S,S,S,S*)",
        "pp=4:layer(S,S,S,S) dp=2:batch(R,S,R,R) tp=2:tensor(S,S,S,R)",
        "dp=2:batch(O,O,O,O) cp=4:sequence(R,S,R,S)"}) {
    EXPECT_EQ(check_rules(job(placement)), std::vector<Finding>{}) << placement;
  }
  EXPECT_EQ(check_rules(job("dp=2:batch(R,R,R,R) ep=8:batch(R,S,R,R);experts:expert(S,S,S,R)",
                            expert_model())),
            std::vector<Finding>{});
}

// --- meaning

// A block whose stream is cut by columns would hand a thirty-second of it to one that has it whole.
TEST(RulesTest, TheStreamsColumnsAreCutForAllTensorsOrForNone) {
  Job mixed = job("tp=2:tensor(S,S,S,R);blocks 0-1:tensor(S,S,S,R)");
  EXPECT_EQ(check_rules(mixed), std::vector<Finding>{});
  mixed.placement.axes[0].overrides[0].how.tensor_indices |= bit_of(Index::hidden);
  expect(mixed, {"meaning", Severity::error, "axis tp, class blocks 0-1",
                 "the residual stream is one: its columns are cut for all tensors or for none",
                 "blocks 0-1:tensor(S,S,S,R)"});
}

// Experts take the tokens of their axis: a cut of other samples is none of theirs.
TEST(RulesTest, AClassCutsTheSamplesOfItsAxis) {
  expect(job("dp=8:batch(R,S,R,R);experts:sequence(R,S,R,S)", expert_model()),
         {"meaning", Severity::error, "axis dp, class experts",
          "devices of a batch cut work on different samples; a sequence cut of one class does not "
          "go with it",
          "experts:batch(R,S,R,R)"});
  expect(job("dp=8:batch(R,S,R,R);norms:sequence(R,S,R,S)"),
         {"meaning", Severity::error, "axis dp, class norms",
          "devices of a batch cut work on different samples; a sequence cut of one class does not "
          "go with it",
          "norms:batch(R,S,R,R)"});
}

// Muon updates embedding and head like vectors, element by element: cutting only those tears
// nothing that it sees whole.
TEST(RulesTest, OnlyTensorsThatAreSeenWholeAreTorn) {
  Job muon = job("tp=2:tensor(S,S,S,R)");
  muon.optimizer.region = UpdateRegion::matrix;
  EXPECT_EQ(only_finding(muon).rule, "whole-regions");
  muon = job("tp=2:tensor(S,S*,S,R);embedding:tensor(S,S,S,R)");
  muon.optimizer.region = UpdateRegion::matrix;
  muon.optimizer.other_states = {{.dtype = Dtype::fp32}};
  muon.optimizer.other_classes = bit_of(TensorClass::embedding);
  EXPECT_EQ(check_rules(muon), std::vector<Finding>{});
}

TEST(RulesTest, MeaninglessModesNameTheNearestTuple) {
  expect(job("tp=8:tensor(S*,S,S,R)"),
         {"meaning", Severity::error, "axis tp", "parameters cannot be S* along a tensor cut",
          "tp=8:tensor(S,S,S,R)"});
  expect(job("dp=8:batch(R,S,R,S)"),
         {"meaning", Severity::error, "axis dp", "activations cannot be S along a batch cut",
          "dp=8:batch(R,S,R,R)"});
  expect(job("dp=8:batch(R,R,R,R);norms:batch(S,S,S,R)"),
         {"meaning", Severity::error, "axis dp, class norms",
          "parameters cannot be S along a batch cut", "norms:batch(S*,S,S,R)"});
}

TEST(RulesTest, ExpertCutsAreForExpertsOnly) {
  expect(job("ep=8:expert(S,S,S,R)", expert_model()),
         {"meaning", Severity::error, "axis ep",
          "an expert cut divides experts only; other tensors have none",
          "ep=8:batch(R,S,S,R);experts:expert(S,S,S,R)"});
}

// One class cut where the samples are: its input and output would have to change their division.
TEST(RulesTest, ClassesOfDenseWorkShareTheCutOfTheirAxis) {
  const auto expect_clash = [](const char* placement, const char* where, const char* message,
                               const char* cure) {
    expect(job(placement), {"meaning", Severity::error, where, message, cure});
  };
  const char* samples =
      "devices of a batch cut work on different tokens; a tensor cut of one class does not go with "
      "it";
  expect_clash("dp=4:batch(R,R,R,R);ffn:tensor(S,S,S,R)", "axis dp, class ffn", samples,
               "an axis of its own for the tensor cut");
  expect_clash("dp=4:batch(R,R,R,R);head:tensor(S,S,S,R,vocab)", "axis dp, class head", samples,
               "an axis of its own for the tensor cut");
  expect_clash("pp=4:layer(S,S,S,S);head:tensor(S,S,S,R,vocab)", "axis pp, class head",
               "devices of a layer cut hold different blocks; a tensor cut of one class does not "
               "go with it",
               "an axis of its own for the tensor cut");
  expect_clash("tp=4:tensor(S,S,S,R);embedding:batch(R,R,R,R)", "axis tp, class embedding",
               "devices of a tensor cut work on the same samples; a batch cut of one class does "
               "not go with it",
               "the class as tensor, with only the indices that are to be cut");
  expect_clash("x=4:tensor(S,S,S,S*,vocab)", "axis x",
               "activations cannot be S* along a cut that leaves blocks whole",
               "x=4:tensor(S,S,S,R,vocab)");
  EXPECT_TRUE(check_rules(job("dp=4:batch(R,R,R,R);ffn:batch(S*,S,S,R)")).empty());
  EXPECT_TRUE(check_rules(job("x=4:tensor(S,S,S,R,vocab)")).empty());
  EXPECT_TRUE(
      check_rules(job("tp=4:tensor(S,S,S,R);experts:batch(R,S,R,R)", expert_model())).empty());
}

TEST(RulesTest, CheckpointsAreNeverRebuilt) {
  expect(job("tp=8:tensor(S,S,S,R);checkpoints:tensor(S,S,S,M)"),
         {"meaning", Severity::error, "axis tp, class checkpoints",
          "activations are the inputs that recomputation starts from and cannot be M",
          "checkpoints:tensor(S,S,S,R)"});
}

// --- product

TEST(RulesTest, DegreesMultiplyToTheDevices) {
  Job eight = job("dp=8:batch(R,R,R,R) tp=2:tensor(S,S,S,R)");
  eight.cluster = cluster_of(64);
  expect(eight, {"product", Severity::error, "axis dp",
                 "the degrees multiply to 16, the cluster has 64 devices", "dp=32"});
  eight.cluster = cluster_of(7);
  expect(eight,
         {"product", Severity::error, "axis dp",
          "the degrees multiply to 16, the cluster has 7 devices", "dp=3, which takes 6 devices"});
  eight.cluster.reset();
  EXPECT_TRUE(check_rules(eight).empty()) << "without a cluster any product is right";
}

// --- divisibility

TEST(RulesTest, HeadsDivideByTheTensorAxes) {
  // 8 heads by 3; the 2 kv heads, 96 columns and 1000 tokens are judged apart.
  Job three = job("tp=3:tensor(S,S,S,R)");
  three.profile.vocabulary_divides = true;
  const std::vector<Finding> findings = check_rules(three);
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[0].message, "1000 tokens of the vocabulary do not divide by 3 (embed)");
  EXPECT_EQ(findings[0].cure, "tp=2");
  EXPECT_EQ(findings[1].message, "8 heads do not divide by 3 (q)");
  EXPECT_EQ(findings[1].cure, "tp=2");
  EXPECT_EQ(findings[2].message, "2 kv heads do not divide by 3 (k)");
}

// 2 kv heads on 8 devices: each on 4 of them. On 6 (with 6 heads' worth of queries) too, on 3 not.
TEST(RulesTest, KvHeadsMayStandOnSeveralDevices) {
  EXPECT_TRUE(check_rules(job("tp=8:tensor(S,S,S,R)")).empty());
  EXPECT_TRUE(check_rules(job("a=2:tensor(S,S,S,R) b=4:tensor(S,S,S,R)")).empty());
}

TEST(RulesTest, ProductsOfAxesCount) {
  expect(job("a=4:tensor(S,S,S,R) b=4:tensor(S,S,S,R,head,kv_head,ffn)"),
         {"divisibility", Severity::error, "axis b", "8 heads do not divide by 16 (q)", "b=2"});
}

/// Sixteen devices that cut the vocabulary of 1000 and the 96 columns.
Job sixteen_parts() {
  Job out = job("tp=16:tensor(S,S,S,R)");
  for (Parameter& p : out.model.kinds[1].parameters) {
    for (Dim& dim : p.dims) dim.index = dim.index == Index::head ? Index::other : dim.index;
  }
  return out;
}

// 1000 = 16 x 62 + 8: the first eight devices have 63, as all would of 16 x 63 = 1008.
TEST(RulesTest, VocabularyIsCutUnevenlyAndTheCostIsShown) {
  expect(sixteen_parts(),
         {"divisibility", Severity::advice, "axis tp",
          "1000 tokens of the vocabulary do not divide by 16 and are cut unevenly: the fullest "
          "device has 63, as many as if there were 1008",
          "a vocabulary padded to 1008"});
  EXPECT_TRUE(check_rules(job("tp=8:tensor(S,S,S,R)")).empty()) << "even parts of 125";
}

TEST(RulesTest, EachPartOfAVocabularyHasSome) {
  Job few = job("tp=16:tensor(S,S,S,R,vocab)");
  for (UnitKind& kind : few.model.kinds) {
    for (Parameter& p : kind.parameters) {
      for (Dim& dim : p.dims) {
        if (dim.index == Index::vocab) dim = {Index::vocab, 12, 12};
      }
    }
  }
  expect(few, {"divisibility", Severity::error, "axis tp",
               "12 tokens of the vocabulary do not divide by 16 (embed)", "tp=12"});
}

TEST(RulesTest, VocabularyMayBePadded) {
  Job padded = sixteen_parts();
  padded.profile.vocabulary_divides = true;
  expect(padded, {"divisibility", Severity::error, "axis tp",
                  "1000 tokens of the vocabulary do not divide by 16 (embed)", "tp=8"});
  padded.profile.vocabulary_multiple = 128;  // 1024
  EXPECT_TRUE(check_rules(padded).empty());
}

// 8 heads, 2 kv heads, 96 columns and 1000 tokens: none divides by 5 but the tokens, by 7 none.
TEST(RulesTest, FindingsOfOneAxisAgreeOnTheCure) {
  for (const char* placement : {"tp=5:tensor(S,S,S,R)", "tp=7:tensor(S,S,S,R)"}) {
    Job five = job(placement);
    five.profile.vocabulary_divides = true;
    const std::vector<Finding> findings = check_rules(five);
    ASSERT_GE(findings.size(), 3U);
    for (const Finding& finding : findings) EXPECT_EQ(finding.cure, findings.front().cure);
    const Job mended = job((findings.front().cure + ":tensor(S,S,S,R)").c_str());
    EXPECT_TRUE(check_rules(mended).empty()) << findings.front().cure;
  }
  Job product = job("tp=5:tensor(S,S,S,R)");
  product.cluster = cluster_of(8);  // 4 is nearer to 5, and would leave devices idle
  for (const Finding& finding : check_rules(product)) EXPECT_EQ(finding.cure, "tp=8");
}

TEST(RulesTest, CutsThatDivideNothingAreNamed) {
  expect(job("x=8:tensor(S,S,S,R,state)"),
         {"no-effect", Severity::error, "axis x",
          "no tensor of the model has what this axis cuts: every device holds and computes all of "
          "it",
          "another cut, or other indices"});
  EXPECT_EQ(only_finding(job("tp=8:tensor(S,S,S,R)", bare_model(1000, 4))).cure,
            "a model with shapes, or tp=8 with a batch cut");
}

TEST(RulesTest, BareCountsHaveStagesIfTheyHaveUnits) {
  expect(job("pp=4:layer(S,S,S,S)", bare_model(1000, 1)),
         {"meaning", Severity::error, "axis pp",
          "a bare count of parameters is one unit, which stages cannot divide",
          "params=1000,units=4 or more units, or a model with shapes"});
  EXPECT_TRUE(check_rules(job("pp=4:layer(S,S,S,S)", bare_model(1000, 4))).empty());
}

TEST(RulesTest, ExpertsDivideByTheirAxes) {
  expect(job("ep=3:batch(R,S,R,R);experts:expert(S,S,S,R)", expert_model()),
         {"divisibility", Severity::error, "axis ep", "16 experts do not divide by 3 (experts)",
          "ep=2"});
}

TEST(RulesTest, CutsOfTheResidualStreamDivideIt) {
  expect(job("x=3:tensor(S,S,S,R,hidden)"),
         {"divisibility", Severity::error, "axis x",
          "64 columns of the residual stream do not divide by 3 (embed)", "x=2"});
}

TEST(RulesTest, TokensDivideByChunksAndAxes) {
  Job ring = job("cp=8:sequence(R,S,R,S)");
  ring.batch.sequence = 120;
  EXPECT_TRUE(check_rules(ring).empty()) << "120 = 8 x 15";
  ring.attention[0].sequence_chunks = 2;
  expect(ring, {"divisibility", Severity::error, "axis cp",
                "120 tokens of a sample do not divide by 16", "--seq 128 or 112"});
}

TEST(RulesTest, TokensOfTheResidualStreamDivideToo) {
  Job both = job("cp=2:sequence(R,S,R,S) tp=8:tensor(S,S,S,S*)");
  both.batch.sequence = 24;  // 24 / 2 / 8
  expect(both, {"divisibility", Severity::error, "axis tp",
                "24 tokens of a sample do not divide by 16", "--seq 32 or 16"});
}

TEST(RulesTest, SamplesAreNoLongerThanLearnedPositions) {
  Job long_samples = job("dp=8:batch(R,R,R,R)");
  const Dim rows{Index::position, 66, 66};
  long_samples.model.kinds[0].parameters.push_back(
      parameter("positions", {rows, {Index::hidden, 64, 64}}, bit_of(TensorClass::embedding)));
  expect(long_samples, {"positions", Severity::error, "model",
                        "samples of 128 tokens, and learned positions for 66", "--seq 66"});
  long_samples.model.figures.max_sequence = 64;  // of 66 rows, two are for padding
  EXPECT_EQ(only_finding(long_samples).cure, "--seq 64");
  long_samples.batch.sequence = 64;
  EXPECT_TRUE(check_rules(long_samples).empty());
}

TEST(RulesTest, ExchangedHeadsDivide) {
  Job heads = job("cp=16:sequence(R,S,R,S)");
  heads.attention[0].cuts_heads = true;
  expect(heads,
         {"divisibility", Severity::error, "axis cp", "8 heads do not divide by 16 (q)", "cp=8"});
}

TEST(RulesTest, SamplesDivideByMicroBatchAndAxes) {
  Job odd = job("dp=8:batch(R,R,R,R)");
  odd.batch = {.sequence = 128, .global = 100, .micro = 2};
  expect(odd, {"divisibility", Severity::error, "axis dp",
               "100 samples of a step, micro-batches of 2, do not divide by 16",
               "--global-batch 112 or 96"});
}

TEST(RulesTest, BlocksDivideByStagesUnlessSharesAreGiven) {
  expect(job("pp=5:layer(S,S,S,S)"), {"divisibility", Severity::error, "axis pp",
                                      "12 blocks do not divide by 5 stages", "pp=5[3,3,2,2,2]"});
  EXPECT_TRUE(check_rules(job("pp=5[3,3,2,2,2]:layer(S,S,S,S)")).empty());
  expect(job("pp=5[3,3,3,3,3]:layer(S,S,S,S)"),
         {"shares", Severity::error, "axis pp",
          "5 shares place 15 blocks; there are 12 blocks and 5 stages", "pp=5[3,3,2,2,2]"});
  expect(job("pp=16:layer(S,S,S,S)"),
         {"divisibility", Severity::error, "axis pp", "there are only 12 blocks and 16 stages",
          "at most 12 stages"});
  // A pipeline of 2^31 stages is told so, in no more time than any other.
  const Finding absurd = check_rules(job("pp=2147483648[6,6]:layer(S,S,S,S)")).at(0);
  EXPECT_EQ(absurd.cure, "at most 12 stages");
  Job weighed = job("pp=5:layer(S,S,S,S)");
  weighed.profile.stage_cut = StageCut::weighed;
  EXPECT_TRUE(check_rules(weighed).empty()) << "the engine cuts unevenly by its own rule";
}

TEST(RulesTest, VirtualStagesCount) {
  Job loops = job("pp=4:layer(S,S,S,S)");
  loops.schedule = {
      .name = "loops", .hosting = Hosting::loop, .order = Order::interleaved, .chunks = 2};
  const Finding finding = only_finding(loops);
  EXPECT_EQ(finding.message, "12 blocks do not divide by 8 stages");
  EXPECT_EQ(finding.cure, "pp=4[2,2,2,2,1,1,1,1]");
}

TEST(RulesTest, SharesOfOtherCuts) {
  expect(job("dp=3[1,1]:batch(R,R,R,R)"),
         {"shares", Severity::error, "axis dp", "2 shares for a degree of 3",
          "one share per coordinate"});
  expect(job("dp=2[1,0]:batch(R,R,R,R)"),
         {"shares", Severity::error, "axis dp", "a share of 0 leaves devices without work",
          "shares above 0"});
  // 8 heads as 5 + 3; 2 kv heads as 8 parts, each on four of them; 1000 and 96 divide by 8.
  EXPECT_TRUE(check_rules(job("tp=2[5,3]:tensor(S,S,S,R)")).empty());
}

// --- storage, update, optimizer

TEST(RulesTest, ShardsOfRowsShouldNotBeEmpty) {
  Job rows = job("dp=32:batch(S*,S,S,R)");
  rows.profile.grain = ShardGrain::row;
  rows.batch.global = 32;
  expect(rows, {"compute-before-storage", Severity::advice, "k",
                "16 rows for 32 shards: the other devices hold padding", "fewer shards along dp"});
}

TEST(RulesTest, TheUpdateRunsWhereParametersAreKept) {
  expect(job("dp=8:batch(S*,R,S,R)"),
         {"update-where-owned", Severity::warning, "axis dp",
          "every device updates all parameters and keeps 1/8 of them", "dp=8:batch(S*,S,S,R)"});
  expect(job("dp=8:batch(R,R,S,R)"),
         {"update-where-owned", Severity::warning, "axis dp",
          "gradients are scattered to owners, then gathered for an update that has none",
          "dp=8:batch(R,S,S,R)"});
}

TEST(RulesTest, MatrixOptimizersSeeWholeMatrices) {
  Job muon = job("dp=8:batch(R,S,R,R)");
  muon.optimizer = {.name = "matrices", .region = UpdateRegion::matrix};
  expect(muon, {"whole-regions", Severity::error, "axis dp",
                "matrices updates whole matrices; along this axis a device owns parts of them",
                "dp=8:batch(R,S*,R,R)"});
  muon.placement = place("dp=8:batch(R,S*,R,R)");
  EXPECT_TRUE(check_rules(muon).empty());
  muon.placement = place("pp=4:layer(S,S,S,S) dp=2:batch(R,R,R,R)");
  EXPECT_TRUE(check_rules(muon).empty()) << "layers are whole";
  muon.optimizer.region = UpdateRegion::row_and_column;
  muon.placement = place("tp=8:tensor(S,S,S,R)");
  EXPECT_EQ(only_finding(muon).severity, Severity::warning);
}

TEST(RulesTest, BlockOptimizersNeedPaddingToBlocks) {
  Job blocks = job("dp=8:batch(R,S,R,R)");
  blocks.optimizer = {.name = "blocks", .region = UpdateRegion::block, .block = 256};
  EXPECT_EQ(only_finding(blocks).rule, "whole-regions");
  blocks.profile.pad_elements = 512;
  EXPECT_TRUE(check_rules(blocks).empty());
  // The norm has 64 elements, the smallest tensor: 8 on each device.
  blocks.profile.pad_elements = 1;
  blocks.optimizer.block = 8;
  EXPECT_TRUE(check_rules(blocks).empty()) << "whole blocks as they are";
  blocks.optimizer.block = 16;
  EXPECT_EQ(only_finding(blocks).rule, "whole-regions");
}

TEST(RulesTest, MaterializedGradientsExcludeWhatNeedsThemAll) {
  Job used = job("dp=8:batch(R,R,M,R)");
  used.batch.global = 8;
  EXPECT_TRUE(check_rules(used).empty());
  used.batch.global = 16;
  expect(used, {"materialized-gradients", Severity::error, "axis dp",
                "gradients are used up inside backward, but the step adds up several micro-batches",
                "dp=8:batch(R,R,R,R)"});
  used.batch.global = 8;
  used.clips_by_global_norm = true;
  EXPECT_EQ(only_finding(used).message,
            "gradients are used up inside backward, but clipping needs their norm over all units");
  used.clips_by_global_norm = false;
  used.scales_loss_dynamically = true;
  EXPECT_EQ(only_finding(used).message,
            "gradients are used up inside backward, but loss scaling may have to drop the step");
}

TEST(RulesTest, MaterializedParametersNeedASource) {
  Job rebuilt = job("dp=8:batch(M,S,S,R)");
  EXPECT_TRUE(check_rules(rebuilt).empty());
  rebuilt.precision.master.reset();
  expect(rebuilt,
         {"materialized-parameters-source", Severity::error, "axis dp",
          "parameters are rebuilt from the master copy, and none rests in the optimizer state",
          "dp=8:batch(R,S,S,R)"});
}

TEST(RulesTest, RecomputationIsSaidOnce) {
  Job twice = job("dp=8:batch(R,R,R,M)");
  EXPECT_TRUE(check_rules(twice).empty());
  twice.recompute.kind = Recompute::Kind::full;
  EXPECT_TRUE(check_rules(twice).empty());
  twice.recompute.kind = Recompute::Kind::selective;
  EXPECT_EQ(only_finding(twice).rule, "recompute");
}

TEST(RulesTest, ClassesHaveNoRecomputationOfTheirOwn) {
  const char* cure = "M on the axis, or --recompute every=N or first=N";
  const char* message = "activations are made again as the axis says: M changes nothing of a class";
  expect(job("dp=8:batch(R,R,R,R);blocks 0-3:batch(R,R,R,M)"),
         {"no-effect", Severity::warning, "axis dp, class blocks 0-3", message, cure});
  expect(job("dp=8:batch(R,R,R,R);attention:batch(R,R,R,M)"),
         {"no-effect", Severity::warning, "axis dp, class attention", message, cure});
  EXPECT_TRUE(check_rules(job("dp=8:batch(R,R,R,M);attention:batch(R,R,R,M)")).empty());
}

// --- schedule, effects, engine

// A round of 4 samples does not divide by 4 + 3 + 2 + 1; of 5 each it is 20, and a step is whole
// rounds of these.
TEST(RulesTest, ARoundAndItsStepAreCuredTogether) {
  Job uneven = job("dp=4[4,3,2,1]:batch(R,S,R,R)");
  uneven.batch.global = 10;
  expect(uneven, {"divisibility", Severity::error, "placement",
                  "4 samples of a round do not divide by shares of 10",
                  "--micro-batch 5 with --global-batch 20"});
  uneven.batch.global = 50;
  EXPECT_EQ(only_finding(uneven).cure, "--micro-batch 5 with --global-batch 60 or 40");
  uneven.batch.global = 40;
  EXPECT_EQ(only_finding(uneven).cure, "--micro-batch 5");
}

TEST(RulesTest, FrozenParametersHaveNoMasterToBeRebuiltFrom) {
  Job rebuilt = job("dp=8:batch(M,R,R,R)");
  rebuilt.precision.master = Dtype::fp32;
  EXPECT_TRUE(check_rules(rebuilt).empty());
  rebuilt.model.kinds[0].parameters[0].trainable = false;
  expect(rebuilt, {"materialized-parameters-source", Severity::error, "axis dp",
                   "parameters are rebuilt from the master copy, and frozen ones have none",
                   "dp=8:batch(R,R,R,R)"});
}

TEST(RulesTest, SchedulesNeedTheirMicroBatches) {
  Job loops = job("pp=4:layer(S,S,S,S) dp=2:batch(R,R,R,R)");
  loops.schedule = {
      .name = "loops", .hosting = Hosting::loop, .order = Order::interleaved, .chunks = 3};
  loops.batch.global = 20;  // 10 micro-batches; 12 is the next multiple of 4
  expect(loops, {"schedule", Severity::error, "schedule loops",
                 "loops needs micro-batches to be a multiple of the degree 4; 10 is not",
                 "--global-batch 24"});
}

TEST(RulesTest, OptionsAndClassesWithoutEffectAreNamed) {
  expect(job("dp=8:batch(R,S,R,R)+keep"), {"no-effect", Severity::warning, "axis dp",
                                           "keep has nothing to act on: no parameters are gathered",
                                           "dp=8:batch(R,S,R,R), without it"});
  expect(job("ep=8:batch(R,S,R,R);experts:expert(S,S,S,R)"),
         {"no-effect", Severity::warning, "axis ep, class experts",
          "the model has no tensors of this class", "the axis without this class"});
  expect(job("dp=8:batch(R,S,R,R);blocks 8-12:batch(S*,S,S,R)"),
         {"no-effect", Severity::warning, "axis dp, class blocks 8-12",
          "the last block of the model is 11", "a range up to 11"});
}

TEST(RulesTest, ExpertsCutOnBothSidesAreNotDerived) {
  Job one = job("tp=4:tensor(S,S,S,R)", expert_model());
  IndexSet& indices = one.placement.axes[0].how.tensor_indices;
  indices = bit_of(Index::hidden);
  EXPECT_EQ(std::ranges::count(check_rules(one), "expert-columns", &Finding::rule), 0);
  indices |= bit_of(Index::ffn);
  EXPECT_EQ(std::ranges::count(check_rules(one), "expert-columns", &Finding::rule), 1);
}

TEST(RulesTest, EngineRefusesUnderItsConditions) {
  Job refused = job("pp=4:layer(S,S,S,S) dp=2:batch(S*,S,S,R)");
  Refusal rule{.what = "pipelines take no gathered parameters", .cure = "dp=2:batch(R,S,R,R)"};
  rule.when = {{.cuts = {Cut::layer}},
               {.cuts = {Cut::batch}, .states = {{State::parameters, {Mode::sharded_gather}}}}};
  refused.profile.name = "engine";
  refused.profile.refusals = {rule};
  expect(refused, {"engine", Severity::error, "engine engine",
                   "pipelines take no gathered parameters", "dp=2:batch(R,S,R,R)"});
  refused.placement = place("pp=4:layer(S,S,S,S) dp=2:batch(R,S,R,R)");
  EXPECT_TRUE(check_rules(refused).empty());
}

TEST(RulesTest, BlockRangesAreJudgedBlockByBlock) {
  // Blocks 0-3 see no tensor cut, so that only later blocks are judged; their heads do not divide.
  const std::vector<Finding> findings =
      check_rules(job("tp=5:tensor(S,S,S,R);blocks 0-11:tensor(S,S,S,R,vocab)"));
  EXPECT_TRUE(findings.empty()) << "1000 divides by 5, and no block is cut";
  EXPECT_FALSE(check_rules(job("tp=5:tensor(S,S,S,R);blocks 0-10:tensor(S,S,S,R,vocab)")).empty());
}

}  // namespace
}  // namespace placet
