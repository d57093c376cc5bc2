// Real states: what one placement saved is, in the slices of another, what that one has at the same
// step, and trains on with the same bits.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "amount.h"
#include "catalog/job.h"
#include "checkpoint/given_state.h"
#include "checkpoint/reshard.h"
#include "checkpoint/scratch_folder.h"
#include "execute/run.h"
#include "lower/lower.h"

namespace placet::checkpoint {
namespace {

using testing::GivenState;
using testing::ScratchFolder;

constexpr const char* kModel =
    R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 32, "intermediate_size": 48,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 16,
        "vocab_size": 40, "rms_norm_eps": 1e-5, "hidden_act": "silu",
        "tie_word_embeddings": false})";

Program program_of(const std::string& placement) {
  JobRequest request{.model = kModel, .placement = placement, .sequence = 8, .global_batch = 4};
  request.micro_batch = 1;
  request.clip = 0.5;
  return lower(load_job(find_catalog(), request));
}

/// A state that outlives its run.
GivenState kept(const execute::StateView& state) {
  GivenState copy;
  for (std::size_t s = 0; s < state.slices().size(); ++s) {
    copy.add(state.slices()[s], state.numbers(s));
  }
  return copy;
}

GivenState state_after(const Program& program, Arithmetic arithmetic, int steps,
                       const execute::StateSource* from = nullptr) {
  GivenState state;
  const RealRun found =
      run(program, {.steps = steps,
                    .arithmetic = arithmetic,
                    .resume = from,
                    .on_end = [&](const execute::StateView& view) { state = kept(view); }});
  EXPECT_TRUE(found.equal) << found.stuck.value_or("other numbers than one device");
  return state;
}

void expect_same(const execute::StateView& a, const execute::StateView& b) {
  ASSERT_EQ(a.slices(), b.slices());
  ASSERT_FALSE(a.slices().empty());
  for (std::size_t s = 0; s < a.slices().size(); ++s) {
    EXPECT_EQ(a.numbers(s).bytes, b.numbers(s).bytes) << a.slices()[s].tensor;
  }
}

CheckpointFacts facts_of(const Program& program, Arithmetic arithmetic) {
  CheckpointFacts facts{.steps = 2, .mode = std::string(name_of(arithmetic))};
  for (std::size_t a = 0; a + 1 < program.axes.size(); ++a) {
    facts.mesh.emplace_back(program.axes[a].name, program.axes[a].degree);
  }
  return facts;
}

/// One placement: its program, and its state after two steps and after five.
struct Placed {
  Program program;
  GivenState after_two;
  GivenState after_five;
};

const std::vector<std::string> kPlacements = {
    "dp=4:ddp",
    "dp=4:zero1",
    "dp=4:zero3",
    "dp=2:zero2 tp=2:tp",
    "tp=2:tp+sp",
    "pp=2:1f1b dp=2:zero1",
    "dp=2:zero3 tp=2:tp+sp",
    "rep=2:ddp shard=2:zero3",
    "pp=2:1f1b tp=2:tp",
    "cp=2:ring+zero1",
};

const Placed& placed(const std::string& placement) {
  static std::map<std::string, Placed> all;
  const auto found = all.find(placement);
  if (found != all.end()) return found->second;
  Placed one{.program = program_of(placement), .after_two = {}, .after_five = {}};
  one.after_two = state_after(one.program, Arithmetic::canonical, 2);
  one.after_five = state_after(one.program, Arithmetic::canonical, 5);
  return all.emplace(placement, std::move(one)).first->second;
}

/// The state of one placement is that of another, at once and after three steps.
void expect_same_bits(std::size_t from, std::size_t to) {
  const Placed& a = placed(kPlacements[from]);
  const Placed& b = placed(kPlacements[to]);
  const ScratchFolder folder;
  write_checkpoint(folder / "a", facts_of(a.program, Arithmetic::canonical), a.after_two, "--save");
  const Checkpoint saved(folder / "a");
  const Resharded resharded(saved, state_slices(b.program, {}));
  expect_same(resharded, b.after_two);
  write_checkpoint(folder / "b", facts_of(b.program, Arithmetic::canonical), resharded, "-o");
  const Checkpoint turned(folder / "b");
  expect_same(state_after(b.program, Arithmetic::canonical, 3, &turned), b.after_five);
}

class Pairs : public ::testing::TestWithParam<std::size_t> {};

/// Two placements, each to the next one, and to the one three further on where all is run: 20 pairs
/// of ten.
TEST_P(Pairs, HaveTheSameBitsAtOnceAndAfterThreeSteps) {
  for (const std::size_t from : {GetParam(), GetParam() + 1}) {
    expect_same_bits(from, (from + 1) % kPlacements.size());
    if (testing::runs_all()) expect_same_bits(from, (from + 3) % kPlacements.size());
  }
}

INSTANTIATE_TEST_SUITE_P(OfPlacements, Pairs, ::testing::Values(0, 2, 4, 6, 8));

class Modes : public ::testing::TestWithParam<Arithmetic> {};

/// In every mode: a run that goes on from its own checkpoint has the bits of one that never ended.
TEST_P(Modes, GoingOnIsRunningThrough) {
  for (const char* placement : {"dp=2:ddp tp=2:tp", "dp=4:zero3"}) {
    const Program program = program_of(placement);
    const ScratchFolder folder;
    write_checkpoint(folder / "c", facts_of(program, GetParam()),
                     state_after(program, GetParam(), 2), "--save");
    const Checkpoint saved(folder / "c");
    expect_same(state_after(program, GetParam(), 3, &saved), state_after(program, GetParam(), 5));
  }
}

/// A state that says of itself that so many steps were made.
class StateOfStep : public execute::StateSource {
 public:
  StateOfStep(const execute::StateSource& state, int steps) : state_(state), steps_(steps) {}
  int steps() const override { return steps_; }
  execute::EncodedSlice numbers(const execute::StateSlice& slice) const override {
    return state_.numbers(slice);
  }

 private:
  const execute::StateSource& state_;
  int steps_;
};

// Steps that were made are neither planned nor drawn again: a thousand million would take days.
TEST(GoingOn, DoesNotDependOnTheStepsMade) {
  constexpr int kMade = 1'000'000'000;
  const Placed& one = placed("dp=4:zero3");
  const ScratchFolder folder;
  write_checkpoint(folder / "c", facts_of(one.program, Arithmetic::canonical), one.after_two,
                   "--save");
  const Checkpoint saved(folder / "c");
  const StateOfStep late(saved, kMade);
  const RealRun found = run(one.program, {.steps = 2, .resume = &late});
  EXPECT_TRUE(found.equal) << found.stuck.value_or("other numbers than one device");
  ASSERT_EQ(found.steps.size(), 2U);
  EXPECT_EQ(found.steps[0].step, kMade + 1);
  EXPECT_EQ(found.steps[0].last, kMade + 2);
}

INSTANTIATE_TEST_SUITE_P(OfNumbers, Modes,
                         ::testing::Values(Arithmetic::canonical, Arithmetic::declared,
                                           Arithmetic::binary32, Arithmetic::binary64),
                         [](const auto& one) { return std::string(name_of(one.param)); });

}  // namespace
}  // namespace placet::checkpoint
