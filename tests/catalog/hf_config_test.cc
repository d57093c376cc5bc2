// Reading configuration files: what is understood, and how each mistake is answered.
#include "catalog/hf_config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "catalog/catalog_files.h"
#include "model/build.h"
#include "units/error.h"

namespace placet {
namespace {

// A small llama; tests change one thing at a time.
Json llama() {
  return Json::parse(R"({
    "model_type": "llama", "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 1, "intermediate_size": 12, "vocab_size": 16,
    "max_position_embeddings": 32, "tie_word_embeddings": false})");
}

std::int64_t total(const Json& config) {
  return count_parameters(build_model(read_hf_config(config, "config.json"))).total;
}

std::string message(const Json& config) {
  try {
    read_hf_config(config, "config.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string text_message(const std::string& text) {
  try {
    parse_hf_config(text, "config.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(HfConfigTest, CountsASmallLlamaByHand) {
  // embedding 16 x 8 = 128, head the same; per block q 8x8 = 64, k and v 4x8 = 32 each, o 64,
  // gate, up, down 3 x 12 x 8 = 288, two norms of 8: 64 + 64 + 64 + 288 + 16 = 496; final norm 8.
  EXPECT_EQ(total(llama()), 128 + 2 * 496 + 8 + 128);
}

// Values that change nothing (a factor of one, no loss) are left out in silence.
TEST(HfConfigTest, SaysWhatIsComputedAndHasNoStepProgram) {
  Json config = llama();
  config["clip_qkv"] = 8.5;
  config["router_z_loss_coef"] = 0.0;
  config["residual_multiplier"] = 1.0;
  config["scale_emb"] = 12;
  config["attn_temperature_tuning"] = true;
  config["ffn_config"] = {{"moe_jitter_eps", 0.01}};
  config["router_jitter_noise"] = nullptr;
  EXPECT_EQ(build_model(read_hf_config(config, "config.json")).left_out,
            (std::vector<std::string>{"queries, keys and values are clipped (clip_qkv 8.5)",
                                      "queries are scaled by their position "
                                      "(attn_temperature_tuning)",
                                      "a constant factor of the embedding (scale_emb 12)",
                                      "noise on what the router takes (moe_jitter_eps 0.01)"}));
  EXPECT_TRUE(build_model(read_hf_config(llama(), "config.json")).left_out.empty());
}

TEST(HfConfigTest, ATiedHeadCountsOnce) {
  Json config = llama();
  config["tie_word_embeddings"] = true;
  EXPECT_EQ(total(config), 128 + 2 * 496 + 8);
}

TEST(HfConfigTest, HeadSizeNeedNotBeHiddenOverHeads) {
  Json config = llama();
  config["head_dim"] = 6;
  // q 12x8 = 96, k and v 6x8 = 48 each, o 96: 288 in place of 192.
  EXPECT_EQ(total(config), 128 + 2 * (496 + 96) + 8 + 128);
}

TEST(HfConfigTest, BiasesFollowTheFile) {
  Json config = llama();
  config["attention_bias"] = true;  // 8 + 4 + 4 + 8 per block
  config["mlp_bias"] = true;        // 12 + 12 + 8
  EXPECT_EQ(total(config), 128 + 2 * (496 + 24 + 32) + 8 + 128);
}

TEST(HfConfigTest, ReadsTheTextPartOfANestedFile) {
  const Json nested{{"model_type", "llava"}, {"text_config", llama()}, {"vision_config", {}}};
  const Architecture a = read_hf_config(nested, "config.json");
  EXPECT_EQ(a.notes.front(), "text part only");
  EXPECT_EQ(total(nested), total(llama()));
}

TEST(HfConfigTest, ANestedTextPartTakesTheOuterTie) {
  Json inner = llama();
  inner.erase("tie_word_embeddings");
  const Json nested{{"text_config", inner}, {"tie_word_embeddings", true}};
  EXPECT_TRUE(read_hf_config(nested, "config.json").head.tied);
}

TEST(HfConfigTest, OldFilesNameAClassInsteadOfAFamily) {
  const Json config{{"architectures", {"GPT2LMHeadModel"}},
                    {"n_embd", 8},
                    {"n_layer", 1},
                    {"n_head", 2},
                    {"n_positions", 4},
                    {"vocab_size", 16}};
  const Architecture a = read_hf_config(config, "config.json");
  EXPECT_EQ(a.family, "gpt2");
  EXPECT_EQ(a.notes.front(), "model_type is missing; gpt2 by its class name");
  // wte 128, wpe 32; block: ln 16, c_attn 8x24 + 24, c_proj 64 + 8, ln 16, fc 8x32 + 32,
  // proj 32x8 + 8 = 872; ln_f 16.
  EXPECT_EQ(total(config), 128 + 32 + 872 + 16);
}

TEST(HfConfigTest, UnknownKeysThatAreNoSizesAreNoted) {
  Json config = llama();
  config["favourite_colour"] = "green";
  EXPECT_EQ(read_hf_config(config, "config.json").notes.back(),
            "keys without meaning here: favourite_colour");
}

TEST(HfConfigTest, NullAndFalseSettingsAreNotInTheWay) {
  Json config = llama();
  config["num_experts"] = nullptr;
  config["some_new_bias"] = false;
  EXPECT_EQ(total(config), total(llama()));
}

TEST(HfConfigTest, NotANumberAndInfinityAreRead) {
  // As Python writes them; the state-space families do.
  std::string text = llama().dump();
  text.back() = ',';
  text += R"("time_step_limit": [0.0, Infinity], "x": -Infinity, "y": NaN, "NaN": "Infinity"})";
  EXPECT_EQ(parse_hf_config(text, "config.json").hidden, 8);
}

TEST(HfConfigTest, SlidingWindowsMakeKindsOfTheirOwn) {
  Json config = llama();
  config["model_type"] = "gemma2";
  config["head_dim"] = 4;
  config["sliding_window"] = 4;
  config["num_hidden_layers"] = 4;
  const Model model = build_model(read_hf_config(config, "config.json"));
  // Windows in blocks 0 and 2, none in 1 and 3.
  ASSERT_EQ(model.kinds.size(), 4U);
  EXPECT_EQ(model.kinds[1].name, "windowed attention mlp block");
  EXPECT_EQ(model.kinds[2].name, "attention mlp block");
  EXPECT_EQ(model.units[1].kind, 1);
  EXPECT_EQ(model.units[2].kind, 2);
  EXPECT_EQ(model.units[3].kind, 1);
}

TEST(HfConfigTest, NoOpBlocksPassTheStreamOn) {
  Json config = llama();
  config["model_type"] = "nemotron-nas";
  config.erase("num_key_value_heads");
  config["num_hidden_layers"] = 4;
  const Json full{{"attention", {{"n_heads_in_group", 2}, {"no_op", false}}},
                  {"ffn", {{"ffn_mult", 1.5}, {"no_op", false}}}};
  const Json no_attention{{"attention", {{"no_op", true}}}, {"ffn", {{"intermediate_size", 4}}}};
  const Json nothing{{"attention", {{"no_op", true}}}, {"ffn", {{"no_op", true}}}};
  const Json linear{{"attention", {{"replace_with_linear", true}}}, {"ffn", {{"no_op", true}}}};
  config["block_configs"] = {full, no_attention, nothing, linear};
  // Full: q, o 64 each, k, v 32 each (one kv head), norms 16, width 2 x 1.5 x 8 / 3 = 8, rounded up
  // to 256: 3 x 256 x 8 = 6144. Second: norm 8, 3 x 4 x 8 = 96. Third: nothing.
  // Fourth: norm 8 and one 8 x 8 matrix.
  EXPECT_EQ(total(config), 128 + (192 + 16 + 6144) + (8 + 96) + (8 + 64) + 8 + 128);
}

TEST(HfConfigTest, PredictionModulesShareTheirMatrices) {
  const Json config = Json::parse(R"({
    "model_type": "deepseek_v3", "hidden_size": 8, "num_hidden_layers": 2,
    "num_attention_heads": 2, "intermediate_size": 12, "moe_intermediate_size": 4,
    "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2,
    "first_k_dense_replace": 1, "kv_lora_rank": 3, "q_lora_rank": 5, "qk_nope_head_dim": 2,
    "qk_rope_head_dim": 2, "v_head_dim": 3, "vocab_size": 16, "num_nextn_predict_layers": 1})");
  // Attention: q_a 5x8, its norm 5, q_b 8x5; kv_a (3+2)x8, norm 3, kv_b 2x(2+3) x 3, o 8x6
  //   = 40 + 5 + 40 + 40 + 3 + 30 + 48 = 206; two norms 16.
  // Dense mlp 3x12x8 = 288. Mixture: router 32, offsets 4, experts 4x3x4x8 = 384, shared 96: 516.
  // Module: norms 8 + 8, projection 8x16, a sparse block, final norm 8.
  const std::int64_t dense = 206 + 16 + 288;
  const std::int64_t sparse = 206 + 16 + 516;
  const ParameterCounts counts =
      count_parameters(build_model(read_hf_config(config, "config.json")));
  EXPECT_EQ(counts.prediction, 16 + 128 + sparse + 8);
  EXPECT_EQ(counts.total, 128 + dense + sparse + 8 + 128 + counts.prediction);
  // One token visits 2 of 4 experts: 192 fewer; the module is not used.
  EXPECT_EQ(counts.active, 128 + dense + sparse - 192 + 8 + 128);
  // The four offsets of each of the two mixtures are not trained by gradients.
  EXPECT_EQ(counts.trainable, counts.total - 8);
}

// --- mistakes

struct Mistake {
  const char* key;
  Json value;  // discarded: the key is erased
  const char* message;
};

TEST(HfConfigTest, MistakesNameTheKeyAndWhatIsAllowed) {
  const Mistake mistakes[] = {
      {"model_type", "lama",
       "config.json: model_type: 'lama' is a family that is not known; expected one of "},
      {"model_type", 7, "config.json: model_type: '7' is not valid; expected a word"},
      {"hidden_size", Json(Json::value_t::discarded),
       "config.json: hidden_size: missing; expected a whole number from 1 to 16777216"},
      {"hidden_size", "8", "config.json: hidden_size: '\"8\"' is not valid; expected a whole "},
      {"hidden_size", -8, "config.json: hidden_size: '-8' is not valid; expected a whole "},
      {"hidden_size", 8.5, "config.json: hidden_size: '8.5' is not valid; expected a whole "},
      {"hidden_size", std::uint64_t{18446744073709551615U},
       "config.json: hidden_size: '1844674407"},
      {"num_attention_heads", 0, "config.json: num_attention_heads: '0' is not valid; expected"},
      {"num_attention_heads", 3,
       "config.json: num_attention_heads: '3' does not divide the hidden size 8, and there is no"},
      {"num_key_value_heads", 3,
       "config.json: num_key_value_heads: '3' does not divide the 2 attention heads"},
      {"num_hidden_layers", 1'000'000,
       "config.json: num_hidden_layers: '1000000' is not valid; expected a whole number from 1 to "
       "100000"},
      {"vocab_size", true, "config.json: vocab_size: 'true' is not valid; expected a whole number"},
      {"tie_word_embeddings", "no",
       "config.json: tie_word_embeddings: '\"no\"' is not valid; expected true or false"},
      {"attention_dropout", 1.5,
       "config.json: attention_dropout: '1.5' is not valid; expected a number from 0 to 1"},
      {"hidden_act", "silo",
       "config.json: hidden_act: 'silo' is not known; expected an activation such as silu, gelu or "
       "relu; did you mean 'silu'?"},
      {"num_moe_things", 4,
       "config.json: config key 'num_moe_things' (4) may change tensor shapes and Placet does not "
       "know it for this model family (ignore it with --ignore-key)"},
      {"intermediate_sizes", 4,
       "config.json: config key 'intermediate_sizes' (4) may change tensor shapes and Placet does "
       "not know it for this model family (ignore it with --ignore-key); did you mean "
       "'intermediate_size'?"},
      {"use_qk_norm", true,
       "config.json: config key 'use_qk_norm' (true) may change tensor shapes and Placet does not "
       "know it"},
      {"layer_types",
       {"full_attention"},
       "config.json: layer_types: '[\"full_attention\"]' has 1 entries for 2 layers; expected one "
       "entry per layer"},
      {"layer_types",
       {"full_attention", "half_attention"},
       "config.json: layer_types: '[\"full_attention\",\"half_attention\"]' holds "
       "'half_attention'"},
      {"n_layer", 3, "config.json: n_layer: '3' contradicts num_hidden_layers = 2"},
      {"partial_rotary_factor", "half",
       "config.json: partial_rotary_factor: '\"half\"' is not valid; expected a number from 0 to"},
  };
  for (const Mistake& mistake : mistakes) {
    Json config = llama();
    if (mistake.value.is_discarded()) {
      config.erase(mistake.key);
    } else {
      config[mistake.key] = mistake.value;
    }
    const std::string text = message(config);
    EXPECT_TRUE(text.starts_with(mistake.message)) << mistake.key << "\n  " << text;
  }
}

TEST(HfConfigTest, AMisspeltRequiredKeyIsNamed) {
  Json config = llama();
  config.erase("hidden_size");
  config["hiden_size"] = 8;
  EXPECT_EQ(
      message(config),
      "config.json: hidden_size: missing (the file has 'hiden_size'); expected a whole number "
      "from 1 to 16777216");
}

TEST(HfConfigTest, MoreExpertsPerTokenThanExperts) {
  Json config = llama();
  config["model_type"] = "mixtral";
  config["num_local_experts"] = 2;
  config["num_experts_per_tok"] = 3;
  EXPECT_EQ(message(config),
            "config.json: num_experts_per_tok: '3' is more than the 2 experts there are");
}

TEST(HfConfigTest, MistakesInNestedPartsCarryTheirPath) {
  Json inner = llama();
  inner["num_attention_heads"] = "two";
  EXPECT_TRUE(message({{"text_config", inner}})
                  .starts_with("config.json: text_config.num_attention_heads: '\"two\"'"));
  EXPECT_EQ(message({{"text_config", 3}}),
            "config.json: text_config: '3' is not an object; expected a JSON object of settings");
}

TEST(HfConfigTest, FilesOfAnotherFormAreRefused) {
  EXPECT_EQ(text_message("[1, 2]"),
            "config.json: 'array' is not an object; expected a JSON object of settings");
  EXPECT_TRUE(text_message("{\"model_type\": ").starts_with("config.json: line 1, column "));
  EXPECT_TRUE(text_message("").starts_with("config.json"));
  EXPECT_EQ(text_message("{}").substr(0, 71),
            "config.json: model_type: missing, and architectures names no class that");
}

TEST(HfConfigTest, UntrustedFilesAreBounded) {
  const std::string deep(100'000, '[');
  EXPECT_EQ(text_message(deep), "config.json: nests too deep; expected at most 32 levels");
  const std::string objects = "{\"a\":" + std::string(40, '{');
  EXPECT_EQ(text_message(objects), "config.json: nests too deep; expected at most 32 levels");
  EXPECT_EQ(text_message(std::string(5'000'000, ' ')),
            "config.json: '5000000 bytes' is too long for a configuration file; expected at most "
            "4194304 bytes");
}

TEST(HfConfigTest, SizesWhoseProductOverflowsAreRefused) {
  Json config = llama();
  config["model_type"] = "mixtral";
  config["hidden_size"] = 1 << 24;
  config["intermediate_size"] = 1 << 24;
  config["num_local_experts"] = 1 << 16;
  config["num_experts_per_tok"] = 1;
  EXPECT_THROW(build_model(read_hf_config(config, "config.json")), InputError);
}

TEST(HfConfigTest, NasBlocksMustBeOnePerLayer) {
  Json config = llama();
  config["model_type"] = "nemotron-nas";
  config["block_configs"] = Json::array();
  EXPECT_EQ(message(config),
            "config.json: block_configs: '[]' has 0 entries for 2 layers; expected one entry per "
            "layer");
}

// Configurations of public repositories, where a checkout has them beside it.
TEST(HfConfigTest, ReadsEveryFixture) {
  const std::filesystem::path folder = source_dir() / "../shared/fixtures/models";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no ../shared/fixtures/models";
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream in(entry.path());
    std::ostringstream text;
    text << in.rdbuf();
    SCOPED_TRACE(entry.path().string());
    EXPECT_NO_THROW({
      const Model model = build_model(parse_hf_config(text.str(), entry.path().string()));
      validate(model);
      EXPECT_GT(count_parameters(model).total, 0);
    });
    ++files;
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace placet
