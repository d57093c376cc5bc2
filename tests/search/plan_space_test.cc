#include "search/plan_space.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "catalog/choices_catalog.h"
#include "catalog/job.h"
#include "catalog/strategy_catalog.h"
#include "placement/grammar.h"

namespace placet {
namespace {

class PlanSpaceTest : public ::testing::Test {
 protected:
  PlanSpaceTest()
      : catalog_(find_catalog()),
        strategies_(load_strategies(catalog_)),
        choices_(load_choices(catalog_, strategies_, "all")) {}

  Job job(const std::string& cluster, std::int64_t global) const {
    return load_unplaced_job(catalog_, {.model = "llama-3.2-1b",  // 16 blocks, 32 heads
                                        .cluster = cluster,
                                        .sequence = 2048,
                                        .global_batch = global});
  }

  Catalog catalog_;
  StrategyCatalog strategies_;
  Choices choices_;
};

TEST(Divisors, AreAllOfThemRising) {
  EXPECT_EQ(divisors_of(12), (std::vector<std::int64_t>{1, 2, 3, 4, 6, 12}));
  EXPECT_EQ(divisors_of(16), (std::vector<std::int64_t>{1, 2, 4, 8, 16}));
  EXPECT_EQ(divisors_of(1), (std::vector<std::int64_t>{1}));
}

TEST_F(PlanSpaceTest, MeshesMultiplyToTheDevices) {
  const Job base = job("12xh100-sxm", 12);
  const std::vector<Degrees> meshes = PlanSpace(base, choices_, {}).meshes();
  for (const Degrees& mesh : meshes) {
    std::int64_t product = 1;
    for (const std::int32_t d : mesh) product *= d;
    EXPECT_EQ(product, 12);
    EXPECT_EQ(mesh[at(AxisRole::expert)], 1);  // a dense model
  }
  // 12 = 2 x 2 x 3 shared among five roles: C(6,4) x 5 = 75; without those that have replicas of
  // single devices: batch 1 and replica > 1. With batch 1: 12 among four roles, C(5,3) x 4 = 40, of
  // which replica 1: 12 among three roles, C(4,2) x 3 = 18. So 75 - 22.
  EXPECT_EQ(meshes.size(), 53U);
}

TEST_F(PlanSpaceTest, FixedAxesStayFixed) {
  const Job base = job("h100-sxm:1", 8);
  PlanConstraints constraints;
  constraints.degrees[AxisRole::tensor] = 4;
  for (const Degrees& mesh : PlanSpace(base, choices_, constraints).meshes()) {
    EXPECT_EQ(mesh[at(AxisRole::tensor)], 4);
  }
}

// A dense model has nothing that an expert axis cuts, also where its degree is settled.
TEST_F(PlanSpaceTest, AxesOfNoUseAreInNoMesh) {
  const Job base = job("h100-sxm:1", 8);
  PlanConstraints constraints;
  constraints.degrees[AxisRole::expert] = 4;
  const PlanSpace space(base, choices_, constraints);
  EXPECT_FALSE(space.has_use(AxisRole::expert));
  EXPECT_TRUE(space.has_use(AxisRole::tensor));
  EXPECT_TRUE(space.meshes().empty());
}

TEST_F(PlanSpaceTest, PlansPrintAndParseBack) {
  const Job base = job("h100-sxm:1", 8);
  const PlanSpace space(base, choices_, {});
  Plan plan{.micro_batch = 2, .state = 1, .tensor = 1, .degrees = {2, 1, 2, 1, 1, 2}};
  Job planned = base;
  space.apply(plan, planned);
  const std::string text = print_placement(planned.placement, strategies_.vocabulary);
  EXPECT_EQ(text, "pp=2:1f1b dp=2:zero1 tp=2:tp+sp");
  EXPECT_EQ(parse_placement(text, strategies_.vocabulary), planned.placement);
}

// With no other axis to say it of, the expert axis says it of the experts too.
TEST_F(PlanSpaceTest, ExpertsAreMovedOffTheDeviceToo) {
  const Job base = load_unplaced_job(
      catalog_,
      {.model = "olmoe-1b-7b", .cluster = "h100-sxm:1", .sequence = 2048, .global_batch = 8});
  const PlanSpace space(base, choices_, {});
  Job planned = base;
  space.apply({.offload = 2, .state = 1, .degrees = {1, 1, 1, 1, 8, 1}}, planned);
  const std::string text = print_placement(planned.placement, strategies_.vocabulary);
  EXPECT_EQ(text, "ep=8:zero1+offload(optimizer);experts:ep+offload(optimizer)");
  EXPECT_EQ(parse_placement(text, strategies_.vocabulary), planned.placement);
}

// One placement: other blocks per stage, axes in another order, another exchange of attention,
// another recomputation, other chunks of an interleaved schedule, states moved off the device or
// shared by a part of the replicas. Another one: another kind of schedule, micro-batch or mesh.
TEST_F(PlanSpaceTest, VariantsArePlansOfOnePlacement) {
  const Job base = job("h100-sxm:1", 8);
  const PlanSpace space(base, choices_, {});
  const Plan plan{.recompute = 1, .degrees = {2, 1, 2, 2, 1, 1}};
  Plan variant = plan;
  variant.recompute = 5;
  variant.count = 2;
  variant.split = 1;
  variant.order = 1;
  variant.attention = 1;
  EXPECT_EQ(space.placement_of(variant), space.placement_of(plan));
  const auto scheduled_as = [&](const char* word) {
    Plan out = plan;
    const auto& words = choices_.roles[at(AxisRole::layer)].words;
    out.schedule = static_cast<std::int16_t>(std::ranges::find(words, word) - words.begin());
    return space.placement_of(out);
  };
  EXPECT_EQ(scheduled_as("interleaved(2)"), scheduled_as("interleaved(8)"));
  EXPECT_NE(scheduled_as("interleaved(2)"), scheduled_as("1f1b"));
  EXPECT_NE(scheduled_as("dualpipe"), scheduled_as("dualpipe-v"));
  EXPECT_NE(scheduled_as("zb-h1"), scheduled_as("1f1b"));
  variant.offload = 1;
  EXPECT_EQ(space.placement_of(variant), space.placement_of(plan));
  const auto shared = [&](const char* state, std::int32_t replicas, std::int32_t batch) {
    const auto found = std::ranges::find(choices_.states, state, &StateWord::text);
    Plan out = plan;
    out.state = static_cast<std::int16_t>(found - choices_.states.begin());
    out.degrees = {1, replicas, batch, 1, 1, 1};
    return space.placement_of(out);
  };
  EXPECT_EQ(shared("ddp over zero1", 2, 2), shared("zero1", 1, 4));
  EXPECT_NE(shared("ddp over zero1", 2, 2), shared("ddp over zero3", 2, 2));
  EXPECT_NE(shared("zero1", 1, 2), shared("zero1", 1, 4));
  Plan scheduled = plan;
  scheduled.schedule = 1;
  EXPECT_NE(space.placement_of(scheduled), space.placement_of(plan));
  Plan larger = plan;
  larger.micro_batch = 2;
  EXPECT_NE(space.placement_of(larger), space.placement_of(plan));
  Plan moved = plan;
  moved.degrees = {2, 1, 4, 1, 1, 1};
  EXPECT_NE(space.placement_of(moved), space.placement_of(plan));
}

// 8 samples over 8 devices: with one sample each there is one micro-batch, over which both keep the
// gathered parameters. Over 4 devices there are two.
TEST_F(PlanSpaceTest, KeepingForAStepOfOneMicroBatchIsAVariant) {
  const Job base = job("h100-sxm:1", 8);
  const PlanSpace space(base, choices_, {});
  const auto state = [&](const char* text) {
    const auto found = std::ranges::find(choices_.states, text, &StateWord::text);
    return static_cast<std::int16_t>(found - choices_.states.begin());
  };
  Plan kept{.state = state("zero3+keep"), .degrees = {1, 1, 8, 1, 1, 1}};
  Plan kept_for_step = kept;
  kept_for_step.state = state("zero3+keep-step");
  Plan freed = kept;
  freed.state = state("zero3");
  EXPECT_EQ(space.placement_of(kept_for_step), space.placement_of(kept));
  EXPECT_NE(space.placement_of(freed), space.placement_of(kept));
  kept.degrees = kept_for_step.degrees = {1, 1, 4, 1, 1, 2};
  EXPECT_NE(space.placement_of(kept_for_step), space.placement_of(kept));
}

TEST_F(PlanSpaceTest, BlocksThatDoNotDivideAreDealtOut) {
  const Job base = job("h100-sxm:1", 8);
  const PlanSpace space(base, choices_, {});
  // 16 blocks on 3 stages: 5, 5, 6; with the head as a block: 17 are 5, 6, 6, less one at the end;
  // with the embedding too: 18 are 6, 6, 6, less one at each end.
  EXPECT_EQ(space.splits_of(3, 0), (std::vector<std::vector<std::int64_t>>{{5, 5, 6}, {5, 6, 5}}));
  // On 4 stages they divide: unsaid; 17 are 4, 4, 4, 5 less one: the same; 18: 4, 4, 5, 5 less two.
  EXPECT_EQ(space.splits_of(4, 0), (std::vector<std::vector<std::int64_t>>{{}, {3, 4, 5, 4}}));
}

// Three times as fast in products, and as fast in memory: 16 blocks are 4 and 12; 17 with the head
// are 4.25 and 12.75, 18 with the embedding 4.5 and 13.5, the half to the later stage.
TEST_F(PlanSpaceTest, BlocksAreDealtInProportionToTheDevices) {
  Job base = job("8xa100-80gb-sxm,8xh100-sxm", 8);
  DeviceRates& slow = base.cluster->groups[0].device.rates;
  DeviceRates& fast = base.cluster->groups[1].device.rates;
  slow.matmul.fill(teraflops_per_second(100));
  fast.matmul.fill(teraflops_per_second(300));
  slow.memory = fast.memory = gigabytes_per_second(1000);
  const PlanSpace space(base, choices_, {});
  EXPECT_EQ(space.standings(), (std::vector<GroupSet>{{0, 1}, {0}, {1}}));
  EXPECT_EQ(space.standings_of(2), (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(space.splits_of(2, 0), (std::vector<std::vector<std::int64_t>>{{}, {4, 12}, {3, 13}}));
  // A pipeline stands outermost, so that its stages have devices of one kind.
  Degrees mesh{1, 1, 1, 1, 1, 1};
  mesh[at(AxisRole::layer)] = 2;
  mesh[at(AxisRole::batch)] = 8;
  EXPECT_EQ(space.orders_of(mesh), (std::vector<std::int16_t>{0}));
}

TEST_F(PlanSpaceTest, MicroBatchesDivideWhatIsLeftOfTheBatch) {
  const Job base = job("h100-sxm:1", 24);
  const PlanSpace space(base, choices_, {});
  EXPECT_EQ(space.micro_batches_of({1, 1, 4, 1, 1, 2}), (std::vector<std::int64_t>{1, 2, 3, 6}));
  EXPECT_TRUE(space.micro_batches_of({1, 1, 16, 1, 1, 1}).empty());
}

}  // namespace
}  // namespace placet
