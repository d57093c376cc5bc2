// What further files of Megatron, of what stands on it, of torchtitan, MaxText and nanotron showed:
// each test has a small one of its own that shows the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "imported.h"
#include "interop/import.h"
#include "interop/source.h"

namespace placet {
namespace {

// A launch line with a model that has no gate, and what else it says.
Imported megatron_line(const std::string& more, const std::string& devices = "8") {
  return import_text(
      SourceForm::arguments,
      "torchrun pretrain_gpt.py --num-layers 4 --hidden-size 256 --ffn-hidden-size 1024 "
      "--num-attention-heads 8 --seq-length 512 --max-position-embeddings 512 --vocab-size 1024 "
      "--micro-batch-size 1 --global-batch-size 64 --bf16 --use-distributed-optimizer " +
          more + "\n",
      {{"world-size", devices}});
}

bool is_part_of(const std::string& part, const std::string& text) {
  return text.find(part) != std::string::npos;
}

constexpr const char* kRotary = "--position-embedding-type rope ";
constexpr const char* kGatedMixture =
    "--position-embedding-type rope --swiglu --normalization RMSNorm --disable-bias-linear "
    "--num-experts 16 --moe-router-topk 2 ";

TEST(UnseenMegatronTest, ModelsWithoutAGateAreDescribedByAllThatIsSaid) {
  const std::string narrow = said_of(
      megatron_line(std::string(kRotary) +
                    "--num-query-groups 2 --disable-bias-linear --squared-relu --kv-channels 64"),
      "model");
  EXPECT_TRUE(is_part_of(R"("model_type":"nemotron")", narrow)) << narrow;
  EXPECT_TRUE(is_part_of(R"("num_key_value_heads":2)", narrow));
  EXPECT_TRUE(is_part_of(R"("head_dim":64)", narrow));
  EXPECT_TRUE(is_part_of(R"("hidden_act":"relu2")", narrow));
  EXPECT_TRUE(is_part_of(R"("mlp_bias":false)", narrow));
  const std::string plain = said_of(megatron_line(kRotary), "model");
  EXPECT_TRUE(is_part_of(R"("model_type":"gpt_neox")", plain)) << plain;
  const std::string one = said_of(megatron_line("--attention-head-type multiquery"), "model");
  EXPECT_TRUE(is_part_of(R"("n_kv_heads":1)", one)) << one;
  const Imported none = megatron_line("--num-query-groups 2 --disable-bias-linear");
  EXPECT_EQ(said_of(none, "model"), "");
  EXPECT_TRUE(asks_for(none, "--model NAME"));
}

TEST(UnseenMegatronTest, BiasesOfQueryKeyAndValueAlone) {
  const std::string model = said_of(
      megatron_line(std::string(kRotary) + "--swiglu --normalization RMSNorm --disable-bias-linear "
                                           "--add-qkv-bias"),
      "model");
  EXPECT_TRUE(is_part_of(R"("model_type":"qwen2")", model)) << model;
}

TEST(UnseenMegatronTest, LayersOfSeveralKindsAreNoModelThatIsDescribed) {
  for (const char* more : {"--hybrid-layer-pattern M-M*", "--mamba-state-dim 128",
                           "--is-hybrid-model", "--spec some.mamba_layer_specs stack"}) {
    const Imported result = megatron_line(std::string(kRotary) + more);
    EXPECT_EQ(said_of(result, "model"), "") << more;
    EXPECT_TRUE(asks_for(result, "'hybrid' is said")) << more;
  }
}

TEST(UnseenMegatronTest, SharedExpertsBesideOrdinaryAttention) {
  const std::string shared = std::string(kGatedMixture) +
                             "--moe-ffn-hidden-size 128 --moe-shared-expert-intermediate-size 256 ";
  const std::string counted = said_of(megatron_line(shared), "model");
  EXPECT_TRUE(is_part_of(R"("n_shared_experts":2)", counted)) << counted;
  const std::string gated =
      said_of(megatron_line(shared + "--add-qkv-bias --moe-shared-expert-gate"), "model");
  EXPECT_TRUE(is_part_of(R"("shared_expert_intermediate_size":256)", gated)) << gated;
  const Imported ungated =
      megatron_line(std::string(kRotary) + "--num-experts 16 --normalization RMSNorm");
  EXPECT_TRUE(asks_for(ungated, "'gated' is not said"));
}

// Experts take the ranks of the sequence before those of samples.
TEST(UnseenMegatronTest, ExpertsLieOverContextRanks) {
  const auto placement = [](const std::string& more) {
    return said_of(megatron_line(kGatedMixture + more, "16"), "placement");
  };
  EXPECT_EQ(placement("--expert-model-parallel-size 8 --context-parallel-size 2"),
            "dp=2:zero1 ep=4:ep+zero1 cp=2:ring+zero1;experts:ep");
  EXPECT_EQ(placement("--expert-model-parallel-size 16 --context-parallel-size 16"),
            "cp=16:ring+zero1;experts:ep");
  EXPECT_EQ(placement("--expert-model-parallel-size 16 --context-parallel-size 4 "
                      "--tensor-model-parallel-size 2 --expert-tensor-parallel-size 1"),
            "ep=2:ep+zero1 cp=4:ring+zero1;experts:ep tp=2:tp;experts:ep");
}

TEST(UnseenMegatronTest, TheOptimizerOnTheHostWithoutAnAxisOfSamples) {
  const auto placement = [](const std::string& more) {
    return said_of(megatron_line(more + " --optimizer-cpu-offload"), "placement");
  };
  EXPECT_EQ(placement("--tensor-model-parallel-size 8"), "tp=8:tp+offload(optimizer)");
  EXPECT_EQ(placement("--pipeline-model-parallel-size 8"), "pp=8:1f1b+offload(optimizer)");
  EXPECT_EQ(placement(std::string(kGatedMixture) + "--expert-model-parallel-size 8"),
            "ep=8:ep+zero1+offload(optimizer);experts:ep+offload(optimizer)");
}

TEST(UnseenMegatronTest, RecomputationOfNoLayersAndOfSeveralAtATime) {
  const std::string block = "--recompute-granularity full --recompute-method block ";
  EXPECT_EQ(said_of(megatron_line(block + "--recompute-num-layers 0"), "recompute"), "none");
  EXPECT_TRUE(is_found(megatron_line(block), "PL064"));
  EXPECT_TRUE(is_found(megatron_line("--recompute-granularity full"), "PL052"));
  const Imported uniform = megatron_line(
      "--recompute-granularity full --recompute-method uniform --recompute-num-layers 2");
  EXPECT_EQ(said_of(uniform, "recompute"), "uniform=2");
  EXPECT_TRUE(uniform.findings.empty());
}

TEST(UnseenMegatronTest, PatternsOfExpertsHaveAnItemForEachLayer) {
  const std::string mixture = std::string(kGatedMixture) + "--moe-layer-freq ";
  EXPECT_FALSE(is_found(megatron_line(mixture + "([0]*1+[1]*3)"), "PL065"));
  EXPECT_TRUE(is_found(megatron_line(mixture + "([0]*1+[1]*4)"), "PL065"));
  EXPECT_TRUE(is_found(megatron_line(mixture + "[0,1,1]"), "PL065"));
}

TEST(UnseenMegatronTest, LayersThatHandOnWhatTheyGet) {
  const Imported result = megatron_line("--noop-layers 2,3");
  EXPECT_TRUE(is_part_of(R"("n_layer":2)", said_of(result, "model")));
  EXPECT_TRUE(
      asks_for(megatron_line("--noop-layers 3 --pipeline-model-parallel-size 2"), "--placement"));
}

// What the file cannot say, flags do.
TEST(UnseenMegatronTest, StagesOfTheirOwnAreAskedForUntilTheyAreGiven) {
  const std::string line =
      "torchrun pretrain_gpt.py --num-layers 4 --hidden-size 256 --num-attention-heads 8 "
      "--seq-length 512 --micro-batch-size 1 --global-batch-size 64 "
      "--pipeline-model-parallel-size 2 --custom-pipeline-layers 1,3 --recompute-granularity full "
      "--recompute-method block --custom-pipeline-recompute-layers 1,2\n";
  const Imported asked = import_text(SourceForm::arguments, line, {{"world-size", "8"}});
  EXPECT_TRUE(asks_for(asked, "the blocks of each stage"));
  EXPECT_TRUE(asks_for(asked, "--set recompute=VALUE"));
  EXPECT_FALSE(is_found(asked, "PL064"));
  const Imported given = import_text(
      SourceForm::arguments, line,
      {{"world-size", "8"}, {"placement", "pp=2[1,3]:1f1b dp=4:zero1"}, {"recompute", "first=1"}});
  EXPECT_FALSE(asks_for(given, "the blocks of each stage"));
  EXPECT_FALSE(asks_for(given, "--set recompute=VALUE"));
}

// Trainers that write their own samples set bf16 and divide the optimizer.
TEST(UnseenMegatronTest, FormatsOfTrainersOverMegatron) {
  const auto line = [](const std::string& more) {
    return import_text(SourceForm::arguments,
                       "python3 train.py --tensor-model-parallel-size 2 --num-layers 4 "
                       "--micro-batch-size 1 --global-batch-size 64 " +
                           more + "\n",
                       {{"world-size", "8"}});
  };
  const Imported trainer = line("--rollout-batch-size 32 --advantage-estimator grpo");
  EXPECT_EQ(said_of(trainer, "precision"), "");
  EXPECT_EQ(said_of(trainer, "placement"), "dp=4:zero1 tp=2:tp");
  EXPECT_EQ(said_of(line(""), "precision"), "fp32");
}

constexpr const char* kNeMo =
    "trainer:\n  num_nodes: 2\n  devices: 8\n  precision: bf16\nmodel:\n  mcore_gpt: true\n"
    "  micro_batch_size: 1\n  encoder_seq_length: 512\n  num_layers: 4\n  hidden_size: 256\n"
    "  ffn_hidden_size: 1024\n  num_attention_heads: 8\n  num_query_groups: 1\n  bias: false\n"
    "  activation: gelu\n  normalization: layernorm\n  position_embedding_type: rope\n"
    "  tokenizer:\n    library: huggingface\n    type: tiiuae/falcon-7b\n";

TEST(UnseenMegatronTest, NeMosBlocksAndTokenizersByName) {
  const std::string whole = std::string(kNeMo) + "  global_batch_size: 32\n";
  const std::string after = said_of(import_text(SourceForm::yaml, whole), "model");
  EXPECT_TRUE(is_part_of(R"("model_type":"nemotron")", after)) << after;
  EXPECT_TRUE(is_part_of(R"("vocab_size":65024)", after));
  const std::string beside =
      whole + "  mcore_customization_config:\n    parallel_attention: true\n";
  const std::string falcon = said_of(import_text(SourceForm::yaml, beside), "model");
  EXPECT_TRUE(is_part_of(R"("model_type":"falcon")", falcon)) << falcon;
  EXPECT_TRUE(is_part_of(R"("multi_query":true)", falcon));
  const Imported few =
      import_text(SourceForm::yaml, std::string(kNeMo) + "  global_batch_size: 8\n");
  EXPECT_TRUE(is_found(few, "PL042"));
  EXPECT_FALSE(is_found(import_text(SourceForm::yaml, whole), "PL042"));
}

TEST(UnseenMegatronTest, MegatronBridgesMomentsInBf16) {
  const Imported result =
      import_text(SourceForm::yaml,
                  "train:\n  micro_batch_size: 1\n  global_batch_size: 8\noptimizer:\n"
                  "  use_precision_aware_optimizer: true\n  exp_avg_dtype: torch.bfloat16\n"
                  "  exp_avg_sq_dtype: torch.bfloat16\nddp:\n  use_distributed_optimizer: true\n"
                  "model:\n  seq_length: 512\n  tensor_model_parallel_size: 1\n");
  EXPECT_EQ(said_of(result, "optimizer"), "adamw-bf16");
  EXPECT_EQ(said_of(result, "precision"), "master=bf16");
}

TEST(UnseenMegatronTest, BatchesThatAreNotSaid) {
  const auto titan = [](const std::string& batch) {
    return said_of(import_text(SourceForm::toml,
                               "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\n" + batch +
                                   "seq_len = 512\n[parallelism]\ntensor_parallel_degree = 2\n",
                               {{"world-size", "8"}}),
                   "global-batch");
  };
  EXPECT_EQ(titan(""), "32");
  EXPECT_EQ(titan("batch_size = 2\n"), "8");
  const Imported text = import_text(
      SourceForm::yaml, "model_name: llama2-7b\nici_fsdp_parallelism: 4\n", {{"world-size", "4"}});
  EXPECT_EQ(said_of(text, "micro-batch"), "12");
}

TEST(UnseenMegatronTest, FormatsOfNanotronThatAreNotKnownAreAskedFor) {
  const auto nanotron = [](const std::string& format) {
    return import_text(SourceForm::yaml,
                       "parallelism:\n  dp: 2\n  pp: 1\n  tp: 1\nmodel:\n  dtype: " + format +
                           "\n  model_config:\n    hidden_size: 256\n"
                           "tokens:\n  micro_batch_size: 1\n  sequence_length: 512\n");
  };
  EXPECT_TRUE(asks_for(nanotron("float8"), "--set precision=VALUE"));
  EXPECT_FALSE(asks_for(nanotron("bfloat16"), "precision=VALUE"));
}

TEST(UnseenMegatronTest, ExpertsAreMadeAgainByAnOptionOfTheirOwn) {
  const std::string experts = kGatedMixture;
  const auto recompute = [&](const std::string& more) {
    return said_of(megatron_line(experts + more), "recompute");
  };
  EXPECT_EQ(recompute("--moe-layer-recompute"), "selective=core_attention,moe");
  EXPECT_EQ(recompute("--moe-layer-recompute --recompute-granularity selective"),
            "selective=core_attention,moe");
  EXPECT_EQ(recompute("--moe-layer-recompute --recompute-granularity selective "
                      "--recompute-modules moe layernorm"),
            "selective=moe,norm");
  EXPECT_EQ(recompute("--moe-layer-recompute --recompute-granularity selective "
                      "--recompute-modules core_attn"),
            "selective=core_attention,moe");
  EXPECT_TRUE(is_found(megatron_line(experts + "--moe-layer-recompute --recompute-granularity full "
                                               "--recompute-method uniform"),
                       "PL090"));
}

// Its scores are kept, unless flash attention is asked for.
TEST(UnseenMegatronTest, LocalLayersHaveUnfusedAttention) {
  const auto engine = [](const std::string& more) {
    return said_of(megatron_line(more), "engine");
  };
  EXPECT_EQ(engine("--transformer-impl local"), "megatron@2026+unfused-attention");
  EXPECT_EQ(engine("--transformer-impl local --use-flash-attn"), "megatron@2026");
  EXPECT_EQ(engine("--transformer-impl transformer_engine"), "megatron@2026");
  const std::string nemo =
      "model:\n  transformer_engine: false\n  micro_batch_size: 1\n"
      "  global_batch_size: 8\n  encoder_seq_length: 512\n  num_layers: 2\n  hidden_size: 256\n";
  const auto is_unfused = [&](const std::string& more) {
    const std::string trainer = "trainer:\n  devices: 8\n  num_nodes: 1\n";
    return is_part_of("+unfused-attention",
                      said_of(import_text(SourceForm::yaml, nemo + more + trainer), "engine"));
  };
  EXPECT_TRUE(is_unfused("  mcore_gpt: true\n"));
  EXPECT_TRUE(is_unfused("  mcore_gpt: true\n  use_flash_attention: true\n"));
  EXPECT_TRUE(is_unfused(""));
  EXPECT_FALSE(is_unfused("  use_flash_attention: true\n"));
}

TEST(UnseenMegatronTest, VariablesOfAttentionMustFitItsBackend) {
  const auto is_refused = [](const std::string& value, const std::string& backend) {
    return is_found(import_texts({{"a.sh", "export NVTE_FLASH_ATTN=" + value +
                                               "\ntorchrun pretrain_gpt.py --num-layers 2 "
                                               "--micro-batch-size 1 --seq-length 512" +
                                               backend + "\n"}}),
                    "PL079");
  };
  EXPECT_TRUE(is_refused("0", " --attention-backend flash"));
  EXPECT_TRUE(is_refused("0", " --attention-backend auto"));
  EXPECT_FALSE(is_refused("0", " --attention-backend fused"));
  EXPECT_FALSE(is_refused("0", ""));  // as it was chosen before there was the option
  EXPECT_FALSE(is_refused("1", " --attention-backend flash"));
}

// What Ray starts is not what is trained.
TEST(UnseenMegatronTest, AnActorsDevicesAreTheWorld) {
  const Imported result = import_texts(
      {{"a.sh",
        "ray start --head --num-gpus 8\n"
        "python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 4 --num-layers 2 "
        "--micro-batch-size 1 --global-batch-size 8 --tensor-model-parallel-size 2\n"}});
  EXPECT_EQ(said_of(result, "placement"), "dp=2:ddp tp=2:tp");
}

TEST(UnseenMegatronTest, ContextRanksDivideTheOptimizer) {
  EXPECT_FALSE(is_found(megatron_line("--context-parallel-size 8"), "PL059"));
  EXPECT_TRUE(is_found(megatron_line("--tensor-model-parallel-size 8"), "PL059"));
}

// A proxy of a model is not that model.
TEST(UnseenMegatronTest, SizesOfAnotherModelAreFound) {
  const std::string line =
      "torchrun pretrain_gpt.py --num-layers 4 --hidden-size 4096 --micro-batch-size 1 "
      "--global-batch-size 8 --seq-length 512\n";
  const auto imported = [&](const std::string& model) {
    return import_text(SourceForm::arguments, line, {{"world-size", "8"}, {"model", model}});
  };
  const Imported other = imported("llama-3-8b");
  EXPECT_EQ(said_of(other, "model"), "llama-3-8b");
  const auto found = std::ranges::find(other.findings, "PL007", &LintFinding::code);
  ASSERT_NE(found, other.findings.end());
  EXPECT_EQ(found->message,
            "'--num-layers' is 4, and 32 of 'llama-3-8b' is taken: the job's model is another one");
  EXPECT_EQ(std::ranges::count(other.findings, "PL007", &LintFinding::code), 1);
}

// Ends that count as layers, and stages of other sizes, in a file of Megatron-Bridge.
TEST(UnseenMegatronTest, BridgesStagesOfOtherSizes) {
  const auto placement = [](const std::string& more) {
    return said_of(import_text(SourceForm::yaml,
                               "model:\n  _target_: megatron.bridge.models.GPTProvider\n"
                               "  num_layers: 14\n  pipeline_model_parallel_size: 4\n"
                               "  tensor_model_parallel_size: 2\n  context_parallel_size: 1\n"
                               "  sequence_parallel: false\n" +
                                   more +
                                   "train:\n  micro_batch_size: 1\n  global_batch_size: 8\n"
                                   "ddp:\n  use_distributed_optimizer: false\n",
                               {{"world-size", "8"}}),
                   "placement");
  };
  EXPECT_EQ(placement("  account_for_embedding_in_pipeline_split: true\n"
                      "  account_for_loss_in_pipeline_split: true\n"),
            "pp=4[3,4x2,3]:1f1b tp=2:tp");
  EXPECT_EQ(placement("  num_layers_in_first_pipeline_stage: 2\n"), "pp=4[2,4x3]:1f1b tp=2:tp");
}

TEST(UnseenMegatronTest, NeoxKeepsStatesOnTheHost) {
  const auto placement = [](const std::string& more) {
    return said_of(import_text(SourceForm::yaml,
                               "\"num_layers\": 2\n\"hidden_size\": 256\n"
                               "\"num_attention_heads\": 4\n\"seq_length\": 512\n"
                               "\"max_position_embeddings\": 512\n"
                               "\"train_micro_batch_size_per_gpu\": 1\n" +
                                   more,
                               {{"world-size", "8"}}),
                   "placement");
  };
  EXPECT_EQ(placement("\"zero_optimization\":\n  \"stage\": 3\n  \"offload_optimizer\":\n"
                      "    \"device\": \"cpu\"\n  \"offload_param\":\n    \"device\": \"cpu\"\n"),
            "dp=8:zero3+offload(optimizer)+offload(parameters)");
  EXPECT_EQ(placement("\"zero_optimization\":\n  \"stage\": 2\n  \"cpu_offload\": true\n"),
            "dp=8:zero2+offload(optimizer)");
  // bf16 with stages has an optimizer that divides its states at any stage of ZeRO.
  const std::string stages = "\"pipe_parallel_size\": 2\n";
  EXPECT_EQ(placement(stages + "\"precision\": \"bfloat16\"\n"), "pp=2:1f1b dp=4:zero1");
  EXPECT_EQ(placement(stages + "\"fp16\":\n  \"enabled\": true\n"), "pp=2:1f1b dp=4:ddp");
}

}  // namespace
}  // namespace placet
