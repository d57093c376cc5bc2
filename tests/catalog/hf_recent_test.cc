// Families of 2025 and 2026: their parts counted by hand, and published configurations against
// counts that others give. Totals of small models of each stand in family_totals.json too.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "catalog/catalog_files.h"
#include "catalog/hf_config.h"
#include "catalog/model_catalog.h"
#include "model/build.h"
#include "model/listing.h"

namespace placet {
namespace {

ParameterCounts counts_of(const char* text) {
  const Model model = build_model(parse_hf_config(text, "config.json"));
  validate(model);
  return count_parameters(model);
}

/// Elements of the tensors whose name holds `part`.
std::int64_t elements_in(const Model& model, const std::string& part) {
  std::int64_t sum = 0;
  for (const TensorEntry& tensor : list_tensors(model)) {
    if (tensor.name.find(part) == std::string::npos) continue;
    std::int64_t each = tensor.count;
    for (const std::int64_t size : tensor.shape) each *= size;
    sum += each;
  }
  return sum;
}

TEST(HfRecentTest, BlocksWithAWindowMayHaveHeadsOfTheirOwn) {
  // Embedding and head 2 x 16 x 8, final norm 8; per block norms 16 and mlp 3 x 12 x 8 = 288.
  // Full: q 2 x 6 x 8, k 6 x 8, v 4 x 8, o 8 x 8 = 96 + 48 + 32 + 64 = 240.
  // Windowed: two kv heads: k 96, v 64, and two sinks: 96 + 96 + 64 + 64 + 2 = 322.
  const char* file = R"({"model_type": "mimo_v2_flash", "hidden_size": 8, "num_hidden_layers": 2,
      "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 6, "v_head_dim": 4,
      "swa_num_attention_heads": 2, "swa_num_key_value_heads": 2, "swa_head_dim": 6,
      "swa_v_head_dim": 4, "hybrid_layer_pattern": [0, 1], "moe_layer_freq": [0, 0],
      "sliding_window": 4, "intermediate_size": 12, "vocab_size": 16})";
  EXPECT_EQ(counts_of(file).total, 256 + 8 + 2 * (16 + 288) + 240 + 322);
}

TEST(HfRecentTest, AGateMayHaveOneNumberPerHead) {
  // Embedding and head 256, final norm 8; norms 16, mlp 288; q 2 x 4 x 8 and o 64 each, k and v 32
  // each, norms of queries and keys 2 x 4, gate 2 x 8.
  const char* file = R"({"model_type": "step3p7", "hidden_size": 8, "num_hidden_layers": 1,
      "num_attention_heads": 2, "num_attention_groups": 1, "head_dim": 4, "intermediate_size": 12,
      "vocab_size": 16, "first_k_dense_replace": 1})";
  EXPECT_EQ(counts_of(file).total, 256 + 8 + 16 + 288 + 192 + 8 + 16);
}

TEST(HfRecentTest, SelectorsOfBlocksMayReadTheInput) {
  // As above with dense width 12; attention 192 and norms 2 x 4. The second block's selector:
  // queries 3 x 2 x 8, keys 2 x 8, norms of 2 each.
  const char* file = R"({"model_type": "minimax_m3", "hidden_size": 8, "num_hidden_layers": 2,
      "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
      "dense_intermediate_size": 12, "moe_layer_freq": [0, 0], "vocab_size": 16,
      "sparse_attention_config": {"sparse_attention_freq": [0, 1], "sparse_num_index_heads": 3,
      "sparse_index_dim": 2, "sparse_block_size": 4, "sparse_topk_blocks": 2,
      "sparse_local_block": 1}})";
  EXPECT_EQ(counts_of(file).total, 256 + 8 + 2 * (16 + 288 + 192 + 8) + 48 + 16 + 4);
  // Its queries see (2 + 1) blocks of 4 keys.
  const Model model = build_model(parse_hf_config(file, "config.json"));
  const auto& operators = model.kinds[2].operators;
  const auto core = std::ranges::find(operators, OpKind::attention, &Operator::kind);
  EXPECT_EQ(core->window, 12);
}

TEST(HfRecentTest, ABlockMayTakeTheChoiceOfOneBefore) {
  const auto file = [](const std::string& types) {
    return R"({"model_type": "glm_moe_dsa", "hidden_size": 8, "num_hidden_layers": 2,
        "num_attention_heads": 2, "intermediate_size": 12, "first_k_dense_replace": 2,
        "kv_lora_rank": 3, "q_lora_rank": 5, "qk_nope_head_dim": 2, "qk_rope_head_dim": 2,
        "v_head_dim": 3, "index_n_heads": 2, "index_head_dim": 4, "index_topk": 6,
        "n_routed_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 4,
        "vocab_size": 16, "indexer_types": [)" +
           types + "]}";
  };
  // A selector: queries 2 x 4 x 5, keys 4 x 8, their norm 8, weights 2 x 8.
  const std::int64_t both = counts_of(file(R"("full", "full")").c_str()).total;
  EXPECT_EQ(both - counts_of(file(R"("full", "shared")").c_str()).total, 40 + 32 + 8 + 16);
  EXPECT_NE(message_of([&] {
              counts_of(file(R"("shared", "full")").c_str());
            }).find("no block before the first"),
            std::string::npos);
}

TEST(HfRecentTest, SeveralStreamsArePassedOn) {
  const Model model = load_model(repository_catalog(), "deepseek-v4-flash");
  // Four streams of 4096 enter each block and the head, one embedding makes them.
  EXPECT_EQ(model.kinds[1].values.front().dims.back().size, 4 * 4096);
  EXPECT_EQ(model.kinds.back().values.front().dims.back().size, 4 * 4096);
  // 43 blocks with two mixings of 4 x (4 + 2) numbers from the streams, one in the head of 4.
  EXPECT_EQ(elements_in(model, "_hc.fn"), 43LL * 2 * 24 * 4 * 4096);
  EXPECT_EQ(elements_in(model, "hc_head.hc_fn"), 4LL * 4 * 4096);
}

TEST(HfRecentTest, KimiK3HasLatentsForExpertsAndWeighsEarlierSums) {
  const Model model = load_model(repository_catalog(), "kimi-k3");
  // 92 mixtures of 896 experts with three matrices of 3072 x 3584.
  EXPECT_EQ(elements_in(model, ".experts."), 92LL * 896 * 3 * 3072 * 3584);
  EXPECT_EQ(elements_in(model, "routed_expert_down_proj"), 92LL * 3584 * 7168);
  // 24 blocks of latent attention with a gate of 96 x 128, 69 of delta attention with one too.
  EXPECT_EQ(elements_in(model, ".self_attn.g_proj"), 93LL * 96 * 128 * 7168);
  EXPECT_EQ(elements_in(model, "_res_proj"), (2LL * 93 + 1) * 7168);
}

TEST(HfRecentTest, TheFirstGpt2FilesAreTold) {
  const Architecture a = parse_hf_config(
      R"({"n_ctx": 4, "n_embd": 8, "n_head": 2, "n_layer": 1, "n_positions": 4, "vocab_size": 16})",
      "config.json");
  EXPECT_EQ(a.family, "gpt2");
  EXPECT_EQ(a.notes.front(), "model_type is missing; gpt2 by its keys");
}

// --- keys

constexpr const char* kLlama = R"({"model_type": "llama", "hidden_size": 8,
    "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
    "intermediate_size": 12, "vocab_size": 16, )";

TEST(HfRecentTest, EmptyAndRepeatedKeysAreNoted) {
  const auto notes = [](const std::string& setting) {
    return parse_hf_config(kLlama + setting + "}", "config.json").notes;
  };
  const auto noted = [](const std::string& key) {
    return std::vector<std::string>{"keys without meaning here: " + key};
  };
  EXPECT_EQ(notes(R"("pruned_heads": {})"), noted("pruned_heads"));
  EXPECT_EQ(notes(R"("mlp_only_layers": [])"), noted("mlp_only_layers"));
  EXPECT_EQ(notes(R"("n_kv_heads": 1)"), noted("n_kv_heads"));
  EXPECT_NE(message_of([&] { notes(R"("n_kv_heads": 2)"); }).find("'n_kv_heads' (2)"),
            std::string::npos);
}

TEST(HfRecentTest, AKeyMayBeIgnored) {
  const Json config = Json::parse(std::string(kLlama) + R"("num_memories": 4})");
  const Catalog catalog = repository_catalog();
  const Architecture a = read_hf_config(config, "config.json", catalog, {"num_memories"});
  EXPECT_EQ(a.notes.back(), "ignored as --ignore-key asks: num_memories");
  EXPECT_EQ(message_of([&] { read_hf_config(config, "config.json", catalog, {"num_memory"}); }),
            "--ignore-key: 'num_memory' is not a key of config.json; did you mean 'num_memories'?");
}

// --- families as files

TEST(HfRecentTest, AFamilyIsAFile) {
  const TestFolder folder;
  folder.copy("families");
  folder.write("families/house.json", R"({"schema": "placet.family-file/1", "name": "house",
      "like": "llama", "source": "our own code", "date": "2026-11-24", "tied": true,
      "attention": {"bias": true, "output_bias": false}, "mlp": {"gated": false},
      "fixed_keys": {"rotary": "plain"}, "keys_without_meaning": ["num_cupboards"]})");
  const Catalog catalog{folder.path()};
  Json config = Json::parse(std::string(kLlama) + R"("num_cupboards": 3, "rotary": "plain"})");
  config["model_type"] = "house";
  // Embedding 128 and final norm 8; per block q and o 64, k and v 32 with biases of 8, 4 and 4, two
  // matrices of 12 x 8, norms 16.
  const Architecture a = read_hf_config(config, "config.json", catalog);
  EXPECT_EQ(count_parameters(build_model(a)).total, 128 + 8 + 2 * (192 + 16 + 192 + 16));
  config["rotary"] = "twisted";
  EXPECT_EQ(message_of([&] { read_hf_config(config, "config.json", catalog); }),
            "config.json: rotary: '\"twisted\"' is not described for this family; expected "
            "\"plain\"");
}

TEST(HfRecentTest, MistakesInAFamilysFileAreNamed) {
  const TestFolder folder;
  folder.copy("families");
  const Catalog catalog{folder.path()};
  const auto message = [&](const std::string& text) {
    folder.write("families/house.json", R"({"schema": "placet.family-file/1", "name": "house",
        "source": "s", "date": "2026-11-24", )" +
                                            text + "}");
    Json config = Json::parse(std::string(kLlama) + R"("torch_dtype": "float32"})");
    config["model_type"] = "house";
    return message_of([&] { read_hf_config(config, "config.json", catalog); }, folder.path());
  };
  EXPECT_NE(message(R"("atention": {})").find("did you mean 'attention'?"), std::string::npos);
  EXPECT_NE(message(R"("moe": {"layers": "al"})").find("did you mean 'all'?"), std::string::npos);
  EXPECT_NE(message(R"("like": "house")").find("is like another too often"), std::string::npos);
  EXPECT_NE(message(R"("like": "hut")").find("names no file of data/families"), std::string::npos);
  EXPECT_NE(message(R"("tied": 3)").find("house.json: tied"), std::string::npos);
}

TEST(HfRecentTest, EveryFamilysFileIsRead) {
  const Catalog catalog = repository_catalog();
  const std::vector<std::string> names = names_in(catalog, "families");
  EXPECT_GE(names.size(), 80U);
  for (const std::string& name : names) {
    // A file of a family that reads nothing else: what is missing is a size, not the family.
    const std::string message = message_of([&] {
      read_hf_config(Json{{"model_type", name}}, "config.json", catalog);
    });
    EXPECT_TRUE(message.starts_with("config.json: hidden_size: missing")) << name << message;
  }
}

// --- published configurations, where a checkout has them beside it

// The number of parameters without prediction modules, as the model code of the transformers
// library, version 5.23.0, has it when built without data (2026-11-24), and of GPT-2 as OpenAI's
// checkpoints have it (124.4 M and 354.8 M).
const std::map<std::string, std::int64_t>& published() {
  static const std::map<std::string, std::int64_t> counts{
      {"MiniMaxAI__MiniMax-M2.5.json", 228'689'764'864},
      {"Qwen__Qwen3-Next-80B-A3B-Thinking.json", 79'674'391'296},
      {"Qwen__Qwen3.5-397B-A17B.json", 396'346'350'336},
      {"allenai__Olmo-3.1-32B-Instruct.json", 32'233'522'176},
      {"deepseek-ai__DeepSeek-V2-Lite.json", 15'706'484'224},
      {"deepseek-ai__DeepSeek-V3.json", 671'026'419'200},
      {"deepseek-ai__DeepSeek-V3.2.json", 671'877'944'064},
      {"deepseek-ai__DeepSeek-V4-Pro.json", 1'572'997'201'763},
      {"google__gemma-4-26B-A4B.json", 25'233'141'760},
      {"gpt2-117M-dialogpt.json", 124'439'808},
      {"gpt2-345M-dialogpt.json", 354'823'168},
      {"mistralai__Mistral-7B-Instruct-v0.3.json", 7'248'023'552},
      {"nvidia__Nemotron-H-56B-Base-8K.json", 56'324'350'464},
      {"openai__gpt-oss-120b.json", 116'829'156'672},
      {"zai-org__GLM-4.5.json", 352'797'829'024},
      {"zai-org__GLM-5.json", 743'911'218'432},
  };
  return counts;
}

TEST(HfRecentTest, FixturesHaveTheirPublishedCounts) {
  const std::filesystem::path folder = source_dir() / "../shared/fixtures/models";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no ../shared/fixtures/models";
  for (const auto& [name, total] : published()) {
    if (!std::filesystem::exists(folder / name)) continue;
    std::ifstream in(folder / name);
    std::ostringstream text;
    text << in.rdbuf();
    const ParameterCounts counts = counts_of(text.str().c_str());
    EXPECT_EQ(counts.total - counts.prediction, total) << name;
  }
}

}  // namespace
}  // namespace placet
