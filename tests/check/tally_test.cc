#include "check/tally.h"

#include <gtest/gtest.h>

#include "catalog/job.h"
#include "check/unrolled.h"
#include "lower/lower.h"
#include "program/text.h"

namespace placet::testing {
namespace {

Program lowered(const std::string& model, const std::string& placement, std::int64_t global) {
  const Catalog catalog{.root = std::filesystem::path(PLACET_SOURCE_DIR) / "data"};
  return lower(load_job(catalog, {.model = model,
                                  .placement = placement,
                                  .sequence = 64,
                                  .global_batch = global,
                                  .micro_batch = 1}));
}

std::int64_t sent_by(const Tally& tally, InstructionKind kind) {
  Bytes sum;
  for (const TalliedMessage& m : tally.messages) {
    if (m.kind == kind) sum += m.sent * m.count;
  }
  return in_bytes(sum);
}

/// All ranks, one by one: what is alive and sent, no more than the class's, and the first as much.
void expect_ranks_meet(const Program& program) {
  for (const ProgramCoordinates& rank : all_ranks(program)) {
    const int c = class_of(program, rank);
    const Unrolled one = unrolled(program, rank);
    const Tally own = tally(program, c, rank);
    EXPECT_EQ(one.fault, "");
    EXPECT_EQ(bytes(one.rest), own.rest);
    EXPECT_EQ(bytes(one.peak), own.peak.bytes);
    EXPECT_EQ(bytes(one.host_peak), own.host_peak.bytes);
    EXPECT_EQ(one.left, one.rest) << "what is alive at the end is what rests";
    EXPECT_EQ(one.handed_on, sent_by(own, InstructionKind::send));
    EXPECT_LE(one.scattered, sent_by(own, InstructionKind::reduce_scatter));
    EXPECT_LE(one.gathered, sent_by(own, InstructionKind::all_gather));
    EXPECT_LE(own.peak.bytes, tally(program, c).peak.bytes);
    Bytes at_peak;
    for (const FamilyBytes& family : own.peak.families) at_peak += family.bytes;
    EXPECT_EQ(at_peak, own.peak.bytes);
  }
}

class EveryRank : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryRank, AddsUpToItsTally) { expect_ranks_meet(lowered("gpt2", GetParam(), 12)); }

INSTANTIATE_TEST_SUITE_P(OfSmallMeshes, EveryRank,
                         ::testing::Values("dp=2:ddp", "dp=3:zero1", "dp=2:zero2 tp=3:tp",
                                           "dp=2:zero3 tp=2:tp+sp", "pp=2:1f1b dp=2:zero1",
                                           "pp=3:gpipe tp=2:tp", "dp=3[1,2,3]:zero3"));

// Two classes of pipelines hold different units; the first has the embedding as well.
TEST(Tally, SeesTheClassesApart) {
  const Program program = lowered("llama-3.2-1b", "pp=4:1f1b dp=2:zero1", 16);
  EXPECT_GT(tally(program, 0).peak.bytes, tally(program, 2).peak.bytes);
}

// 405 billion parameters on 16,384 devices: the cost is that of the text.
TEST(Tally, CostsNoMoreForMoreDevices) {
  const Program program =
      lowered("llama-3.1-405b", "pp=16:interleaved(4) dp=128:zero1 tp=8:tp+sp", 2048);
  for (int c = 0; c < 16; ++c) EXPECT_GT(tally(program, c).peak.bytes, gigabytes(10));
}

}  // namespace
}  // namespace placet::testing
