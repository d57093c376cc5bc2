// Buffers in real memory: what is counted is what the system gives.
#include "execute/replay.h"

#include <gtest/gtest.h>

#include "call/job_flags.h"
#include "catalog/job.h"
#include "lower/lower.h"

namespace placet::execute {
namespace {

constexpr const char* kModel =
    R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 256, "intermediate_size": 512,
        "num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 64,
        "vocab_size": 8192, "tie_word_embeddings": false})";

Program program_of(const std::string& placement) {
  JobFlags flags;
  flags.model = kModel;
  flags.placements = {placement};
  flags.sequence = "32";
  flags.global_batch = "4";
  flags.micro_batch = "1";
  const Catalog catalog = find_catalog();
  return lower(load_job(catalog, request_of(catalog, flags)));
}

// 5,505,280 parameters, by hand: two of 8192 x 256 for the words, a norm of 256, and in each of two
// blocks four of 256 x 256, three of 512 x 256 and two norms of 256. 16 bytes of each rest where
// all is replicated: two for the parameter, two for its gradient, twelve for AdamW in fp32.
constexpr std::int64_t kParameters =
    2 * 8192 * 256 + 256 + 2 * (4 * 256 * 256 + 3 * 512 * 256 + 2 * 256);

TEST(ReplayTest, ReplicatedStatesRestInSixteenBytesOfEachParameter) {
  const Replayed found = replay_buffers(program_of("dp=4:ddp"), 1);
  EXPECT_EQ(found.held.rest, 16 * kParameters);
  EXPECT_GT(found.held.peak, found.held.rest);
  EXPECT_EQ(found.held.rank, 1);
}

TEST(ReplayTest, DividedStatesRestInAQuarter) {
  const Replayed found = replay_buffers(program_of("dp=4:zero3"), 0);
  EXPECT_EQ(found.held.rest, 4 * kParameters);
}

#ifndef __SANITIZE_ADDRESS__
TEST(ReplayTest, TheSystemGivesThePagesOfTheBuffers) {
  const Replayed found = replay_buffers(program_of("dp=4:ddp"), 0);
  EXPECT_NEAR(static_cast<double>(found.resident_rest), static_cast<double>(found.held.rest),
              0.05 * static_cast<double>(found.held.rest));
  EXPECT_NEAR(static_cast<double>(found.resident_peak), static_cast<double>(found.held.peak),
              0.05 * static_cast<double>(found.held.peak));
}
#endif

TEST(ReplayTest, TheSystemSaysWhatIsFree) { EXPECT_GT(available_memory(), 0); }

}  // namespace
}  // namespace placet::execute
