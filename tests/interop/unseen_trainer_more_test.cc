// What still further configurations of trainers of Hugging Face's family showed: adapters by other
// switches, parts that are not trained, and what a launcher or a wrapper says of a trainer.
#include <gtest/gtest.h>

#include <string>

#include "imported.h"
#include "interop/import.h"

namespace placet {
namespace {

const std::string kTrained =
    " --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 1 "
    "--model_max_length 2048 --bf16 True --output_dir out ";

// A script behind torchrun on 8 devices.
Imported trained(const std::string& options, const std::string& script = "train.py") {
  return import_texts({{"a.sh", "torchrun --nproc_per_node 8 " + script + kTrained + options}});
}

TEST(UnseenTrainerMoreTest, SwitchesOfAdaptersAreKnownByOtherNames) {
  const std::string adapters = "--use_peft_lora True --lora_r 8 --lora_target_modules all-linear ";
  const Imported plain = trained(adapters);
  EXPECT_EQ(said_of(plain, "lora"), "8,all-linear,dropout=0.1");
  EXPECT_EQ(said_of(plain, "precision"), "frozen=fp32");
  const std::string few = "--use_4bit_quantization True --bnb_4bit_compute_dtype bfloat16 ";
  EXPECT_EQ(said_of(trained(adapters + few), "precision"), "qlora-single");
  EXPECT_EQ(said_of(trained(adapters + few + "--use_nested_quant True"), "precision"), "qlora");
  EXPECT_TRUE(asks_for(trained(adapters + "--use_8bit_quantization True"), "--set base-bits=8"));
  EXPECT_EQ(said_of(trained("--use_peft_lora False --lora_r 8"), "lora"), "");
}

TEST(UnseenTrainerMoreTest, ARankWithoutASwitchIsAskedAbout) {
  const std::string set = "--dataset_text_field text --lora_r 8 --lora_target_modules q_proj ";
  EXPECT_TRUE(asks_for(trained(set), "--set adapter=peft"));
  EXPECT_FALSE(asks_for(trained(set + "--use_peft"), "--set adapter=peft"));
  EXPECT_FALSE(asks_for(trained(set + "--use_peft False"), "--set adapter=peft"));
  EXPECT_EQ(said_of(trained(set + "--use_peft False"), "precision"), "autocast");
}

TEST(UnseenTrainerMoreTest, TheTrainersFormatIsWrittenOverTheLaunchers) {
  const std::string launcher =
      "distributed_type: FSDP\nnum_processes: 8\nmixed_precision: 'no'\nfsdp_config:\n"
      "  fsdp_version: 2\n";
  const auto precision = [&](const std::string& options) {
    return said_of(import_texts({{"acc.yaml", launcher},
                                 {"a.sh",
                                  "accelerate launch --config_file acc.yaml sft.py "
                                  "--dataset_text_field text --max_length 1024 "
                                  "--model_name_or_path Qwen/Qwen2.5-7B " +
                                      options}}),
                   "precision");
  };
  EXPECT_EQ(precision("--bf16 True"), "");  // as the engine has it
  EXPECT_EQ(precision(""), "");
  EXPECT_EQ(precision("--bf16 False"), "fp32");
}

TEST(UnseenTrainerMoreTest, AFrozenLanguageModelIsNotTrained) {
  for (const std::string part :
       {"--tune_mm_mlp_adapter True", "--freeze_llm True", "--tune_mm_llm False",
        "--mm_tunable_parts mm_mlp_adapter", "--mm_tunable_parts mm_mlp_adapter,mm_vision_tower"}) {
    EXPECT_TRUE(asks_for(trained(part), "a training of the language model")) << part;
    EXPECT_FALSE(asks_for(trained(part + " --use_llm_lora 16"), "a training of the language"));
  }
  for (const std::string part : {"--tune_mm_llm True", "--freeze_llm False",
                                 "--mm_tunable_parts mm_mlp_adapter,mm_language_model"}) {
    EXPECT_FALSE(asks_for(trained(part), "a training of the language model")) << part;
  }
}

TEST(UnseenTrainerMoreTest, TargetsThatAreNotKnownAreAskedFor) {
  EXPECT_TRUE(asks_for(trained("--lora_r 8"), "--set lora-targets="));
  EXPECT_FALSE(asks_for(trained("--lora_r 8 --lora_target_modules q_proj"), "lora-targets"));
  EXPECT_EQ(said_of(trained("--lora_enable True --lora_r 8"), "lora"), "8,all-linear,dropout=0.05");
  const std::string replaced = "--lora_dim 8 --lora_module_name decoder.layers. ";
  EXPECT_EQ(said_of(trained(replaced), "lora"), "8,all-linear");
  EXPECT_TRUE(asks_for(trained(replaced), "--only_optimize_lora"));
  EXPECT_FALSE(asks_for(trained(replaced + "--only_optimize_lora"), "--only_optimize_lora"));
  EXPECT_TRUE(asks_for(trained("--lora_dim 8 --only_optimize_lora"), "--set lora-targets="));
}

TEST(UnseenTrainerMoreTest, AWrapperCountsNodesAndItsCommandTheirProcesses) {
  const auto placed = [](const std::string& wrapper) {
    return said_of(import_texts({{"a.sh", wrapper + "accelerate launch --num_processes 8 tune.py" +
                                              kTrained}}),
                   "placement");
  };
  EXPECT_EQ(placed("python mason.py --cluster some --num_nodes 2 --gpus 8 -- "), "dp=16:ddp");
  EXPECT_EQ(placed(""), "dp=8:ddp");
}

TEST(UnseenTrainerMoreTest, WhatIsSaidOfZeroNeedsItsSwitch) {
  const auto read = [](const std::string& launcher) {
    return import_texts({{"a.sh", launcher + " train.py" + kTrained}});
  };
  const std::string stage = " --num_processes 8 --zero_stage 3 --offload_optimizer_device cpu";
  const Imported idle = read("accelerate launch" + stage);
  EXPECT_EQ(said_of(idle, "placement"), "dp=8:ddp");
  EXPECT_TRUE(is_found(idle, "PL080"));
  const Imported used = read("accelerate launch --use_deepspeed" + stage);
  EXPECT_EQ(said_of(used, "placement"), "dp=8:zero3+offload(optimizer)");
  EXPECT_FALSE(is_found(used, "PL080"));
  EXPECT_EQ(said_of(read("accelerate launch --num_processes 8 --use_deepspeed"), "placement"),
            "dp=8:zero2");
}

TEST(UnseenTrainerMoreTest, PackedSamplesHaveTheLengthOfThePack) {
  const Imported packed = trained(
      "--use_packed_ds True --max_packed_tokens 8192 "
      "--grad_checkpoint True");
  EXPECT_EQ(said_of(packed, "seq"), "8192");
  EXPECT_EQ(said_of(packed, "recompute"), "full");
  EXPECT_EQ(said_of(import_texts({{"a.sh",
                                   "torchrun --nproc_per_node 8 tune.py --llm_path "
                                   "./pre/Qwen2.5-0.5B-Instruct --output_dir out "
                                   "--per_device_train_batch_size 1 "
                                   "--max_seq_length 1024"}}),
                    "model"),
            "qwen2.5-0.5b");
}

}  // namespace
}  // namespace placet
