// What further launch scripts and configurations of real trainings showed: each test has a small
// one of its own that shows the same.
#include <gtest/gtest.h>

#include "imported.h"
#include "interop/import.h"

namespace placet {
namespace {

// Of Megatron-LM; the model lacks what a test is about.
const std::string kPretrain =
    "pretrain_gpt.py --tensor-model-parallel-size 2 --num-layers 12 --hidden-size 768 "
    "--ffn-hidden-size 3072 --num-attention-heads 12 --seq-length 1024 "
    "--max-position-embeddings 1024 --micro-batch-size 4 --global-batch-size 512 --bf16 "
    "--vocab-size 50257 --position-embedding-type rope --normalization RMSNorm "
    "--disable-bias-linear ";

// An optimizer that nobody knows is not AdamW, and a value that holds a variable is no default.
TEST(UnseenLaunchTest, WhatCannotBeReadIsAskedFor) {
  const std::string line = "torchrun --nnodes 1 --nproc_per_node 8 " + kPretrain;
  EXPECT_EQ(said_of(import_texts({{"a.sh", line}}), "optimizer"), "");
  const Imported unknown = import_texts({{"a.sh", line + "--optimizer ademamix"}});
  EXPECT_TRUE(asks_for(unknown, "--optimizer ademamix at a.sh:1"));
  EXPECT_TRUE(asks_for(unknown, "--set optimizer=VALUE"));
  EXPECT_FALSE(
      asks_for(import_texts({{"a.sh", line + "--optimizer ademamix"}}, {{"optimizer", "adamw"}}),
               "optimizer"));
  const Imported open = import_texts({{"a.sh", line + "--recompute-granularity $KIND"}});
  EXPECT_TRUE(asks_for(open, "--recompute-granularity $KIND at a.sh:1"));
  EXPECT_EQ(said_of(open, "recompute"), "");
}

// The last line has the last word, also where nobody can read it; what changes nothing is not asked
// for.
TEST(UnseenLaunchTest, WhatIsAskedForIsWhatTheJobNeeds) {
  const auto read = [](const std::string& more) {
    return import_texts({{"a.sh", "torchrun --nnodes 1 --nproc_per_node 8 " + kPretrain + more}});
  };
  EXPECT_TRUE(asks_for(read("--optimizer sgd --optimizer ademamix"), "--set optimizer="));
  EXPECT_TRUE(asks_for(read("--clip-grad 2.0 --clip-grad $C"), "--set clip="));
  EXPECT_EQ(said_of(read("--clip-grad $C --clip-grad 2.0"), "clip"), "2.0");
  for (const std::string more : {"--context-parallel-size 1 --cp-comm-type foo",
                                 "--tokenizer-type $T", "--moe-router-load-balancing-type foo"}) {
    const Imported result = read(more);
    EXPECT_TRUE(result.missing.empty()) << more << result.missing.front().what;
    EXPECT_EQ(said_of(result, "placement"), "dp=4:ddp tp=2:tp") << more;
  }
  const std::string experts = "--num-experts 8 --moe-router-load-balancing-type ";
  EXPECT_EQ(said_of(read(experts + "sinkhorn"), "balance-loss"), "none");
  EXPECT_TRUE(asks_for(read(experts + "foo"), "--set balance-loss="));
}

TEST(UnseenLaunchTest, DegreesThatLeaveNoneAreNamed) {
  const std::string line = "torchrun --nnodes 1 --nproc_per_node 8 " + kPretrain;
  const Imported result = import_texts({{"a.sh", line + "--context-parallel-size 3"}});
  EXPECT_TRUE(asks_for(result, "no whole number is left for 'dp' beside cp=3, tp=2"));
  EXPECT_TRUE(asks_for(result, "--world-size N or --placement TEXT"));
}

// torchrun starts one node unless it is told of more; a batch system and a list of hosts may.
TEST(UnseenLaunchTest, DevicesOfOneNodeAreAllThereAre) {
  const Imported one = import_texts({{"a.sh", "torchrun --nproc_per_node=8 " + kPretrain}});
  EXPECT_EQ(said_of(one, "placement"), "dp=4:ddp tp=2:tp");
  EXPECT_FALSE(asks_for(one, "--world-size"));
  for (const std::string begin : {"#SBATCH --ntasks=32\n#SBATCH --gpus-per-node=8\nsrun python ",
                                  "deepspeed --hostfile hosts --num_gpus 8 "}) {
    EXPECT_TRUE(asks_for(import_texts({{"a.sh", begin + kPretrain}}), "--world-size")) << begin;
  }
}

// Heads that predict further tokens are blocks of the model, of which not every model here has any.
TEST(UnseenLaunchTest, PredictionBlocksAreNotDropped) {
  const std::string more = "torchrun --nproc_per_node=8 " + kPretrain + "--mtp-num-layers 1 ";
  EXPECT_EQ(fate_of_key(import_texts({{"a.sh", more}}), "--mtp-num-layers"), Fate::not_modelled);
  const std::string latent =
      "--swiglu --multi-latent-attention --q-lora-rank 96 --kv-lora-rank 64 --qk-head-dim 32 "
      "--qk-pos-emb-head-dim 16 --v-head-dim 32 --num-experts 8 --moe-ffn-hidden-size 256 "
      "--moe-router-topk 2 --moe-shared-expert-intermediate-size 256 ";
  const auto model = [&](const std::string& flags) {
    return said_of(import_texts({{"a.sh", more + latent + flags}}), "model");
  };
  EXPECT_NE(model("").find(R"("num_nextn_predict_layers":1)"), std::string::npos) << model("");
  // MindSpeed names the first dense blocks beside the frequency of the others.
  EXPECT_NE(
      model("--first-k-dense-replace 3 --moe-layer-freq 1").find(R"("first_k_dense_replace":3)"),
      std::string::npos);
  EXPECT_NE(model("--moe-layer-freq ([0]*2+[1]*10)").find(R"("first_k_dense_replace":2)"),
            std::string::npos);
}

TEST(UnseenLaunchTest, SettingsOfAnotherProgramAreNoneOfMegatron) {
  const Imported swift = import_texts(
      {{"a.sh",
        "NPROC_PER_NODE=2 megatron sft --tuner_type lora --tensor_model_parallel_size 2 "
        "--micro_batch_size 8 --global_batch_size 16 --sequence_parallel true --lr 1e-5 "
        "--recompute_granularity full"}});
  EXPECT_TRUE(asks_for(swift, "ms-swift"));
}

// A bridge's adapters are no training of all parameters.
TEST(UnseenLaunchTest, AdaptersOfABridgeAreAskedAbout) {
  const std::string bridge =
      "peft:\n  _target_: megatron.bridge.peft.lora.LoRA\n  dim: 16\n"
      "model:\n  tensor_model_parallel_size: 2\n  pipeline_model_parallel_size: 1\n"
      "  seq_length: 2048\n  fine_grained_activation_offloading: true\n"
      "train:\n  micro_batch_size: 1\n  global_batch_size: 8\n"
      "ddp:\n  use_distributed_optimizer: true\n";
  const Words world = {{"world-size", "8"}};
  const Imported asked = import_texts({{"run_config.yaml", bridge}}, world);
  EXPECT_TRUE(asks_for(asked, "--set lora=RANK"));
  EXPECT_EQ(fate_of_key(asked, "model.fine_grained_activation_offloading"), Fate::not_modelled);
}

// The launcher's own flags say what its file would.
TEST(UnseenLaunchTest, FlagsOfTheLauncherShardAndOffload) {
  const std::string script =
      "examples/run_clm.py --model_name_or_path Qwen/Qwen3-0.6B --block_size 2048 "
      "--per_device_train_batch_size 1 --gradient_accumulation_steps 8 --output_dir o --bf16";
  const auto placed = [&](const std::string& flags) {
    return said_of(
        import_texts({{"a.sh", "accelerate launch --num_processes 4 " + flags + script}}),
        "placement");
  };
  EXPECT_EQ(placed("--use_deepspeed --zero_stage 2 --offload_optimizer_device cpu "),
            "dp=4:zero2+offload(optimizer)");
  EXPECT_EQ(placed("--use_fsdp --fsdp_version 2 --use_parallelism_config "
                   "--parallelism_config_dp_replicate_size 2 "
                   "--parallelism_config_dp_shard_size 1 --parallelism_config_cp_size 2 "),
            "rep=2:ddp cp=2:gather+fsdp");
  EXPECT_EQ(placed("--use_fsdp --fsdp_version 2 --parallelism_config_cp_size 2 "), "dp=4:fsdp")
      << "sizes are passed over without --use_parallelism_config";
  const auto recompute = [&](const std::string& flags, const std::string& more) {
    const Imported result =
        import_texts({{"a.sh", "accelerate launch --num_processes 4 " + flags + script + more}});
    EXPECT_FALSE(is_found(result, "PL002"));
    return said_of(result, "recompute");
  };
  const std::string kept = "--fsdp_activation_checkpointing true ";
  EXPECT_EQ(recompute("--use_fsdp " + kept, " --gradient_checkpointing False"), "full");
  EXPECT_NE(recompute(kept, ""), "full");
}

// A model of another machine is the one that it is called by; one that is called by no name of the
// catalogue is asked for.
TEST(UnseenLaunchTest, AModelOfAnotherMachineGoesByItsName) {
  const auto read = [](const std::string& model) {
    return import_texts(
        {{"a.sh",
          "torchrun --nproc_per_node=4 train.py --model_name_or_path " + model +
              " --bf16 True --output_dir o --per_device_train_batch_size 1 --learning_rate 1e-5 "
              "--model_max_length 2048"}});
  };
  const Imported known = read("/nowhere/models/Llama-2-13b-hf");
  EXPECT_EQ(said_of(known, "model"), "llama-2-13b");
  EXPECT_FALSE(is_found(known, "PL100"));
  const Imported unknown = read("/nowhere/models/my-run-7");
  EXPECT_TRUE(asks_for(unknown, "can be read ('/nowhere/models/my-run-7' is not on this machine"));
}

// A script's own configuration holds what it writes, and what the script is called with is no part
// of the last option.
TEST(UnseenLaunchTest, AScriptsOwnTomlIsRead) {
  const std::string script =
      "cat > config.toml <<EOF\n[model]\nname = \"llama3\"\nflavor = \"8B\"\n"
      "[training]\nlocal_batch_size = 1\nseq_len = 4096\n"
      "[parallelism]\ndata_parallel_shard_degree = -1\nEOF\n"
      "torchrun --nproc_per_node 8 --nnodes 1 -m torchtitan.train --job.config_file config.toml "
      "\"$@\"\n";
  const Imported result = import_texts({{"run.sh", script}});
  EXPECT_EQ(said_of(result, "placement"), "dp=8:fsdp");
  EXPECT_EQ(said_of(result, "seq"), "4096");
}

TEST(UnseenLaunchTest, TasksOfAllNodesAreCounted) {
  const Imported result = import_texts({{"a.slurm",
                                         "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n"
                                         "torchrun --nnodes 1 --nproc_per_node $SLURM_NPROCS " +
                                             kPretrain}});
  EXPECT_EQ(said_of(result, "placement"), "dp=4:ddp tp=2:tp");
}

}  // namespace
}  // namespace placet
