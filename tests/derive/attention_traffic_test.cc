// The collectives of attention, counted by hand: query, key and value under tensor axes, and
// their exchanges along sequence axes. Model of most tests: that of communication_test.cc.
#include <gtest/gtest.h>

#include <algorithm>

#include "catalog/model_catalog.h"
#include "derive/traffic.h"

namespace placet {
namespace {

// A fused query, key and value matrix contracts over nothing that is cut, as the three apart.
TEST(AttentionTraffic, FusedProjectionsSendWhatSeparateOnesDo) {
  Architecture fused = wide_architecture(2);
  attention_in(fused).layout = QkvLayout::fused;
  attention_in(fused).fused.weight = "qkv";
  EXPECT_EQ(of_block(written_job(build_model(fused), "tp=2:tp", 8, 2)),
            of_block(written_job(wide(2), "tp=2:tp", 8, 2)));
}

/// The wide architecture with biases of query, key and value, these apart or as one tensor.
Architecture biased(QkvLayout layout) {
  Architecture out = wide_architecture(2);
  Attention& attention = attention_in(out);
  attention.layout = layout;
  attention.query.bias = "q_bias";
  attention.key.bias = "k_bias";
  attention.value.bias = "v_bias";
  attention.fused = {.weight = "qkv", .bias = "qkv_bias"};
  return out;
}

// Of a fused tensor whose kv heads are fewer than the devices only the rows of key and value are
// held by several. On tp=4 of two kv heads, per block: 4 query rows, 4 key and 4 value rows of
// 16 + 1 elements, the latter alike on pairs: 8 x 17 x 2 = 272 bytes.
TEST(AttentionTraffic, AFusedTensorHoldsAndSendsWhatItsPartsWould) {
  for (const char* placement : {"tp=2:tp", "tp=4:tp", "tp=4:tp+sp", "dp=2:zero1 tp=4:tp",
                                "dp=2:zero3 tp=4:tp+sp", "pp=2:1f1b dp=2:zero2 tp=4:tp"}) {
    const Job fused = written_job(build_model(biased(QkvLayout::fused)), placement, 8, 4);
    const Job apart = written_job(build_model(biased(QkvLayout::separate)), placement, 8, 4);
    EXPECT_EQ(of_states(fused), of_states(apart)) << placement;
    EXPECT_EQ(derive(fused).memory[0].at_rest, derive(apart).memory[0].at_rest) << placement;
  }
  const Job job = written_job(build_model(biased(QkvLayout::fused)), "tp=4:tp", 8, 1);
  EXPECT_EQ(of_states(job), Lines{"reduce all_reduce bf16 tp/2 272x2 gradients of shared heads"});
}

// 40 blocks of 48 query heads of 128 and one kv head, hidden 6144, with biases. Of the 6400 rows of
// a fused tensor a device has 6 x 128 + 256 = 1024, 5376 fewer than all: 6,723,006,464 bytes less
// 40 x 5376 x 6145 x 2. The rows of key and value are everyone's: 256 x 6145 x 2 = 3,146,240.
TEST(AttentionTraffic, OneSharedHeadInAFusedTensorOfACheckpoint) {
  const Job job = written_job(load_model(repository_data(), "starcoder-15b"), "tp=8:tp", 2048, 1);
  EXPECT_EQ(of_states(job),
            Lines{"reduce all_reduce bf16 tp 3146240x40 gradients of shared heads"});
  EXPECT_EQ(derive(job).memory[0].at_rest[0], bytes(4'080'164'864));
}

// One kv head (hidden 8, head size 4: k and v of 32 elements) on both devices: 2 x 32 x 2 bytes.
TEST(AttentionTraffic, SharedKeyAndValueHeadsSumAmongTheirHolders) {
  const Job job = written_job(build_model(small_architecture(1)), "tp=2:tp", 8, 1);
  EXPECT_EQ(of_states(job), Lines{"reduce all_reduce bf16 tp 128x1 gradients of shared heads"});
}

// On four devices of two kv heads, the holders of one head are pairs: a part of the axis.
TEST(AttentionTraffic, HoldersOfAHeadMayBeAPartOfTheAxis) {
  const Job job = written_job(wide(1), "tp=4:tp", 8, 1);
  EXPECT_EQ(of_states(job), Lines{"reduce all_reduce bf16 tp/2 256x1 gradients of shared heads"});
}

// Norms of queries and keys: weights of 4 elements each, whole on every device, over its own heads.
TEST(AttentionTraffic, QueryAndKeyNormsArePartialWithoutADividedStream) {
  Architecture architecture = wide_architecture(1);
  const Norm norm{.kind = NormKind::rms, .names = {.weight = "qk_norm"}};
  attention_in(architecture).qk_norm = QkNorm{.query = norm, .key = norm};
  const Job job = written_job(build_model(architecture), "tp=2:tp", 8, 1);
  EXPECT_EQ(of_states(job), Lines{"reduce all_reduce bf16 tp 16x1 gradients"});
}

// A norm over all heads together has its statistics torn: 8 tokens in fp32, queries and keys, both
// ways. Its weights are cut like the heads.
TEST(AttentionTraffic, ANormOverAllHeadsSumsItsStatistics) {
  Architecture architecture = wide_architecture(1);
  const Norm norm{.kind = NormKind::rms, .names = {.weight = "qk_norm"}};
  attention_in(architecture).qk_norm =
      QkNorm{.span = QkNorm::Span::full, .query = norm, .key = norm};
  const Job job = written_job(build_model(architecture), "tp=2:tp", 8, 1);
  EXPECT_EQ(of_states(job), Lines{});
  const Lines block = of_block(job);
  EXPECT_EQ(block[4], "forward all_reduce fp32 tp 32x2 norm.statistics");
  EXPECT_EQ(block[5], "backward all_reduce fp32 tp 32x2 norm.gradient");
}

// --- sequence axes: 2 tokens a device, keys 2 x 8 x 2 = 32 bytes, values too, queries 64

TEST(AttentionTraffic, ARingPassesKeysAndValuesAndTheirGradients) {
  const Job job = written_job(wide(1), "cp=4:ring", 8, 1);
  EXPECT_EQ(of_block(job), (Lines{"forward send_recv bf16 cp 64x3 attention.exchange",
                                  "backward send_recv bf16 cp 64x6 attention.exchange"}));
}

// The gradients one round behind the pieces: 1 + 2 + 1 messages, the same 6 x 64 bytes.
TEST(AttentionTraffic, ARingMayCarryGradientsWithThePieces) {
  Job job = written_job(wide(1), "cp=4:ring", 8, 1);
  job.profile.ring_carries_gradients = true;
  EXPECT_EQ(of_block(job), (Lines{"forward send_recv bf16 cp 64x3 attention.exchange",
                                  "backward send_recv bf16 cp 64x1 attention.pieces",
                                  "backward send_recv bf16 cp 128x2 attention.pieces_and_gradients",
                                  "backward send_recv bf16 cp 64x1 attention.gradients"}));
}

TEST(AttentionTraffic, GatheredKeysAreGatheredAgainAndTheirGradientsScattered) {
  const Job job = written_job(wide(1), "cp=4:gather", 8, 1);
  EXPECT_EQ(of_block(job), (Lines{"forward all_gather bf16 cp 128x1 attention.k_rotated",
                                  "forward all_gather bf16 cp 128x1 attention.v",
                                  "backward all_gather bf16 cp 128x1 attention.k_rotated",
                                  "backward all_gather bf16 cp 128x1 attention.v",
                                  "backward reduce_scatter bf16 cp 128x1 attention.k_rotated",
                                  "backward reduce_scatter bf16 cp 128x1 attention.v"}));
}

TEST(AttentionTraffic, HeadsAreExchangedForTokensAndBack) {
  const Job job = written_job(wide(1), "cp=2:heads", 4, 1);
  EXPECT_EQ(of_block(job), (Lines{"forward all_to_all bf16 cp 64x1 attention.q_rotated",
                                  "forward all_to_all bf16 cp 32x1 attention.k_rotated",
                                  "forward all_to_all bf16 cp 32x1 attention.v",
                                  "forward all_to_all bf16 cp 64x1 attention.context",
                                  "backward all_to_all bf16 cp 64x1 attention.context",
                                  "backward all_to_all bf16 cp 64x1 attention.q_rotated",
                                  "backward all_to_all bf16 cp 32x1 attention.k_rotated",
                                  "backward all_to_all bf16 cp 32x1 attention.v"}));
}

// 2 kv heads over 4 devices: each device's 2 tokens x 8 x 2 = 32 bytes of k and of v go to two
// holders of each head, and two parts of their gradients come back. Queries: 2 x 16 x 2 = 64.
TEST(AttentionTraffic, HeadsExchangedOverMoreDevicesThanThereAreAreShared) {
  const Job job = written_job(wide(1), "cp=4:heads", 8, 1);
  EXPECT_EQ(of_block(job), (Lines{"forward all_to_all bf16 cp 64x1 attention.q_rotated",
                                  "forward all_to_all bf16 cp 64x1 attention.k_rotated",
                                  "forward all_to_all bf16 cp 64x1 attention.v",
                                  "forward all_to_all bf16 cp 64x1 attention.context",
                                  "backward all_to_all bf16 cp 64x1 attention.context",
                                  "backward all_to_all bf16 cp 64x1 attention.q_rotated",
                                  "backward all_to_all bf16 cp 64x1 attention.k_rotated",
                                  "backward all_to_all bf16 cp 64x1 attention.v"}));
  // A tensor axis leaves one kv head: 4 tokens x 4 x 2 = 32 bytes to both devices of cp.
  const Job cut = written_job(wide(1), "cp=2:heads tp=2:tp", 8, 1);
  const Lines lines = of_block(cut);
  EXPECT_EQ(std::ranges::count(lines, "forward all_to_all bf16 cp 64x1 attention.v"), 1);
}

// Heads inside, a ring across: each its own group, both of the device's own part.
TEST(AttentionTraffic, TwoSequenceAxesMayExchangeDifferently) {
  const Job job = written_job(wide(1), "r=2:ring h=2:heads", 8, 1);
  const Lines lines = of_block(job);
  EXPECT_EQ(lines[0], "forward send_recv bf16 r 64x1 attention.exchange");
  EXPECT_EQ(lines[2], "forward all_to_all bf16 h 64x1 attention.q_rotated");
}

}  // namespace
}  // namespace placet
