// What engines with configurations of their own say in files as teams write them: keys beside those
// of the engine's own examples, other ages of a file, launch lines.
#include <gtest/gtest.h>

#include <string>

#include "imported.h"
#include "interop/import.h"
#include "interop/kept_text.h"
#include "units/error.h"

namespace placet {
namespace {

Imported read_yaml(const std::string& text, const Words& given) {
  return import_text(SourceForm::yaml, text, given);
}

constexpr const char* kMaxText =
    "model_name: llama3-70b\nper_device_batch_size: 2\nmax_target_length: 4096\n";

// 32 devices, 4 of which share parameters inside: 8 copies outside. 2 samples each: 64 a step.
TEST(RealNativeTest, MaxTextLeavesTheOuterAxisToTheDevices) {
  const std::string base = std::string(kMaxText) + "ici_fsdp_parallelism: 4\n";
  const Imported copies = read_yaml(base + "dcn_data_parallelism: -1\n", {{"world-size", "32"}});
  EXPECT_EQ(said_of(copies, "placement"), "rep=8:ddp dp=4:fsdp");
  EXPECT_EQ(said_of(copies, "global-batch"), "64");
  const Imported parts = read_yaml(base + "dcn_data_parallelism: 1\ndcn_fsdp_parallelism: -1\n",
                                   {{"world-size", "32"}});
  EXPECT_EQ(said_of(parts, "placement"), "dp=32:fsdp");
}

// The older name of the axis along a sequence: 8 devices share one sample of a half each.
TEST(RealNativeTest, MaxTextsAxisOfTheSequenceIsAnAxis) {
  const Imported result = read_yaml(
      "model_name: llama3-70b\nper_device_batch_size: 0.125\nmax_target_length: 4096\n"
      "ici_fsdp_parallelism: 1\nici_sequence_parallelism: 8\n",
      {{"world-size", "8"}});
  EXPECT_EQ(said_of(result, "placement"), "cp=8:gather+fsdp");
  EXPECT_EQ(said_of(result, "micro-batch"), "1");
}

TEST(RealNativeTest, MaxTextsPoliciesOfRecomputation) {
  const auto recompute = [](const std::string& policy) {
    return said_of(
        read_yaml(std::string(kMaxText) + "remat_policy: " + policy + "\n", {{"world-size", "8"}}),
        "recompute");
  };
  EXPECT_EQ(recompute("minimal_with_context"), "selective=minimal_with_context");
  EXPECT_EQ(recompute("minimal_flash"), "selective=minimal_with_context");
  EXPECT_EQ(recompute("custom"), "full");
  EXPECT_EQ(recompute("save_qkv_proj"), "full");
  const Imported part =
      read_yaml(std::string(kMaxText) + "remat_policy: save_qkv_proj\n", {{"world-size", "8"}});
  EXPECT_EQ(fate_of_key(part, "remat_policy"), Fate::not_modelled);
  const Imported custom =
      read_yaml(std::string(kMaxText) + "remat_policy: custom\ndecoder_layer_input: offload\n",
                {{"world-size", "8"}});
  EXPECT_EQ(fate_of_key(custom, "decoder_layer_input"), Fate::not_modelled);
}

// Tokens beyond the capacity are dropped where products of experts are dense.
TEST(RealNativeTest, MaxTextsFormatsAndCapacity) {
  const std::string base = std::string(kMaxText) + "ici_fsdp_parallelism: 8\n";
  const Imported stored = read_yaml(base + "weight_dtype: bfloat16\n", {{"world-size", "8"}});
  EXPECT_EQ(said_of(stored, "precision"), "parameters=bf16,gradients=bf16");
  const Imported dense =
      read_yaml(base + "sparse_matmul: False\ncapacity_factor: 1.25\n", {{"world-size", "8"}});
  EXPECT_EQ(said_of(dense, "routing"), "capacity=1.25");
  const Imported sparse = read_yaml(base + "capacity_factor: 1.25\n", {{"world-size", "8"}});
  EXPECT_EQ(said_of(sparse, "routing"), "");
}

TEST(RealNativeTest, MaxTextOnALaunchLine) {
  const Imported result =
      import_text(SourceForm::arguments,
                  "export LIBTPU_INIT_ARGS=\"--xla_some_flag=true\"\n"
                  "python3 -m MaxText.train MaxText/configs/base.yml model_name=llama3.1-8b \\\n"
                  "  per_device_batch_size=2 max_target_length=8192 ici_fsdp_parallelism=16\n",
                  {{"world-size", "16"}});
  EXPECT_EQ(said_of(result, "placement"), "dp=16:fsdp");
  EXPECT_EQ(said_of(result, "model"), "llama-3.1-8b");
  EXPECT_EQ(said_of(result, "global-batch"), "32");
}

// What is told to a script is no variable of the shell: a slip in it is found, also on a line that
// goes on.
TEST(RealNativeTest, SlipsInWhatAScriptIsToldAreFound) {
  const Imported result =
      import_text(SourceForm::arguments,
                  "OWN=1\nexport OTHER=2\npython3 MaxText/train.py MaxText/configs/base.yml \\\n"
                  "  model_name=llama3.1-8b ici_fdsp_parallelism=8 \\\n"
                  "  per_device_batch_size=1 max_target_length=2048\nLAST=3\n",
                  {{"world-size", "8"}});
  EXPECT_EQ(fate_of_key(result, "OWN"), Fate::kept);
  EXPECT_EQ(fate_of_key(result, "OTHER"), Fate::kept);
  EXPECT_EQ(fate_of_key(result, "LAST"), Fate::kept);
  EXPECT_EQ(fate_of_key(result, "ici_fdsp_parallelism"), Fate::unknown);
  EXPECT_TRUE(is_found(result, "PL001"));
}

TEST(RealNativeTest, MaxTextsModelBySizes) {
  const Imported result = read_yaml(
      "per_device_batch_size: 1\nici_fsdp_parallelism: 8\nbase_emb_dim: 1024\n"
      "base_num_query_heads: 16\nbase_num_kv_heads: 4\nbase_mlp_dim: 4096\n"
      "base_num_decoder_layers: 12\nhead_dim: 64\n",
      {{"world-size", "8"}});
  EXPECT_TRUE(result.missing.empty());
  EXPECT_NE(said_of(result, "model").find("\"num_key_value_heads\":4"), std::string::npos);
}

constexpr const char* kFoundry =
    "max_seq_len: 2048\nglobal_train_batch_size: 64\ndevice_train_microbatch_size: 8\n"
    "precision: amp_bf16\ntrain_loader:\n  name: text\noptimizer:\n  name: decoupled_adamw\n";
constexpr const char* kFsdp = "fsdp_config:\n  sharding_strategy: FULL_SHARD\n";
constexpr const char* kMpt =
    "model:\n  name: mpt_causal_lm\n  d_model: 1024\n  n_heads: 16\n  n_layers: 24\n"
    "  vocab_size: 72000\n";

std::string foundry_text(const std::string& more) { return kFoundry + more; }

TEST(RealNativeTest, MptOfAnySizeIsAModel) {
  const std::string said = said_of(read_yaml(foundry_text(kMpt), {{"world-size", "8"}}), "model");
  EXPECT_NE(said.find("\"vocab_size\":72000"), std::string::npos) << said;
  EXPECT_NE(said.find("\"learned_pos_emb\":true"), std::string::npos) << said;
  const std::string alibi =
      said_of(read_yaml(foundry_text(std::string(kMpt) + "  attn_config:\n    alibi: true\n"), {}),
              "model");
  EXPECT_NE(alibi.find("\"learned_pos_emb\":false"), std::string::npos) << alibi;
}

// Composer reduces in fp32 unless all is to be in the format of the product.
TEST(RealNativeTest, FormatsOfComposersSharding) {
  const auto precision = [](const std::string& more) {
    return said_of(read_yaml(foundry_text(std::string(kMpt) + kFsdp + more), {{"world-size", "8"}}),
                   "precision");
  };
  EXPECT_EQ(precision(""), "reduce=fp32");
  EXPECT_EQ(precision("  mixed_precision: DEFAULT\n"), "reduce=fp32");
  EXPECT_EQ(precision("  mixed_precision: PURE\n"), "");
}

TEST(RealNativeTest, SizesThatReplaceThoseOfTheNamedModelLeaveItOpen) {
  const std::string named =
      "model:\n  name: hf_causal_lm\n"
      "  pretrained_model_name_or_path: mistralai/Mistral-7B-v0.1\n";
  EXPECT_TRUE(read_yaml(foundry_text(named + kFsdp), {{"world-size", "8"}}).missing.empty());
  const Imported other = read_yaml(
      foundry_text(named + "  config_overrides:\n    hidden_size: 1152\n"), {{"world-size", "8"}});
  ASSERT_EQ(other.missing.size(), 1U);
  EXPECT_EQ(other.missing[0].flag, "--model NAME");
  for (const char* word : {"vocab_size: 51200", "num_local_experts: 4"}) {
    const Imported rows = read_yaml(foundry_text(named + "  config_overrides:\n    " + word + "\n"),
                                    {{"world-size", "8"}});
    ASSERT_EQ(rows.missing.size(), 1U) << word;
    EXPECT_EQ(rows.missing[0].flag, "--model NAME");
  }
}

// 64 samples over 8 devices are 8 each. Composer cuts them in as many parts as micro-batches of 3
// and of 6 need, 3 and 2: 8 do not divide into 3 parts, and 2 parts have 4 each.
TEST(RealNativeTest, ComposersMicroBatchesAreEvenParts) {
  const auto micro_batch = [](const std::string& samples) {
    return said_of(read_yaml("max_seq_len: 2048\nglobal_train_batch_size: 64\n"
                             "device_train_microbatch_size: " +
                                 samples + "\n" + kMpt + kFsdp,
                             {{"world-size", "8"}}),
                   "micro-batch");
  };
  EXPECT_EQ(micro_batch("4"), "4");
  EXPECT_EQ(micro_batch("3"), "3");
  EXPECT_EQ(micro_batch("6"), "4");
  EXPECT_EQ(micro_batch("16"), "8");
}

// Where a key refers to another, that one is changed, and all that refer to it follow.
TEST(RealNativeTest, AKeyThatOthersReferToIsChangedWhereItIsSaid) {
  const std::string text =
      "variables:\n  length: 2048\nmax_seq_len: ${variables.length}  # of all\n"
      "loader:\n  max_seq_len: ${max_seq_len}\n";
  const auto changed = [](const std::string& from) {
    return changed_text(parse_source(from, SourceForm::yaml, "a.yaml"), from,
                        {{.key = "max_seq_len", .value = "4096"}}, {});
  };
  std::string wanted = text;
  EXPECT_EQ(changed(text), wanted.replace(wanted.find("2048"), 4, "4096"));
  EXPECT_EQ(changed("max_seq_len: 2048\nloader:\n  max_seq_len: ${max_seq_len}\n"),
            "max_seq_len: 4096\nloader:\n  max_seq_len: ${max_seq_len}\n");
}

TEST(RealNativeTest, RanksThatShareASequenceAreAskedFor) {
  const Imported result =
      read_yaml(std::string("max_seq_len: 2048\nglobal_train_batch_size: 4\n"
                            "device_train_microbatch_size: 0.125\n") +
                    kMpt + "  attn_config:\n    seq_parallel_world_size: 8\n" + kFsdp,
                {{"world-size", "32"}});
  EXPECT_EQ(said_of(result, "micro-batch"), "1");
  EXPECT_TRUE(asks_for(result, "--placement"));
}

TEST(RealNativeTest, AdaptersAndDeepSpeedInsideComposersFile) {
  const std::string named =
      "model:\n  name: hf_causal_lm\n"
      "  pretrained_model_name_or_path: mistralai/Mistral-7B-v0.1\n";
  const Imported adapters = read_yaml(
      foundry_text(named + "  peft_config:\n    peft_type: LORA\n    r: 16\n    lora_dropout: 0\n"
                           "    target_modules:\n    - q_proj\n    - v_proj\n"),
      {{"world-size", "8"}});
  EXPECT_EQ(said_of(adapters, "lora"), "16,q_proj,v_proj");
  const Imported stages =
      read_yaml(foundry_text(named + "deepspeed_config:\n  zero_optimization:\n    stage: 3\n"),
                {{"world-size", "8"}});
  EXPECT_EQ(said_of(stages, "placement"), "dp=8:zero3");
  EXPECT_EQ(said_of(stages, "engine"), "deepspeed@0.14");
}

TEST(RealNativeTest, RunsOfAPlatformHoldTheFileBelowParameters) {
  const Imported result = read_yaml(
      "name: a-run\nimage: an/image\ncompute:\n  gpus: 16\ncommand: composer train.py\n"
      "parameters:\n  max_seq_len: 2048\n  global_train_batch_size: 64\n"
      "  device_train_microbatch_size: 4\n  precision: amp_bf16\n"
      "  model:\n    name: mpt_causal_lm\n    d_model: 1024\n    n_heads: 16\n    n_layers: 24\n"
      "  fsdp_config:\n    sharding_strategy: FULL_SHARD\n    mixed_precision: PURE\n",
      {});
  EXPECT_EQ(said_of(result, "placement"), "dp=16:fsdp");
  EXPECT_EQ(said_of(result, "global-batch"), "64");
  EXPECT_TRUE(result.missing.empty());
}

// Inside a node parameters are divided, across nodes they are copied: 64 devices of nodes of 4.
TEST(RealNativeTest, HybridShardingAsksForTheDevicesOfANode) {
  const std::string text =
      foundry_text(std::string(kMpt) + "fsdp_config:\n  sharding_strategy: HYBRID_SHARD\n");
  const Imported open = read_yaml(text, {{"world-size", "64"}});
  ASSERT_EQ(open.missing.size(), 1U);
  EXPECT_EQ(open.missing[0].flag, "--set per-node=N");
  const Imported said = read_yaml(text, {{"world-size", "64"}, {"per-node", "4"}});
  EXPECT_EQ(said_of(said, "placement"), "rep=16:ddp dp=4:fsdp");
}

constexpr const char* kTitan =
    "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[parallelism]\n"
    "data_parallel_shard_degree = 8\n[training]\nlocal_batch_size = 2\nseq_len = 8192\n";

TEST(RealNativeTest, TorchtitansFormatsReachTheJob) {
  const auto precision = [](const std::string& more) {
    return said_of(import_text(SourceForm::toml, kTitan + more, {{"world-size", "8"}}),
                   "precision");
  };
  EXPECT_EQ(precision(""), "");
  EXPECT_EQ(precision("dtype = \"float32\"\n"), "");
  EXPECT_EQ(precision("dtype = \"bfloat16\"\n"), "parameters=bf16,gradients=bf16");
  EXPECT_EQ(precision("dtype = \"bfloat16\"\nmixed_precision_reduce = \"bfloat16\"\n"), "bf16");
  EXPECT_EQ(precision("mixed_precision_reduce = \"bfloat16\"\n"), "reduce=bf16");
}

constexpr const char* kOnHost = "+offload(parameters)+offload(gradients)+offload(optimizer)";

TEST(RealNativeTest, TorchtitansStatesOnTheHost) {
  const Imported host = import_text(
      SourceForm::toml, std::string(kTitan) + "enable_cpu_offload = true\n", {{"world-size", "8"}});
  EXPECT_EQ(said_of(host, "placement"), std::string("dp=8:fsdp") + kOnHost);
}

// Keys of forks have a figure.
TEST(RealNativeTest, KeysOfTorchtitansForks) {
  const Imported fork = import_text(SourceForm::toml,
                                    std::string(kTitan) +
                                        "dataset_type = \"nanoset\"\n[optimizer]\n"
                                        "swap_optimizer = true\nstate_dtype = \"bfloat16\"\n",
                                    {{"world-size", "8"}});
  EXPECT_EQ(fate_of_key(fork, "optimizer.swap_optimizer"), Fate::not_modelled);
  EXPECT_EQ(fate_of_key(fork, "optimizer.state_dtype"), Fate::not_modelled);
  EXPECT_EQ(fate_of_key(fork, "training.dataset_type"), Fate::no_effect);
}

Imported read_experts(const std::string& degrees, const std::string& world) {
  return import_text(
      SourceForm::toml,
      "[model]\nname = \"qwen3\"\nflavor = \"30B-A3B\"\n[training]\nlocal_batch_size = 1\n"
      "seq_len = 4096\n[parallelism]\n" +
          degrees,
      {{"world-size", world}});
}

// Ranks of experts are those of a sequence first, of data then: 16 are 2 and 8.
TEST(RealNativeTest, ExpertsOverRanksOfASequence) {
  const Imported result = read_experts(
      "data_parallel_shard_degree = 8\ncontext_parallel_degree = 2\n"
      "expert_parallel_degree = 16\n",
      "16");
  EXPECT_EQ(said_of(result, "model"), "qwen3-30b-a3b");
  EXPECT_EQ(said_of(result, "placement"), "ep=8:ep+fsdp cp=2:gather+fsdp;experts:ep");
  const Imported inner = read_experts(
      "data_parallel_shard_degree = 8\ncontext_parallel_degree = 2\n"
      "expert_parallel_degree = 4\n",
      "16");
  EXPECT_EQ(said_of(inner, "placement"), "dp=4:fsdp ep=2:ep+fsdp cp=2:gather+fsdp;experts:ep");
  const Imported tensor = read_experts(
      "data_parallel_shard_degree = 2\ncontext_parallel_degree = 2\n"
      "tensor_parallel_degree = 2\nexpert_parallel_degree = 4\n"
      "expert_tensor_parallel_degree = 1\n",
      "8");
  EXPECT_EQ(said_of(tensor, "placement"),
            "dp=2:fsdp cp=2:gather+fsdp;experts:ep tp=2:tp+sp;experts:ep");
}

// 2 are no multiple of 4, and 16 are more than 4 x 2.
TEST(RealNativeTest, ExpertsOverOtherRanksAreAConflict) {
  const std::string both = "data_parallel_shard_degree = 2\ncontext_parallel_degree = 4\n";
  EXPECT_TRUE(is_found(read_experts(both + "expert_parallel_degree = 2\n", "8"), "PL070"));
  EXPECT_TRUE(is_found(read_experts(both + "expert_parallel_degree = 16\n", "8"), "PL071"));
  EXPECT_FALSE(is_found(read_experts(both + "expert_parallel_degree = 8\n", "8"), "PL071"));
  const Imported open = import_text(SourceForm::toml,
                                    "[training]\nlocal_batch_size = 1\n[parallelism]\n"
                                    "data_parallel_shard_degree = -1\nexpert_parallel_degree = 8\n",
                                    {});
  EXPECT_FALSE(is_found(open, "PL071"));
}

// One engine has no prediction modules, another has none where none are asked for.
TEST(RealNativeTest, ModelsWithoutTheirPredictionModules) {
  const Imported titan = import_text(
      SourceForm::toml,
      "[model]\nname = \"deepseek_v3\"\nflavor = \"671B\"\n[training]\nlocal_batch_size = 1\n"
      "[parallelism]\nexpert_parallel_degree = 8\n",
      {{"world-size", "256"}});
  EXPECT_EQ(said_of(titan, "ignore_keys"), "num_nextn_predict_layers");
  const std::string max = "model_name: deepseek3-671b\nper_device_batch_size: 1\n";
  EXPECT_EQ(said_of(read_yaml(max, {{"world-size", "256"}}), "ignore_keys"),
            "num_nextn_predict_layers");
  const Imported asked = read_yaml(max + "mtp_num_layers: 1\n", {{"world-size", "256"}});
  EXPECT_EQ(said_of(asked, "ignore_keys"), "");
}

// A quarter of a sample for each of 16 devices, two of which share one: half a sample.
TEST(RealNativeTest, MaxTextsPartsOfASampleAreAskedFor) {
  const std::string text =
      "model_name: llama3.1-8b\nper_device_batch_size: 0.25\nici_fsdp_parallelism: -1\n"
      "ici_tensor_parallelism: ";
  EXPECT_TRUE(asks_for(read_yaml(text + "2\n", {{"world-size", "16"}}), "--micro-batch"));
  EXPECT_EQ(said_of(read_yaml(text + "4\n", {{"world-size", "16"}}), "micro-batch"), "1");
}

// First moments are as parameters are, unless another format is said.
TEST(RealNativeTest, MaxTextsFirstMoments) {
  const auto fate = [](const std::string& formats) {
    return fate_of_key(read_yaml(kMaxText + formats, {{"world-size", "8"}}), "mu_dtype");
  };
  EXPECT_EQ(fate("mu_dtype: float32\n"), Fate::understood);
  EXPECT_EQ(fate("mu_dtype: bfloat16\n"), Fate::not_modelled);
  EXPECT_EQ(fate("mu_dtype: bfloat16\nweight_dtype: bfloat16\n"), Fate::understood);
}

constexpr const char* kNanotron =
    "parallelism:\n  dp: 4\n  tp: 2\n  pp: 1\ntokens:\n  micro_batch_size: 1\n"
    "  sequence_length: 4096\n  batch_accumulation_per_replica: 2\n"
    "model:\n  model_config:\n    hidden_size: 512\n    num_hidden_layers: 4\n"
    "    num_attention_heads: 8\n    vocab_size: 49152\n    max_position_embeddings: 4096\n";

TEST(RealNativeTest, NanotronsStarcoderAndItsOptimizer) {
  const Imported result =
      read_yaml(std::string(kNanotron) +
                    "    is_starcoder2_config: true\n    grouped_query: true\n    num_kv_heads: 2\n"
                    "optimizer:\n  optimizer_factory:\n    name: sgd\n",
                {});
  const std::string model = said_of(result, "model");
  EXPECT_NE(model.find("\"model_type\":\"starcoder2\""), std::string::npos) << model;
  EXPECT_NE(model.find("\"intermediate_size\":2048"), std::string::npos) << model;
  EXPECT_EQ(said_of(result, "optimizer"), "sgd");
}

// 4 x 2 of 16 devices: one launcher refuses that, one trainer makes two copies of them.
TEST(RealNativeTest, DegreesOfALauncherAndOfATrainerBesideMoreDevices) {
  const Imported launcher = read_yaml(
      "distributed_type: FSDP\nnum_processes: 16\nfsdp_config:\n  fsdp_version: 2\n"
      "parallelism_config:\n  parallelism_config_dp_shard_size: 4\n"
      "  parallelism_config_tp_size: 2\n",
      {{"model", "llama-3.1-8b"}});
  EXPECT_TRUE(is_found(launcher, "PL058"));
  const std::string trainer =
      "base_model: NousResearch/Meta-Llama-3-8B\nsequence_len: 4096\nmicro_batch_size: 1\n"
      "gradient_accumulation_steps: 1\noptimizer: adamw_torch\ndp_shard_size: 4\n"
      "tensor_parallel_size: 2\nbf16: true\nfsdp_version: 2\nfsdp_config:\n"
      "  reshard_after_forward: true\n";
  const Imported copies = read_yaml(trainer, {{"world-size", "16"}});
  EXPECT_FALSE(is_found(copies, "PL058"));
  EXPECT_EQ(said_of(copies, "placement"), "rep=2:ddp dp=4:fsdp tp=2:tp");
  const Imported stated = read_yaml(trainer + "dp_replicate_size: 4\n", {{"world-size", "16"}});
  EXPECT_TRUE(is_found(stated, "PL058"));
}

// 4 copies of 2 devices are 8; neither 16 nor 12 are.
TEST(RealNativeTest, StatedDegreesAreForTheDevicesThatThereAre) {
  const std::string text =
      std::string(kNanotron) + "    is_llama_config: true\n    intermediate_size: 2048\n";
  EXPECT_FALSE(is_found(read_yaml(text, {}), "PL058"));
  EXPECT_FALSE(is_found(read_yaml(text, {{"world-size", "8"}}), "PL058"));
  const Imported more = read_yaml(text, {{"world-size", "16"}});
  EXPECT_TRUE(is_found(more, "PL058"));
  try {
    job_text(more);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.fault().where, "f:2");
    EXPECT_NE(error.fault().excerpt.find("f:3  parallelism.tp = 2"), std::string::npos);
  }
  const Words placed = {{"world-size", "16"}, {"placement", "dp=16:ddp"}};
  EXPECT_NO_THROW(job_text(read_yaml(text, placed)));
}

}  // namespace
}  // namespace placet
