// What configurations and launch scripts of real trainings showed: each test has a small one of its
// own that shows the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "imported.h"
#include "interop/import.h"

namespace placet {
namespace {

// On 8 devices, unless others are given.
Imported read_of(const std::vector<std::pair<std::string, std::string>>& texts, Words given = {}) {
  given.emplace("world-size", "8");
  return import_texts(texts, given);
}

const std::string kAxolotl =
    "base_model: Qwen/Qwen3-0.6B\nsequence_len: 2048\nmicro_batch_size: 2\n"
    "gradient_accumulation_steps: 4\noptimizer: adamw_torch\nbf16: auto\n";

// Keys without a value are common there: they say nothing, and an empty list neither.
TEST(RealHuggingTest, EmptyKeysOfShardingSayNothing) {
  for (const std::string empty : {"fsdp:\nfsdp_config:\n", "fsdp: []\n", "fsdp: null\n"}) {
    const Imported result = read_of({{"a.yml", kAxolotl + empty + "deepspeed:\n"}});
    EXPECT_EQ(said_of(result, "placement"), "dp=8:ddp") << empty;
    EXPECT_EQ(said_of(result, "engine"), "hf-trainer@5") << empty;
  }
  const std::string more = "fsdp:\nunfrozen_parameters:\nxformers_attention:\n";
  const Imported result = read_of({{"a.yml", kAxolotl + more}});
  EXPECT_EQ(fate_of_key(result, "unfrozen_parameters"), Fate::no_effect);
  EXPECT_EQ(fate_of_key(result, "xformers_attention"), Fate::no_effect);
}

// The words of the list are the sharding and its offload, in a file and on a line.
TEST(RealHuggingTest, ListsOfShardingAreReadWordByWord) {
  const std::string list = "fsdp:\n  - shard_grad_op\n  - offload\n  - auto_wrap\n";
  const std::string kept =
      "dp=8:fsdp+keep+offload(parameters)+offload(gradients)"
      "+offload(optimizer)";
  EXPECT_EQ(said_of(read_of({{"a.yml", kAxolotl + list}}), "placement"), kept);
  const std::string line =
      "torchrun train.py --model_name_or_path Qwen/Qwen3-0.6B --output_dir o --bf16 True "
      "--per_device_train_batch_size 1 --learning_rate 1e-5 --model_max_length 2048 --fsdp ";
  const auto placed = [&](const std::string& words) {
    return said_of(read_of({{"a.sh", line + "\"" + words + "\"\n"}}), "placement");
  };
  EXPECT_EQ(placed("shard_grad_op auto_wrap offload"), kept);
  EXPECT_EQ(placed("full_shard auto_wrap"), "dp=8:fsdp");
  EXPECT_EQ(placed("full_shard auto_wrap offload"),
            "dp=8:fsdp+offload(parameters)+offload(gradients)+offload(optimizer)");
}

// What is trained beside adapters changes memory.
TEST(RealHuggingTest, WhatIsTrainedIsNotPassedOver) {
  const std::string more =
      "adapter: lora\nlora_r: 8\nlora_modules_to_save:\n  - embed_tokens\n"
      "group_by_length: false\nliger_swiglu: true\n";
  const Imported result = read_of({{"a.yml", kAxolotl + more}});
  EXPECT_EQ(fate_of_key(result, "lora_modules_to_save"), Fate::not_modelled);
  EXPECT_EQ(fate_of_key(result, "group_by_length"), Fate::understood);
  EXPECT_EQ(fate_of_key(result, "liger_swiglu"), Fate::understood);
}

// Recomputation whose checkpoints leave the device, in older and newer spellings.
TEST(RealHuggingTest, CheckpointsOnTheHostAreRecomputation) {
  const std::string sharded = kAxolotl + "fsdp_version: 2\n";
  const std::string host = "dp=8:fsdp+offload(activations)";
  const std::string disk = "dp=8:fsdp+offload(activations,nvme)";
  const std::vector<std::pair<std::string, std::string>> said = {
      {"gradient_checkpointing: true\n", "dp=8:fsdp"},
      {"gradient_checkpointing: offload\n", host},
      {"gradient_checkpointing: unsloth\n", host},
      {"gradient_checkpointing: offload_disk\n", disk},
      {"gradient_checkpointing: true\nactivation_offloading: legacy\n", host},
      {"gradient_checkpointing: true\nactivation_offloading: disk\n", disk}};
  for (const auto& [more, placement] : said) {
    const Imported result = read_of({{"a.yml", sharded + more}});
    EXPECT_EQ(said_of(result, "recompute"), "full") << more;
    EXPECT_EQ(said_of(result, "placement"), placement) << more;
  }
  const Imported alone = read_of({{"a.yml", kAxolotl + "gradient_checkpointing: offload\n"}});
  EXPECT_EQ(said_of(alone, "engine"), "hf-trainer@5+activations-on-host");
}

// They stay on the host where the engine's own file leads.
TEST(RealHuggingTest, CheckpointsOnTheHostHoldBesideAnEnginesFile) {
  const std::string file =
      "{\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 2},"
      " \"train_micro_batch_size_per_gpu\": \"auto\"}";
  const std::string more = "gradient_checkpointing: offload\ndeepspeed: a.json\n";
  const Imported result = read_of({{"a.yml", kAxolotl + more}, {"a.json", file}});
  EXPECT_EQ(said_of(result, "placement"), "dp=8:zero2+offload(activations)");
  EXPECT_EQ(said_of(result, "recompute"), "full");
}

// A base in few bits is a format of what is frozen.
TEST(RealHuggingTest, BasesInFewBitsAreFormats) {
  const std::string adapted = kAxolotl + "adapter: lora\nlora_r: 8\n";
  const auto format = [](const std::string& text) {
    return said_of(read_of({{"a.yml", text}}), "precision");
  };
  const std::string rest = ",embedding=bf16,head=bf16,norms=bf16";
  EXPECT_EQ(format(adapted + "load_in_8bit: true\n"), "autocast,frozen=llm-int8" + rest);
  EXPECT_EQ(format(adapted + "load_in_4bit: true\n"), "autocast,frozen=nf4-double" + rest);
  EXPECT_EQ(format(adapted + "load_in_8bit: false\n"), "");
  const std::string recipe =
      "model_name_or_path: Qwen/Qwen3-0.6B\nmax_length: 512\nper_device_train_batch_size: 2\n"
      "learning_rate: 1e-5\noutput_dir: o\nuse_peft: true\nlora_r: 8\ndataset_name: d\n";
  EXPECT_EQ(format(recipe + "load_in_8bit: true\n"), "llm-int8");
  const Imported full = read_of({{"a.yml", kAxolotl + "load_in_8bit: true\n"}});
  EXPECT_EQ(fate_of_key(full, "load_in_8bit"), Fate::not_modelled);
}

// Blocks that rest are no job; a length that nobody says is the program's own.
TEST(RealHuggingTest, FrozenBlocksAreAskedForAndTheLengthIsTheDefault) {
  const std::string text =
      "stage: sft\nmodel_name_or_path: Qwen/Qwen3-0.6B\ntemplate: qwen\nbf16: true\n"
      "per_device_train_batch_size: 1\nfinetuning_type: ";
  const Imported full = read_of({{"a.yaml", text + "full\n"}});
  EXPECT_TRUE(full.missing.empty());
  EXPECT_EQ(said_of(full, "seq"), "2048");
  EXPECT_TRUE(is_found(full, "PL060"));
  EXPECT_FALSE(is_found(read_of({{"a.yaml", text + "full\ncutoff_len: 4096\n"}}), "PL060"));
  EXPECT_TRUE(asks_for(read_of({{"a.yaml", text + "freeze\n"}}), "--set freeze="));
  EXPECT_TRUE(asks_for(read_of({{"a.yaml", text + "oft\n"}}), "low rank"));
  const Imported frozen =
      read_of({{"a.yaml", text + "freeze\n"}}, {{"freeze", "embed_tokens,*_proj"}});
  EXPECT_TRUE(frozen.missing.empty());
  EXPECT_EQ(said_of(frozen, "precision"), "autocast,frozen=bf16");
  EXPECT_NE(job_text(frozen).find("freeze = [\"embed_tokens\",\"*_proj\"]"), std::string::npos);
}

const std::string kRecipe =
    "model_name_or_path: Qwen/Qwen3-0.6B\ntorch_dtype: bfloat16\nbf16: true\nmax_length: 512\n"
    "gradient_checkpointing: true\nper_device_train_batch_size: 2\nlearning_rate: 1e-5\n"
    "gradient_accumulation_steps: 2\nnum_train_epochs: 1\noutput_dir: o\n";

// A reference model and generation are not trained for: no job comes of them, as on a launch line.
TEST(RealHuggingTest, RecipesOfPreferencesAreNoFineTuning) {
  for (const std::string more : {"beta: 0.01\nmax_prompt_length: 256\n", "num_generations: 8\n",
                                 "gamma_beta_ratio: 0.5\n", "use_vllm: true\n"}) {
    EXPECT_TRUE(asks_for(read_of({{"a.yaml", kRecipe + more}}), "samples alone")) << more;
  }
  const std::string mixed =
      kRecipe + "dataset_mixture:\n  seed: 0\npadding_free: true\nbeta: 0.1\n";
  EXPECT_TRUE(asks_for(read_of({{"a.yaml", mixed}}), "samples alone"));
  const Imported tuned = read_of({{"a.yaml", kRecipe + "dataset_mixer:\n  d: 1.0\n"}});
  EXPECT_TRUE(tuned.missing.empty());
  EXPECT_EQ(said_of(tuned, "engine"), "hf-trainer@5+trl");
}

const std::string kTrainerLine =
    "torchrun train.py --model_name_or_path Qwen/Qwen3-0.6B --output_dir o --learning_rate 1e-5 "
    "--per_device_train_batch_size 2 --max_seq_length 512 ";

// Its own default of the rank is in a script that nobody reads.
TEST(RealHuggingTest, AdaptersWithoutARankAreAskedFor) {
  for (const std::string flag : {"--use_lora", "--use_lora True", "--lora_enable True"}) {
    EXPECT_TRUE(asks_for(read_of({{"a.sh", kTrainerLine + flag + "\n"}}), "rank")) << flag;
  }
  const Imported known = read_of({{"a.sh", kTrainerLine + "--use_lora --lora_rank 16\n"}});
  EXPECT_EQ(said_of(known, "lora"), "16");
  const Imported off = read_of({{"a.sh", kTrainerLine + "--use_lora False --lora_rank 16\n"}});
  EXPECT_EQ(said_of(off, "lora"), "");
}

// Nothing is cast where nothing says so; the launcher's format is the trainer's.
TEST(RealHuggingTest, FormatsAreTheWeightsOwnUnlessSaid) {
  const auto format = [](const std::string& script) {
    return said_of(read_of({{"a.sh", script + "\n"}}), "precision");
  };
  EXPECT_EQ(format(kTrainerLine), "fp32");
  EXPECT_EQ(format(kTrainerLine + "--bf16 True"), "");
  EXPECT_EQ(format(kTrainerLine + "--fp16"), "autocast-fp16");
  const std::string accelerate =
      "accelerate launch --mixed_precision fp16" + kTrainerLine.substr(kTrainerLine.find(' '));
  EXPECT_EQ(format(accelerate), "autocast-fp16");
  const std::string file = "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\n";
  EXPECT_EQ(said_of(read_of({{"a.yaml", file}}), "precision"), "fp32");
  EXPECT_EQ(said_of(read_of({{"a.yaml", file + "mixed_precision: bf16\n"}}), "precision"), "");
}

// The same arguments stand on a line or in a file, with the same defaults.
TEST(RealHuggingTest, LlamaFactorysLineHasItsDefaults) {
  const std::string line =
      "FORCE_TORCHRUN=1 llamafactory-cli train --stage sft --do_train true --bf16 true "
      "--model_name_or_path Qwen/Qwen3-0.6B --dataset d --template qwen --output_dir o "
      "--cutoff_len 1024 --per_device_train_batch_size 2 --gradient_accumulation_steps 4 ";
  const Imported full = read_of({{"a.sh", line + "--finetuning_type full\n"}});
  EXPECT_EQ(said_of(full, "recompute"), "full");
  EXPECT_EQ(said_of(full, "lora"), "");
  EXPECT_EQ(said_of(full, "global-batch"), "64");
  const Imported adapted = read_of({{"a.sh", line + "--lora_target q_proj,v_proj\n"}});
  EXPECT_EQ(said_of(adapted, "lora"), "8,q_proj,v_proj");
  std::string preferred = line;
  preferred.replace(preferred.find("sft"), 3, "dpo");
  EXPECT_TRUE(asks_for(read_of({{"a.sh", preferred + "--finetuning_type full\n"}}), "alone"));
}

// What the scripts of fine-tuning call a base in few bits.
TEST(RealHuggingTest, LinesSayTheBitsOfTheBase) {
  const auto format = [](const std::string& flags) {
    return said_of(read_of({{"a.sh", kTrainerLine + "--bf16 True " + flags + "\n"}}), "precision");
  };
  EXPECT_EQ(format("--use_lora --lora_r 8 --q_lora"), "qlora");
  EXPECT_EQ(format("--lora_r 8 --q_lora False"), "");
  EXPECT_EQ(format("--lora_enable True --lora_r 8 --bits 4 --double_quant False"), "qlora-single");
  EXPECT_EQ(format("--lora_enable True --lora_r 8 --bits 8"), "llm-int8");
  EXPECT_EQ(format("--lora_enable True --lora_r 8 --bits 16"), "");
  EXPECT_EQ(format("--lora_r 8 --load_in_8bit True"), "llm-int8");
  EXPECT_TRUE(asks_for(read_of({{"a.sh", kTrainerLine + "--q_lora\n"}}), "rank"));
}

// Devices are counted where nothing else says how many there are.
TEST(RealHuggingTest, ListsOfDevicesAreCounted) {
  const std::string flags = kTrainerLine.substr(kTrainerLine.find(" train.py")) + "--bf16 True\n";
  const auto placed = [&](const std::string& launcher) {
    const Source source = parse_source(launcher + flags, SourceForm::arguments, "a.sh");
    return said_of(import_sources(find_catalog(), {.sources = {source}}), "placement");
  };
  EXPECT_EQ(placed("CUDA_VISIBLE_DEVICES=0,1,6,7 accelerate launch"), "dp=4:ddp");
  EXPECT_EQ(placed("export CUDA_VISIBLE_DEVICES=\"0\"\npython"), "dp=1:ddp");
  EXPECT_EQ(placed("CUDA_VISIBLE_DEVICES=0,1,2,3 torchrun --nproc_per_node 2"), "dp=2:ddp");
  EXPECT_EQ(placed("CUDA_VISIBLE_DEVICES=0 python prepare.py\n"
                   "CUDA_VISIBLE_DEVICES=0,1 accelerate launch"),
            "");
  EXPECT_EQ(placed("deepspeed --include localhost:4,5,6,7"), "dp=4:ddp");
  EXPECT_EQ(placed("deepspeed --include=a:0,1@b:0,1"), "dp=4:ddp");
  EXPECT_EQ(placed("deepspeed --include a@b"), "");
}

// Source and target stand in one sample.
TEST(RealHuggingTest, SourceAndTargetMakeTheSequence) {
  const std::string line = kTrainerLine.substr(0, kTrainerLine.find("--max_seq_length"));
  const std::string both = "--max_source_length 64 --max_target_length 128\n";
  EXPECT_EQ(said_of(read_of({{"a.sh", line + both}}), "seq"), "192");
  EXPECT_EQ(said_of(read_of({{"a.sh", kTrainerLine + both}}), "seq"), "512");
}

// What sees images is no part of the figures, and that is said.
TEST(RealHuggingTest, TowersAreNamedWithTheirFigures) {
  const Imported result = read_of(
      {{"a.sh", kTrainerLine + "--vision_tower openai/clip-vit-large-patch14-336 --image_folder d "
                               "--image_aspect_ratio pad --freeze_vision_tower True "
                               "--max_pixels 401408\n"}});
  for (const std::string key :
       {"--vision_tower", "--image_aspect_ratio", "--freeze_vision_tower", "--max_pixels"}) {
    EXPECT_EQ(fate_of_key(result, key), Fate::not_modelled) << key;
  }
  EXPECT_EQ(fate_of_key(result, "--image_folder"), Fate::no_effect);
  EXPECT_TRUE(is_found(result, "PL061"));
}

// What is left open is said: a trainer fills its own clipping in.
TEST(RealHuggingTest, ClippingThatATrainerFillsInIsSaid) {
  const std::string file =
      "{\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 2},"
      " \"train_micro_batch_size_per_gpu\": 2";
  const std::string open = file + ", \"gradient_clipping\": \"auto\"}";
  const auto advised = [](const Imported& result) {
    return std::ranges::find(result.findings, "PL036", &LintFinding::code) != result.findings.end();
  };
  EXPECT_TRUE(advised(read_of({{"a.json", file + "}"}})));
  EXPECT_FALSE(advised(read_of({{"a.json", open}})));
  const std::string line = kTrainerLine + "--bf16 True --deepspeed a.json\n";
  EXPECT_FALSE(advised(read_of({{"a.sh", line}, {"a.json", file + "}"}})));
  EXPECT_FALSE(advised(read_of({{"a.sh", line}, {"a.json", open}})));
}

// Files on disk, in a folder of their own.
class RealHuggingFilesTest : public testing::Test {
 protected:
  RealHuggingFilesTest()
      : folder_(std::filesystem::temp_directory_path() /
                (std::string("placet-") +
                 testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::create_directories(folder_);
  }
  ~RealHuggingFilesTest() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  Imported read(const std::string& name, const Words& given) const {
    return import_sources(
        find_catalog(), {.sources = {read_source(folder_ / name)}, .dialect = {}, .given = given});
  }

  std::filesystem::path folder_;
};

// The file behind a program that is known is read, and the launcher's variables are its degrees.
TEST_F(RealHuggingFilesTest, ProgramsAreCalledWithFiles) {
  write("lf.yaml",
        "model_name_or_path: Qwen/Qwen3-0.6B\nstage: sft\nfinetuning_type: full\ntemplate: qwen\n"
        "cutoff_len: 1024\nbf16: true\nper_device_train_batch_size: 2\n"
        "gradient_accumulation_steps: 1\n");
  write("ax.yml", kAxolotl);
  write("a.sh", "CFG=lf.yaml\nNNODES=2 NPROC_PER_NODE=4 llamafactory-cli train \"$CFG\"\n");
  EXPECT_EQ(said_of(read("a.sh", {}), "placement"), "dp=8:ddp");
  write("b.sh", "torchrun --nproc_per_node 4 \\\n    src/train.py lf.yaml\n");
  EXPECT_EQ(said_of(read("b.sh", {}), "placement"), "dp=4:ddp");
  write("c.sh", "CUDA_VISIBLE_DEVICES=0,1 axolotl train ax.yml --num-processes 2\n");
  EXPECT_EQ(said_of(read("c.sh", {}), "global-batch"), "16");
  write("d.sh", "accelerate launch --num_processes 4 -m axolotl.cli.train ax.yml\n");
  EXPECT_EQ(said_of(read("d.sh", {}), "placement"), "dp=4:ddp");
  write("e.sh", "llamafactory-cli train far/away.yaml\n");
  EXPECT_TRUE(asks_for(read("e.sh", {}), "'far/away.yaml'"));
  write("f.sh", "for m in 1 2; do\n  llamafactory-cli train \"runs/${m}_sft.yaml\"\ndone\n");
  EXPECT_TRUE(asks_for(read("f.sh", {}), "as one more of SOURCES"));
}

// What the line says is taken, and the launcher's file for what it leaves open.
TEST_F(RealHuggingFilesTest, TheLineWinsOverTheLaunchersFile) {
  write("acc.yaml",
        "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_machines: 1\n"
        "num_processes: 8\nmixed_precision: bf16\nfsdp_config:\n"
        "  fsdp_sharding_strategy: FULL_SHARD\n");
  write("a.sh", "accelerate launch --config_file acc.yaml --num_processes 16 --num_machines 2 " +
                    kTrainerLine.substr(kTrainerLine.find(' ')) + "\n");
  const Imported result = read("a.sh", {});
  EXPECT_EQ(said_of(result, "placement"), "dp=16:fsdp");
  const auto twice = std::ranges::find(result.findings, "PL002", &LintFinding::code);
  ASSERT_NE(twice, result.findings.end());
  EXPECT_NE(twice->message.find("that one is taken"), std::string::npos);
}

// Defaults do not stand in for a file of settings that is not at hand.
TEST_F(RealHuggingFilesTest, SettingsThatAreElsewhereAreAskedFor) {
  const std::string line =
      "#SBATCH --nodes=2\n#SBATCH --gpus-per-node=h100:8\naccelerate launch --num_processes 16 "
      "--num_machines 2 scripts/sft.py --model_name_or_path Qwen/Qwen3-0.6B --config ";
  write("a.sh", line + "far.yaml\n");
  EXPECT_TRUE(asks_for(read("a.sh", {}), "'far.yaml'"));
  write("near.yaml", kRecipe + "dataset_num_proc: 4\n");
  write("b.sh", line + "near.yaml\n");
  const Imported result = read("b.sh", {});
  EXPECT_TRUE(result.missing.empty());
  EXPECT_EQ(said_of(result, "global-batch"), "64");
  EXPECT_EQ(said_of(result, "seq"), "512");
}

// Settings of the sharding in a file of their own.
TEST_F(RealHuggingFilesTest, SettingsOfShardingAreReadFromTheirFile) {
  const std::string line = kTrainerLine + "--bf16 True --fsdp \"full_shard auto_wrap\" ";
  write("a.sh", line + "--fsdp_config far.json\n");
  const Words eight = {{"world-size", "8"}};
  EXPECT_TRUE(asks_for(read("a.sh", eight), "'far.json'"));
  write("fsdp.json",
        "{\"fsdp_transformer_layer_cls_to_wrap\": [\"Qwen3DecoderLayer\"],\n"
        " \"activation_checkpointing\": true, \"limit_all_gathers\": true}\n");
  write("b.sh", line + "--fsdp_config fsdp.json\n");
  const Imported result = read("b.sh", eight);
  EXPECT_TRUE(result.missing.empty());
  EXPECT_EQ(said_of(result, "recompute"), "full");
  EXPECT_EQ(said_of(result, "placement"), "dp=8:fsdp");
}

// What stands behind a file of settings wins over what the file says.
TEST_F(RealHuggingFilesTest, SettingsBehindAFileWinOverIt) {
  write("lf.yaml",
        "model_name_or_path: Qwen/Qwen3-0.6B\nstage: sft\nfinetuning_type: full\n"
        "template: qwen\ncutoff_len: 1024\nbf16: true\nper_device_train_batch_size: 2\n"
        "gradient_accumulation_steps: 1\n");
  write("a.sh",
        "NPROC_PER_NODE=4 llamafactory-cli train lf.yaml cutoff_len=4096 \\\n"
        "    gradient_accumulation_steps=8 learning_rate=1e-5\n");
  const Imported result = read("a.sh", {});
  EXPECT_EQ(said_of(result, "seq"), "4096");
  EXPECT_EQ(said_of(result, "global-batch"), "64");
  const auto told = std::ranges::find_if(result.ledger, [](const LedgerLine& line) {
    return line.setting.path == "gradient_accumulation_steps";
  });
  ASSERT_NE(told, result.ledger.end());
  EXPECT_EQ(told->file, (folder_ / "a.sh").string());
  EXPECT_EQ(told->setting.line, 2U);
  EXPECT_FALSE(is_found(result, "PL002"));
}

// A configuration that the script itself writes is read as that file.
TEST_F(RealHuggingFilesTest, FilesThatAScriptWritesAreRead) {
  const auto script = [](const std::string& begin, const std::string& end) {
    return "nodes=2\nGPUS=4\n" + begin +
           "\ncompute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\n"
           "num_machines: $nodes\nnum_processes: $((nodes * GPUS))\nmixed_precision: bf16\n"
           "fsdp_config:\n  fsdp_sharding_strategy: SHARD_GRAD_OP\n" +
           end + "\naccelerate launch --config_file ./acc.yaml" +
           kTrainerLine.substr(kTrainerLine.find(' ')) + "\n";
  };
  write("a.sh", script("cat > acc.yaml <<EOF", "EOF"));
  EXPECT_EQ(said_of(read("a.sh", {}), "placement"), "dp=8:fsdp+keep");
  write("b.sh", script("cat <<- \"END\" > acc.yaml", "\tEND"));
  EXPECT_EQ(said_of(read("b.sh", {{"world-size", "16"}}), "placement"), "dp=16:fsdp+keep");
  write("c.sh", script("tee acc.yaml <<EOF", "never"));
  EXPECT_TRUE(asks_for(read("c.sh", {}), "'./acc.yaml'"));
  const std::string twice = "if [ -n \"$X\" ]; then\ncat > acc.yaml <<E\na: 1\nE\nfi\n";
  write("d.sh", twice + script("cat > acc.yaml <<EOF", "EOF"));
  EXPECT_TRUE(asks_for(read("d.sh", {}), "'./acc.yaml'"));
}

// JSON by another name.
TEST_F(RealHuggingFilesTest, JsonIsKnownByItsText) {
  write("stage3.conf",
        "{\n  \"bf16\": {\"enabled\": true},\n  \"zero_optimization\": {\"stage\": 3}\n}\n");
  EXPECT_EQ(said_of(read("stage3.conf", {{"world-size", "8"}}), "placement"), "dp=8:zero3");
}

}  // namespace
}  // namespace placet
