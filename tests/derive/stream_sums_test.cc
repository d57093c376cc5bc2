// Sums of parallel regions that only a divided stream takes: norms behind branches, as Gemma 2 and
// OLMo 2 have them (docs/theory.md §3.2).
#include <gtest/gtest.h>

#include <utility>

#include "derive/traffic.h"
#include "derive/unit_memory.h"

namespace placet {
namespace {

UnitMemory memory_of_block(const Job& job) {
  const Prepared prepared = prepare(job);
  const Layout layout = lay_out(job, prepared);
  return unit_memory(layout, layout.unit_of[1], true);
}

/// Each branch has a norm like its own behind it.
Architecture with_norms_behind(Architecture architecture) {
  for (Sublayer& sublayer : architecture.shapes[0]) {
    Branch& branch = sublayer.branches[0];
    branch.norm_after = branch.norm;
    branch.norm_after.names.weight += "_after";
  }
  return architecture;
}

// A norm behind each branch keeps what the branch handed on, 64, and 16 of statistics: along a
// divided stream the parts of both, along a whole one all of them.
TEST(StreamSums, ANormBehindABranchKeepsWhatTheStreamHasOfIt) {
  const Architecture architecture = with_norms_behind(small_architecture(2));
  const auto kept = [&](const Modes& modes) {
    return memory_of_block(
               plain_job(build_model(architecture), {axis("tp", 2, Cut::tensor, modes)}, 4, 1))
        .kept;
  };
  EXPECT_EQ(kept(kTensorSplit), 144 + 80 + 64 + 256 + 2 * (32 + 8));
  EXPECT_EQ(kept(kTensorWhole), 288 + 80 + 64 + 256 + 2 * (64 + 16));
}

// With full recomputation no moment of backward has more than the fullest one without.
TEST(StreamSums, ANormBehindABranchFindsNoMoreWhenItIsMadeAgain) {
  const Architecture architecture = with_norms_behind(small_architecture(2));
  Job job = plain_job(build_model(architecture), {axis("tp", 2, Cut::tensor, kTensorSplit)}, 4, 1);
  const UnitMemory kept = memory_of_block(job);
  job.recompute.kind = Recompute::Kind::full;
  EXPECT_LE(memory_of_block(job).backward.total(), kept.backward.total());
}

// While a projection runs, its sum is whole, 4 x 16 x 2 bytes, beside the quarter that is kept;
// when it is done no more than two quarters are there in its place.
TEST(StreamSums, ASumIsWholeOnItsWayToADividedStream) {
  Architecture architecture = wide_architecture(2);
  attention_in(architecture).kv_heads = 4;
  architecture = with_norms_behind(std::move(architecture));
  const Job job =
      plain_job(build_model(architecture), {axis("tp", 4, Cut::tensor, kTensorSplit)}, 4, 1);
  EXPECT_EQ(memory_of_block(job).forward.gathered, 4 * 16 * 2);
}

}  // namespace
}  // namespace placet
