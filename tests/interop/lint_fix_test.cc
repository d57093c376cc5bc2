// What findings mend, written into the text.
#include "interop/lint_fix.h"

#include <gtest/gtest.h>

namespace placet {
namespace {

// The text after all that can be mended is.
std::string mended(const std::string& text, SourceForm form, Words given = {}) {
  const Source source = parse_source(text, form, "f");
  const Imported imported = import_sources(
      find_catalog(), {.sources = {source}, .dialect = {}, .given = std::move(given)});
  return fixed_text(text, form, imported.findings).text;
}

TEST(LintFixTest, AMisspeltKeyIsRenamed) {
  EXPECT_EQ(
      mended("{\n  \"train_batch_size\": 8,\n  \"gradient_clipp1ng\": 1.0\n}\n", SourceForm::json),
      "{\n  \"train_batch_size\": 8,\n  \"gradient_clipping\": 1.0\n}\n");
}

// The last key of an object goes, and with it the comma before it.
TEST(LintFixTest, AKeyIsTakenOutOfJson) {
  EXPECT_EQ(mended("{\n\"zero_optimization\": {\n\"stage\": 3,\n\"offload_optimizer\": {\n"
                   "  \"device\": \"nvme\",\n  \"ratio\": 0.5\n}}}\n",
                   SourceForm::json),
            "{\n\"zero_optimization\": {\n\"stage\": 3,\n\"offload_optimizer\": {\n"
            "  \"device\": \"nvme\"\n}}}\n");
}

TEST(LintFixTest, AnOptionIsAddedBesideAnother) {
  EXPECT_EQ(mended("--num-layers 8 \\\n--num-experts 8 \\\n--tensor-model-parallel-size 2 \\\n",
                   SourceForm::arguments),
            "--num-layers 8 \\\n--sequence-parallel --num-experts 8 \\\n"
            "--tensor-model-parallel-size 2 \\\n");
}

TEST(LintFixTest, AnOptionIsTakenOut) {
  EXPECT_EQ(mended("--num-layers 8 \\\n--sequence-parallel --bf16 \\\n", SourceForm::arguments),
            "--num-layers 8 \\\n --bf16 \\\n");
}

// 5 - 1 = 4 micro-batches are the least, 2 are said.
TEST(LintFixTest, AValueIsReplaced) {
  EXPECT_EQ(mended("parallelism:\n  dp: 1\n  tp: 1\n  pp: 5\n  pp_engine: 1f1b\ntokens:\n"
                   "  batch_accumulation_per_replica: 2\n",
                   SourceForm::yaml),
            "parallelism:\n  dp: 1\n  tp: 1\n  pp: 5\n  pp_engine: 1f1b\ntokens:\n"
            "  batch_accumulation_per_replica: 5\n");
}

TEST(LintFixTest, WhatIsIgnoredStays) {
  const std::string text = "--num-layers 8\n--sequence-parallel # placet: ignore=PL012,PL017\n";
  EXPECT_EQ(mended(text, SourceForm::arguments), text);
}

}  // namespace
}  // namespace placet
