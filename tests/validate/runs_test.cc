// Runs of hand: what becomes of a row, and in which group it is counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "catalog/validation_catalog.h"
#include "units/error.h"
#include "validate/own_catalog.h"
#include "validate/validate.h"

namespace placet {
namespace {

const std::string kHeader =
    "row_id,source_id,model,n_layers,hidden,n_heads,n_kv_heads,ffn,mlp_type,vocab,tied_embeddings,"
    "pos_embedding,seq_len,gpu,n_gpus,dp,tp,pp,cp,sp,zero_stage,pp_schedule,micro_batch,"
    "global_batch,act_ckpt,precision,optimizer,framework,status,peak_mem_gb,mem_unit,mem_kind,"
    "step_time_s,max_allocated_gib,max_reserved_gib,nvidia_smi_gib,task,inter_node,mem_allocated_"
    "gib\n";

// A cell that differs from those of the row below.
struct Cell {
  std::string column;
  std::string text;
};

// One block, hidden 256, two heads of 128, gated MLP of 512, 1024 words, separate output matrix.
std::string row(const std::string& id, const std::vector<Cell>& cells = {}) {
  const std::vector<std::string> usual = {id,       "by_hand",
                                          "tiny",   "1",
                                          "256",    "2",
                                          "2",      "512",
                                          "swiglu", "1024",
                                          "0",      "rope",
                                          "64",     "H100-80GB-SXM",
                                          "2",      "2",
                                          "1",      "1",
                                          "1",      "0",
                                          "1",      "",
                                          "1",      "2",
                                          "none",   "bf16",
                                          "AdamW",  "nanotron",
                                          "ok",     "1",
                                          "GiB",    "max reserved, max over ranks",
                                          "0.5",    "",
                                          "",       "",
                                          "",       "",
                                          ""};
  std::string text = kHeader;
  std::vector<std::string> columns;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find_first_of(",\n", begin);
    columns.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  std::string line;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::string cell = usual[i];
    for (const Cell& other : cells) {
      if (other.column == columns[i]) cell = other.text;
    }
    line += (i > 0 ? ",\"" : "\"") + cell + "\"";
  }
  return line + "\n";
}

Validation validate_rows(const std::string& rows, ValidateOptions options = {.engine = "placet"}) {
  return validate(kCatalog, parse_table(kHeader + rows, "hand.csv"), options);
}

// Parameters: embedding and output matrix 2 x 1024 x 256 = 524,288; four attention matrices of
// 256 x 256 = 262,144; three MLP matrices of 256 x 512 = 393,216; three norms of 256 = 768:
// 1,180,416. Over two ranks at stage 1 each keeps 2 + 2 + 12/2 = 10 bytes of each: 11,804,160.
// While the block is updated, the parts of the gradients that are still to be used stand beside the
// whole, 2 bytes of half of block (655,872) and head (262,400): 918,272, or 918,528 in the
// allocator's grain of 512; and the block's updated part, 655,872.
TEST(RunsTest, StatesOfARowByHand) {
  const Validation validation = validate_rows(row("a", {{"mem_allocated_gib", "0.011"}}));
  ASSERT_EQ(validation.predictions.size(), 3U);
  EXPECT_TRUE(validation.predictions.back().is_time);
  const Prediction& states = validation.predictions.front();
  EXPECT_EQ(states.measure, "states");
  EXPECT_FALSE(states.decides);
  EXPECT_DOUBLE_EQ(states.measured, 0.011 * 1073741824);
  EXPECT_EQ(states.predicted, 11'804'160 + 918'528 + 655'872);
  EXPECT_EQ(states.labels.placement, "dp=2:zero1");
  EXPECT_EQ(states.labels.engine, "placet@1");
}

TEST(RunsTest, GigabytesAreNotGibibytes) {
  const Validation validation = validate_rows(row("a", {{"step_time_s", ""}}) +
                                              row("b", {{"mem_unit", "GB"}, {"step_time_s", ""}}));
  ASSERT_EQ(validation.predictions.size(), 2U);
  EXPECT_EQ(validation.predictions[0].measured, 1073741824);
  EXPECT_EQ(validation.predictions[1].measured, 1e9);
  EXPECT_EQ(validation.predictions[0].predicted, validation.predictions[1].predicted);
}

TEST(RunsTest, ARowThatSaysEverythingIsStated) {
  const Validation validation = validate_rows(row("a"));
  EXPECT_EQ(validation.scorable, 1);
  EXPECT_EQ(validation.predicted, 1);
  EXPECT_EQ(validation.groups.at(RowGroup::stated).rows, 1);
  EXPECT_EQ(validation.time_rows, 1);
}

// Times stand apart from memory: a row without a figure of memory is scored by its step.
TEST(RunsTest, AStepTimeIsScoredApart) {
  const Validation validation = validate_rows(row("a", {{"peak_mem_gb", ""}}));
  ASSERT_EQ(validation.predictions.size(), 1U);
  const Prediction& step = validation.predictions.front();
  EXPECT_EQ(step.measure, "step");
  EXPECT_DOUBLE_EQ(step.measured, 0.5);
  EXPECT_GT(step.predicted, 0);
  EXPECT_DOUBLE_EQ(step.error, step.predicted / 0.5 - 1);
  EXPECT_EQ(validation.time.rows, 1);
  EXPECT_EQ(validation.memory.rows, 0);
  EXPECT_EQ(validation.out_of_memory.true_negative, 1);  // it finished, and is said to fit
}

// Two samples of 64 tokens over two devices: 128 tokens at 32 per second and device take 2 s.
TEST(RunsTest, ThroughputIsAStepTime) {
  const std::string header = kHeader.substr(0, kHeader.size() - 1) + "\n";
  std::string table = header + row("a", {{"peak_mem_gb", ""}});
  const auto at = table.find("step_time_s");
  table.replace(at, 11, "tokens_per_s_per_gpu");
  const std::string rate = "\"0.5\"";
  table.replace(table.find(rate), rate.size(), "\"32\"");
  const Validation validation =
      validate(kCatalog, parse_table(table, "hand.csv"), {.engine = "placet"});
  ASSERT_EQ(validation.predictions.size(), 1U);
  EXPECT_DOUBLE_EQ(validation.predictions.front().measured, 2);
}

TEST(RunsTest, ATableOfTheProjectMayFillGaps) {
  // The playbook's run names say how many key/value heads there are.
  // An own column stands after the others.
  const std::string header = kHeader.substr(0, kHeader.size() - 1) + ",run_name\n";
  const std::string filled =
      row("a", {{"source_id", "ultrascale_playbook"}, {"n_kv_heads", ""}, {"n_heads", "8"}});
  const Validation validation = validate(
      kCatalog, parse_table(header + filled.substr(0, filled.size() - 1) + ",x_gqa8\n", "hand.csv"),
      {.engine = "placet"});
  EXPECT_EQ(validation.groups.at(RowGroup::assumed).rows, 1);
  const bool listed =
      std::any_of(validation.facts.begin(), validation.facts.end(), [](const UsedFact& fact) {
        return fact.origin == "assumption" && fact.key == "ultrascale_playbook: n_kv_heads" &&
               fact.value == "8" && fact.rows == 1;
      });
  EXPECT_TRUE(listed);
}

// What is customary stands in for what an unknown source leaves open, beside the totals.
TEST(RunsTest, WhatIsCustomaryIsReportedAndNotScored) {
  const Validation validation =
      validate_rows(row("a") + row("b", {{"act_ckpt", ""}, {"precision", ""}}));
  EXPECT_EQ(validation.scorable, 1);
  EXPECT_EQ(validation.predicted, 1);
  EXPECT_EQ(validation.memory.rows, 1);
  EXPECT_EQ(validation.time.rows, 1);
  EXPECT_EQ(validation.groups.at(RowGroup::unknown).rows, 1);
  EXPECT_EQ(validation.time_groups.at(RowGroup::unknown).rows, 1);
  EXPECT_EQ(validation.out_of_memory.true_negative, 1);
  ASSERT_EQ(validation.predictions.size(), 4U);
  EXPECT_EQ(validation.predictions[0].predicted, validation.predictions[2].predicted);
  std::vector<std::string> customs;
  for (const UsedFact& fact : validation.facts) {
    if (fact.origin == kCustom) customs.push_back(fact.key + " = " + fact.value);
  }
  EXPECT_EQ(customs,
            (std::vector<std::string>{"by_hand: act_ckpt = none", "by_hand: precision = bf16"}));
}

TEST(RunsTest, AnUnknownFrameworkIsGuessedAndNotScored) {
  const Validation validation = validate_rows(row("a", {{"framework", "abacus"}}), {});
  EXPECT_EQ(validation.scorable, 0);
  ASSERT_EQ(validation.predictions.size(), 2U);
  EXPECT_EQ(validation.predictions[0].labels.group, RowGroup::unknown);
  EXPECT_EQ(validation.groups.at(RowGroup::unknown).rows, 1);
  EXPECT_EQ(validation.memory.rows, 0);
}

TEST(RunsTest, AFrameworkWithoutAProfileNeedsAnEngine) {
  const std::string rows = row("a", {{"framework", "Colossal-AI"}});
  const Validation none = validate_rows(rows, {});
  ASSERT_EQ(none.skipped.size(), 1U);
  EXPECT_EQ(none.skipped.front().reason, "no engine profile is known for its framework");
  EXPECT_EQ(validate_rows(rows).predicted, 1);
}

// Four network cards of 100 Gb/s per host, which this source names for some rows, join hosts: eight
// devices of one host do not use them, sixteen of two do.
TEST(RunsTest, ANetworkAmongHostsIsNoneInsideOne) {
  const auto step = [](const std::string& devices, const std::string& network) {
    const Validation validation = validate_rows(row("a", {{"source_id", "internevo"},
                                                          {"n_gpus", devices},
                                                          {"dp", devices},
                                                          {"global_batch", devices},
                                                          {"gpu", "A100-80GB-SXM"},
                                                          {"inter_node", network}}));
    return validation.predictions.back().predicted;
  };
  EXPECT_EQ(step("8", ""), step("8", "4x 100 Gb RoCE per node"));
  EXPECT_LT(step("16", ""), step("16", "4x 100 Gb RoCE per node"));
}

TEST(RunsTest, ASourceMaySpeakOfOthers) {
  const ValidationCatalog reading = load_validation(kCatalog);
  EXPECT_EQ(&reading_of(reading, "llmfoundry"), &reading.sources.at("llmfoundry"));
  EXPECT_EQ(&reading_of(reading, "aleph_alpha_13b"), &reading.sources.at("aleph_alpha_layouts"));
  EXPECT_EQ(&reading_of(reading, "by_hand"), &reading.customs);
}

// "act_ckpt=, seq_len=": the cells in which a row differs.
TEST(RunsTest, ATableWithoutStatusHoldsNoRuns) {
  try {
    validate(kCatalog, parse_table("row_id,dp,bytes\na,8,1\n", "t.csv"), {});
    FAIL() << "no error";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "t.csv: is not a table of runs: the header has no column status; expected a row "
                 "per run, whose status is ok or oom");
  }
}

std::string text_of(const std::vector<Cell>& cells) {
  std::string text;
  for (const Cell& cell : cells) {
    text += (text.empty() ? "" : ", ") + cell.column + "=" + cell.text;
  }
  return text;
}

struct LeftOut {
  std::vector<Cell> cells;
  std::string reason;
};

void PrintTo(const LeftOut& one, std::ostream* out) { *out << text_of(one.cells); }

class LeftOutTest : public testing::TestWithParam<LeftOut> {};

TEST_P(LeftOutTest, WithItsReasonAndWithoutAnError) {
  const Validation validation = validate_rows(row("a", GetParam().cells));
  EXPECT_EQ(validation.scorable, 0);
  ASSERT_EQ(validation.skipped.size(), 1U);
  EXPECT_FALSE(validation.skipped.front().scorable);
  EXPECT_EQ(validation.skipped.front().reason, GetParam().reason);
  EXPECT_EQ(validation.memory.rows, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Unknown, LeftOutTest,
    testing::Values(
        LeftOut{{{"status", "failed"}}, "status 'failed' is neither ok nor oom"},
        LeftOut{{{"peak_mem_gb", ""}, {"step_time_s", ""}}, "no figure of memory"},
        LeftOut{{{"mem_kind", "rocm-smi"}, {"step_time_s", ""}},
                "what its figure of memory measures is not known"},
        LeftOut{{{"tp", "0"}},
                "tp: '0' is out of range; expected a whole number from 1 to 1048576"},
        LeftOut{{{"task", "dpo"}}, "task 'dpo' is not one of pretrain, sft, full and lora"},
        LeftOut{{{"task", "lora"}}, "task lora asks for lora_rank, which is not stated"},
        LeftOut{{{"mem_unit", "bytes"}, {"step_time_s", ""}},
                "what its figure of memory measures is not known"},
        LeftOut{{{"hidden", ""}}, "hidden is not stated"},
        LeftOut{{{"vocab", ""}, {"seq_len", ""}}, "seq_len is not stated; vocab is not stated"},
        LeftOut{{{"n_gpus", "3"}}, "dp x tp x pp x cp is not n_gpus"},
        LeftOut{{{"global_batch", "3"}}, "global_batch is not a multiple of micro_batch x dp"},
        LeftOut{{{"n_heads", "3"}},
                "head_dim is not stated; n_heads is not a multiple of n_kv_heads"}));

struct Failing {
  std::vector<Cell> cells;
  std::string reason;
};

void PrintTo(const Failing& one, std::ostream* out) { *out << text_of(one.cells); }

class FailingTest : public testing::TestWithParam<Failing> {};

TEST_P(FailingTest, CountsAsAnErrorOfOneHundredPercent) {
  const Validation validation = validate_rows(row("a", GetParam().cells) + row("b"));
  EXPECT_EQ(validation.scorable, 2);
  EXPECT_EQ(validation.predicted, 1);
  ASSERT_EQ(validation.skipped.size(), 1U);
  EXPECT_TRUE(validation.skipped.front().scorable);
  EXPECT_NE(validation.skipped.front().reason.find(GetParam().reason), std::string::npos)
      << validation.skipped.front().reason;
  EXPECT_EQ(validation.memory.rows, 2);
  EXPECT_EQ(validation.memory.worst_abs, 1);
  // Finished, and not judged to fit: counted as judged wrongly.
  EXPECT_EQ(validation.out_of_memory.false_positive, 1);
  EXPECT_EQ(validation.out_of_memory.true_negative, 1);
}

INSTANTIATE_TEST_SUITE_P(
    Words, FailingTest,
    testing::Values(Failing{{{"act_ckpt", "some"}}, "'some' is not a known word"},
                    Failing{{{"precision", "int3"}}, "'int3' is not a known word"},
                    Failing{{{"optimizer", "Newton"}}, "'Newton' is not a known word"},
                    Failing{{{"gpu", "abacus"}}, "'abacus' is not a known word"},
                    Failing{{{"mlp_type", "swish"}}, "'swish' is not a known MLP"},
                    Failing{{{"pos_embedding", "sine"}},
                            "'sine' is not a known position embedding"},
                    Failing{{{"dp", "1"}, {"pp", "2"}, {"pp_schedule", "round"}},
                            "'round' is not a known word"}));

TEST(RunsTest, JudgesWhetherARunFits) {
  // 2 x 10^9 words of 8192: 16 x 10^12 parameters' bytes pass any device; the small run fits.
  const std::vector<Cell> huge = {
      {"vocab", "2000000000"}, {"hidden", "8192"}, {"n_heads", "64"}, {"n_kv_heads", "64"}};
  std::vector<Cell> huge_oom = huge;
  huge_oom.push_back({"status", "oom"});
  huge_oom.push_back({"peak_mem_gb", ""});
  const Validation validation =
      validate_rows(row("fits") + row("ran out", huge_oom) + row("finished", huge) +
                    row("small", {{"status", "oom"}, {"peak_mem_gb", ""}}));
  EXPECT_EQ(validation.out_of_memory,
            (Confusion{
                .true_positive = 1, .false_positive = 1, .false_negative = 1, .true_negative = 1}));
}

TEST(RunsTest, ConditionsChooseRows) {
  ValidateOptions options{.engine = "placet", .where = {parse_condition("row_id=x*", "--where")}};
  const Validation validation = validate_rows(row("x1") + row("y") + row("x2"), options);
  EXPECT_EQ(validation.rows, 2);
  options.where = {parse_condition("rowid=x", "--where")};
  EXPECT_THROW(validate_rows(row("x1"), options), InputError);
  EXPECT_THROW(parse_condition("row_id", "--where"), InputError);
  EXPECT_THROW(parse_condition("=x", "--where"), InputError);
}

// Of x1, x2, x3: the first and the third are even, the second is odd; y is not chosen.
TEST(RunsTest, HalvesShareTheChosenRows) {
  const std::string rows = row("x1") + row("y") + row("x2") + row("x3");
  ValidateOptions options{.engine = "placet", .where = {parse_condition("row_id=x*", "--where")}};
  options.half = Half::even;
  EXPECT_EQ(validate_rows(rows, options).rows, 2);
  options.half = Half::odd;
  const Validation odd = validate_rows(rows, options);
  EXPECT_EQ(odd.rows, 1);
  EXPECT_EQ(odd.predictions.front().labels.row_id, "x2");
}

// The other rows stand; a table of which none does is wrong input.
TEST(RunsTest, ABadCellLeavesOutItsRow) {
  const Validation validation = validate_rows(row("a", {{"dp", "two"}}) + row("b"));
  EXPECT_EQ(validation.predicted, 1);
  ASSERT_EQ(validation.skipped.size(), 1U);
  EXPECT_EQ(validation.skipped.front().row_id, "a");
  EXPECT_EQ(validation.skipped.front().reason,
            "dp: 'two' is not a whole number; expected a whole number from 0");
  EXPECT_THROW(validate_rows(row("a", {{"dp", "two"}})), InputError);
}

// Bytes alive are fewer than what the allocator reserves for them, and nvidia-smi sees what lies
// outside of it too: three measures of one row, of which the first decides.
TEST(RunsTest, ThreeMeasuresOfMemoryStandApart) {
  const Validation validation = validate_rows(row("a", {{"peak_mem_gb", ""},
                                                        {"mem_kind", ""},
                                                        {"step_time_s", ""},
                                                        {"max_allocated_gib", "1"},
                                                        {"max_reserved_gib", "1"},
                                                        {"nvidia_smi_gib", "1"}}),
                                              {.engine = "megatron"});
  ASSERT_EQ(validation.predictions.size(), 3U);
  EXPECT_EQ(validation.predictions[0].measure, "reserved");
  EXPECT_EQ(validation.predictions[1].measure, "nvidia-smi");
  EXPECT_EQ(validation.predictions[2].measure, "allocated");
  EXPECT_TRUE(validation.predictions[0].decides);
  EXPECT_FALSE(validation.predictions[1].decides || validation.predictions[2].decides);
  EXPECT_LT(validation.predictions[2].predicted, validation.predictions[0].predicted);
  EXPECT_LT(validation.predictions[0].predicted, validation.predictions[1].predicted);
}

struct DeviceWord {
  std::string printed;
  std::string device;
};
void PrintTo(const DeviceWord& one, std::ostream* out) { *out << one.printed; }
class DeviceWordTest : public testing::TestWithParam<DeviceWord> {};

// As torch.cuda.get_device_name and nvidia-smi print them: the same figures as by our own names.
TEST_P(DeviceWordTest, IsUnderstood) {
  const Validation printed = validate_rows(row("a", {{"gpu", GetParam().printed}}));
  const Validation named = validate_rows(row("a", {{"gpu", GetParam().device}}));
  ASSERT_EQ(printed.predicted, 1);
  ASSERT_EQ(named.predicted, 1);
  EXPECT_EQ(printed.fits.front().capacity, named.fits.front().capacity);
  EXPECT_EQ(printed.predictions.back().predicted, named.predictions.back().predicted);
}

INSTANTIATE_TEST_SUITE_P(
    Printed, DeviceWordTest,
    testing::Values(
        DeviceWord{"NVIDIA H100 80GB HBM3", "h100-sxm"},
        DeviceWord{"NVIDIA H100 PCIe", "h100-pcie"}, DeviceWord{"NVIDIA H100 NVL", "h100-nvl"},
        DeviceWord{"NVIDIA H200", "h200-sxm"}, DeviceWord{"NVIDIA A100-SXM4-80GB", "a100-80gb-sxm"},
        DeviceWord{"NVIDIA A100-SXM4-40GB", "a100-40gb-sxm"},
        DeviceWord{"NVIDIA A100-PCIE-40GB", "a100-40gb-pcie"},
        DeviceWord{"NVIDIA A100 80GB PCIe", "a100-80gb-pcie"},
        DeviceWord{"Tesla V100-SXM2-32GB", "v100-32gb-sxm"},
        DeviceWord{"Tesla V100-SXM2-16GB", "v100-16gb-sxm"}, DeviceWord{"NVIDIA B200", "b200-sxm"},
        DeviceWord{"NVIDIA L40S", "l40s"}, DeviceWord{"NVIDIA GeForce RTX 4090", "rtx-4090"},
        DeviceWord{"NVIDIA RTX A6000", "rtx-a6000"}, DeviceWord{"Tesla T4", "t4"},
        DeviceWord{"NVIDIA A10G", "a10g"}, DeviceWord{"AMD Instinct MI300X", "mi300x"}));

// Sixteen devices of two hosts: an eighth of the bandwidth makes the step longer; what is no link
// is told and stands for the usual one.
TEST(RunsTest, ALinkAmongHostsIsRead) {
  const auto step = [](const std::string& network) {
    return validate_rows(row("a", {{"n_gpus", "16"},
                                   {"dp", "16"},
                                   {"global_batch", "16"},
                                   {"vocab", "131072"},
                                   {"inter_node", network}}));
  };
  const Validation usual = step("");
  const Validation slow = step("400 Gb/s per node");
  const Validation unknown = step("string and two cans");
  EXPECT_GT(slow.predictions.back().predicted, usual.predictions.back().predicted);
  EXPECT_EQ(unknown.predictions.back().predicted, usual.predictions.back().predicted);
  ASSERT_EQ(unknown.notes.size(), 1U);
  EXPECT_EQ(unknown.notes.begin()->first,
            "inter_node 'string and two cans' is no link that is known: the device's usual one "
            "stands in");
}

TEST(RunsTest, AnUnknownEngineIsAnInputError) {
  EXPECT_THROW(validate_rows(row("a"), {.engine = "abacus"}), InputError);
}

TEST(RunsTest, ThreadsDoNotChangeTheResult) {
  std::string rows;
  for (int i = 0; i < 20; ++i) {
    rows += row("r" + std::to_string(i), {{"seq_len", std::to_string(64 * (i + 1))}});
  }
  const Validation one = validate_rows(rows, {.engine = "placet", .threads = 1});
  const Validation four = validate_rows(rows, {.engine = "placet", .threads = 4});
  ASSERT_EQ(one.predictions.size(), four.predictions.size());
  for (std::size_t i = 0; i < one.predictions.size(); ++i) {
    EXPECT_EQ(one.predictions[i].labels.row_id, four.predictions[i].labels.row_id);
    EXPECT_EQ(one.predictions[i].predicted, four.predictions[i].predicted);
  }
}

}  // namespace
}  // namespace placet
