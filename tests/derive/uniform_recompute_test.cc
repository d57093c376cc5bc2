// Blocks that are made again several at a time (docs/theory.md, section 3.3).
#include <gtest/gtest.h>

#include "catalog/job.h"
#include "derive/derive.h"
#include "derive/memory.h"
#include "units/error.h"

namespace placet {
namespace {

// GPT-2 on one device, with a small vocabulary so that its blocks need most: 12 of them.
constexpr const char* kModel =
    R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
        "vocab_size": 512})";

Derivation derived(const std::string& recompute, const std::string& placement = "dp=1:ddp") {
  JobRequest request;
  request.model = kModel;
  request.placement = placement;
  request.sequence = 1024;
  request.micro_batch = 8;
  request.recompute = recompute;
  return derive(load_job(find_catalog(), request));
}

std::int64_t alive(const Derivation& d, Instant instant) {
  for (const InstantBytes& at : d.memory.front().instants) {
    if (at.instant == instant) return in_bytes(at.bytes);
  }
  return 0;
}

std::int64_t kept_in_flight(const Derivation& d) { return in_bytes(d.memory.front().at_rest[3]); }

// What a block begins with is 8 x 1024 x 768 numbers of 2 bytes: 12,582,912. The ends (embedding,
// last norm, head, loss) keep the same in all cases; 12, 6, 4, 3 and 1 of such inputs stay.
TEST(UniformRecomputeTest, OneInputStaysForEachGroup) {
  constexpr std::int64_t kInput = std::int64_t{8} * 1024 * 768 * 2;
  const std::int64_t ends = kept_in_flight(derived("full")) - 12 * kInput;
  EXPECT_GT(ends, 0);
  EXPECT_EQ(kept_in_flight(derived("uniform=2")) - ends, 6 * kInput);
  EXPECT_EQ(kept_in_flight(derived("uniform=3")) - ends, 4 * kInput);
  EXPECT_EQ(kept_in_flight(derived("uniform=5")) - ends, 3 * kInput);
  EXPECT_EQ(kept_in_flight(derived("uniform=12")) - ends, 1 * kInput);
}

// In the backward of the last of a group of n, all n are there as if nothing were recomputed, and
// the inputs of the groups before it. With 12 blocks in one group that is what no recomputation has
// there. With n blocks 12 - n are not there, but one input for each of the 12 / n - 1 groups
// before; the input of the own group is one of the values that its first block keeps.
TEST(UniformRecomputeTest, AGroupIsWholeInItsBackward) {
  constexpr std::int64_t kInput = std::int64_t{8} * 1024 * 768 * 2;
  const std::int64_t none = alive(derived("none"), Instant::backward);
  EXPECT_EQ(alive(derived("uniform=12"), Instant::backward), none);
  const std::int64_t block =
      (kept_in_flight(derived("none")) - (kept_in_flight(derived("full")) - 12 * kInput)) / 12;
  const auto expected = [&](std::int64_t n) {
    return none - (12 - n) * block + (12 / n - 1) * kInput;
  };
  EXPECT_EQ(alive(derived("uniform=6"), Instant::backward), expected(6));
  EXPECT_EQ(alive(derived("uniform=4"), Instant::backward), expected(4));
}

// The ends of a stage of 6 blocks by 4: groups of 4 and 2.
TEST(UniformRecomputeTest, GroupsBeginAnewInEachStage) {
  const std::string stages = "pp=2:1f1b";
  constexpr std::int64_t kInput = std::int64_t{8} * 1024 * 768 * 2;
  const Derivation full = derived("full", stages);
  const Derivation together = derived("uniform=4", stages);
  EXPECT_EQ(kept_in_flight(full) - kept_in_flight(together), (6 - 2) * kInput);
}

TEST(UniformRecomputeTest, OneAtATimeIsFull) {
  EXPECT_EQ(parse_recompute("uniform=1", "--recompute"), parse_recompute("full", "--recompute"));
}

// The message of a refusal; empty: it was taken.
std::string refusal(const std::string& recompute, const std::string& placement) {
  try {
    derived(recompute, placement);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(UniformRecomputeTest, MoreBlocksThanTheModelHasAreRefused) {
  EXPECT_EQ(refusal("uniform=13", "dp=1:ddp"),
            "--recompute: recomputes blocks in groups larger than the model ('uniform=13', the "
            "model has 12 blocks); expected uniform=1 to uniform=12");
}

TEST(UniformRecomputeTest, GatheredParametersAreRefused) {
  const std::string expected =
      "--recompute: uniform=N is not supported with parameters gathered for use (ZeRO-3/FSDP) "
      "along dp; expected full, every=N or first=N";
  EXPECT_EQ(refusal("uniform=2", "dp=4:zero3"), expected);
  EXPECT_EQ(refusal("uniform=2", "dp=4:zero1;ffn:zero3"), expected);  // of a class apart
}

// One device gathers from none.
TEST(UniformRecomputeTest, AnAxisOfOneDeviceGathersNothing) {
  EXPECT_EQ(refusal("uniform=2", "dp=1:zero3"), "");
  EXPECT_EQ(refusal("uniform=2", "dp=4:zero1"), "");
}

TEST(UniformRecomputeTest, ABackwardInTwoPartsIsRefused) {
  EXPECT_EQ(refusal("uniform=2", "pp=2:zb-h1"),
            "--recompute: uniform=N cannot be combined with schedules that split backward "
            "(zero-bubble, DualPipe); expected full, or a schedule such as 1f1b");
}

}  // namespace
}  // namespace placet
