// What further configurations of engines with files of their own showed: each test has a small one
// of its own that shows the same.
#include <gtest/gtest.h>

#include <string>

#include "imported.h"
#include "interop/import.h"
#include "interop/source.h"

namespace placet {
namespace {

// On 8 devices.
Imported native_yaml(const std::string& text) {
  return import_text(SourceForm::yaml, text, {{"world-size", "8"}});
}

constexpr const char* kAxolotlBase =
    "base_model: meta-llama/Llama-3.1-8B\nsequence_len: 2048\nmicro_batch_size: 1\n"
    "gradient_accumulation_steps: 1\noptimizer: adamw_torch\nbf16: true\n";

// Either of the two keys is FSDP; what is empty is not.
TEST(UnseenNativeTest, AxolotlsShardingByEitherOfItsKeys) {
  const auto placement = [](const std::string& more) {
    return said_of(native_yaml(kAxolotlBase + more), "placement");
  };
  EXPECT_EQ(placement("fsdp:\n  - full_shard\n  - auto_wrap\n"), "dp=8:fsdp");
  EXPECT_EQ(placement("fsdp:\n  - auto_wrap\n"), "dp=8:fsdp");
  EXPECT_EQ(placement("fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"), "dp=8:fsdp");
  EXPECT_EQ(placement("fsdp_config:\n  fsdp_use_orig_params: true\n"), "dp=8:fsdp");
  EXPECT_EQ(placement("fsdp_config:\n  state_dict_type: FULL_STATE_DICT\n"), "dp=8:fsdp");
  EXPECT_EQ(placement("fsdp:\nfsdp_config:\n"), "dp=8:ddp");
  EXPECT_EQ(placement(""), "dp=8:ddp");
  const Imported wrapped = native_yaml(std::string(kAxolotlBase) + "fsdp:\n  - auto_wrap\n");
  EXPECT_EQ(said_of(wrapped, "engine"), "pytorch-fsdp1@2.0");
}

TEST(UnseenNativeTest, ScalesOfAxolotlsAdaptersAreAKey) {
  const Imported result =
      native_yaml(std::string(kAxolotlBase) + "adapter: lora\nlora_r: 16\npeft_use_rslora: true\n");
  EXPECT_FALSE(is_found(result, "PL001"));
  EXPECT_EQ(fate_of_key(result, "peft_use_rslora"), Fate::no_effect);
}

constexpr const char* kMaxTextStages =
    "model_name: llama2-7b\nper_device_batch_size: 2\nmax_target_length: 2048\n"
    "ici_data_parallelism: 2\nici_fsdp_parallelism: 1\nici_pipeline_parallelism: 4\n";

// 16 samples a step, 8 to a copy, in as many parts as there are stages. 32 blocks in 4 stages of
// one: each sample passes them 8 times.
TEST(UnseenNativeTest, PartsAndRoundsOfMaxTextsStages) {
  const Imported rounds = native_yaml(kMaxTextStages);
  EXPECT_EQ(said_of(rounds, "global-batch"), "16");
  EXPECT_EQ(said_of(rounds, "micro-batch"), "2");
  EXPECT_EQ(said_of(rounds, "placement"), "");
  EXPECT_TRUE(asks_for(rounds, "all 4 stages 8 times"));
  EXPECT_TRUE(asks_for(rounds, "--placement TEXT"));
  const Imported twice = native_yaml(std::string(kMaxTextStages) +
                                     "num_pipeline_repeats: 2\nnum_layers_per_pipeline_stage: 4\n");
  EXPECT_TRUE(asks_for(twice, "all 4 stages 2 times"));
  const Imported placed =
      import_text(SourceForm::yaml, kMaxTextStages, {{"placement", "pp=4:1f1b rep=2:ddp"}});
  EXPECT_FALSE(asks_for(placed, "--placement"));
  EXPECT_EQ(said_of(placed, "placement"), "pp=4:1f1b rep=2:ddp");
}

TEST(UnseenNativeTest, MaxTextsStagesThatArePassedOnce) {
  const std::string once = std::string(kMaxTextStages) + "num_layers_per_pipeline_stage: 8\n";
  const Imported parts = native_yaml(once + "num_pipeline_microbatches: 8\n");
  EXPECT_TRUE(parts.missing.empty());
  EXPECT_EQ(said_of(parts, "placement"), "pp=4:1f1b rep=2:ddp");
  EXPECT_EQ(said_of(parts, "micro-batch"), "1");
  EXPECT_EQ(said_of(parts, "global-batch"), "16");
  EXPECT_EQ(fate_of_key(parts, "num_pipeline_microbatches"), Fate::understood);
  EXPECT_EQ(fate_of_key(parts, "ici_pipeline_parallelism"), Fate::not_modelled);
  const Imported delayed = native_yaml(once + "pipeline_delay_activation_forwarding: true\n");
  EXPECT_EQ(said_of(delayed, "micro-batch"), "1");
  EXPECT_TRUE(asks_for(native_yaml(once + "num_pipeline_microbatches: 16\n"), "--micro-batch"));
}

// Without stages nothing of a pipeline is in the way.
TEST(UnseenNativeTest, MaxTextWithoutStages) {
  const Imported result = native_yaml(
      "model_name: llama2-7b\nper_device_batch_size: 2\nmax_target_length: 2048\n"
      "num_pipeline_microbatches: -1\nnum_pipeline_repeats: -1\n");
  EXPECT_TRUE(result.missing.empty());
  EXPECT_EQ(said_of(result, "placement"), "dp=8:fsdp");
  EXPECT_EQ(said_of(result, "micro-batch"), "2");
  EXPECT_EQ(said_of(result, "global-batch"), "16");
}

// Of a model of 16 heads of 64, unless they are wider.
std::string nanotron_text(const std::string& of_model, const std::string& of_optimizer) {
  return "parallelism:\n  dp: 8\n  tp: 1\n  pp: 1\n  pp_engine: 1f1b\n"
         "tokens:\n  micro_batch_size: 1\n  sequence_length: 2048\n"
         "  batch_accumulation_per_replica: 4\n"
         "optimizer:\n  zero_stage: 0\n  optimizer_factory:\n    name: adamW\n" +
         of_optimizer +
         "model:\n  dtype: bfloat16\n  model_config:\n    is_qwen2_config: true\n"
         "    hidden_size: 1024\n    num_hidden_layers: 12\n    num_attention_heads: 16\n"
         "    num_key_value_heads: 8\n    intermediate_size: 3072\n    vocab_size: 151936\n" +
         of_model;
}

TEST(UnseenNativeTest, HeadsOfNanotronsModel) {
  const auto model = [](const std::string& more) {
    return said_of(native_yaml(nanotron_text(more, "")), "model");
  };
  const std::string plain = model("");
  EXPECT_NE(plain.find(R"("model_type":"llama")"), std::string::npos) << plain;
  EXPECT_EQ(model("    attention_bias: false\n"), plain);
  const std::string with_biases = model("    attention_bias: true\n");
  EXPECT_NE(with_biases.find(R"("model_type":"qwen2")"), std::string::npos) << with_biases;
  EXPECT_EQ(plain.find("head_dim"), std::string::npos) << plain;
  const std::string wide = model("    head_dim: 128\n");
  EXPECT_NE(wide.find(R"("head_dim":128)"), std::string::npos) << wide;
  const std::string normed = model("    head_dim: 128\n    _use_qk_norm: true\n");
  EXPECT_NE(normed.find(R"("model_type":"qwen3")"), std::string::npos) << normed;
  EXPECT_NE(normed.find(R"("head_dim":128)"), std::string::npos) << normed;
  const std::string narrow = model("    _use_qk_norm: true\n");
  EXPECT_NE(narrow.find(R"("head_dim":64)"), std::string::npos) << narrow;
  EXPECT_EQ(model("    _use_qk_norm: false\n"), plain);
  const Imported biased =
      native_yaml(nanotron_text("    _use_qk_norm: true\n    attention_bias: true\n", ""));
  EXPECT_EQ(fate_of_key(biased, "model.model_config._use_qk_norm"), Fate::not_modelled);
}

// Without an accumulator there is no second copy of anything in fp32.
TEST(UnseenNativeTest, NanotronsGradientsInPlace) {
  const Imported copy = native_yaml(nanotron_text("", "  accumulate_grad_in_fp32: true\n"));
  EXPECT_EQ(said_of(copy, "precision"), "");
  EXPECT_EQ(said_of(copy, "optimizer"), "adamw");
  const Imported place = native_yaml(nanotron_text("", "  accumulate_grad_in_fp32: false\n"));
  EXPECT_EQ(said_of(place, "precision"), "bf16");
  EXPECT_EQ(said_of(place, "optimizer"), "adamw-bf16");
  EXPECT_EQ(fate_of_key(place, "optimizer.accumulate_grad_in_fp32"), Fate::understood);
}

TEST(UnseenNativeTest, MptWithAHeadOfItsOwn) {
  const auto model = [](const std::string& more) {
    return said_of(native_yaml("max_seq_len: 2048\nglobal_train_batch_size: 64\n"
                               "device_train_microbatch_size: 8\nprecision: amp_bf16\n"
                               "train_loader:\n  name: text\nmodel:\n  name: mpt_causal_lm\n"
                               "  d_model: 1024\n  n_heads: 16\n  n_layers: 24\n" +
                               more),
                   "model");
  };
  const std::string own = model("  tie_word_embeddings: false\n");
  EXPECT_NE(own.find(R"("tie_word_embeddings":false)"), std::string::npos) << own;
  const std::string plain = model("");
  EXPECT_EQ(plain.find("tie_word_embeddings"), std::string::npos) << plain;
}

std::string neox_text(const std::string& more) {
  return "num_layers: 12\nhidden_size: 768\nnum_attention_heads: 12\nseq_length: 2048\n"
         "max_position_embeddings: 2048\npos_emb: rotary\npipe_parallel_size: 0\n"
         "model_parallel_size: 4\ntrain_micro_batch_size_per_gpu: 1\n"
         "tokenizer_type: GPT2BPETokenizer\n" +
         more;
}

// 50257 rows up to a multiple of 128 for each of 4 ranks.
TEST(UnseenNativeTest, NeoxPadsTheVocabularyBesideEveryStage) {
  for (const std::string stage : {"1", "3"}) {
    const std::string zero = "zero_optimization:\n  stage: " + stage + "\n";
    const std::string model = said_of(native_yaml(neox_text(zero)), "model");
    EXPECT_NE(model.find(R"("vocab_size":50688)"), std::string::npos) << model;
    const Imported other = native_yaml(neox_text(zero + "make_vocab_size_divisible_by: 1\n"));
    EXPECT_NE(said_of(other, "model").find(R"("vocab_size":50260)"), std::string::npos);
    EXPECT_EQ(fate_of_key(other, "make_vocab_size_divisible_by"),
              stage == "3" ? Fate::understood : Fate::not_modelled);
  }
}

TEST(UnseenNativeTest, NeoxsOptimizerWithoutSettings) {
  const Imported result = native_yaml(neox_text("optimizer:\n  type: Adam\n  params: {}\n"));
  EXPECT_FALSE(is_found(result, "PL001"));
  EXPECT_EQ(said_of(result, "optimizer"), "adam");
}

constexpr const char* kFactory =
    "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\nfinetuning_type: full\ncutoff_len: 8192\n"
    "template: qwen\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 8\n"
    "bf16: true\n";

TEST(UnseenNativeTest, OptimizersThatTheFactoryMakesItself) {
  for (const std::string key : {"use_badam", "use_galore", "use_apollo", "use_adam_mini"}) {
    const std::string text = kFactory + key + ": true\n";
    EXPECT_TRUE(asks_for(native_yaml(text), "--set optimizer=")) << key;
    EXPECT_TRUE(asks_for(native_yaml(text + "optim: adamw_torch\n"), "--set optimizer=")) << key;
    const Imported told =
        import_text(SourceForm::yaml, text, {{"world-size", "8"}, {"optimizer", "sgd"}});
    EXPECT_TRUE(told.missing.empty()) << key;
    EXPECT_EQ(said_of(told, "optimizer"), "sgd") << key;
    EXPECT_TRUE(native_yaml(kFactory + key + ": false\n").missing.empty()) << key;
  }
  const Imported muon = native_yaml(std::string(kFactory) + "use_muon: true\n");
  EXPECT_TRUE(muon.missing.empty());
  EXPECT_EQ(said_of(muon, "optimizer"), "muon");
}

// 4 of 8 devices share a sample: two samples at once, 8 times.
TEST(UnseenNativeTest, DevicesThatShareASampleOfTheFactory) {
  const auto shared = [](const std::string& mode) {
    return native_yaml(std::string(kFactory) + "sequence_parallel_size: 4\n" + mode);
  };
  const Imported heads = shared("sequence_parallel_mode: ulysses\n");
  EXPECT_EQ(said_of(heads, "placement"), "dp=2:ddp sp=4:heads+ddp");
  EXPECT_EQ(said_of(heads, "global-batch"), "16");
  EXPECT_EQ(said_of(shared("sequence_parallel_mode: deepspeed-alst\n"), "placement"),
            "dp=2:ddp sp=4:heads+ddp");
  const Imported ring = shared("");
  EXPECT_EQ(said_of(ring, "placement"), "dp=2:ddp cp=4:ring+ddp");
  EXPECT_EQ(said_of(ring, "global-batch"), "16");
  const Imported other = shared("sequence_parallel_mode: usp\n");
  EXPECT_EQ(said_of(other, "placement"), "");
  EXPECT_TRUE(asks_for(other, "4 devices share a sample (sequence_parallel_mode usp)"));
  const Imported alone = native_yaml(std::string(kFactory) + "sequence_parallel_size: 1\n");
  EXPECT_EQ(said_of(alone, "placement"), "dp=8:ddp");
}

TEST(UnseenNativeTest, TheFactorysFlagsSayTheSame) {
  const Imported result = import_text(
      SourceForm::arguments,
      "torchrun --nproc_per_node 8 src/train.py --stage sft --do_train true \\\n"
      "  --finetuning_type full --model_name_or_path Qwen/Qwen3-8B --cutoff_len 8192 \\\n"
      "  --per_device_train_batch_size 1 --gradient_accumulation_steps 8 --bf16 true \\\n"
      "  --template qwen --dataset identity --use_badam true \\\n"
      "  --sequence_parallel_size 4 --sequence_parallel_mode ulysses\n");
  EXPECT_TRUE(asks_for(result, "BAdam"));
  EXPECT_EQ(said_of(result, "placement"), "dp=2:ddp sp=4:heads+ddp");
  EXPECT_EQ(said_of(result, "global-batch"), "16");
}

// A GPU's host is a slice of its own, over which samples are divided.
TEST(UnseenNativeTest, MaxTextsHostsAreSlices) {
  const auto imported = [](const std::string& hardware, const Words& given) {
    return import_text(SourceForm::yaml,
                       "base_config: base.yml\nmodel_name: llama3-8b\nhardware: " + hardware +
                           "\nper_device_batch_size: 1\nmax_target_length: 512\n",
                       given);
  };
  EXPECT_EQ(said_of(imported("gpu", {{"world-size", "32"}, {"per-node", "8"}}), "placement"),
            "rep=4:ddp dp=8:fsdp");
  EXPECT_TRUE(asks_for(imported("gpu", {{"world-size", "32"}}), "per-node"));
  EXPECT_EQ(said_of(imported("gpu", {{"world-size", "8"}}), "placement"), "dp=8:fsdp");
  EXPECT_EQ(said_of(imported("tpu", {{"world-size", "32"}}), "placement"), "dp=32:fsdp");
}

// What goes to experts at once: tokens x their choices x the stream's width, of one context rank.
TEST(UnseenNativeTest, GroupedProductsAreJudgedByTheirSize) {
  const auto is_warned = [](const std::string& flavor, int sequence) {
    return is_found(import_text(SourceForm::toml,
                                "[model]\nname = \"deepseek_v3\"\nflavor = \"" + flavor +
                                    "\"\n[training]\nlocal_batch_size = 1\nseq_len = " +
                                    std::to_string(sequence) + "\n[parallelism]\n" +
                                    "context_parallel_degree = 2\n",
                                {{"world-size", "8"}}),
                    "PL030");
  };
  EXPECT_FALSE(is_warned("16B", 262144));  // 131072 x 6 x 2048 = 1.61e9
  EXPECT_TRUE(is_warned("16B", 524288));   // 3.22e9
  EXPECT_FALSE(is_warned("671B", 65536));  // 32768 x 8 x 7168 = 1.88e9
  EXPECT_TRUE(is_warned("671B", 131072));  // 3.76e9
}

}  // namespace
}  // namespace placet
