// Settings of sources, each with its line.
#include "interop/source.h"

#include <gtest/gtest.h>

#include "units/error.h"

namespace placet {
namespace {

std::vector<Setting> settings_of(const std::string& text, SourceForm form) {
  return parse_source(text, form, "f").settings;
}

std::string fault_of(const std::string& text, SourceForm form) {
  try {
    parse_source(text, form, "f");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(SourceTest, TomlKeysStandBelowTheirHeading) {
  const std::vector<Setting> expected = {{"training.seq_len", "4096", 3},
                                         {"training.names", "[a, b]", 4}};
  EXPECT_EQ(settings_of("# c\n[training]\nseq_len = 4096\nnames = ['a', 'b']\n", SourceForm::toml),
            expected);
}

TEST(SourceTest, YamlAndJsonKeysAreJoinedByDots) {
  const std::vector<Setting> expected = {{"a.b", "1", 2}, {"a.c[0].d", "x", 3}, {"e", "[1, 2]", 4}};
  EXPECT_EQ(settings_of("a:\n  b: 1\n  c: [{d: x}]\ne: [1, 2]\n", SourceForm::yaml), expected);
  EXPECT_EQ(settings_of("{\"a\": {\n\"b\": 1,\n\"c\": [{\"d\": \"x\"}]},\n\"e\": [1, 2]}",
                        SourceForm::json),
            expected);
}

TEST(SourceTest, ArgumentsOfAScriptAreReadAndVariablesResolved) {
  const std::vector<Setting> expected = {{"--nodes", "4", 1}, {"TP", "8", 2},
                                         {"--tp", "8", 4},    {"--bf16", "true", 5},
                                         {"--seq", "$X", 5},  {"--split", "99,1", 6}};
  EXPECT_EQ(settings_of("#SBATCH --nodes=4\nTP=8\nARGS=\"\n--tp ${TP} \\\n--bf16 --seq $X\n"
                        "\"--split 99,1\"\n# --not this\n",
                        SourceForm::arguments),
            expected);
}

TEST(SourceTest, CommandsOfAScriptAreNeverRun) {
  const std::vector<Setting> expected = {{"--a", "$(touch /tmp/x)", 1}};
  EXPECT_EQ(settings_of("--a \"$(touch /tmp/x)\"", SourceForm::arguments), expected);
}

// Each line doubles A: past 4096 bytes it stays as it is written.
TEST(SourceTest, VariablesThatDoubleEachOtherStopGrowing) {
  std::string text = "A=xx\n";
  for (int i = 0; i < 40; ++i) text += "B" + std::to_string(i) + "=$A$A\n";
  for (int i = 0; i < 40; ++i) {
    text +=
        "C" + std::to_string(i + 1) + "=$C" + std::to_string(i) + "$C" + std::to_string(i) + "\n";
  }
  text = "C0=xx\n" + text;
  for (const Setting& setting : settings_of(text, SourceForm::arguments)) {
    EXPECT_LE(setting.value.size(), 8192U) << setting.path;
  }
}

// The branches of a condition: neither value is the one that holds.
TEST(SourceTest, AVariableOfTwoValuesIsUnresolved) {
  const auto settings = settings_of("TP=8\nTP=2\n--tp $TP\n", SourceForm::arguments);
  EXPECT_EQ(settings.back(), (Setting{"--tp", "$TP", 3}));
}

// What runs the script, where output goes, and what comes after are no values of the option.
TEST(SourceTest, AnOptionEndsWhereItsCommandDoes) {
  const auto settings = settings_of(
      "torchrun --nproc_per_node 8 train.py --seq 4096 2>&1 | tee log\n--bf16 && echo done\n",
      SourceForm::arguments);
  const std::vector<Setting> expected = {
      {"--nproc_per_node", "8", 1}, {"--seq", "4096", 1}, {"--bf16", "true", 2}};
  EXPECT_EQ(settings, expected);
}

TEST(SourceTest, BytesThatAreNoTextAreReplaced) {
  const auto settings = settings_of("--name a\xff", SourceForm::arguments);
  EXPECT_EQ(settings.back().value, "a\xef\xbf\xbd");
}

TEST(SourceTest, LongHeadingsAndKeysAreReadOrRefused) {
  EXPECT_NE(fault_of("[" + std::string(999, ' ') + "\n", SourceForm::toml), "");
  const std::string key(1000, 'k');
  EXPECT_EQ(fault_of(key + ":\n  " + key + ":\n    " + key + ": 1\n", SourceForm::yaml),
            "f:3: has keys that are too long; expected 2048 bytes from the outermost key on");
}

TEST(SourceTest, TextsThatExplodeAreRefusedWithTheirLine) {
  EXPECT_EQ(fault_of("a: &x [1]\nb: [*x, *x]\n", SourceForm::yaml),
            "f:2: holds an alias; expected values that are written out");
  EXPECT_EQ(fault_of(std::string(100, '['), SourceForm::json),
            "f:1: is nested too deep; expected 64 levels");
  EXPECT_NE(fault_of("a: [1\n", SourceForm::yaml).find("f:2: is malformed"), std::string::npos);
}

}  // namespace
}  // namespace placet
