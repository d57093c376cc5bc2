// Rows of what rests: one for all tensors of a unit that the same axes divide, so that each row's
// factors are those of all its bytes. One block: q and o of 16 x 16, k and v of 8 x 16, three
// matrices of 32 x 16, two norms of 16; 2 bytes per parameter.
#include <gtest/gtest.h>

#include "derive/derive.h"
#include "derive/device_classes.h"
#include "derive/traffic.h"

namespace placet {
namespace {

/// "2304 of tp 1/2" for each row of the block's parameters.
Lines rows(const Job& job) {
  const Derivation derived = derive(job);
  const MemoryClass& memory = derived.memory.front();
  Lines out;
  for (const MemoryTerm& term : memory.terms) {
    if (term.category != MemoryCategory::parameters || term.unit != "block") continue;
    std::string text = std::to_string(in_bytes(term.rest)) + " of";
    for (const AxisFactor& factor : factors_of(job.placement, memory, term)) {
      text +=
          " " + std::string(job.placement.axes[static_cast<std::size_t>(factor.axis)].axis.text());
      text += " " + to_string(factor.factor);
    }
    out.push_back(text);
  }
  return out;
}

// 2 x 256 + 2 x 128 + 3 x 512 = 2304 elements in halves; norms of 2 x 16 whole.
TEST(MemoryTerms, NormsUnderATensorCutAreARowOfTheirOwn) {
  EXPECT_EQ(rows(written_job(wide(1), "tp=2:tp", 8, 1)), (Lines{"2304 of tp 1/2", "64 of"}));
}

// Four devices share two kv heads: 2 x 128 elements in halves, the other 2048 in quarters.
TEST(MemoryTerms, HeadsThatNeighboursShareAreDividedByLess) {
  EXPECT_EQ(rows(written_job(wide(1), "tp=4:tp", 8, 1)),
            (Lines{"1024 of tp 1/4", "256 of tp 1/2", "64 of"}));
}

// Along the outer axis all is divided.
TEST(MemoryTerms, EachRowHasItsOwnAxes) {
  EXPECT_EQ(rows(written_job(wide(1), "dp=2:zero3 tp=2:tp", 8, 2)),
            (Lines{"1152 of dp 1/2 tp 1/2", "32 of dp 1/2"}));
}

// Four experts of 3 x 8 x 16, two on each device; router 4 x 16, attention 768 and norms whole.
TEST(MemoryTerms, ExpertsAreDividedApartFromTheRest) {
  const Job job = written_job(build_model(expert_architecture(1)), "ep=2:ep", 8, 2);
  EXPECT_EQ(rows(job), (Lines{"1728 of", "1536 of ep 1/2"}));
}

}  // namespace
}  // namespace placet
