// What still further configurations of trainers of Hugging Face's family showed: adapters by other
// switches, parts that are not trained, and what a launcher or a wrapper says of a trainer.
#include <gtest/gtest.h>

#include <algorithm>
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

TEST(UnseenTrainerMoreTest, ABackboneIsOfTheLanguageModelOrOfTheTower) {
  EXPECT_TRUE(asks_for(trained("--freeze_backbone True"), "--set language-frozen=true"));
  EXPECT_FALSE(asks_for(trained("--freeze_backbone True --freeze_llm False"), "language-frozen"));
  EXPECT_FALSE(asks_for(trained("--freeze_backbone False"), "language-frozen"));
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

const std::string kFactoryStage =
    "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\ntemplate: qwen\ncutoff_len: 2048\n"
    "per_device_train_batch_size: 1\n";

Imported factory(const std::string& more, const Words& given = {{"world-size", "8"}}) {
  return import_texts({{"a.yaml", kFactoryStage + more}}, given);
}

TEST(UnseenTrainerMoreTest, AScriptsNameAloneTellsNoTrainer) {
  const std::string script = "torchrun --nproc_per_node 8 train_sft.py" + kTrained;
  EXPECT_EQ(import_texts({{"a.sh", script}}).dialects[0], "hf-trainer-launch@5");
  EXPECT_EQ(import_texts({{"a.sh", script + "--stage sft"}}).dialects[0],
            "llamafactory-launch@2026");
  EXPECT_EQ(said_of(import_texts({{"a.sh", script}}), "lora"), "");
}

TEST(UnseenTrainerMoreTest, WithoutAFormatTheModelsOwnIsKept) {
  EXPECT_EQ(said_of(factory("finetuning_type: lora\n"), "precision"), "autocast,frozen=bf16");
  EXPECT_EQ(said_of(factory("finetuning_type: full\n"), "precision"), "fp32");
  EXPECT_EQ(said_of(factory("finetuning_type: full\nuse_badam: true\n"), "precision"), "bf16");
}

TEST(UnseenTrainerMoreTest, WorkersOfRayAreDevices) {
  const std::string ray =
      "ray_num_workers: 4\nplacement_strategy: PACK\nresources_per_worker:\n  GPU: 1\n";
  const Imported workers = factory("finetuning_type: full\nbf16: true\n" + ray, {});
  EXPECT_EQ(said_of(workers, "placement"), "dp=4:ddp");
  EXPECT_FALSE(is_found(workers, "PL001"));
}

TEST(UnseenTrainerMoreTest, HowAttentionIsComputedHasOneKey) {
  EXPECT_TRUE(is_found(factory("attn: fa2\n"), "PL081"));
  EXPECT_TRUE(is_found(factory("attn_implementation: sdpa\n"), "PL081"));
  EXPECT_FALSE(is_found(factory("flash_attn: fa2\n"), "PL081"));
}

Imported axolotl(const std::string& more, const Words& given = {{"world-size", "8"}}) {
  return import_texts({{"a.yaml",
                        "base_model: Qwen/Qwen2.5-7B\nsequence_len: 2048\nmicro_batch_size: 1\n"
                        "datasets:\nbf16: true\n" +
                            more}},
                      given);
}

TEST(UnseenTrainerMoreTest, WhatIsTrainedBesideAdaptersIsAskedAbout) {
  const std::string adapter = "adapter: lora\nlora_r: 16\nlora_target_linear: true\n";
  EXPECT_TRUE(asks_for(axolotl(adapter + "lora_modules_to_save: [embed_tokens, lm_head]\n"),
                       "--set wholly-trained=unsaid"));
  EXPECT_FALSE(asks_for(axolotl(adapter + "lora_modules_to_save: []\n"), "wholly-trained"));
  EXPECT_FALSE(asks_for(axolotl(adapter), "wholly-trained"));
  EXPECT_TRUE(asks_for(axolotl(adapter + "peft_use_dora: true\n"), "--set dora=unsaid"));
  EXPECT_TRUE(asks_for(factory("finetuning_type: lora\nadditional_target: embed_tokens\n"),
                       "--set wholly-trained=unsaid"));
  EXPECT_TRUE(asks_for(trained("--lora_r 8 --lora_target_modules q_proj --modules_to_save "
                               "embed_tokens,lm_head"),
                       "--set wholly-trained=unsaid"));
}

TEST(UnseenTrainerMoreTest, ABaseOfFewerBitsHasTwoSpellings) {
  const std::string adapter = "adapter: lora\nlora_r: 16\npeft:\n  backend: torchao\n";
  EXPECT_TRUE(said_of(axolotl(adapter + "  weight_dtype: int4\n"), "precision")
                  .starts_with("autocast,frozen=nf4-double"));
  EXPECT_TRUE(said_of(axolotl(adapter + "  weight_dtype: int8\n"), "precision")
                  .starts_with("autocast,frozen=llm-int8"));
}

TEST(UnseenTrainerMoreTest, TheLaunchersShardingReachesItsTrainer) {
  const std::string file =
      "base_model: Qwen/Qwen2.5-7B\nsequence_len: 2048\nmicro_batch_size: 1\ndatasets:\n";
  const Imported launched = import_texts(
      {{"a.yaml", file},
       {"a.sh",
        "accelerate launch --num_processes 8 --num_machines 2 --mixed_precision bf16 "
        "--use_fsdp --fsdp_sharding_strategy HYBRID_SHARD -m axolotl.cli.train a.yaml"}});
  EXPECT_EQ(said_of(launched, "placement"), "rep=2:ddp dp=4:fsdp");
  EXPECT_FALSE(is_found(launched, "PL001"));
  EXPECT_EQ(said_of(axolotl("use_ray: true\nray_num_workers: 4\n", {}), "placement"), "dp=4:ddp");
  EXPECT_EQ(said_of(axolotl("ray_num_workers: 4\n", {}), "placement"), "");
}

TEST(UnseenTrainerMoreTest, SwiftSpreadsAModelWhereDevicesAreMoreThanProcesses) {
  const auto read = [](const std::string& before, const std::string& more) {
    return import_texts({{"a.sh", before + " swift sft --model Qwen/Qwen2.5-7B --max_length 2048 " +
                                      "--dataset some " + more}});
  };
  const std::string four = "CUDA_VISIBLE_DEVICES=0,1,2,3 NPROC_PER_NODE=";
  EXPECT_TRUE(asks_for(read(four + "2", ""), "how 2 processes share 4 devices"));
  EXPECT_FALSE(asks_for(read(four + "4", ""), "processes share"));
  EXPECT_EQ(said_of(read(four + "4", "--optimizer muon"), "optimizer"), "muon");
  EXPECT_TRUE(asks_for(read(four + "4", "--optimizer galore"), "--set optimizer=NAME"));
  EXPECT_TRUE(asks_for(read(four + "4", "--use_dora true"), "--set dora=unsaid"));
  EXPECT_EQ(said_of(read(four + "4", "--fsdp fsdp2 --activation_cpu_offload true"), "placement"),
            "dp=4:fsdp+offload(activations)");
  EXPECT_TRUE(asks_for(read(four + "4", "--activation_cpu_offload true"), "activation-host"));
}

TEST(UnseenTrainerMoreTest, AFrozenBaseRestsAsItIsLoaded) {
  const std::string file =
      "global_train_batch_size: 16\ndevice_train_microbatch_size: 1\nmax_seq_len: 2048\n"
      "model:\n  name: hf_causal_lm\n  pretrained_model_name_or_path: Qwen/Qwen2.5-7B\n"
      "  peft_config:\n    r: 16\n    peft_type: LORA\n    target_modules: [q_proj]\n"
      "precision: amp_bf16\ntrain_loader:\n  dataset:\n    packing_ratio: auto\n"
      "fsdp_config:\n  sharding_strategy: FULL_SHARD\n";
  const auto read = [&](const std::string& more) {
    return import_texts({{"a.yaml", file + more}}, {{"world-size", "8"}});
  };
  EXPECT_EQ(said_of(read(""), "precision"), "reduce=fp32,frozen=fp32");
  EXPECT_EQ(said_of(read("  mixed_precision: PURE\n"), "precision"), "frozen=fp32");
  EXPECT_EQ(said_of(read("  activation_cpu_offload: true\n"), "placement"),
            "dp=8:fsdp+offload(activations)");
  EXPECT_EQ(fate_of_key(read(""), "train_loader.dataset.packing_ratio"), Fate::not_modelled);
}

TEST(UnseenTrainerMoreTest, QuantisedGradientsAloneAreNamed) {
  const auto fate = [](const std::string& more) {
    return fate_of_key(import_texts({{"ds.json",
                                      "{\"bf16\": {\"enabled\": true}, \"zero_optimization\": "
                                      "{\"stage\": 3, \"zero_quantized_gradients\": true" +
                                          more + "}}"}},
                                    {{"world-size", "8"}}),
                       "zero_optimization.zero_quantized_gradients");
  };
  EXPECT_EQ(fate(""), Fate::not_modelled);
  EXPECT_EQ(fate(", \"zero_quantized_weights\": true"), Fate::understood);
}

TEST(UnseenTrainerMoreTest, TheLauncherDividesByStageTwo) {
  const std::string file = "distributed_type: DEEPSPEED\nnum_processes: 8\ndeepspeed_config:\n";
  EXPECT_EQ(said_of(import_texts({{"acc.yaml", file + "  zero3_init_flag: false\n"}}), "placement"),
            "dp=8:zero2");
  EXPECT_EQ(said_of(import_texts({{"acc.yaml", file + "  zero_stage: 3\n"}}), "placement"),
            "dp=8:zero3");
}

TEST(UnseenTrainerMoreTest, HostsOfAFileAreAskedFor) {
  const auto read = [](const std::string& options) {
    return import_texts({{"a.sh", "deepspeed " + options + " train.py" + kTrained}});
  };
  EXPECT_TRUE(asks_for(read("--hostfile hosts.txt --num_gpus 8"), "the hosts of 'hosts.txt'"));
  EXPECT_EQ(said_of(read("--hostfile hosts.txt --num_gpus 8"), "placement"), "");
  EXPECT_FALSE(asks_for(read("--hostfile hosts.txt --num_nodes 2 --num_gpus 8"), "the hosts of"));
}

TEST(UnseenTrainerMoreTest, MarksOfOneTrainerTellNoOther) {
  const Imported fine =
      import_texts({{"a.yaml",
                     "base_model: Qwen/Qwen2.5-7B\nsequence_len: 512\nmicro_batch_size: 1\n"
                     "load_in_4bit: false\ngradient_accumulation_steps: 1\nlearning_rate: 1e-5\n"
                     "output_dir: out\ndatasets:\nqat:\n  weight_dtype: int4\nnum_labels: 1\n"}});
  EXPECT_EQ(fine.dialects[0], "axolotl@2026");
  EXPECT_FALSE(is_found(fine, "PL001"));
}

TEST(UnseenTrainerMoreTest, ATextOfSettingsStandsWhereAFilesNameCould) {
  EXPECT_EQ(said_of(trained("--deepspeed '{\"zero_optimization\": {\"stage\": 2}, \"bf16\": "
                            "{\"enabled\": true}}' --seed 1"),
                    "placement"),
            "dp=8:zero2");
  const Imported sharded = trained(
      "--fsdp \"full_shard auto_wrap\" --fsdp_config '{\"fsdp_version\": 2, "
      "\"activation_checkpointing\": true}'");
  EXPECT_EQ(said_of(sharded, "engine"), "accelerate@1");
  EXPECT_EQ(said_of(sharded, "recompute"), "full");
  EXPECT_TRUE(asks_for(trained("--fsdp full_shard --fsdp_config '{\"fsdp_version\": [}'"),
                       "settings of the sharding"));
}

TEST(UnseenTrainerMoreTest, WhatTheTrainerAndItsEngineSayDifferentlyIsAnError) {
  const auto severity = [](const std::string& engine) {
    const Imported both = import_texts(
        {{"a.sh", "torchrun --nproc_per_node 8 train.py --deepspeed ds.json" + kTrained +
                      "--gradient_accumulation_steps 2 --max_grad_norm 1.0"},
         {"ds.json", "{\"zero_optimization\": {\"stage\": 2}, " + engine + "}"}});
    for (const LintFinding& finding : both.findings) {
      if (finding.severity == "error") return finding.code;
    }
    return std::string();
  };
  EXPECT_EQ(severity("\"train_micro_batch_size_per_gpu\": 4"), "PL002");
  EXPECT_EQ(severity("\"gradient_accumulation_steps\": 4"), "PL002");
  EXPECT_EQ(severity("\"train_micro_batch_size_per_gpu\": \"auto\""), "");
  EXPECT_EQ(severity("\"train_micro_batch_size_per_gpu\": 1"), "");
  EXPECT_EQ(severity("\"gradient_clipping\": 1"), "");  // the script's is 1.0
  EXPECT_EQ(severity("\"gradient_clipping\": 0.5"), "PL002");
  EXPECT_EQ(severity("\"bf16\": {\"enabled\": false}"), "PL082");
  EXPECT_EQ(severity("\"fp16\": {\"enabled\": true}"), "PL084");
  EXPECT_EQ(severity("\"bf16\": {\"enabled\": \"auto\"}"), "");
}

TEST(UnseenTrainerMoreTest, AFrozenLanguageModelHasOtherNames) {
  const std::string part = "a training of the language model";
  EXPECT_TRUE(asks_for(factory("finetuning_type: full\ntrain_mm_proj_only: true\n"), part));
  EXPECT_TRUE(asks_for(factory("finetuning_type: full\nfreeze_language_model: true\n"), part));
  EXPECT_FALSE(asks_for(factory("finetuning_type: full\nfreeze_language_model: false\n"), part));
  EXPECT_TRUE(asks_for(import_texts({{"a.sh",
                                      "NPROC_PER_NODE=8 swift sft --dataset some --model "
                                      "Qwen/Qwen2.5-7B --freeze_llm true"}}),
                       "adapters of the language model"));
}

TEST(UnseenTrainerMoreTest, WordsOfAShortListAreNamed) {
  EXPECT_TRUE(asks_for(factory("optim: adamw_torch_4bit\n"), "--set optim=VALUE (adafactor, "));
}

// The launch line wins over the launcher's file; beside another kind of sharding a stage is idle.
TEST(UnseenTrainerMoreTest, AStageOnTheLaunchLine) {
  const std::string line = " --zero_stage 3 train.py" + kTrained + "\n";
  const auto imported = [&](const std::string& options, const std::string& file) {
    return import_texts(
        {{"a.sh", "accelerate launch --num_processes 8 " + options + line},
         {"a.yaml", "compute_environment: LOCAL_MACHINE\nnum_processes: 8\n" + file}});
  };
  const std::string deepspeed = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\n";
  EXPECT_EQ(said_of(imported("--config_file a.yaml", deepspeed), "placement"), "dp=8:zero3");
  const Imported plain = imported("--config_file a.yaml", "distributed_type: MULTI_GPU\n");
  EXPECT_EQ(said_of(plain, "placement"), "dp=8:ddp");
  EXPECT_TRUE(is_found(plain, "PL080"));
  const Imported sharded =
      import_texts({{"a.sh", "accelerate launch --num_processes 8 --use_fsdp" + line}});
  EXPECT_EQ(said_of(sharded, "placement"), "dp=8:fsdp");
}

// What the launcher says alone, and a batch that is looked for, need not be what the engine has.
TEST(UnseenTrainerMoreTest, WhatNeedNotAgree) {
  const auto imported = [](const std::string& launcher, const std::string& trainer,
                           const std::string& engine) {
    return import_texts(
        {{"a.sh",
          "accelerate launch --num_processes 8 --use_deepspeed " + launcher +
              " train.py --model_name_or_path Qwen/Qwen2.5-7B --max_grad_norm 1.0 "
              "--per_device_train_batch_size 2 --model_max_length 2048 --deepspeed a.json " +
              trainer + "\n"},
         {"a.json", "{\"zero_optimization\": {\"stage\": 2}, " + engine + "}"}});
  };
  const std::string half = "\"bf16\": {\"enabled\": false}";
  EXPECT_TRUE(is_found(imported("", "--bf16 True", half), "PL082"));
  EXPECT_FALSE(is_found(imported("--mixed_precision bf16", "", half), "PL082"));
  const auto is_refused = [&](const std::string& trainer) {
    const Imported result =
        imported("", "--bf16 True " + trainer, "\"train_micro_batch_size_per_gpu\": 4");
    const auto found = std::ranges::find(result.findings, "PL002", &LintFinding::code);
    return found != result.findings.end() && found->severity == "error";
  };
  EXPECT_TRUE(is_refused(""));
  EXPECT_FALSE(is_refused("--auto_find_batch_size True"));
}

}  // namespace
}  // namespace placet
