// What launch scripts say to no command, and in ways of a shell that further real ones showed: each
// test has a small script of its own.
#include <gtest/gtest.h>

#include <algorithm>

#include "imported.h"
#include "interop/import.h"
#include "interop/shell_arithmetic.h"
#include "interop/shell_words.h"
#include "units/error.h"

namespace placet {
namespace {

const std::string kBlockSizes =
    "--num-layers 12 --hidden-size 768 --ffn-hidden-size 3072 --num-attention-heads 12 "
    "--seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 4 "
    "--global-batch-size 512 --bf16 --vocab-size 50257 --position-embedding-type rope "
    "--normalization RMSNorm --disable-bias-linear";

Imported read_script(const std::string& text) { return import_texts({{"a.sh", text}}); }

const std::string kTorchrun = "torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py ";

TEST(UnseenShellTest, AListThatNoCommandGetsIsNotUsed) {
  const std::string lists = "SIZES=(" + kBlockSizes +
                            ")\n"
                            "MORE=(\n"
                            "  # the profiler's, that isn't used\n"
                            "  --use-distributed-optimizer\n"
                            "  --num-layers 64\n"
                            ")\n";
  const Imported result = read_script(lists + kTorchrun + "\"${SIZES[@]}\"\n");
  EXPECT_EQ(said_of(result, "placement"), "dp=8:ddp");
  EXPECT_NE(said_of(result, "model").find("\"num_hidden_layers\":12"), std::string::npos);
  EXPECT_FALSE(is_found(result, "PL002"));
  const auto found = std::ranges::find(result.findings, "PL005", &LintFinding::code);
  ASSERT_NE(found, result.findings.end());
  EXPECT_EQ(found->line, 4U);
  EXPECT_EQ(found->message, "'MORE' holds options, and no command gets them");

  const Imported used = read_script(lists + kTorchrun + "${SIZES[@]} ${MORE[@]}\n");
  EXPECT_EQ(said_of(used, "placement"), "dp=8:zero1");
  EXPECT_FALSE(is_found(used, "PL005"));
}

// By another variable, by its name alone, in a command that a variable holds, by what is sourced
// behind it, or by who reads a text that holds no command.
TEST(UnseenShellTest, AListMayBeUsedInManyWays) {
  const std::string more = "MORE=\"--use-distributed-optimizer\"\n";
  for (const std::string& text :
       {more + "ALL=\"" + kBlockSizes + " $MORE\"\n" + kTorchrun + "$ALL\n",
        more + "give MORE\n" + kTorchrun + kBlockSizes + "\n",
        more + "CALL=\"" + kTorchrun + kBlockSizes + " ${MORE}\"\neval $CALL\n",
        more + "CALL=\"" + kTorchrun + kBlockSizes + " ${MORE}\"\n",
        "name=MO\nALL=${!name}\n" + more + kTorchrun + kBlockSizes + " $ALL\n",
        "kind=MO\n" + more + "eval \"ALL=\\$${kind}RE\"\n" + kTorchrun + kBlockSizes + " $ALL\n",
        more + "cd x && source rest.sh\n" + kTorchrun + kBlockSizes + "\n",
        "set -a\n" + more + kTorchrun + kBlockSizes + "\n",
        "export " + more + kTorchrun + kBlockSizes + "\n",
        more + "source rest.sh\n" + kTorchrun + kBlockSizes + "\n",
        more + "NAME=MORE\n" + kTorchrun + kBlockSizes + " ${!NAME}\n",
        more + "SIZES=\"" + kBlockSizes + "\"\nRUN=\"torchrun --nproc_per_node 8 --nnodes 1\"\n"}) {
    const Imported result = read_script(text);
    EXPECT_EQ(said_of(result, "placement"), "dp=8:zero1") << text;
    EXPECT_FALSE(is_found(result, "PL005")) << text;
  }
}

// A text that was cut in a value, or whose command has no beginning, says nothing of what is used.
TEST(UnseenShellTest, APartOfAScriptUsesAll) {
  const std::string lists = "MORE=\"--use-distributed-optimizer --num-layers 12\"\n";
  EXPECT_FALSE(
      is_found(read_script(lists + kTorchrun + kBlockSizes + "\nREST=\"--bf16\n"), "PL005"));
  EXPECT_FALSE(
      is_found(read_script(lists + "MAIN=pretrain_gpt.py\n$MAIN \\\n " + kBlockSizes), "PL005"));
  EXPECT_TRUE(is_found(
      read_script(lists + "MAIN=pretrain_gpt.py\npython $MAIN \\\n " + kBlockSizes), "PL005"));
}

// What stands behind an option is not its value where it is a list of options.
TEST(UnseenShellTest, AnArrayOfOptionsIsNoValue) {
  for (const std::string& list : {std::string("MORE=(--use-distributed-optimizer)\n"),
                                  std::string("MORE=(\n  --use-distributed-optimizer\n)\n")}) {
    const Imported result =
        read_script(list + kTorchrun + kBlockSizes + " --bf16 \"${MORE[@]}\"\n");
    EXPECT_EQ(said_of(result, "placement"), "dp=8:zero1") << list;
    EXPECT_EQ(fate_of_key(result, "--bf16"), Fate::understood) << list;
  }
}

// A value of several words is no number, wherever it is written; a program behind a number is none
// of its value.
TEST(UnseenShellTest, NumbersAreWholeValues) {
  const Imported yaml =
      import_texts({{"a.yaml",
                     "model_name_or_path: gpt2\nstage: sft\nfinetuning_type: full\n"
                     "gradient_accumulation_steps: 8 * 2\nper_device_train_batch_size: 1\n"}});
  EXPECT_EQ(fate_of_key(yaml, "gradient_accumulation_steps"), Fate::unresolved);
  const Imported line = read_script("tool --nnodes 1 --nproc_per_node 8 python pretrain_gpt.py " +
                                    kBlockSizes + "\n");
  EXPECT_EQ(said_of(line, "placement"), "dp=8:ddp");
}

TEST(UnseenShellTest, ABranchThatIsNotTakenUsesNothing) {
  const std::string text = "MORE=(--use-distributed-optimizer)\nARGS=(" + kBlockSizes +
                           ")\nSIZE=small\nif [ $SIZE = large ]; then\n  ARGS+=(${MORE[@]})\nfi\n" +
                           kTorchrun + "${ARGS[@]}\n";
  const Imported result = read_script(text);
  EXPECT_EQ(said_of(result, "placement"), "dp=8:ddp");
  EXPECT_TRUE(is_found(result, "PL005"));
}

TEST(UnseenShellTest, TheBracketOfAListIsOfNoValue) {
  const Imported result = read_script("PP=4\nVPP=2\nARGS=(" + kBlockSizes +
                                      ")\nARGS+=(--pipeline-model-parallel-size $PP)\n"
                                      "ARGS+=(--num-virtual-stages-per-pipeline-rank ${VPP:-3})\n" +
                                      kTorchrun + "\"${ARGS[@]}\"\n");
  EXPECT_EQ(said_of(result, "placement"), "pp=4:interleaved(2) dp=2:ddp");
  EXPECT_EQ(words_of("A=$(b c) --d `e f` --g $H)").size(), 5U);
  EXPECT_EQ(words_of("--d `e f`").back().text, "$(e f)");
  EXPECT_EQ(words_of("--g $H)").back().text, "$H");
}

TEST(UnseenShellTest, ADashedWordEndsAValue) {
  const Imported result = read_script(
      "run --nnodes 1 --nproc_per_node 8 -- python pretrain_gpt.py " + kBlockSizes + "\n");
  EXPECT_EQ(said_of(result, "placement"), "dp=8:ddp");
  const Imported short_one = read_script(
      "torchrun --nnodes 1 --nproc_per_node 8 -x A pretrain_gpt.py " + kBlockSizes + "\n");
  EXPECT_EQ(said_of(short_one, "placement"), "dp=8:ddp");
}

// A launcher's own options count, then a variable by its usual name; a number of processes that
// nobody knows is not one node's.
TEST(UnseenShellTest, LaunchersSayHowManyDevicesThereAre) {
  const auto placement = [](const std::string& text) {
    return said_of(read_script(text + "pretrain_gpt.py " + kBlockSizes + "\n"), "placement");
  };
  EXPECT_EQ(placement("mpirun -x A -np 16 --npernode 8 python "), "dp=16:ddp");
  EXPECT_EQ(placement("mpirun -np $N --npernode 8 python "), "");
  EXPECT_EQ(placement("mpirun -np 2 -N 1 torchrun --nnodes 2 --nproc_per_node 8 "), "dp=16:ddp");
  EXPECT_EQ(placement("#SBATCH -N2\nsrun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 "),
            "dp=16:ddp");
  EXPECT_EQ(placement("mpirun -q ./wrap.sh -np 4 torchrun --nnodes 1 --nproc_per_node 8 "),
            "dp=8:ddp");
  EXPECT_EQ(placement("#SBATCH -N 4\nsrun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 "),
            "dp=32:ddp");
  EXPECT_EQ(placement("WORLD_SIZE=2\ntorchrun --nnodes $WORLD_SIZE --nproc_per_node 8 "),
            "dp=16:ddp");
  EXPECT_EQ(placement("WORLD_SIZE=16\npython "), "dp=16:ddp");
}

TEST(UnseenShellTest, NumbersAreWorkedOutInAllSpellings) {
  const auto number_of = [](const std::string& name) -> std::optional<long long> {
    return name == "N" ? std::optional(8LL) : std::nullopt;
  };
  EXPECT_EQ(with_shell_numbers("$((2*N)) $[N/2] $(expr 16 / N) $(expr 2 \\* 3)", number_of),
            "16 4 2 6");
  for (const std::string& text :
       {std::string("$(expr length N)"), std::string("$[M+1]"), std::string("$[1"),
        std::string("$(expr 1"), std::string("$((1)")}) {
    EXPECT_EQ(with_shell_numbers(text, number_of), text);
  }
}

TEST(UnseenShellTest, CommandsThatAlwaysHoldDecideABranch) {
  const auto read = [](const std::string& test) {
    return read_script("ARGS=(" + kBlockSizes + ")\nif " + test +
                       "; then\n  ARGS+=(--use-distributed-optimizer)\nfi\n" + kTorchrun +
                       "${ARGS[@]}\n");
  };
  EXPECT_EQ(said_of(read("true"), "placement"), "dp=8:zero1");
  EXPECT_EQ(said_of(read("false"), "placement"), "dp=8:ddp");
  EXPECT_TRUE(asks_for(read("some_check"), "--set"));
}

// A key that is far from all known ones has no nearest; an option is meant for no variable.
TEST(UnseenShellTest, OnlySlipsOfThePenHaveANearestKey) {
  const auto nearest_of = [](const std::string& option) {
    const Imported result = read_script(kTorchrun + kBlockSizes + " " + option + "\n");
    const auto line = std::ranges::find_if(result.ledger, [&](const LedgerLine& one) {
      return one.setting.path == option.substr(0, option.find(' '));
    });
    return line == result.ledger.end() ? "none" : line->what;
  };
  EXPECT_EQ(nearest_of("--tensor-model-paralel-size 2"), "--tensor-model-parallel-size");
  EXPECT_EQ(nearest_of("--global-batch 2"), "--global-batch-size");
  for (const char* option : {"--statz 2", "--rank 2", "--resourze 2"}) {
    EXPECT_EQ(nearest_of(option), "") << option;
  }
}

// A comment between joined lines, one before the backslash, or a blank behind it ends the command.
TEST(UnseenShellTest, ACommandEndsWhereTheShellEndsIt) {
  const std::string start = kTorchrun + kBlockSizes + " \\\n";
  const std::string rest = "  --use-distributed-optimizer \\\n  --sequence-parallel\n";
  const Imported whole = read_script(start + rest);
  EXPECT_EQ(said_of(whole, "placement"), "dp=8:zero1");
  EXPECT_FALSE(is_found(whole, "PL006"));
  for (const std::string& text :
       {start + "  # sharded\n" + rest, kTorchrun + kBlockSizes + " \\ \n" + rest,
        kTorchrun + kBlockSizes + " # sizes \\\n" + rest,
        kTorchrun + kBlockSizes + " \\ // sizes\n" + rest,
        "SEED=1 \\\n" + kTorchrun + kBlockSizes + " \\ \n\n" + rest}) {
    const Imported result = read_script(text);
    EXPECT_EQ(said_of(result, "placement"), "dp=8:ddp") << text;
    EXPECT_EQ(fate_of_key(result, "--use-distributed-optimizer"), Fate::no_effect) << text;
    EXPECT_TRUE(is_found(result, "PL006")) << text;
  }
}

// Comments and blanks in lists, in text for others, and behind a command's last line end nothing.
TEST(UnseenShellTest, ACommentInAListEndsNothing) {
  const std::string more = "MORE=(\n  --use-distributed-optimizer \\\n  # and\n  --bf16\n)\n";
  for (const std::string& text :
       {more + kTorchrun + kBlockSizes + " ${MORE[@]}\n",
        kTorchrun + kBlockSizes + " \\\n  --data-path 'a #b' --use-distributed-optimizer \\\n" +
            "  --sequence-parallel\n# done\n",
        kTorchrun + kBlockSizes + " --use-distributed-optimizer # all \n"}) {
    const Imported result = read_script(text);
    EXPECT_EQ(said_of(result, "placement"), "dp=8:zero1") << text;
    EXPECT_FALSE(is_found(result, "PL006")) << text;
  }
}

// The first option of a list keeps its value where the list's quote is closed below.
TEST(UnseenShellTest, AQuoteThatGoesOnBeginsAList) {
  const Imported result = read_script("SIZES=\"--tensor-model-parallel-size 2 \\\n" + kBlockSizes +
                                      "\"\n" + kTorchrun + "$SIZES\n");
  EXPECT_EQ(said_of(result, "placement"), "dp=4:ddp tp=2:tp");
}

// A launcher gives the variable its value; what is written for want of one is not it.
TEST(UnseenShellTest, DefaultsOfALaunchersVariablesAreNotTaken) {
  const std::string line = "--nnodes $NODES --nproc_per_node 8 pretrain_gpt.py " + kBlockSizes +
                           " --tensor-model-parallel-size 16\n";
  const Imported result = read_script("NODES=${OMPI_COMM_WORLD_SIZE:-1}\ntorchrun " + line);
  EXPECT_FALSE(is_found(result, "PL018"));
  EXPECT_EQ(said_of(result, "placement"), "");
  EXPECT_TRUE(is_found(read_script("NODES=${HOSTS:-1}\ntorchrun " + line), "PL018"));
}

// One value in two spellings.
TEST(UnseenShellTest, NumbersAreSaidAlike) {
  EXPECT_FALSE(
      is_found(read_script(kTorchrun + kBlockSizes + " --clip-grad 1 --clip-grad 1.0\n"), "PL002"));
  EXPECT_TRUE(
      is_found(read_script(kTorchrun + kBlockSizes + " --clip-grad 1 --clip-grad 1.5\n"), "PL002"));
}

// A script may train twice: which one is meant is asked, and the other one says nothing.
TEST(UnseenShellTest, OneTrainingOfSeveralIsRead) {
  const std::string text = kTorchrun + kBlockSizes + " --use-distributed-optimizer \\\n" +
                           "  --recompute-granularity selective\n\n" + kTorchrun + kBlockSizes +
                           " --tensor-model-parallel-size 2\n";
  EXPECT_TRUE(asks_for(read_script(text), "command=LINE"));
  const Imported first = import_texts({{"a.sh", text}}, {{"command", "1"}});
  EXPECT_EQ(said_of(first, "placement"), "dp=8:zero1");
  EXPECT_EQ(said_of(first, "recompute"), "selective");
  EXPECT_TRUE(first.missing.empty());
  const Imported second = import_texts({{"a.sh", text}}, {{"command", "4"}});
  EXPECT_EQ(said_of(second, "placement"), "dp=4:ddp tp=2:tp");
  EXPECT_EQ(said_of(second, "recompute"), "");
  EXPECT_EQ(fate_of_key(second, "--use-distributed-optimizer"), Fate::no_effect);
  EXPECT_FALSE(is_found(second, "PL002"));
  EXPECT_THROW(import_texts({{"a.sh", text}}, {{"command", "2"}}), InputError);
}

// Twice the same training, one of two branches, and smaller commands are no question.
TEST(UnseenShellTest, OtherCommandsDoNotAsk) {
  const std::string one = kTorchrun + kBlockSizes;
  for (const std::string& text :
       {one + "\n" + one + "\n",
        "python convert.py --num-layers 2 --hidden-size 16 --tensor-model-parallel-size 4\n" + one +
            "\n",
        "ARGS=\"" + kBlockSizes + "\"\n" + kTorchrun + "$ARGS\n" + kTorchrun + "$ARGS\n"}) {
    const Imported result = read_script(text);
    EXPECT_FALSE(asks_for(result, "command=LINE")) << text;
    EXPECT_NE(said_of(result, "model").find("\"num_hidden_layers\":12"), std::string::npos) << text;
    EXPECT_EQ(said_of(result, "placement"), "dp=8:ddp") << text;
    EXPECT_FALSE(is_found(result, "PL002")) << text;
  }
  const Imported either = read_script("if [ $A = 1 ]; then\n" + one + "\nelse\n" + one +
                                      " --tensor-model-parallel-size 2\nfi\n");
  EXPECT_FALSE(asks_for(either, "command=LINE"));
  EXPECT_EQ(fate_of_key(either, "--tensor-model-parallel-size"), Fate::unresolved);
  EXPECT_EQ(fate_of_key(either, "--num-layers"), Fate::understood);
}

// The files of the other training are not read, and each line of "a && \\" begins a command.
TEST(UnseenShellTest, FilesOfAnotherTrainingAreNotRead) {
  const std::string line =
      "deepspeed --num_gpus 8 train.py --model_name_or_path Qwen/Qwen2.5-7B --bf16 True "
      "--per_device_train_batch_size 1 --model_max_length 2048 --deepspeed ";
  const auto placement = [&](const std::string& between, const std::string& command) {
    return said_of(
        import_texts({{"a.sh", line + "'{\"zero_optimization\":{\"stage\":2}}'" + between + line +
                                   "'{\"zero_optimization\":{\"stage\":3}}'\n"}},
                     {{"command", command}}),
        "placement");
  };
  for (const std::string between : {"\n", " && \\\n"}) {
    EXPECT_EQ(placement(between, "1"), "dp=8:zero2") << between;
    EXPECT_EQ(placement(between, "2"), "dp=8:zero3") << between;
  }
}

// Variables that another script reads are no job of this one alone.
TEST(UnseenShellTest, AScriptThatIsHandedVariablesIsAskedFor) {
  const std::string text =
      "source env.sh\nexport TP=8\nexport MORE=\"" + kBlockSizes + "\"\nexport GPUS_PER_NODE=8\n";
  EXPECT_TRUE(asks_for(read_script(text + "bash train/run.sh llama\n"), "settings of 'run.sh'"));
  EXPECT_FALSE(asks_for(read_script(text), "the settings of '"));
  EXPECT_FALSE(asks_for(read_script(text + "bash run.sh --bf16 $MORE\n"), "the settings of '"));
  EXPECT_FALSE(
      asks_for(read_script(text + "bash setup.sh\n" + kTorchrun + "$MORE\n"), "the settings of '"));
  EXPECT_FALSE(
      asks_for(import_texts({{"a.sh", text + "bash run.sh\n"}, {"run.sh", kTorchrun + "$MORE\n"}}),
               "the settings of '"));
}

}  // namespace
}  // namespace placet
