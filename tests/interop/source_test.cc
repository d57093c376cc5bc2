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
  const std::vector<Setting> expected = {{"--a", "$(touch /tmp/x)", 1, {"$(touch /tmp/x)"}}};
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

std::vector<std::string> said(const std::string& text) {
  std::vector<std::string> out;
  for (const Setting& setting : settings_of(text, SourceForm::arguments)) {
    if (setting.path.starts_with("--")) out.push_back(setting.path + "=" + setting.value);
  }
  return out;
}

TEST(SourceTest, ConditionsOfPlainValuesAreRead) {
  using Texts = std::vector<std::string>;
  const std::string sized =
      "SIZE=${SIZE:-70B}\nif [ \"$SIZE\" = \"8B\" ]; then\n  L=32\n"
      "elif [[ $SIZE == 70B ]]; then\n  L=80\nelse\n  exit 1\nfi\n--num-layers $L\n";
  EXPECT_EQ(said(sized), Texts{"--num-layers=80"});
  const std::string chosen =
      "SIZE=8B\ncase $SIZE in\n  7B|8B) L=32; H=4096 ;;\n  *)\n    L=80\n    ;;\nesac\n"
      "--num-layers $L --hidden-size $H\n";
  EXPECT_EQ(said(chosen), (Texts{"--num-layers=32", "--hidden-size=4096"}));
  const std::string one_line =
      "FSDP=0; if [ $FSDP -eq 1 ]; then A=\"--fsdp\"; else A=\"--dp\"; fi\n";
  EXPECT_EQ(said(one_line), Texts{"--dp=true"});
  EXPECT_EQ(said("R=1\n[ $R -gt 0 ] && A=\"--recompute\"\n[[ $R != 1 ]] && B=\"--none\"\n"),
            Texts{"--recompute=true"});
  EXPECT_EQ(said("A=1\nif [ $A = 1 ] && [ $A -lt 9 ]; then\n--x\nfi\n"), Texts{"--x=true"});
}

// What a script is called with, files and patterns are not known: both branches are read.
TEST(SourceTest, ConditionsOfOtherValuesMayHold) {
  for (const char* test : {"[ $1 = 2 ]", "[ -f load ]", "[[ $A == 8* ]]", "(( A > 1 ))"}) {
    const std::string text = std::string("A=8B\nif ") + test + "; then\n--x 1\nelse\n--x 2\nfi\n";
    EXPECT_EQ(said(text), (std::vector<std::string>{"--x=1", "--x=2"})) << test;
  }
  EXPECT_EQ(said("for i in 1 2; do\nTP=$i\ndone\nTP=8\n--tp $TP\n").back(), "--tp=$TP");
}

TEST(SourceTest, BranchesThatAreNotTakenStayInTheLedger) {
  const Source source =
      parse_source("A=0\nif [ $A = 1 ]; then\n--x 1\nfi\n", SourceForm::arguments, "f");
  ASSERT_EQ(source.idle.size(), 1U);
  EXPECT_EQ(source.idle[0], (Setting{"--x", "1", 3}));
}

// What runs the script, where output goes, and what comes after are no values of the option.
TEST(SourceTest, AnOptionEndsWhereItsCommandDoes) {
  const auto settings = settings_of(
      "torchrun --nproc_per_node 8 train.py --seq 4096 2>&1 | tee log\n--bf16 && echo done\n",
      SourceForm::arguments);
  const std::vector<Setting> expected = {
      {.path = "--nproc_per_node", .value = "8", .line = 1, .command = 1},
      {.path = "--seq", .value = "4096", .line = 1, .command = 1},
      {.path = "--bf16", .value = "true", .line = 2}};
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

TEST(SourceTest, AliasesStandForWhatTheirAnchorsName) {
  EXPECT_EQ(
      settings_of("a: &x\n  b: 1\nc: *x\nd:\n  <<: *x\n  x: 2\n", SourceForm::yaml),
      (std::vector<Setting>{{"a.b", "1", 2}, {"c.b", "1", 3}, {"d.b", "1", 5}, {"d.x", "2", 6}}));
  // A key of the object's own wins over a merged one, whatever the order.
  EXPECT_EQ(settings_of("a: &x {b: 1}\nd:\n  b: 3\n  <<: *x\n", SourceForm::yaml),
            (std::vector<Setting>{{"a.b", "1", 1}, {"d.b", "3", 3}}));
}

TEST(SourceTest, ReferencesToPlainValuesAreReplaced) {
  const std::vector<Setting> expected = {
      {"v.len", "2048", 1}, {"a.seq", "2048", 3}, {"a.same", "2048", 4}, {"a.f", "${mul:2,3}", 5}};
  EXPECT_EQ(settings_of("v: {len: 2048}\na:\n  seq: ${v.len}\n  same: ${.seq}\n"
                        "  f: ${mul:2,3}\n",
                        SourceForm::yaml),
            expected);
  EXPECT_EQ(settings_of("a: ${b}\nb: ${a}\n", SourceForm::yaml).size(), 2U);
}

TEST(SourceTest, CommentsAndLooseWordsOfHjsonAreRead) {
  const std::vector<Setting> expected = {
      {"zero.stage", "3", 3}, {"zero.device", "cpu", 4}, {"list", "[1, 2]", 7}, {"name", "a b", 8}};
  EXPECT_EQ(settings_of("{ // one\n  zero: { # two\n    \"stage\": 3,\n    device: cpu\n"
                        "    /* more\n   */ }\n  list: [1, 2,],\n  name: a b\n}\n",
                        SourceForm::json),
            expected);
}

TEST(SourceTest, DefaultsAndProductsOfAShellAreWorkedOut) {
  const auto settings =
      settings_of("N=4\nW=$(($N*8))\n--a ${X:-7} --b $W --c $(($N+$X))\n", SourceForm::arguments);
  const std::vector<Setting> expected = {
      {"N", "4", 1}, {"W", "32", 2}, {"--a", "7", 3}, {"--b", "32", 3}, {"--c", "$((4+$X))", 3}};
  EXPECT_EQ(settings, expected);
}

TEST(SourceTest, TextsThatExplodeAreRefusedWithTheirLine) {
  std::string bomb = "a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int n = 0; n < 9; ++n) bomb += "*a" + before + (n < 8 ? ", " : "]\n");
  }
  EXPECT_NE(fault_of(bomb, SourceForm::yaml).find("stand for too much"), std::string::npos);
  EXPECT_NE(fault_of("a: *b\n", SourceForm::yaml).find("f:1: has an alias of nothing"),
            std::string::npos);
  EXPECT_NE(fault_of("a: &x [*x]\n", SourceForm::yaml).find("f:1: has an alias of nothing"),
            std::string::npos);
  EXPECT_EQ(fault_of("{\"a\": " + std::string(100, '['), SourceForm::json),
            "f:1: is nested too deep; expected 64 levels");
  EXPECT_NE(fault_of("a: [1\n", SourceForm::yaml).find("f:2: is malformed"), std::string::npos);
  EXPECT_NE(fault_of("{\"a\": \"b", SourceForm::json), "");
}

}  // namespace
}  // namespace placet
