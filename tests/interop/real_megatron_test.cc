// Configurations of Megatron and of what stands on it, in the ways in which teams write them. Each
// file here is made up; each shows one thing that was read wrongly.
#include <gtest/gtest.h>

#include "imported.h"
#include "interop/dialect.h"
#include "interop/import.h"
#include "interop/lint.h"
#include "interop/shell_arithmetic.h"
#include "interop/stage_text.h"

namespace placet {
namespace {

Imported read_real(const std::string& text, SourceForm form, const Words& given) {
  return import_text(form, text, given);
}

Imported script_read(const std::string& text, const Words& given = {}) {
  return read_real(text, SourceForm::arguments, given);
}

Imported yaml_read(const std::string& text, const Words& given = {}) {
  return read_real(text, SourceForm::yaml, given);
}

const std::string kSizes =
    "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 128 --vocab-size 1000\n"
    "--micro-batch-size 1 --bf16 --swiglu --ffn-hidden-size 1024 --position-embedding-type rope\n";

TEST(ShellNumberTest, IsWhatAShellWorksOut) {
  const auto number_of = [](const std::string& name) -> std::optional<long long> {
    return name == "N" ? std::optional<long long>(8) : std::nullopt;
  };
  EXPECT_EQ(shell_number("2 * (8 - 3)", number_of), 10);
  EXPECT_EQ(shell_number("7 / 2 + N % 3", number_of), 5);
  EXPECT_EQ(shell_number("N > 4 && !(N == 9)", number_of), 1);
  EXPECT_EQ(shell_number("-N + 1", number_of), -7);
  for (const char* none : {"", "N /", "M + 1", "4 / 0", "08", "2 ** 3", "(1", "1 = 1"}) {
    EXPECT_EQ(shell_number(none, number_of), std::nullopt) << none;
  }
  EXPECT_EQ(with_shell_numbers("tp$((2*4))pp$(( (N-4) / 2 ))x$((M))", number_of), "tp8pp2x$((M))");
}

TEST(ShellNumberTest, EndsOnHostileText) {
  const auto none = [](const std::string&) -> std::optional<long long> { return std::nullopt; };
  EXPECT_EQ(shell_number(std::string(4000, '('), none), std::nullopt);
  EXPECT_EQ(shell_number(std::string(4000, '!') + "1", none), std::nullopt);
  EXPECT_EQ(shell_number("999999999 * 999999999", none), std::nullopt);
}

TEST(ZerosInFrontTest, AreThoseOfListsAndProducts) {
  EXPECT_EQ(zeros_in_front("([0]*3+[1]*58)"), "3");
  EXPECT_EQ(zeros_in_front("[0, 0, 1, 1]"), "2");
  EXPECT_EQ(zeros_in_front("1"), "0");
  for (const char* none : {"", "2", "0", "[0]*3", "[1]*3+[0]", "[1]*x", "10", "[0,1]*4"}) {
    EXPECT_EQ(zeros_in_front(none), std::nullopt) << none;
  }
}

// 16 devices of a model that 2 stages hold: 8 copies, 8 x 2 x 3 samples.
TEST(RealMegatronTest, ScriptsWorkOutSizesFromEachOther) {
  const Imported imported =
      script_read("NODES=2\nDP=$((NODES * 8 / (2 * 1)))\nGBS=$((2 * $((1 + 2)) * DP))\n" + kSizes +
                  "--nnodes $NODES --nproc_per_node 8 --pipeline-model-parallel-size 2\n"
                  "--global-batch-size $GBS\n");
  EXPECT_EQ(said_of(imported, "global-batch"), "48");
  EXPECT_EQ(said_of(imported, "placement"), "pp=2:1f1b dp=8:ddp");
}

TEST(RealMegatronTest, ConditionsOnNumbersAreRead) {
  const std::string script =
      "RECOMPUTE=${RECOMPUTE:-0}\nTP=2\nVPP=0\nARGS=()\n"
      "if (( RECOMPUTE > 0 )); then\nARGS=(--recompute-granularity full)\nfi\n"
      "(( TP > 1 )) && ARGS+=(--sequence-parallel)\n"
      "(( VPP > 0 )) && ARGS+=(--num-layers-per-virtual-pipeline-stage 1)\n" +
      kSizes + "--tensor-model-parallel-size $TP --pipeline-model-parallel-size 2\n";
  const Imported imported = script_read(script, {{"world-size", "4"}, {"global-batch", "4"}});
  EXPECT_EQ(said_of(imported, "recompute"), "");
  EXPECT_EQ(said_of(imported, "placement"), "pp=2:1f1b tp=2:tp+sp");
}

// A value behind an option of a list that stands on one line.
TEST(RealMegatronTest, ListsOfOptionsOnOneLineKeepTheirValues) {
  const Imported imported = script_read(
      "ARGS=(--recompute-granularity full --recompute-method block)\n"
      "ARGS+=(--recompute-num-layers 3)\n" +
          kSizes + "--global-batch-size 4\n",
      {{"world-size", "4"}});
  EXPECT_EQ(said_of(imported, "recompute"), "first=3");
}

TEST(RealMegatronTest, WhatABatchSystemIsAskedForIsKnownToTheScript) {
  const Imported imported = script_read(
      "#SBATCH --nodes=4\n#SBATCH --gpus-per-node=4\n" + kSizes +
      "--nnodes $SLURM_NNODES --nproc-per-node $SLURM_GPUS_PER_NODE --global-batch-size 8\n"
      "--tensor-model-parallel-size $SLURM_GPUS_PER_NODE --sequence-parallel\n");
  EXPECT_EQ(said_of(imported, "placement"), "dp=4:ddp tp=4:tp+sp");
}

// Other names for latent attention, dense layers in front and two shared experts of 64.
TEST(RealMegatronTest, LatentAttentionUnderItsOtherNames) {
  const Imported imported =
      script_read(kSizes +
                      "--multi-head-latent-attention --qk-rope-head-dim 32 --qk-nope-head-dim 64\n"
                      "--v-head-dim 64 --kv-lora-rank 128 --q-lora-rank 192 --num-experts 16\n"
                      "--first-k-dense-replace 1 --moe-layer-freq 1 --n-shared-experts 2\n"
                      "--moe-intermediate-size 64 --moe-router-topk 4 --global-batch-size 8\n",
                  {{"world-size", "8"}});
  const std::string model = said_of(imported, "model");
  EXPECT_NE(model.find(R"("model_type":"deepseek_v3")"), std::string::npos) << model;
  EXPECT_NE(model.find(R"("n_shared_experts":2)"), std::string::npos) << model;
  EXPECT_NE(model.find(R"("qk_rope_head_dim":32)"), std::string::npos) << model;
}

const std::string kNemo =
    "trainer: {devices: 8, num_nodes: 2, precision: bf16}\n"
    "model:\n"
    "  micro_batch_size: 1\n  global_batch_size: 16\n  encoder_seq_length: 128\n"
    "  virtual_pipeline_model_parallel_size: NULL\n"
    "  num_layers: 8\n  hidden_size: 512\n  num_attention_heads: 8\n"
    "  ffn_hidden_size: ${multiply:4, ${.hidden_size}}\n"
    "  tokenizer: {library: megatron, type: GPT2BPETokenizer}\n";

TEST(RealMegatronTest, NemoFilesHoldTheirModel) {
  const Imported plain = yaml_read(kNemo);
  EXPECT_TRUE(plain.missing.empty());
  EXPECT_EQ(said_of(plain, "placement"), "dp=16:ddp");
  const std::string model = said_of(plain, "model");
  EXPECT_NE(model.find(R"("model_type":"gpt2")"), std::string::npos) << model;
  EXPECT_NE(model.find(R"("n_inner":2048)"), std::string::npos) << model;
  const std::string gated = said_of(
      yaml_read(kNemo + "  activation: fast-swiglu\n  position_embedding_type: rope\n"), "model");
  EXPECT_NE(gated.find(R"("model_type":"llama")"), std::string::npos) << gated;
}

TEST(RealMegatronTest, NemoModelsOfSeveralKindsOfLayersAreNotTakenForOneKind) {
  const Imported mixed = yaml_read(kNemo + "  hybrid_override_pattern: null\n");
  EXPECT_EQ(said_of(mixed, "model"), "");
}

// Sizes of a model beside degrees in another block, of which it would understand the batch alone.
TEST(RealMegatronTest, OtherFilesWithABlockNamedModelAreOfNeither) {
  const std::string text =
      "system:\n  tensor_model_parallel_size: 8\n  sequence_parallel: true\n"
      "  precision: {bf16: true}\n  checkpoint: {save_interval: 10}\n"
      "  logging: {log_interval: 1, tensorboard_log_interval: 1}\n"
      "data: {data_path: d, split: 1}\n"
      "model:\n  num_layers: 8\n  swiglu: true\n  clip_grad: 1.0\n  seq_length: 64\n"
      "  micro_batch_size: 2\n  global_batch_size: 64\n";
  const std::string guessed = guess_dialect(find_catalog(), *dialect_heads(find_catalog()),
                                            parse_source(text, SourceForm::yaml, "f"));
  EXPECT_NE(guessed, "nemo@1");
  EXPECT_NE(guessed, "megatron-bridge@2026");
}

const std::string kNeox =
    "pipe-parallel-size: 1\nmodel-parallel-size: 8\nnum-layers: 8\nhidden-size: 512\n"
    "num-attention-heads: 8\nseq-length: 128\nno-weight-tying: true\npos-emb: rotary\n"
    "zero_optimization: {stage: 1}\ntrain_micro_batch_size_per_gpu: 4\n"
    "gradient_accumulation_steps: 2\ngradient_clipping: 1.0\nweight-decay: 0.1\n"
    "fp16: {enabled: true}\ncheckpoint-activations: true\npartition-activations: true\n";

// 16 devices by 8: two copies, 4 samples each, twice.
TEST(RealMegatronTest, NeoxKeysWithDashesAreThoseWithUnderscores) {
  const Imported imported = yaml_read(kNeox, {{"world-size", "16"}});
  EXPECT_EQ(imported.dialects.front(), "gpt-neox@2026");
  EXPECT_EQ(said_of(imported, "global-batch"), "16");
  EXPECT_EQ(said_of(imported, "placement"), "dp=2:zero1 tp=8:tp;checkpoints:sp");
  const std::string model = said_of(imported, "model");
  EXPECT_NE(model.find(R"("model_type":"gpt_neox")"), std::string::npos) << model;
  // 50257 tokens, up to a multiple of 128 * 8.
  EXPECT_NE(model.find(R"("vocab_size":51200)"), std::string::npos) << model;
  EXPECT_FALSE(is_found(imported, "PL001"));
}

TEST(RealMegatronTest, NeoxModelsWithExpertsOrGatesAreNotTakenForPlainOnes) {
  EXPECT_EQ(said_of(yaml_read(kNeox + "num_experts: 4\n"), "model"), "");
  EXPECT_EQ(said_of(yaml_read(kNeox + "activation: swiglu\n"), "model"), "");
}

const std::string kBridge =
    "train: {micro_batch_size: 1, global_batch_size: 64, train_iters: 5}\n"
    "dist: {use_megatron_fsdp: false}\nlogger: {log_interval: 1}\n"
    "model:\n  tensor_model_parallel_size: 2\n  seq_length: 128\n  num_layers: 9\n"
    "  num_moe_experts: 16\n  expert_model_parallel_size: 8\n"
    "  moe_layer_freq: [0, 1, 1, 1, 1, 1, 1, 1, 1]\n";

// What the file leaves out, its recipe says.
TEST(RealMegatronTest, FilesBesideARecipeAreNotBlamedForWhatTheyLeaveOut) {
  EXPECT_FALSE(is_found(yaml_read(kBridge), "PL016"));
}

const std::string kBridgeWhole =
    kBridge +
    "  sequence_parallel: true\n  hidden_size: 512\n  num_attention_heads: 8\n"
    "  ffn_hidden_size: 1024\n  gated_linear_unit: true\n  add_bias_linear: false\n"
    "  share_embeddings_and_output_weights: false\n  position_embedding_type: rope\n"
    "  multi_latent_attention: true\n  q_lora_rank: 192\n  kv_lora_rank: 128\n"
    "  qk_head_dim: 64\n  qk_pos_emb_head_dim: 32\n  v_head_dim: 64\n  moe_ffn_hidden_size: 64\n"
    "  moe_shared_expert_intermediate_size: 64\n  moe_router_topk: 4\n  vocab_size: 1000\n";

TEST(RealMegatronTest, WholeConfigurationsHoldTheirModel) {
  const std::string model = said_of(yaml_read(kBridgeWhole), "model");
  EXPECT_NE(model.find(R"("model_type":"deepseek_v3")"), std::string::npos) << model;
  EXPECT_NE(model.find(R"("first_k_dense_replace":1)"), std::string::npos) << model;
}

// A chunk holds nothing at all, which a placement cannot say; the layout says where blocks stand.
TEST(RealMegatronTest, ALayoutThatHasNoCounterpartIsStillALayout) {
  const std::string pp = kBridgeWhole + "  pipeline_model_parallel_size: 2\n";
  EXPECT_TRUE(is_found(yaml_read(pp), "PL012"));
  EXPECT_FALSE(
      is_found(yaml_read(pp + "  pipeline_model_parallel_layout: Et*5||t*4|mL\n"), "PL012"));
}

TEST(RealMegatronTest, WhatNeitherFileNorPlacementSaysIsAskedFor) {
  const Words given = {{"world-size", "16"}, {"model", "mixtral-8x7b"}};
  EXPECT_TRUE(asks_for(yaml_read(kBridge, given), "--set sequence-parallel=true"));
  const std::string layout =
      "  pipeline_model_parallel_size: 2\n"
      "  pipeline_model_parallel_layout: Et*5||t*4|mL\n";
  EXPECT_TRUE(asks_for(yaml_read(kBridgeWhole + layout), "--placement TEXT"));
}

TEST(RealMegatronTest, BridgeOptionsOfItsEngineAreThoseOfMegatron) {
  const std::string overlap =
      "ddp: {overlap_grad_reduce: true, overlap_param_gather: true, use_megatron_fsdp: FSDP}\n";
  const auto engine = [&](const std::string& sharded) {
    std::string text = overlap;
    text.replace(text.find("FSDP"), 4, sharded);
    return said_of(yaml_read(kBridgeWhole + text), "engine");
  };
  EXPECT_EQ(engine("false"), "megatron-bridge@2026+overlap");
  EXPECT_EQ(engine("true"), "megatron-bridge@2026+fsdp-overlap");
}

const std::string kBranches = kSizes +
                              "--global-batch-size 8\nAC=$1\n"
                              "if [ $AC = full ]; then\nOPTIONS=\"--recompute-granularity full\"\n"
                              "elif [ $AC = sel ]; then\nOPTIONS=\"--recompute-activations\"\nfi\n";

// Which branch is taken nobody can tell: neither is.
TEST(RealMegatronTest, WhatBranchesLeaveOpenIsAskedFor) {
  const Words given = {{"world-size", "4"}};
  const Imported imported = script_read(kBranches, given);
  EXPECT_EQ(said_of(imported, "recompute"), "");
  EXPECT_TRUE(asks_for(imported, "--set recompute=VALUE"));
  EXPECT_TRUE(asks_for(imported, "--recompute-granularity full at f:6"));
  EXPECT_EQ(fate_of_key(imported, "--recompute-granularity"), Fate::unresolved);
  EXPECT_FALSE(is_found(imported, "PL002"));
  const Imported full = script_read(kBranches, {{"world-size", "4"}, {"recompute", "full"}});
  EXPECT_EQ(said_of(full, "recompute"), "full");
  EXPECT_TRUE(full.missing.empty());
}

TEST(RealMegatronTest, WhatAllBranchesSayIsTaken) {
  const auto batch_of = [](const std::string& branches) {
    return said_of(script_read(kSizes + "A=$1\n" + branches, {{"world-size", "4"}}),
                   "global-batch");
  };
  const std::string first = "if [ $A = 1 ]; then\nO=\"--global-batch-size 8\"\n";
  EXPECT_EQ(batch_of(first + "else\nO=\"--global-batch-size 8\"\nfi\n"), "8");
  EXPECT_EQ(batch_of(first + "else\nO=\"--global-batch-size 16\"\nfi\n"), "");
  EXPECT_EQ(batch_of(first + "fi\n"), "");
  EXPECT_EQ(batch_of(first + "fi\nP=\"--global-batch-size 32\"\n"), "32");
  EXPECT_EQ(batch_of("case $A in\n1) O=\"--global-batch-size 8\";;\n"
                     "*) O=\"--global-batch-size 8\";;\nesac\n"),
            "8");
}

// A word that is said or not: the engine's own holds where none of it is to be taken.
TEST(RealMegatronTest, AWordOfABranchMayBeLeftUnsaid) {
  const std::string text = kSizes +
                           "--global-batch-size 8 --tensor-model-parallel-size 2\n"
                           "[ $SP = true ] && OPTIONS=\"--sequence-parallel\"\n";
  const auto placement = [&](const std::string& said) {
    Words given = {{"world-size", "4"}};
    if (!said.empty()) given["sequence-parallel"] = said;
    return said_of(script_read(text, given), "placement");
  };
  EXPECT_EQ(placement(""), "");
  EXPECT_EQ(placement("unsaid"), "dp=2:ddp tp=2:tp");
  EXPECT_EQ(placement("false"), "dp=2:ddp tp=2:tp");
  EXPECT_EQ(placement("true"), "dp=2:ddp tp=2:tp+sp");
}

// One that says no more than the model, which is named.
TEST(RealMegatronTest, WhatIsNotNeededIsNotAskedFor) {
  const std::string branch = "if [ $A = 1 ]; then\nO=\"--hidden-size 1024\"\nfi\n";
  const Imported imported = script_read(kSizes + "--global-batch-size 8\n" + branch,
                                        {{"world-size", "4"}, {"model", "llama-2-7b"}});
  EXPECT_TRUE(imported.missing.empty());
}

TEST(RealMegatronTest, ManyBranchesAreReadInTime) {
  std::string text = kSizes;
  for (int i = 0; i < 2000; ++i) {
    text +=
        "if [ $A = 1 ]; then\nif [ $B = 1 ]; then\nO=\"--global-batch-size 8\"\nfi\nelse\nX=1\n";
  }
  EXPECT_EQ(said_of(script_read(text), "global-batch"), "");
}

std::string vocabulary_of(const std::string& tokenizer) {
  std::string text = kSizes + "--global-batch-size 8 " + tokenizer + "\n";
  text.erase(text.find("--vocab-size 1000"), 17);
  const std::string model = said_of(script_read(text, {{"world-size", "4"}}), "model");
  const std::size_t at = model.find("\"vocab_size\":");
  return at == std::string::npos ? "" : model.substr(at + 13, model.find(',', at) - at - 13);
}

TEST(RealMegatronTest, VocabulariesAreThoseOfTheTokenizerThatIsNamed) {
  EXPECT_EQ(vocabulary_of("--tokenizer-type Llama2Tokenizer"), "32000");
  EXPECT_EQ(vocabulary_of("--tokenizer-type Llama2Tokenizer --tokenizer-model $T"), "32000");
  EXPECT_EQ(vocabulary_of("--tokenizer-type Llama2Tokenizer --tokenizer-model /m/llama2/t.model"),
            "32000");
  EXPECT_EQ(vocabulary_of("--tokenizer-type Llama2Tokenizer --tokenizer-model /m/own-100k.model"),
            "");
  const std::string named = "--tokenizer-type HuggingFaceTokenizer --tokenizer-model ";
  EXPECT_EQ(vocabulary_of(named + "Qwen/Qwen3-8B"), "151936");
  EXPECT_EQ(vocabulary_of(named + "/models/DeepSeek-V3/"), "129280");
  EXPECT_EQ(vocabulary_of(named + "someone/own-tokenizer"), "");
}

TEST(RealMegatronTest, AVocabularyThatIsTakenFromANameIsSaidToBe) {
  std::string text = kSizes + "--global-batch-size 8 --tokenizer-model Qwen/Qwen3-8B\n";
  text.erase(text.find("--vocab-size 1000"), 17);
  const Imported imported = script_read(text, {{"world-size", "4"}});
  for (const LedgerLine& line : imported.ledger) {
    if (line.setting.path != "--tokenizer-model") continue;
    EXPECT_EQ(line.what, "tokenizer-name: vocabulary 151936 is assumed, as of qwen3-8b");
  }
}

// Matrices that tensor ranks share are gathered for the update.
TEST(RealMegatronTest, MuonRunsBesideTensorParallelism) {
  const std::string text = kSizes +
                           "--global-batch-size 8 --tensor-model-parallel-size 2 --optimizer muon\n"
                           "--sequence-parallel --muon-tp-mode ";
  for (const char* mode : {"duplicated", "distributed", "blockwise"}) {
    const Imported imported = script_read(text + mode + "\n", {{"world-size", "4"}});
    EXPECT_EQ(said_of(imported, "placement"), "dp=2:ddp tp=2:tensor(S,S*,S,S*)+sp") << mode;
    const bool is_whole = std::string(mode) == "duplicated";
    EXPECT_EQ(fate_of_key(imported, "--muon-tp-mode") == Fate::understood &&
                  fate_of_key(imported, "--optimizer") == Fate::understood,
              is_whole)
        << mode;
  }
}

TEST(RealMegatronTest, SequenceParallelismBesideDeepspeed) {
  const Imported imported =
      script_read(kSizes +
                      "--global-batch-size 8 --tensor-model-parallel-size 2 --sequence-parallel\n"
                      "--deepspeed --zero-stage 1\n",
                  {{"world-size", "4"}});
  EXPECT_NE(said_of(imported, "engine").find("+sp"), std::string::npos);
}

TEST(RealMegatronTest, GatedModelsOfNeoxAreThoseThatItsKeysBuild) {
  const std::string model =
      said_of(yaml_read(kNeox + "activation: swiglu\nnorm: rmsnorm\nintermediate_size: 33024\n"
                                "mlp_multiple_of: 256\nuse_bias_in_attn_linear: false\n"
                                "use_bias_in_mlp: false\n"),
              "model");
  EXPECT_NE(model.find(R"("model_type":"llama")"), std::string::npos) << model;
  EXPECT_NE(model.find(R"("intermediate_size":11008)"), std::string::npos) << model;
  EXPECT_NE(model.find(R"("mlp_bias":false)"), std::string::npos) << model;
}

// The last stage has the output alone.
TEST(RealMegatronTest, StagesWithoutBlocksArePlaced) {
  const std::string layout =
      "  pipeline_model_parallel_size: 3\n  expert_tensor_parallel_size: 2\n"
      "  pipeline_model_parallel_layout: Et*5|t*4|mL\n";
  const std::string placement =
      said_of(yaml_read(kBridgeWhole + layout, {{"world-size", "48"}}), "placement");
  EXPECT_TRUE(placement.starts_with("pp=3[5,4,0]")) << placement;
}

// Options of a container are its own; what follows its image is the command.
TEST(RealMegatronTest, OptionsOfContainersAreNotOfTheEngine) {
  const Imported imported = script_read(
      "docker run --rm --network host --gpus all \\\n  -v /a:/b -e X=1 image:1 \\\n"
      "  torchrun --nproc_per_node 8 pretrain_gpt.py " +
      kSizes + "--global-batch-size 8\n");
  EXPECT_EQ(fate_of_key(imported, "--network"), Fate::no_effect);
  EXPECT_EQ(fate_of_key(imported, "--rm"), Fate::no_effect);
  EXPECT_EQ(fate_of_key(imported, "--nproc_per_node"), Fate::understood);
  EXPECT_FALSE(is_found(imported, "PL001"));
}

}  // namespace
}  // namespace placet
