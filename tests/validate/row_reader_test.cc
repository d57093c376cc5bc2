#include "validate/row_reader.h"

#include <gtest/gtest.h>

#include "validate/run_facts.h"
#include "validate/run_jobs.h"

namespace placet {
namespace {

const char* const kTable =
    "row_id,model,n_heads,n_kv_heads,dp,n_gpus,dp_derived,notes,run_name\n"
    "r-1,Llama,32,,,,8,,x_gqa8\n"
    "r-2,Llama,32,,4,8,2,,x\n";

SourceReading gqa_source() {
  SourceReading source;
  source.fillings.push_back({.when = {{"run_name", {"*_gqa8"}}}, .cells = {{"n_kv_heads", "8"}}});
  source.fillings.push_back({.cells = {{"n_kv_heads", "=n_heads"}}});
  return source;
}

TEST(RowReaderTest, StarsMatchAnyRun) {
  EXPECT_TRUE(matches_text("*_gqa8", "1B_dp8_gqa8"));
  EXPECT_TRUE(matches_text("a*b*c", "aXbYbc"));
  EXPECT_TRUE(matches_text("", ""));
  EXPECT_TRUE(matches_text("*", ""));
  EXPECT_FALSE(matches_text("", "x"));
  EXPECT_FALSE(matches_text("*_gqa8", "_gqa8x"));
}

TEST(RowReaderTest, StatedBeforeDerivedBeforeFilled) {
  const Table table = parse_table(kTable, "runs.csv");
  const SourceReading source = gqa_source();
  RowReader first(table, 0, source);
  EXPECT_EQ(first.need_whole("dp", {1, 100}), 8);  // only its twin dp_derived is filled in
  EXPECT_TRUE(first.used().empty());
  EXPECT_EQ(first.need_whole("n_kv_heads", {1, 100}), 8);  // by the first rule that matches
  ASSERT_EQ(first.used().size(), 1U);
  RowReader second(table, 1, source);
  EXPECT_EQ(second.need_whole("dp", {1, 100}), 4);
  EXPECT_EQ(second.need_whole("n_kv_heads", {1, 100}), 32);  // a copy of n_heads
  EXPECT_TRUE(second.missing().empty());
}

TEST(RowReaderTest, InsteadOfWhatTheRowHolds) {
  const Table table = parse_table(kTable, "runs.csv");
  SourceReading source;
  source.fillings.push_back({.cells = {{"dp", "16"}, {"n_kv_heads", "4"}}});
  source.fillings.push_back({.when = {{"n_gpus", {"8"}}}, .cells = {{"dp", "2"}}, .instead = true});
  RowReader second(table, 1, source);
  EXPECT_EQ(second.need_whole("dp", {1, 100}), 2);  // the row's own 4 is of another run
  EXPECT_EQ(second.need_whole("n_kv_heads", {1, 100}), 4);
  ASSERT_EQ(second.used().size(), 2U);
  EXPECT_TRUE(second.used().front().filling->instead);
  RowReader first(table, 0, source);
  EXPECT_EQ(first.need_whole("dp", {1, 100}), 8);  // no such rule: its own cell, then fillings
}

TEST(RowReaderTest, RemembersWhatIsMissing) {
  const Table table = parse_table(kTable, "runs.csv");
  const SourceReading nothing;
  RowReader reader(table, 0, nothing);
  reader.need("n_kv_heads");
  reader.need_whole("tp", {1, 100});
  EXPECT_EQ(reader.missing(),
            (std::vector<std::string>{"n_kv_heads is not stated", "tp is not stated"}));
}

RunLayout usual_layout() {
  return {.order = {"pp", "dp", "cp", "ep", "tp"},
          .sharding_terms = {"ddp", "zero1", "zero2", "zero3"},
          .context_term = "ring"};
}

TEST(RunLayoutTest, LeavesOutAxesOfDegreeOne) {
  RunFacts facts{.degrees = {.data = 8, .tensor = 2}, .splits_stream = true, .sharding_stage = 1};
  EXPECT_EQ(placement_text(facts, usual_layout(), ""), "dp=8:zero1 tp=2:tp+sp");
}

TEST(RunLayoutTest, SpellsEveryAxis) {
  RunFacts facts{.degrees = {.data = 4, .tensor = 2, .layer = 3, .context = 5},
                 .sharding_stage = 3,
                 .stage_blocks = "2,1,1"};
  EXPECT_EQ(placement_text(facts, usual_layout(), "1f1b"),
            "pp=3[2,1,1]:1f1b dp=4:zero3 cp=5:ring+zero3 tp=2:tp");
}

TEST(RunLayoutTest, StatesMayBeDividedWithinGroups) {
  RunFacts facts{.degrees = {.data = 16, .tensor = 2}, .sharding_stage = 1, .shard_group = 4};
  EXPECT_EQ(placement_text(facts, usual_layout(), ""), "rep=4:ddp dp=4:zero1 tp=2:tp");
  facts.degrees.data = 4;
  EXPECT_EQ(placement_text(facts, usual_layout(), ""), "dp=4:zero1 tp=2:tp");
}

TEST(RunLayoutTest, OneDeviceIsAnAxisToo) {
  EXPECT_EQ(placement_text(RunFacts{}, usual_layout(), ""), "dp=1:ddp");
}

TEST(RunLayoutTest, ExpertsLieInsideTheDataRanks) {
  RunFacts facts{.degrees = {.data = 16, .expert = 8}, .sharding_stage = 1};
  EXPECT_EQ(placement_text(facts, usual_layout(), ""), "dp=2:zero1 ep=8:ep+zero1");
}

// Eight expert ranks of whole experts: over two tensor and two sequence ranks, two of sixteen data
// ranks; cut by the tensor ranks: over the sequence ranks and four data ranks.
TEST(RunLayoutTest, WholeExpertsLieOverTensorRanksToo) {
  RunLayout layout = usual_layout();
  layout.order = {"pp", "dp", "ep", "cp", "tp"};
  RunFacts facts{.degrees = {.data = 16, .tensor = 2, .context = 2, .expert = 8},
                 .splits_stream = true,
                 .sharding_stage = 1};
  EXPECT_EQ(placement_text(facts, layout, ""),
            "dp=4:zero1 ep=4:ep+zero1 cp=2:ring+ep+zero1 tp=2:tp+sp");
  facts.degrees.whole_experts = true;
  EXPECT_EQ(placement_text(facts, layout, ""),
            "dp=8:zero1 ep=2:ep+zero1 cp=2:ring+ep+zero1 tp=2:tp+sp+ep");
}

}  // namespace
}  // namespace placet
