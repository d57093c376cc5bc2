#include "profile/conditions.h"

#include <gtest/gtest.h>

namespace placet {
namespace {

AxisPlacement axis_of(const char* name, std::int64_t degree, Cut cut, Modes modes) {
  AxisPlacement out;
  out.axis = AxisName(name);
  out.degree = degree;
  out.how.cut = cut;
  out.how.modes = modes;
  return out;
}

// dp=4 with a divided optimizer beside tp=2, 24 samples in micro-batches of 2.
Job small_job() {
  Job job;
  job.placement.axes = {axis_of("dp", 4, Cut::batch, {.optimizer = Mode::sharded}),
                        axis_of("tp", 2, Cut::tensor, {})};
  job.batch = {.sequence = 128, .global = 24, .micro = 2};
  return job;
}

// 24 / (2 x 4) = 3; 25 samples do not divide, and are still 3.
TEST(Conditions, MicroBatchesPerStep) {
  Job job = small_job();
  EXPECT_EQ(micro_batches_per_step(job), 3);
  job.batch.global = 25;
  EXPECT_EQ(micro_batches_per_step(job), 3);
  job.batch.global = 1;
  EXPECT_EQ(micro_batches_per_step(job), 1);
}

TEST(Conditions, SymbolsThatTheJobFixes) {
  const Job job = small_job();
  EXPECT_EQ(value_in_job(Symbol::devices, job), 8);
  EXPECT_EQ(value_in_job(Symbol::batch_degree, job), 4);
  EXPECT_EQ(value_in_job(Symbol::tensor_degree, job), 2);
  EXPECT_EQ(value_in_job(Symbol::global_batch, job), 24);
  EXPECT_EQ(value_in_job(Symbol::whole_sequence, job), 128);
  EXPECT_FALSE(value_in_job(Symbol::blocks, job).has_value());  // of a stage
}

TEST(Conditions, CutsWithADegree) {
  const Job job = small_job();
  EXPECT_TRUE(holds({.cuts = {Cut::tensor}}, job, {}));
  EXPECT_FALSE(holds({.cuts = {Cut::tensor}, .degree_above = 2}, job, {}));
  EXPECT_FALSE(holds({.cuts = {Cut::sequence}}, job, {}));
  EXPECT_TRUE(holds({.cuts = {Cut::sequence}, .absent = true}, job, {}));
}

TEST(Conditions, ModesAlongACut) {
  const Job job = small_job();
  const StateInModes divided{.state = State::optimizer, .modes = {Mode::sharded}};
  EXPECT_TRUE(holds({.cuts = {Cut::batch}, .states = {divided}}, job, {}));
  const StateInModes whole{.state = State::optimizer, .modes = {Mode::replicated}};
  EXPECT_FALSE(holds({.cuts = {Cut::batch}, .states = {whole}}, job, {}));
}

TEST(Conditions, StagesAndAccumulation) {
  const Job job = small_job();
  EXPECT_TRUE(
      holds({.first_stage = true, .accumulates = true}, job, {.first = true, .last = false}));
  EXPECT_FALSE(holds({.last_stage = true}, job, {.first = true, .last = false}));
}

// Two stages of three and one block; one block in two recomputed; optimizer state on NVMe.
TEST(Conditions, UnevenStagesEveryOtherBlockAndNvme) {
  Job job = small_job();
  EXPECT_TRUE(holds({.recomputes_every = false, .uneven_stages = false}, job, {}));
  job.recompute = {.kind = Recompute::Kind::every, .count = 2};
  EXPECT_TRUE(holds({.recomputes_every = true}, job, {}));
  job.placement.axes.push_back(axis_of("pp", 2, Cut::layer, {}));
  job.placement.axes.back().shares = {2, 2};
  EXPECT_FALSE(holds({.uneven_stages = true}, job, {}));
  job.placement.axes.back().shares = {3, 1};
  EXPECT_TRUE(holds({.uneven_stages = true}, job, {}));
  EXPECT_FALSE(holds({.offloads_to_nvme = true}, job, {}));
  auto& moved = job.placement.axes.front().how.offload[static_cast<std::size_t>(State::optimizer)];
  moved = Offload{.medium = Medium::host};
  EXPECT_FALSE(holds({.offloads_to_nvme = true}, job, {}));
  moved->medium = Medium::nvme;
  EXPECT_TRUE(holds({.offloads_to_nvme = true}, job, {}));
}

// All parts of a condition hold, and all conditions of a list; none holds always.
TEST(Conditions, AddUp) {
  const Job job = small_job();
  EXPECT_TRUE(all_hold({}, job, {}));
  EXPECT_TRUE(all_hold({{.cuts = {Cut::tensor}}, {.cuts = {Cut::batch}}}, job, {}));
  EXPECT_FALSE(all_hold({{.cuts = {Cut::tensor}}, {.cuts = {Cut::layer}}}, job, {}));
}

// 24 samples are no multiple of 4 replicas x 2 samples x 5; they are above 20.
TEST(Conditions, Comparisons) {
  const Job job = small_job();
  const auto compared = [&](Comparison::Relation relation, std::int64_t number) {
    const Comparison comparison{.relation = relation,
                                .left = {.symbols = {Symbol::global_batch}},
                                .right = {.factor = Rational(number)}};
    return holds({.compares = comparison}, job, {});
  };
  EXPECT_TRUE(compared(Comparison::Relation::not_multiple, 40));
  EXPECT_FALSE(compared(Comparison::Relation::not_multiple, 8));
  EXPECT_TRUE(compared(Comparison::Relation::above, 20));
  EXPECT_FALSE(compared(Comparison::Relation::above, 24));
}

// What a condition hangs on; degrees and the model are chosen before all of it.
TEST(Conditions, AskForParts) {
  const auto compared = [](Symbol left) {
    return When{.compares = Comparison{.left = {.symbols = {left}}, .right = {}}};
  };
  EXPECT_EQ(parts_asked({}), 0);
  EXPECT_EQ(parts_asked({{.cuts = {Cut::layer}}, {.has_experts = true}}), 0);
  EXPECT_EQ(parts_asked({compared(Symbol::tensor_degree)}), 0);
  EXPECT_EQ(parts_asked({compared(Symbol::chunks)}), bit_of(JobPart::stages));
  EXPECT_EQ(parts_asked({compared(Symbol::micro_batches)}), bit_of(JobPart::micro_batches));
  EXPECT_EQ(parts_asked({{.accumulates = true}}), bit_of(JobPart::micro_batches));
  EXPECT_EQ(parts_asked({{.schedule_beyond = {"1f1b"}}}), bit_of(JobPart::stages));
  EXPECT_EQ(parts_asked({{.states_stages = false}}), bit_of(JobPart::stages));
  EXPECT_EQ(parts_asked({{.uneven_stages = true}}), bit_of(JobPart::stages));
  EXPECT_EQ(parts_asked({{.recomputes_every = true}}), bit_of(JobPart::recomputation));
  EXPECT_EQ(parts_asked({{.offloads_to_nvme = true}}), bit_of(JobPart::states));
  EXPECT_EQ(parts_asked({{.offloads = State::optimizer}}), bit_of(JobPart::states));
  const StateInModes whole{.state = State::gradients, .modes = {Mode::replicated}};
  EXPECT_EQ(parts_asked({{.cuts = {Cut::tensor}, .states = {whole}}}), 0);
  EXPECT_EQ(parts_asked({{.cuts = {Cut::sequence}, .states = {whole}}}), bit_of(JobPart::states));
  EXPECT_EQ(parts_asked({{.cuts = {Cut::expert}, .states = {whole}}}), bit_of(JobPart::states));
  EXPECT_EQ(parts_asked({{.cuts = {Cut::expert}}}), 0);
  EXPECT_EQ(parts_asked({{.states = {whole}}}), bit_of(JobPart::states));
  EXPECT_EQ(parts_asked({{.divides_checkpoints = true}}), bit_of(JobPart::states));
  EXPECT_EQ(parts_asked({compared(Symbol::owned)}), kAllParts);
  EXPECT_EQ(parts_asked({{.exchanges_heads = true}}), bit_of(JobPart::exchange));
  EXPECT_EQ(parts_asked({{.cuts = {Cut::batch}}, {.recomputes_some = true}}),
            bit_of(JobPart::states) | bit_of(JobPart::recomputation));
  EXPECT_EQ(parts_asked({{.exchange_beyond = {"ring"}}}), bit_of(JobPart::exchange));
  EXPECT_EQ(parts_asked({{.recompute_beyond = {RecomputeKind::full}}}),
            bit_of(JobPart::recomputation));
  EXPECT_EQ(parts_asked({{.keeps = {Keep::step}}}), bit_of(JobPart::states));
  EXPECT_EQ(parts_asked({{.order = CutsInOrder{}}}), bit_of(JobPart::states));
}

bool holds_in(const When& when, const Job& job) { return holds(when, job, {}); }

// An axis of one device does nothing; what is replicated is not gathered, and not kept.
TEST(Conditions, HowLongParametersAreKept) {
  Job job = small_job();
  const When step{.keeps = {Keep::step}};
  EXPECT_FALSE(holds_in(step, job));
  job.placement.axes[0].how.modes.parameters = Mode::sharded_gather;
  job.placement.axes[0].how.keep = Keep::step;
  EXPECT_TRUE(holds_in(step, job));
  EXPECT_FALSE(holds_in({.absent = true, .keeps = {Keep::step}}, job));
  EXPECT_FALSE(holds_in({.keeps = {Keep::none, Keep::backward}}, job));
}

TEST(Conditions, OrderOfAxes) {
  const Job job = small_job();  // dp outside of tp
  EXPECT_TRUE(holds_in({.order = CutsInOrder{Cut::batch, Cut::tensor}}, job));
  EXPECT_FALSE(holds_in({.order = CutsInOrder{Cut::tensor, Cut::batch}}, job));
}

// Attention's core alone is a list of modules too; a policy is none.
TEST(Conditions, KindsOfRecomputation) {
  Job job = small_job();
  const When beyond{.recompute_beyond = {RecomputeKind::none, RecomputeKind::core}};
  EXPECT_FALSE(holds_in(beyond, job));
  job.recompute.kind = Recompute::Kind::selective;
  job.recompute.modules = {Module::core_attention};
  EXPECT_FALSE(holds_in(beyond, job));
  job.recompute.modules = {Module::norm};
  EXPECT_TRUE(holds_in(beyond, job));
  EXPECT_FALSE(holds_in({.recompute_beyond = {RecomputeKind::modules}}, job));
  job.recompute.policy = "op";
  EXPECT_TRUE(holds_in({.recompute_beyond = {RecomputeKind::modules}}, job));
}

}  // namespace
}  // namespace placet
