// The program from outside: exit status, standard output, standard error.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/program_run.h"

namespace placet {
namespace {

using Json = nlohmann::json;

const std::string kFits =
    "derive llama-3.1-8b --cluster h100-sxm:1 --seq 4096 "
    "--placement \"dp=8:zero3\" --recompute full ";
const std::string kDoesNotFit =
    "derive llama-3.1-70b --cluster h100-sxm:1 --placement \"dp=8:ddp\" ";

TEST(ExitStatusTest, TellsTheJudgement) {
  EXPECT_EQ(run(kFits).status, 0);
  EXPECT_EQ(run(kDoesNotFit).status, 1);
  EXPECT_EQ(run("derive llama-3.1-8b --placement dp=8:ddp").status, 0)
      << "nothing to judge against";
  EXPECT_EQ(run("derive llama-3.1-8b --placement tp=7:tp").status, 1) << "32 heads over 7";
}

// What means nothing has no figures; the keys of the JSON stay.
TEST(ExitStatusTest, APlacementWithoutMeaningHasNoFigures) {
  const std::string job = "derive llama-3.1-8b --cluster h100-sxm:1 --global-batch 8 ";
  const Result text = run(job + "--explain --placement \"dp=8:batch(S,S,S,R)\"");
  EXPECT_EQ(text.status, 1);
  EXPECT_TRUE(has(text.out, "no figures: the placement has no meaning"));
  EXPECT_TRUE(has(text.out, "cure: dp=8:batch(S*,S,S,R)"));
  EXPECT_FALSE(has(text.out, " GB"));
  const Result json = run(job + "--json --placement \"dp=8:ddp;ffn:tensor(S,S,S,R)\"");
  EXPECT_EQ(json.status, 1);
  EXPECT_TRUE(has(json.out, "\"peak_bytes\": null"));
  EXPECT_TRUE(has(json.out, "\"sent_bytes\": null"));
  EXPECT_TRUE(has(json.out, "\"fits\": false"));
  const Result both =
      run("compare llama-3.1-8b --cluster h100-sxm:1 --global-batch 8 "
          "--placement \"dp=8:batch(S,S,S,R)\" --placement dp=8:zero3");
  EXPECT_TRUE(has(both.out, "1 of 2 fits: B."));
  EXPECT_EQ(both.err, "");
}

TEST(ExitStatusTest, HelpAndVersionAreNoErrors) {
  for (const char* arguments : {"", "--help", "--version", "derive --help", "compare -h"}) {
    const Result result = run(arguments);
    EXPECT_EQ(result.status, 0) << arguments;
    EXPECT_NE(result.out, "") << arguments;
    EXPECT_EQ(result.err, "") << arguments;
  }
  EXPECT_TRUE(has(run("derive --help").out, "Examples:"));
}

// echo in the place of Python says what it would have been given.
TEST(TorchTest, CallsAreHandedToPythonWordByWord) {
  const auto ends = [](const Result& result, const std::string& words) {
    return result.out.ends_with(words + "\n");
  };
  const std::string echo = "PLACET_PYTHON=echo";
  EXPECT_TRUE(ends(run("audit run.json --model gpt2 --step 3", echo),
                   " audit run.json --model gpt2 --step 3"));
  EXPECT_TRUE(ends(run("check --torch train.py --world 4 -- --torch x", echo),
                   " check train.py --world 4 -- --torch x"));
  EXPECT_TRUE(ends(run("check --world 4 --torch=train.py", echo), " check --world 4 train.py"));
}

TEST(TorchTest, WithoutPythonAMessageSaysWhatIsNeeded) {
  for (const char* call : {"audit run.json", "check --torch train.py --world 2"}) {
    const Result result = run(call, "PLACET_PYTHON=/nowhere/python");
    EXPECT_EQ(result.status, 2) << call;
    EXPECT_EQ(result.out, "") << call;
    EXPECT_TRUE(has(result.err, "'/nowhere/python' cannot be started")) << result.err;
    EXPECT_TRUE(has(result.err, "pip install ./python")) << result.err;
  }
  EXPECT_EQ(run("audit --help").status, 0);
}

TEST(WrongInputTest, EveryMessageSaysWhereAndWhat) {
  expect_wrong_input("derve 70B", "subcommand: 'derve' is not known;");
  expect_wrong_input("--memory_limit 1GB derve 70B", "subcommand: 'derve' is not known;");
  expect_wrong_input("derve 70B", "did you mean 'derive'?");
  expect_wrong_input("derive 70B --placment dp=8:ddp", "did you mean '--placement'?");
  expect_wrong_input("derive 70B extra --placement dp=8:ddp",
                     "placet derive: 'extra' is one argument too many");
  expect_wrong_input("derive --placement dp=8:ddp", "MODEL: is missing");
  expect_wrong_input("derive 70B", "--placement: is missing");
  expect_wrong_input("derive 70B --placement dp=8:zero9", "did you mean 'zero");
  expect_wrong_input("derive llama-3.1-7b --placement dp=8:ddp", "did you mean 'llama-3.1-");
  expect_wrong_input("derive 70B --placement dp=8:ddp --seq 4q",
                     "--seq: '4q' is not a number of tokens; expected 1 to 1000000000");
  expect_wrong_input("derive 70B --placement dp=8:ddp --micro-batch 0", "--micro-batch: '0'");
  expect_wrong_input("derive 70B --placement dp=8:ddp --clip -2", "--clip: '-2' is not a norm");
  expect_wrong_input("derive 70B --placement dp=8:ddp --cluster h10", "did you mean 'a10'?");
  expect_wrong_input("derive 70B --placement dp=8:ddp --explain memroy", "did you mean 'memory'?");
  expect_wrong_input("derive 70B --placement dp=8:ddp --placement dp=8:zero1",
                     "`placet compare` takes several");
  expect_wrong_input("derive 70B --placement", "placet derive: --placement");
  expect_wrong_input("--color sometimes devices", "--color");
  expect_wrong_input("completion tcsh", "placet completion:");
  expect_wrong_input("derive --job /no/such/file.toml",
                     "/no/such/file.toml: the file cannot be read");
  expect_wrong_input("compare 70B", "--placement: is missing");
  expect_wrong_input("derive 70B --placement dp=8:ddp --html /no/such/folder/x.html",
                     "--html: '/no/such/folder/x.html' cannot be written");
}

TEST(WrongInputTest, JsonModeKeepsStandardOutputEmpty) {
  expect_wrong_input("derive 70B --placement dp=8:zero9 --json", "placement, character 6: 'zero9'");
}

// A tensor axis of 4 whose ranks stand 4 apart crosses hosts of 8; written last it does not.
TEST(LinkOrderTest, ATensorAxisAcrossHostsIsAdvisedAgainst) {
  const std::string outside =
      "llama-3.1-8b --cluster h100-sxm:2 --placement \"tp=4:tp dp=4:zero1\" --seq 4096 ";
  const std::string inside =
      "llama-3.1-8b --cluster h100-sxm:2 --placement \"dp=4:zero1 tp=4:tp\" --seq 4096 ";
  const Result advised = run("derive " + outside);
  EXPECT_EQ(advised.status, 0) << "advice breaks no rule";
  EXPECT_TRUE(has(advised.out, "advice    link-order, axis tp")) << advised.out;
  EXPECT_TRUE(has(advised.out, "cure: write tp after dp")) << advised.out;
  EXPECT_FALSE(has(run("derive " + inside).out, "link-order"));
  EXPECT_TRUE(
      has(run("compare " + outside + "--placement dp=16:zero3 --json").out, "write tp after dp"));
  const Json findings = Json::parse(run("derive " + outside + "--json").out).at("findings");
  ASSERT_EQ(findings.size(), 1U) << findings;
  EXPECT_EQ(findings[0].at("rule"), "link-order");
  EXPECT_EQ(findings[0].at("severity"), "advice");
  EXPECT_EQ(findings[0].at("cure"), "write tp after dp");
}

TEST(JsonTest, IsOneDocumentAndNothingElse) {
  const Result result = run(kFits + "--json");
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.err, "");
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["schema"], "placet.derivation/1");
  EXPECT_EQ(json["devices"], 8);
  EXPECT_TRUE(json["memory"]["fits"].get<bool>());
  EXPECT_EQ(json["mesh"][0]["modes"]["parameters"], "S*");
  std::int64_t largest = 0;
  for (const Json& memory : json["memory"]["classes"]) {
    std::int64_t sum = 0;
    for (const auto& [key, value] : memory["bytes"].items()) {
      if (key != "total") sum += value.get<std::int64_t>();
    }
    EXPECT_EQ(memory["bytes"]["total"], sum);
    largest = std::max(largest, sum);
  }
  EXPECT_EQ(json["memory"]["peak_bytes"], largest);
}

TEST(JsonTest, EveryCatalogueIsListed) {
  for (const char* kind : {"strategies", "schedules", "models", "clusters", "devices", "engines"}) {
    const Result result = run(std::string(kind) + " --json");
    EXPECT_EQ(result.status, 0) << result.err;
    const Json json = Json::parse(result.out);
    EXPECT_EQ(json["kind"], kind);
    EXPECT_GE(json["entries"].size(), 1U) << kind;
    EXPECT_EQ(run(std::string(kind)).status, 0) << kind;
    EXPECT_TRUE(has(run(std::string(kind) + " --names").out,
                    json["entries"][0]["name"].get<std::string>() + "\n"));
  }
}

TEST(JsonTest, TheSameCallPrintsTheSameBytes) {
  EXPECT_EQ(run(kFits + "--json").out, run(kFits + "--json").out);
}

// ZeRO-3 sends 3/2 of what whole replicas send.
TEST(CompareTest, AnswersWithRatios) {
  const Result result = run("compare 70B --placement dp=8:ddp --placement dp=8:zero3 --json");
  EXPECT_EQ(result.status, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_NEAR(json["ratios"][1]["sent"].get<double>(), 1.5, 1e-6);
  EXPECT_TRUE(has(run("compare 70B --placement dp=8:ddp --placement dp=8:zero3").out, "1.50x"));
}

// Without --global-batch all placements make the same step.
TEST(CompareTest, ComparesEqualSteps) {
  const Result result =
      run("compare llama-3.1-8b --placement dp=8:ddp --placement \"dp=2:ddp tp=4:tp\" --json");
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["derivations"][0]["training"]["global_batch"], 8);
  EXPECT_EQ(json["derivations"][1]["training"]["global_batch"], 8);
  EXPECT_EQ(json["derivations"][1]["training"]["micro_batches"], 4);
}

TEST(JobFileTest, FlagsWinOverTheFile) {
  const Folder folder;
  const std::string job = folder.write("job.toml",
                                       "model = \"llama-3.1-8b\"\n"
                                       "placement = \"dp=8:zero3\"\n"
                                       "seq = 2048\n");
  const Json json = Json::parse(run("derive --job " + job + " --seq 1024 --json").out);
  EXPECT_EQ(json["training"]["sequence"], 1024);
  EXPECT_EQ(json["placement"], "dp=8:zero3");
}

TEST(ExplainTest, ShowsTheTermsOfANumber) {
  EXPECT_TRUE(has(run(kFits + "--explain").out, "Terms of memory"));
  EXPECT_TRUE(has(run(kFits + "--explain optimizer").out, "Terms of optimizer"));
  EXPECT_TRUE(has(run(kFits + "--explain communication").out, "Terms of communication"));
}

TEST(ExplainTest, OfEveryPlacementThatIsCompared) {
  const std::string out =
      run("compare llama-3.1-8b --placement dp=8:ddp --placement dp=8:zero3 --explain optimizer")
          .out;
  const std::size_t first = out.find("Terms of optimizer");
  ASSERT_NE(first, std::string::npos);
  EXPECT_NE(out.find("Terms of optimizer", first + 1), std::string::npos);
  expect_wrong_input("compare gpt2 --placement dp=8:ddp --explain optimiser", "'optimizer'");
}

TEST(HtmlTest, WritesOnePage) {
  const Folder folder;
  const std::string page = folder.file("page.html");
  EXPECT_EQ(run(kFits + "--html " + page).status, 0);
  EXPECT_TRUE(read(page).starts_with("<!doctype html>"));
}

// What each command says stands on its page, and nothing is fetched by it.
TEST(HtmlTest, OfEveryCommandThatJudges) {
  const Folder folder;
  const std::string page = folder.file("page.html");
  const std::string job = " gpt2 --placement dp=2:ddp --global-batch 4 --html " + page;
  const std::string fault = " --fault \"rescale(all_reduce, phase=reduce, by=2)\"";
  const std::string table =
      " " PLACET_SOURCE_DIR "/data/validation/tables/korthikanti_memory.csv --html " + page;
  const std::vector<std::pair<std::string, std::string>> said = {
      {"check" + job, "EQUIVALENT to single-device training (two consecutive steps, 2 devices)"},
      {"check" + job + fault, "the scale is 2 times what it should be"},
      {"verify" + job, "agree with the reference"},
      {"verify" + job + fault, "Entries that differ"},
      {"lower" + job, "placet program 1"},
      {"validate" + table, "<circle"}};
  for (const auto& [command, words] : said) {
    run(command);
    const std::string text = read(page);
    EXPECT_TRUE(text.starts_with("<!doctype html>")) << command;
    EXPECT_TRUE(has(text, words)) << command;
    EXPECT_FALSE(has(text, "src=")) << command;
    std::filesystem::remove(page);
  }
}

TEST(HtmlTest, SaysWhatWasJudgedAndHow) {
  const Folder folder;
  const std::string page = folder.file("page.html");
  const std::string fault = "rescale(all_reduce, by=1/dp)";
  run("verify gpt2 --placement dp=4:ddp --global-batch 8 --fault \"" + fault + "\" --html " + page);
  for (const std::string& words : {fault, std::string("gpt2: dp=4:ddp"), std::string("dp=2, 2"),
                                   std::string("not judged here, but by placet check")}) {
    EXPECT_TRUE(has(read(page), words)) << words;
  }
  const std::string list =
      "check gpt2 --placement dp=4:ddp --list-faults --fault \"" + fault + "\"";
  const Json json = Json::parse(run(list + " --json").out);
  EXPECT_EQ(json["faults"][0]["matches"][0]["body"], "class all");
  expect_wrong_input(list + " --html " + page, "does not go with --list-faults");
  run("validate " PLACET_SOURCE_DIR "/data/validation/tables/megatron_sc21_table1.csv --html " +
      page);
  EXPECT_TRUE(has(read(page), "Times are not free of fitting"));
}

TEST(LowerTest, JsonHasTheProgramInIt) {
  const std::string job = "lower gpt2 --placement dp=2:ddp --global-batch 4";
  const Json json = Json::parse(run(job + " --json").out);
  EXPECT_EQ(json["schema"], "placet.program/1");
  EXPECT_EQ(json["text"], run(job).out);
  EXPECT_EQ(json["axes"][0]["degree"], 2);
}

TEST(StyleTest, ColourOnlyWhereItIsWanted) {
  EXPECT_FALSE(has(run(kFits).out, "\x1b["));
  EXPECT_TRUE(has(run("--color always " + kFits).out, "\x1b["));
  EXPECT_TRUE(has(run(kFits + " --color always").out, "\x1b[")) << "also after the subcommand";
}

TEST(StyleTest, WidthComesFromTheFlagOrTheEnvironment) {
  const auto widest = [](const std::string& text) {
    std::size_t most = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) most = std::max(most, line.size());
    return most;
  };
  EXPECT_LE(widest(run("--width 80 " + kFits).out), 80U);
  EXPECT_LE(widest(run(kFits, "COLUMNS=80").out), 80U);
  EXPECT_GT(widest(run("--width 160 " + kFits).out), 100U);
}

TEST(EnvironmentTest, TheCatalogueMayBeElsewhere) {
  const Result result = run("devices", "PLACET_DATA=/no/such/folder");
  EXPECT_EQ(result.status, 2);
  EXPECT_TRUE(
      has(result.err, "environment variable PLACET_DATA: '/no/such/folder' is not a folder"));
}

TEST(PipeTest, AReaderThatLeavesIsNoError) {
  const int raw = std::system("bash -c '" PLACET_PROGRAM
                              " models --json | head -c 1 >/dev/null; exit ${PIPESTATUS[0]}'");
  EXPECT_EQ(WEXITSTATUS(raw), 0);
}

// bash's <(...) is a pipe whose writer may take its time; a named one may find its writer later.
TEST(PipeTest, IsReadAsAModel) {
  const Folder folder;
  const std::string config = PLACET_SOURCE_DIR "/data/models/gpt2.json";
  const std::string script = folder.write(
      "try.sh", "placet=" PLACET_PROGRAM "\ncat " + config + " | $placet model /dev/stdin &&\n" +
                    "$placet model <(sleep 0.7; cat " + config + ") &&\nmkfifo " +
                    folder.file("pipe.json") + " &&\n{ (sleep 0.1; cat " + config + " >" +
                    folder.file("pipe.json") + ") & $placet model " + folder.file("pipe.json") +
                    "; }\n");
  EXPECT_EQ(WEXITSTATUS(std::system(("bash " + script + " >/dev/null").c_str())), 0);
}

TEST(PipeTest, AFullDiskIs) {
  const int raw = std::system(PLACET_PROGRAM " devices >/dev/full 2>/dev/null");
  EXPECT_EQ(WEXITSTATUS(raw), 2);
}

TEST(CompletionTest, EveryShellGetsItsScript) {
  EXPECT_TRUE(has(run("completion bash").out, "complete -o default -F _placet placet"));
  EXPECT_TRUE(has(run("completion zsh").out, "bashcompinit"));
  EXPECT_TRUE(has(run("completion fish").out, "complete -c placet"));
  const int raw = std::system(PLACET_PROGRAM " completion bash | bash -n");
  EXPECT_EQ(WEXITSTATUS(raw), 0);
}

// What bash offers for a line, cut into words as bash cuts it.
std::string offered(const std::string& line, const std::string& words) {
  const Folder folder;
  const std::string script = folder.write(
      "try.sh", "PATH=$(dirname " PLACET_PROGRAM "):$PATH\nsource <(placet completion bash)\n" +
                    ("COMP_LINE='" + line + "' COMP_POINT=${#COMP_LINE} COMP_WORDS=(" + words) +
                    ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_WORDBREAKS='\"@><=;|&(:'\n"
                    "_placet\necho \"${COMPREPLY[*]}\"\n");
  std::system(("bash " + script + " >" + folder.file("out") + " 2>&1").c_str());
  return read(folder.file("out"));
}

TEST(CompletionTest, BashIsOfferedWhatFits) {
  EXPECT_EQ(offered("placet val", "placet val"), "validate\n");
  EXPECT_EQ(offered("placet --width 80 derive --rec", "placet --width 80 derive --rec"),
            "--recompute\n");
  EXPECT_EQ(offered("placet derive --seq ", "placet derive --seq ''"), "\n");
  EXPECT_EQ(offered("placet model gpt2-x", "placet model gpt2-x"), "gpt2-xl\n");
}

// bash replaces the last piece only, so what is offered begins after the separator.
TEST(CompletionTest, BashIsOfferedTheRestOfAWordWithSeparators) {
  EXPECT_EQ(offered("placet derive --routing=b", "placet derive --routing = b"), "balanced\n");
  EXPECT_EQ(offered("placet derive --engine placet@", "placet derive --engine placet @"), "1\n");
  EXPECT_EQ(offered("placet derive --placement dp=8:zero3+zero-infinity-",
                    "placet derive --placement dp = 8 : zero3+zero-infinity-"),
            "zero3+zero-infinity-nvme\n");
}

// Model states by formula, which come out to the printed digits: any tolerance holds but one that
// no rounding meets.
// The loads of each device's own tokens are not those of all: another training, unless accepted.
TEST(CheckCommandTest, BalanceThatDependsOnTheLayoutIsAnotherTraining) {
  const std::string job =
      "check mixtral-8x7b --placement ep=2:ep --seq 256 --global-batch 2 --balance-loss ";
  const Result refused = run(job + "micro-batch");
  EXPECT_EQ(refused.status, 1);
  EXPECT_TRUE(has(refused.err, "--accept aux-scope")) << refused.err;
  const Result accepted = run(job + "micro-batch --accept aux-scope");
  EXPECT_EQ(accepted.status, 0);
  EXPECT_TRUE(has(accepted.err, "left out")) << accepted.err;
  EXPECT_EQ(run(job + "sequence").status, 0);
}

// A wait less changes the order only, which a run over numbers does not judge; a wrong scale
// changes values.
// 12 heads do not divide by 8: the step is that of one device all the same.
TEST(CliTest, CheckSaysWhichRulesAJobBreaks) {
  const Result broken = run("check gpt2 --placement tp=8:tp");
  EXPECT_EQ(broken.status, 0) << broken.err;
  EXPECT_TRUE(has(broken.err, "divisibility, axis tp: 12 heads do not divide by 8")) << broken.err;
  EXPECT_EQ(run("check gpt2 --placement dp=2:ddp").err, "");
}

TEST(VerifyCommandTest, JudgesValuesAndNotTheOrder) {
  const std::string job = "gpt2 --placement dp=2:zero1 --seq 256 --global-batch 4 --fault ";
  const std::string race = job + "'delete(wait, nth=1)'";
  EXPECT_EQ(run("check " + race).status, 1);
  const Result equal = run("verify " + race + " --json");
  EXPECT_EQ(equal.status, 0);
  const Json values = Json::parse(equal.out);
  EXPECT_EQ(values["equivalent"], true);
  EXPECT_EQ(values["conditions"]["order"], "holds");  // in the order of this run
  EXPECT_EQ(values["not_judged"], Json::array({"order"}));
  EXPECT_EQ(values["conditions"]["gradient_integrity"], "holds");
  EXPECT_TRUE(values["findings"].empty());
  EXPECT_TRUE(has(run("verify " + race).out, "not judged here"));
  const Result wrong = run("verify " + job + "'rescale(accumulate, by=2, nth=1)' --json");
  EXPECT_EQ(wrong.status, 1);
  // Two devices with one sample each make two micro-batches of four samples.
  EXPECT_TRUE(has(wrong.err, "small job that is run: 2 blocks on dp=2, 2 micro-batches in a step"));
  EXPECT_EQ(run("verify " + job + "'delete(all_reduce, tensor=loss)'").err, "");
  EXPECT_EQ(Json::parse(wrong.out)["equivalent"], false);
  EXPECT_EQ(Json::parse(wrong.out)["conditions"]["gradient_integrity"], "broken");
  EXPECT_FALSE(Json::parse(wrong.out)["findings"].empty());
}

// How a text is written is told by its first line where no name says it.
TEST(StandardInputTest, IsASourceLikeAFile) {
  const std::string toml = "printf '[parallelism]\\ntensor_parallel_degree = 3\\n' |";
  const Result lint = run("lint - --model llama-3.1-8b --world-size 8", toml);
  EXPECT_EQ(lint.status, 1);
  EXPECT_TRUE(has(lint.out, "-:2: error PL003 heads-over-tensor")) << lint.out << lint.err;
  const Result derive = run("derive --from - --model gpt2 --world-size 2 --seq 128 --json",
                            "printf '[training]\\nlocal_batch_size = 2\\n' |");
  EXPECT_EQ(derive.status, 0) << derive.err;
  EXPECT_EQ(run("lint - --fix --world-size 8", toml).status, 2);
}

TEST(ModelFlagTest, SaysWhatTheArgumentSays) {
  const std::string rest = " --placement dp=2:ddp --seq 128 --json";
  const std::string argument = run("derive gpt2" + rest).out;
  EXPECT_NE(argument, "");
  EXPECT_EQ(run("derive --model gpt2" + rest).out, argument);
  EXPECT_EQ(run("derive --model-name-or-path openai/gpt2" + rest).status, 0);
  expect_wrong_input("derive gpt2 --model gpt2-xl" + rest, "beside the argument 'gpt2'");
}

TEST(ValidateCommandTest, ToleranceIsTheJudgement) {
  const std::string table = PLACET_SOURCE_DIR "/data/validation/tables/zero_model_states.csv";
  EXPECT_EQ(run("validate " + table).status, 0);
  EXPECT_EQ(run("validate " + table + " --tolerance 0.0001").status, 0);
  EXPECT_EQ(run("validate " + table + " --tolerance 0").status, 1);
  const Result json = run("validate " + table + " --constants --json");
  EXPECT_EQ(json.err, "");
  EXPECT_EQ(Json::parse(json.out)["predicted"], 57);
  EXPECT_FALSE(Json::parse(json.out)["constants"].empty());
  EXPECT_EQ(run("validate " + table + " --constants --json").out, json.out);
}

TEST(ValidateCommandTest, WrongInput) {
  const std::string table = PLACET_SOURCE_DIR "/data/validation/tables/zero_model_states.csv";
  expect_wrong_input("validate no-such.csv", "no-such.csv: the file cannot be read");
  expect_wrong_input("validate " + table + " --tolerance much", "'much' is not a number");
  expect_wrong_input("validate " + table + " --tolerance -1", "is out of range");
  expect_wrong_input("validate " + table + " --engine abacus", "'abacus'");
  expect_wrong_input("validate " + table + " --where dp", "'dp' is no condition");
  expect_wrong_input("validate " + table + " --where zero=1", "'zero' is not a column");
}

}  // namespace
}  // namespace placet
