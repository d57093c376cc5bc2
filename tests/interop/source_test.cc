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

TEST(SourceTest, TextsThatExplodeAreRefusedWithTheirLine) {
  EXPECT_EQ(fault_of("a: &x [1]\nb: [*x, *x]\n", SourceForm::yaml),
            "f:2: holds an alias; expected values that are written out");
  EXPECT_EQ(fault_of(std::string(100, '['), SourceForm::json),
            "f:1: is nested too deep; expected 64 levels");
  EXPECT_NE(fault_of("a: [1\n", SourceForm::yaml).find("f:2: is malformed"), std::string::npos);
}

}  // namespace
}  // namespace placet
