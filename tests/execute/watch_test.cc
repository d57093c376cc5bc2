// What the watch finds, and that it finds nothing where nothing is wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "catalog/job.h"
#include "execute/run.h"
#include "lower/catalogue_jobs.h"
#include "lower/lower.h"
#include "lower/small.h"
#include "program/fault.h"

namespace placet::testing {
namespace {

constexpr const char* kWatchedModel =
    R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 32, "intermediate_size": 48,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 16,
        "vocab_size": 40, "rms_norm_eps": 1e-5, "hidden_act": "silu",
        "tie_word_embeddings": false})";

Program watched_program(const std::string& placement) {
  JobRequest request{
      .model = kWatchedModel, .placement = placement, .sequence = 8, .global_batch = 4};
  request.micro_batch = 1;
  request.clip = 0.5;
  return lower(load_job(find_catalog(), request));
}

RealRun watched_run(const Program& program, const Program& proven, int steps = 2,
                    Arithmetic arithmetic = Arithmetic::canonical) {
  return run(program, {.steps = steps, .arithmetic = arithmetic, .proven = &proven});
}

struct PlantedFault {
  const char* placement;
  const char* words;
};
void PrintTo(const PlantedFault& fault, std::ostream* out) {
  *out << fault.placement << " " << fault.words;
}

class Planted : public ::testing::TestWithParam<PlantedFault> {};

/// Each changes what is trained; the watch knows the program without it.
TEST_P(Planted, FaultIsFound) {
  const Program proven = watched_program(GetParam().placement);
  const Program program = with_faults(proven, {fault_from(GetParam().words)});
  const RealRun found = watched_run(program, proven);
  ASSERT_FALSE(found.stuck) << *found.stuck;
  EXPECT_FALSE(found.equal) << "a fault that changes nothing";
  ASSERT_FALSE(found.watched.empty());
  const execute::WatchFinding& first = found.watched.front();
  EXPECT_NE(first.tensor, "");
  EXPECT_NE(first.at, "");
  EXPECT_LE(first.step, 2);  // what a step leaves behind shows in the next one
  EXPECT_GE(first.rank, 0);
}

constexpr const char* kCopies = "dp=2:ddp";
constexpr const char* kCut = "dp=2:zero1 tp=2:tp+sp";
constexpr const char* kShards = "dp=2:zero3";

INSTANTIATE_TEST_SUITE_P(
    OfThirtySix, Planted,
    ::testing::Values(
        PlantedFault{kCopies, "delete(all_reduce)"},
        PlantedFault{kCopies, "delete(all_reduce, nth=1)"},
        PlantedFault{kCopies, "duplicate(all_reduce, nth=2)"},
        PlantedFault{kCopies, "rescale(accumulate, by=2, nth=3)"},
        PlantedFault{kCopies, "reduce_op(all_reduce, to=max, nth=2)"},
        PlantedFault{kCopies, "drop_zero(zero, nth=1)"},
        PlantedFault{kCopies, "add_zero(accumulate, nth=2)"},
        PlantedFault{kCopies, "skip_update(any, nth=1)"},
        PlantedFault{kCopies, "skip_update(any, rank=1)"},
        PlantedFault{kCopies, "local_weight(any)"},
        PlantedFault{kCopies, "delete(accumulate, nth=2)"},
        PlantedFault{kCopies, "duplicate(accumulate, nth=3)"},
        PlantedFault{kCopies, "delete(update, nth=2)"},
        PlantedFault{kCopies, "delete(copy, nth=1)"},
        PlantedFault{kCopies, "duplicate(update, nth=1)"},
        PlantedFault{kCopies, "swap_order(all_reduce, with=1)"},
        PlantedFault{kCut, "delete(all_reduce)"}, PlantedFault{kCut, "delete(all_reduce, nth=1)"},
        PlantedFault{kCut, "regroup(all_reduce, to=dp)"},
        PlantedFault{kCut, "rescale(reduce_scatter, by=1/dp, nth=2)"},
        PlantedFault{kCut, "reduce_op(all_reduce, to=max, nth=2)"},
        PlantedFault{kCut, "reduce_op(reduce_scatter, to=mean, nth=1)"},
        PlantedFault{kCut, "rescale(accumulate, by=2, nth=3)"},
        PlantedFault{kCut, "local_norm(any)"}, PlantedFault{kCut, "local_weight(any)"},
        PlantedFault{kCut, "skip_update(any, rank=1)"},
        PlantedFault{kCut, "delete(accumulate, nth=2)"}, PlantedFault{kCut, "delete(zero, nth=2)"},
        PlantedFault{kCut, "rescale(any, by=2, phase=backward, nth=7)"},
        PlantedFault{kShards, "rescale(reduce_scatter, by=1/dp, nth=2)"},
        PlantedFault{kShards, "rescale(accumulate, by=2, nth=3)"},
        PlantedFault{kShards, "reduce_op(all_reduce, to=max, nth=2)"},
        PlantedFault{kShards, "reduce_op(all_reduce, to=mean)"},
        PlantedFault{kShards, "reduce_op(reduce_scatter, to=mean, nth=1)"},
        PlantedFault{kShards, "local_weight(any)"},
        PlantedFault{kShards, "skip_update(any, nth=1)"}));

// A number of the state that changes by itself: a replica, a shard, a moment; before anything is
// done and in the middle of a step.
TEST(WatchTest, NumbersThatChangeAreFound) {
  for (const char* placement : {kCopies, kShards}) {
    const Program program = watched_program(placement);
    for (const char* tensor : {"lm_head.weight", "model.layers.1.mlp.up_proj.weight",
                               "first moment of model.layers.0.self_attn.q_proj.weight"}) {
      for (const std::size_t operation : {std::size_t{0}, std::size_t{40}}) {
        const RealRun found = run(
            program,
            {.steps = 3,
             .proven = &program,
             .upset = StateUpset{.step = 1, .operation = operation, .rank = 1, .tensor = tensor}});
        EXPECT_FALSE(found.equal);
        ASSERT_FALSE(found.watched.empty()) << placement << " " << tensor << " " << operation;
        EXPECT_EQ(found.watched.front().step, 2);
        const auto is_of_one = [](const execute::WatchFinding& f) { return f.rank == 1; };
        EXPECT_TRUE(std::ranges::any_of(found.watched, is_of_one));
      }
    }
  }
}

// Two replicas that differ are named with the axis along which they should not.
TEST(WatchTest, AxisAndRankOfAReplicaAreNamed) {
  const Program program = watched_program("dp=4:ddp");
  const RealRun found = run(
      program, {.steps = 1,
                .proven = &program,
                .upset = StateUpset{.operation = 40, .rank = 2, .tensor = "model.norm.weight"}});
  const auto is_named = [](const execute::WatchFinding& f) {
    return f.condition == "state consistency" && f.tensor == "model.norm.weight" && f.rank == 2 &&
           f.axes == std::vector<std::string>{"dp"};
  };
  EXPECT_TRUE(std::ranges::any_of(found.watched, is_named));
}

class UnderAll : public ::testing::TestWithParam<Arithmetic> {};

TEST_P(UnderAll, NothingIsFoundWhereNothingIsWrong) {
  for (const char* placement : {kCopies, kCut, kShards, "pp=2:1f1b dp=2:zero2"}) {
    const Program program = watched_program(placement);
    const RealRun found = watched_run(program, program, 5, GetParam());
    EXPECT_GT(found.watched_readings, 100);
    EXPECT_TRUE(found.watched.empty()) << placement << ": " << found.watched.front().tensor;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, UnderAll,
                         ::testing::Values(Arithmetic::canonical, Arithmetic::declared,
                                           Arithmetic::binary32, Arithmetic::binary64),
                         [](const auto& one) { return std::string(name_of(one.param)); });

class WatchedJobs : public ::testing::TestWithParam<CatalogueJob> {};

TEST_P(WatchedJobs, RaiseNoAlarm) {
  const Program program = lower_small(load(GetParam()));
  const RealRun found = watched_run(program, program);
  EXPECT_TRUE(found.watched.empty())
      << found.watched.front().tensor << " " << found.watched.front().at;
}

INSTANTIATE_TEST_SUITE_P(OfTheCatalogue, WatchedJobs, ::testing::ValuesIn(few_catalogue_jobs()));

}  // namespace
}  // namespace placet::testing
