// What further configurations of trainers of Hugging Face's family and of DeepSpeed showed: each
// test has a small one of its own that shows the same.
#include <gtest/gtest.h>

#include "imported.h"
#include "interop/import.h"
#include "interop/lint.h"

namespace placet {
namespace {

const std::string kScript =
    " run_clm.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 1 "
    "--block_size 2048 --output_dir out";

Imported launched(const std::string& options, const std::string& more = {}) {
  return import_texts(
      {{"a.sh", "accelerate launch --num_processes 8 " + options + kScript + " " + more}});
}

TEST(UnseenTrainerTest, OptionsOfTheLauncherAreKeysOfItsFile) {
  const std::string sharded = "--use_fsdp --fsdp_version 2 --fsdp_activation_checkpointing true ";
  EXPECT_EQ(said_of(launched(sharded + "--fsdp_reshard_after_forward false"), "placement"),
            "dp=8:fsdp+keep");
  EXPECT_EQ(
      said_of(launched(sharded + "--fsdp_activation_checkpointing_offload true"), "placement"),
      "dp=8:fsdp+offload(activations)");
  EXPECT_TRUE(asks_for(launched("--use_deepspeed --deepspeed_config_file ds.json"), "'ds.json'"));
  EXPECT_EQ(said_of(launched("--use_deepspeed --zero_stage 2 --gradient_clipping 0.5"), "clip"),
            "0.5");
  EXPECT_TRUE(asks_for(launched("--use_megatron_lm --megatron_lm_tp_degree 2"), "--set kind="));
}

TEST(UnseenTrainerTest, WhatTheLauncherRefusesEndsTheJob) {
  const auto ends = [](const Imported& imported) {
    for (const LintFinding& finding : imported.findings) {
      if (!finding.conflict.empty()) return true;
    }
    return false;
  };
  const std::string file =
      "distributed_type: FSDP\nnum_processes: 8\nmixed_precision: bf16\nfsdp_config:\n"
      "  fsdp_version: 2\n  fsdp_activation_checkpointing_offload: true\n";
  const std::string checkpointed = "  fsdp_activation_checkpointing: true\n";
  EXPECT_TRUE(ends(import_texts({{"acc.yaml", file}})));
  EXPECT_FALSE(ends(import_texts({{"acc.yaml", file + checkpointed}})));
  const std::string cut = checkpointed +
                          "parallelism_config:\n  parallelism_config_cp_size: 2\n"
                          "  parallelism_config_cp_backend: ";
  EXPECT_TRUE(ends(import_texts({{"acc.yaml", file + cut + "deepspeed\n"}})));
  EXPECT_FALSE(ends(import_texts({{"acc.yaml", file + cut + "torch\n"}})));
}

TEST(UnseenTrainerTest, AdaptersBesideFewerBitsRestAsTheTrainerCastsThem) {
  const auto format = [](const std::string& model, const std::string& more) {
    return said_of(
        import_texts(
            {{"a.yaml", "base_model: " + model +
                            "\nload_in_4bit: true\nadapter: qlora\nlora_r: 16\nsequence_len: 2048\n"
                            "micro_batch_size: 1\ndatasets:\n" +
                            more}},
            {{"world-size", "8"}}),
        "precision");
  };
  const std::string wide = "autocast,frozen=nf4-double,embedding=bf16,head=bf16,norms=bf16";
  EXPECT_EQ(format("Qwen/Qwen2.5-7B", ""), wide);
  EXPECT_EQ(format("Qwen/Qwen2.5-7B", "peft_autocast_adapter_dtype: false\n"), "qlora");
  EXPECT_EQ(format("Qwen/Qwen3-30B-A3B", ""), wide + ",experts=bf16,router=bf16");
  EXPECT_EQ(format("Qwen/Qwen3-30B-A3B", "quantize_moe_experts: true\n"), wide);
}

TEST(UnseenTrainerTest, ABaseRestsAsItsNameSays) {
  const auto read = [](const std::string& model) {
    return import_texts({{"a.yaml", "model_name_or_path: " + model +
                                        "\nstage: sft\nfinetuning_type: lora\ntemplate: qwen\n"
                                        "cutoff_len: 2048\nper_device_train_batch_size: 1\n"}},
                        {{"world-size", "8"}});
  };
  const std::string rest = ",embedding=bf16,head=bf16,norms=bf16";
  EXPECT_EQ(said_of(read("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4"), "precision"),
            "autocast,frozen=nf4-double" + rest);
  EXPECT_EQ(said_of(read("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8"), "precision"),
            "autocast,frozen=llm-int8" + rest);
  EXPECT_TRUE(asks_for(read("Qwen/Qwen3-8B-FP8"), "--set base-bits=4"));
  EXPECT_FALSE(asks_for(read("Qwen/Qwen3-8B"), "base-bits"));
}

TEST(UnseenTrainerTest, SwiftHasKeysOfItsOwn) {
  const auto read = [](const std::string& options) {
    return import_texts({{"a.sh", "NPROC_PER_NODE=8 swift " + options +
                                      " --model Qwen/Qwen2.5-7B --model_name robot "
                                      "--max_length 2048 --dataset some"}});
  };
  const Imported full = read("sft --train_type full --deepspeed zero3");
  EXPECT_EQ(said_of(full, "placement"), "dp=8:zero3");
  EXPECT_EQ(said_of(full, "model"), "Qwen/Qwen2.5-7B");
  EXPECT_EQ(said_of(full, "global-batch"), "16");
  EXPECT_EQ(said_of(full, "lora"), "");
  EXPECT_EQ(said_of(read("sft --lora_rank 16"), "lora"), "16,all-linear,dropout=0.05");
  EXPECT_TRUE(
      said_of(read("sft --quant_bits 4"), "precision").starts_with("autocast,frozen=nf4-double"));
  EXPECT_TRUE(asks_for(read("rlhf --rlhf_type dpo"), "a training on samples alone"));
}

Imported engine(const std::string& zero, const std::string& top, const std::string& devices) {
  return import_texts(
      {{"ds.json", "{\"bf16\": {\"enabled\": true}, \"train_micro_batch_size_per_gpu\": 1, " + top +
                       "\"zero_optimization\": {\"stage\": 3" + zero + "}}"}},
      {{"world-size", devices}});
}

TEST(UnseenTrainerTest, KeysThatTheEngineHasOrHadAreNoErrors) {
  for (const std::string key :
       {"\"leaf_module\": {\"classes\": [\"A\"]}", "\"module_granularity_threshold\": 0",
        "\"stage3_allgather_sequential\": false", "\"override_module_apply\": true"}) {
    EXPECT_FALSE(is_found(engine(", " + key, "", "8"), "PL001")) << key;
  }
  EXPECT_TRUE(is_found(engine("", "\"amp\": {\"enabled\": false}, ", "8"), "PL075"));
  EXPECT_TRUE(is_found(engine(", \"mics_shard_size\": 4", "", "8"), "PL076"));
  EXPECT_FALSE(is_found(engine("", "", "8"), "PL075"));
  EXPECT_TRUE(is_found(engine("", "", "8"), "PL036"));
  EXPECT_FALSE(is_found(engine("", "\"gradient_clipping\": \"auto\", ", "8"), "PL036"));
}

TEST(UnseenTrainerTest, GroupsThatDoNotDivideAreNamed) {
  EXPECT_TRUE(is_found(engine(", \"zero_hpz_partition_size\": 8", "", "12"), "PL077"));
  EXPECT_FALSE(is_found(engine(", \"zero_hpz_partition_size\": 8", "", "16"), "PL077"));
  EXPECT_TRUE(is_found(engine(", \"mics_shard_size\": 8", "", "12"), "PL078"));
  EXPECT_TRUE(is_found(engine("", "", "1"), "PL019"));
  EXPECT_FALSE(is_found(engine("", "", "8"), "PL019"));
  EXPECT_FALSE(is_found(engine("", "\"sequence_parallel_size\": 8, ", "8"), "PL019"));
}

TEST(UnseenTrainerTest, DevicesOfASequenceShareStates) {
  const std::string file =
      "distributed_type: DEEPSPEED\nnum_processes: 8\ndeepspeed_config:\n  zero_stage: 3\n"
      "parallelism_config:\n  parallelism_config_sp_size: ";
  EXPECT_FALSE(is_found(import_texts({{"acc.yaml", file + "8\n"}}), "PL019"));
  const std::string alone = "base_model: Qwen/Qwen2.5-7B\nsequence_len: 512\nmicro_batch_size: 1\n";
  EXPECT_FALSE(
      is_found(import_texts({{"a.yaml", alone + "fsdp_config:\n  fsdp_limit_all_gathers: true\n"
                                                "  fsdp_state_dict_type: FULL_STATE_DICT\n"}}),
               "PL002"));
}

TEST(UnseenTrainerTest, PreferencesAreToldByTheirOptions) {
  const Imported result = import_texts(
      {{"a.sh",
        "torchrun --nproc_per_node 8 my.py --model_name_or_path Qwen/Qwen2.5-7B --output_dir o "
        "--per_device_train_batch_size 1 --num_generations 8 --temperature 0.7 --use_vllm"}});
  EXPECT_TRUE(asks_for(result, "a training on samples alone"));
  EXPECT_FALSE(is_found(result, "PL001"));
}

TEST(UnseenTrainerTest, AKeyThatTheTrainerRefusesIsAnError) {
  const Imported result =
      import_texts({{"a.yaml",
                     "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: full\n"
                     "template: qwen\ncutof_len: 4096\nper_device_train_batch_size: 1\n"}});
  bool found = false;
  for (const LintFinding& finding : result.findings) {
    if (finding.code == "PL001") found = finding.severity == "error";
  }
  EXPECT_TRUE(found);
}

TEST(UnseenTrainerTest, KeysWithoutAValueAreNothingToSay) {
  const std::string file =
      "base_model: Qwen/Qwen2.5-7B\nsequence_len: 512\nmicro_batch_size: 1\nno_such_key:";
  EXPECT_FALSE(is_found(import_texts({{"a.yaml", file + "\n"}}), "PL001"));
  EXPECT_TRUE(is_found(import_texts({{"a.yaml", file + " 1\n"}}), "PL001"));
}

}  // namespace
}  // namespace placet
