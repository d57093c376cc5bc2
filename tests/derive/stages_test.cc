#include "derive/stages.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "derive/traffic.h"
#include "units/error.h"

namespace placet {
namespace {

using Counts = std::vector<std::int64_t>;

TEST(Stages, EvenCutsMakeTheFirstStagesLarger) {
  const Job job =
      plain_job(build_model(small_architecture(10)), {axis("pp", 4, Cut::layer, kStages)}, 4, 4);
  EXPECT_EQ(blocks_per_stage(job, 4), (Counts{3, 3, 2, 2}));
}

TEST(Stages, SharesAreTakenAsGiven) {
  AxisPlacement pp = axis("pp", 3, Cut::layer, kStages);
  pp.shares = {5, 1, 4};
  const Job job = plain_job(build_model(small_architecture(10)), {pp}, 4, 4);
  EXPECT_EQ(blocks_per_stage(job, 3), (Counts{5, 1, 4}));
}

// Five stages of four blocks, the second of them empty. Backward ends on the stage of the first
// unit that is trained, whatever stands before it.
TEST(Stages, BackwardReachesTheFirstThatTrainsSomething) {
  AxisPlacement pp = axis("pp", 5, Cut::layer, kStages);
  pp.shares = {1, 0, 1, 1, 1};
  Job job = plain_job(build_model(small_architecture(4)), {pp}, 4, 4);
  const auto train = [&](std::initializer_list<UnitRole> roles) {
    for (UnitKind& kind : job.model.kinds) {
      const bool trained = std::ranges::find(roles, kind.role) != roles.end();
      for (Parameter& parameter : kind.parameters) parameter.trainable = trained;
    }
    return stages_of(job).back().backward.end;
  };
  EXPECT_EQ(train({UnitRole::embedding, UnitRole::block, UnitRole::head}), 0);
  EXPECT_EQ(train({UnitRole::head}), 4);
  EXPECT_EQ(train({}), 5);
  train({UnitRole::head});
  // The second block: on the third stage.
  UnitKind own = job.model.kinds[static_cast<std::size_t>(job.model.units[2].kind)];
  for (Parameter& parameter : own.parameters) parameter.trainable = true;
  job.model.units[2].kind = static_cast<int>(job.model.kinds.size());
  job.model.kinds.push_back(own);
  EXPECT_EQ(stages_of(job).back().backward.end, 2);
}

// A few stages too many are laid out for a finding to judge them; no memory holds 2^62.
TEST(Stages, AbsurdlyManyStagesAreRefused) {
  const auto stages = [](std::int64_t degree) {
    return stages_of(plain_job(build_model(small_architecture(10)),
                               {axis("pp", degree, Cut::layer, kStages)}, 4, 4))
        .size();
  };
  EXPECT_EQ(stages(13), 13U);
  EXPECT_EQ(stages(1034), 1034U);
  EXPECT_THROW(stages(1035), InputError);
  try {
    stages(std::int64_t{1} << 62);
    FAIL() << "no memory holds so many stages";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "placement: 'pp=4611686018427387904' makes 4611686018427387904 stages of a model "
                 "with 10 blocks; expected at most 10 stages");
  }
}

// 32 blocks, embedding and head as one each: 34 over 4 is 9, 9, 8, 8; less the two ends 8, 9, 8, 7.
TEST(Stages, WeighedCutsCountEmbeddingAndHeadAsBlocks) {
  Job job =
      plain_job(build_model(small_architecture(32)), {axis("pp", 4, Cut::layer, kStages)}, 4, 4);
  job.profile.stage_cut = StageCut::weighed;
  job.profile.embedding_weight = 1;
  job.profile.head_weight = 1;
  EXPECT_EQ(blocks_per_stage(job, 4), (Counts{8, 9, 8, 7}));
}

// A block's matrices: q 64, k 32, v 32, o 64, gate, up, down 3 x 128 = 576 elements; the head's
// 80. 4 blocks: total 2384, half 1192. Running cost 576, 1152, 1728: the third block passes half.
TEST(Stages, CutsByCostWeighTheOutputMatrix) {
  Job job =
      plain_job(build_model(small_architecture(4)), {axis("pp", 2, Cut::layer, kStages)}, 4, 4);
  job.profile.stage_cut = StageCut::by_cost;
  EXPECT_EQ(blocks_per_stage(job, 2), (Counts{3, 1}));
}

// A loop of 2 chunks on 2 devices: device 0 hosts virtual stages 0 and 2, device 1 hosts 1 and 3.
TEST(Stages, LoopedChunksTakeTurns) {
  Job job =
      plain_job(build_model(small_architecture(4)), {axis("pp", 2, Cut::layer, kStages)}, 4, 4);
  job.schedule = {.hosting = Hosting::loop, .order = Order::interleaved, .chunks = 2};
  const std::vector<Stage> stages = stages_of(job);
  ASSERT_EQ(stages.size(), 2U);
  // Units: 0 embedding, 1-4 blocks, 5 head.
  EXPECT_EQ(stages[0].chunks, (std::vector<std::vector<int>>{{0, 1}, {3}}));
  EXPECT_EQ(stages[1].chunks, (std::vector<std::vector<int>>{{2}, {4, 5}}));
  EXPECT_TRUE(stages[0].hosts_first);
  EXPECT_TRUE(stages[1].hosts_last);
}

// Of 8 micro-batches each direction has 4: a device hosts one block of each, and gathers its 2,336
// entries 4 times.
TEST(Stages, EachDirectionGathersForItsHalfOfTheMicroBatches) {
  const Job job = written_job(build_model(wide_architecture(4)), "pp=4:dualpipe dp=2:zero3", 8, 16);
  const auto in_forward = [](const CommunicationTerm& t) {
    return t.state == State::parameters && t.phase == Phase::forward;
  };
  EXPECT_EQ(traffic(job, in_forward, 1),
            Lines{"forward all_gather bf16 dp 4672x8 gathered parameters"});
}

}  // namespace
}  // namespace placet
