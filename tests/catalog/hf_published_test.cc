// Published configurations whose files leave much unsaid, or say it in a way of their own: the
// count of each against the published checkpoint or against arithmetic done here.
#include <gtest/gtest.h>

#include <algorithm>

#include "catalog/hf_config.h"
#include "model/build.h"
#include "units/error.h"

namespace placet {
namespace {

Architecture read_published(const char* text) { return parse_hf_config(text, "config.json"); }

std::int64_t total_of(const char* text) {
  return count_parameters(build_model(read_published(text))).total;
}

std::string refusal_of(const char* text) {
  try {
    read_published(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

bool has_note(const Architecture& a, const std::string& note) {
  return std::ranges::find(a.notes, note) != a.notes.end();
}

// --- blocks of several sizes

TEST(HfPublishedTest, OpenElmBlocksGrow) {
  // Widths: half of 16 is 8, twice is 32, both multiples of 8. Embedding, also the output, 10 x 16.
  // Block 0: qkv (2 + 1 + 1) x 4 = 16 rows of 16, out 16 x 8, two norms of 4, two of 16, proj_1
  // 2 x 8 rows of 16, proj_2 16 x 8: 256 + 128 + 8 + 32 + 256 + 128 = 808.
  // Block 1: qkv (4 + 2 + 2) x 4 = 32 rows, out 16 x 16, norms, proj_1 64 x 16, proj_2 16 x 32:
  // 512 + 256 + 40 + 1024 + 512 = 2344. Final norm 16.
  EXPECT_EQ(total_of(R"({"model_type": "openelm", "model_dim": 16, "head_dim": 4, "vocab_size": 10,
                      "num_transformer_layers": 2, "num_query_heads": [2, 4],
                      "num_kv_heads": [1, 2], "ffn_multipliers": [0.5, 2], "ffn_dim_divisor": 8})"),
            160 + 808 + 2344 + 16);
}

// apple/OpenELM-270M: 0.27 B in table 1 of arXiv 2404.14619.
TEST(HfPublishedTest, OpenElm270M) {
  EXPECT_EQ(total_of(R"({"activation_fn_name": "swish", "architectures": ["OpenELMForCausalLM"],
      "ffn_dim_divisor": 256,
      "ffn_multipliers": [0.5, 0.73, 0.97, 1.2, 1.43, 1.67, 1.9, 2.13, 2.37, 2.6, 2.83, 3.07, 3.3,
                          3.53, 3.77, 4.0],
      "ffn_with_glu": true, "head_dim": 64, "max_context_length": 2048, "model_dim": 1280,
      "model_type": "openelm", "normalization_layer_name": "rms_norm",
      "normalize_qk_projections": true, "num_gqa_groups": 4,
      "num_kv_heads": [3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5],
      "num_query_heads": [12, 12, 12, 12, 12, 16, 16, 16, 16, 16, 16, 16, 20, 20, 20, 20],
      "num_transformer_layers": 16, "qkv_multipliers": [0.5, 1.0], "rope_freq_constant": 10000,
      "rope_max_length": 4096, "share_input_output_layers": true, "vocab_size": 32000})"),
            271'527'168);
}

TEST(HfPublishedTest, OpenElmListsAreOnePerLayer) {
  EXPECT_EQ(
      refusal_of(R"({"model_type": "openelm", "model_dim": 16, "head_dim": 4, "vocab_size": 10,
                        "num_transformer_layers": 2, "num_query_heads": [2],
                        "num_kv_heads": [1, 2], "ffn_multipliers": [0.5, 2]})"),
      "config.json: num_query_heads: '[2]' is not one number per layer; expected a list");
}

TEST(HfPublishedTest, KvHeadsMayDifferFromLayerToLayer) {
  // Embedding and head 16 x 8 each. Per block q and o 64 each, mlp 288, norms 16: 432, and k and v
  // of 2 and of 1 heads of 4: 2 x 64 and 2 x 32. Final norm 8.
  EXPECT_EQ(total_of(R"({"model_type": "deci", "hidden_size": 8, "num_hidden_layers": 2,
                      "num_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": 12,
                      "num_key_value_heads_per_layer": [2, 1], "vocab_size": 16})"),
            256 + 432 + 128 + 432 + 64 + 8);
}

// --- forms of their own

// microsoft/Phi-3-small-8k-instruct. Per block qkv 6144 x 4096 + 6144, dense 4096 x 4096 + 4096, up
// 28672 x 4096 + 28672, down 4096 x 14336 + 4096, two norms of 2 x 4096: 218,163,200. Embedding,
// also the output, 100352 x 4096; final norm 2 x 4096.
TEST(HfPublishedTest, Phi3SmallHasBiasesEverywhere) {
  EXPECT_EQ(total_of(R"({"architectures": ["Phi3SmallForCausalLM"], "attention_bias": false,
      "attention_dropout_prob": 0.0, "blocksparse_block_size": 64,
      "blocksparse_num_local_blocks": 16, "blocksparse_vert_stride": 8,
      "dense_attention_every_n_layers": 2, "dummy_token_indices": [100256, 100258],
      "embedding_dropout_prob": 0.1, "ff_dim_multiplier": null, "ff_intermediate_size": 14336,
      "ffn_dropout_prob": 0.1, "gegelu_limit": 20.0, "hidden_act": "gegelu", "hidden_size": 4096,
      "max_position_embeddings": 8192, "model_type": "phi3small", "mup_width_multiplier": 8.0,
      "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
      "rope_embedding_base": 1000000, "vocab_size": 100352})"),
            32 * 218'163'200LL + 100352LL * 4096 + 8192);
}

// LiquidAI/LFM2-1.2B, with the names that its first file uses.
TEST(HfPublishedTest, Lfm2MixesConvolutionsAndAttention) {
  EXPECT_EQ(total_of(R"({"architectures": ["Lfm2ForCausalLM"], "block_auto_adjust_ff_dim": true,
      "block_dim": 2048, "block_ff_dim": 12288, "block_ffn_dim_multiplier": 1.0,
      "block_multiple_of": 256, "conv_L_cache": 3, "conv_bias": false, "conv_dim": 2048,
      "conv_dim_out": 2048, "full_attn_idxs": [2, 5, 8, 10, 12, 14], "hidden_size": 2048,
      "max_position_embeddings": 128000, "model_type": "lfm2", "num_attention_heads": 32,
      "num_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8, "vocab_size": 65536})"),
            1'170'340'608);
}

// bigcode/santacoder: a file that calls itself gpt2. Per block: norms 2 x 4096, c_attn
// (2048 + 2 x 128) x 2048 + 2304, c_proj 2048 x 2048 + 2048, fc 8192 x 2048 + 8192, down
// 2048 x 8192 + 2048 = 42,490,112.
TEST(HfPublishedTest, SantaCoderHasOneHeadOfKeys) {
  EXPECT_EQ(total_of(R"({"activation_function": "gelu_fast", "attention_head_type": "multiquery",
      "architectures": ["GPT2LMHeadCustomModel"], "model_type": "gpt2", "n_embd": 2048,
      "n_head": 16, "n_inner": 8192, "n_layer": 24, "n_positions": 2048, "vocab_size": 49280})"),
            24 * 42'490'112LL + (49280LL + 2048) * 2048 + 4096);
}

TEST(HfPublishedTest, DeepseekV2WithOrdinaryAttention) {
  // Four matrices of 8 x 8, mlp 3 x 12 x 8, norms 16 and 8, embedding and head 16 x 8.
  EXPECT_EQ(total_of(R"({"model_type": "deepseek_v2", "use_mla": false, "kv_lora_rank": null,
                      "q_lora_rank": null, "qk_nope_head_dim": 0, "qk_rope_head_dim": 0,
                      "v_head_dim": 0, "lm_head": true, "hidden_size": 8, "num_hidden_layers": 1,
                      "num_attention_heads": 2, "intermediate_size": 12, "vocab_size": 16,
                      "first_k_dense_replace": 1, "n_routed_experts": 4,
                      "num_experts_per_tok": 2})"),
            256 + 288 + 16 + 8 + 256);
}

TEST(HfPublishedTest, MiniMaxListsItsKindsOfAttention) {
  const Architecture a = read_published(R"({"model_type": "minimax_text_01", "hidden_size": 8,
      "num_hidden_layers": 3, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
      "intermediate_size": 12, "num_local_experts": 2, "num_experts_per_tok": 1,
      "attn_type_list": [0, 1, 0], "shared_intermediate_size": 0, "vocab_size": 16})");
  EXPECT_EQ(a.order, (std::vector<int>{0, 1, 0}));
  // Linear: qkv 24 x 8, gate and out 8 x 8, norm 8 = 328. Full: q and o 64, k and v 32 each = 192.
  // Each: norms 16, router 16, two experts of 288 = 608. Embedding and head 256, final norm 8.
  EXPECT_EQ(count_parameters(build_model(a)).total, 2 * 328 + 192 + 3 * 608 + 256 + 8);
}

// --- what stands in one file and is meant in another

TEST(HfPublishedTest, AClassMayTellMoreThanTheFamily) {
  const Architecture a = read_published(R"({"architectures": ["MiniMaxM2ForCausalLM"],
      "model_type": "minimax", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
      "num_key_value_heads": 1, "head_dim": 4, "intermediate_size": 12, "num_local_experts": 2,
      "num_experts_per_tok": 1, "mlp_intermediate_size": 24, "attn_type_list": [1],
      "use_qk_norm": true, "num_mtp_modules": 3, "vocab_size": 16})");
  EXPECT_EQ(a.family, "minimax_m2");
  EXPECT_TRUE(has_note(a, "model_type says minimax; minimax_m2 by its class name"));
  EXPECT_TRUE(has_note(a, "num_mtp_modules: the prediction modules are left out"));
  // q and o 64, k and v 32, norms of all heads 8 and 4; norms 16, router 16, correction 2, experts
  // 2 x 288; embedding and head 256, final norm 8.
  EXPECT_EQ(count_parameters(build_model(a)).total, 192 + 12 + 16 + 16 + 2 + 576 + 256 + 8);
}

// llava-hf/llava-1.5-7b-hf says no more of its text part than this: the llama of 7 B with 64 more
// tokens.
TEST(HfPublishedTest, NestedPartsLeaveSizesToTheirFamily) {
  const char* file = R"({"model_type": "llava", "tie_word_embeddings": false, "text_config": {
      "architectures": ["LlamaForCausalLM"], "max_position_embeddings": 4096,
      "model_type": "llama", "rms_norm_eps": 1e-05, "torch_dtype": "float16",
      "vocab_size": 32064}})";
  EXPECT_EQ(total_of(file), 6'738'415'616LL + 2 * 64 * 4096);
  EXPECT_TRUE(has_note(read_published(file),
                       "left to the family by the file: hidden_size 4096, intermediate_size 11008, "
                       "num_hidden_layers 32, num_attention_heads 32"));
}

TEST(HfPublishedTest, OnlyNestedPartsAreFilledIn) {
  EXPECT_EQ(refusal_of(R"({"model_type": "llama", "vocab_size": 32064})"),
            "config.json: hidden_size: missing; expected a whole number from 1 to 16777216");
}

TEST(HfPublishedTest, PartsMayNestTwice) {
  const Architecture a = read_published(R"({"model_type": "qwen2_5_omni", "thinker_config": {
      "model_type": "qwen2_5_omni_thinker", "text_config": {"model_type": "qwen2_5_omni_text",
      "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
      "num_key_value_heads": 1, "intermediate_size": 12, "vocab_size": 16}}})");
  EXPECT_EQ(a.hidden, 8);
  EXPECT_EQ(a.family, "qwen2");
}

TEST(HfPublishedTest, ANullPartIsNone) {
  EXPECT_EQ(read_published(R"({"model_type": "llama", "text_config": null, "hidden_size": 8,
                     "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 12,
                     "vocab_size": 16})")
                .hidden,
            8);
}

// --- what would change the count and is not described

constexpr const char* kLlamaWith = R"({"model_type": "llama", "hidden_size": 8,
    "num_hidden_layers": 4, "num_attention_heads": 2, "intermediate_size": 12, "vocab_size": 16, )";

TEST(HfPublishedTest, OtherHeadsAreNoted) {
  const auto file = [](const std::string& name) {
    return kLlamaWith + ("\"architectures\": [\"" + name + "\"]}");
  };
  const std::string end = ", which has another head or none; a language model's is counted";
  for (const std::string name : {"LlamaForSequenceClassification", "LlamaModel"}) {
    EXPECT_TRUE(has_note(read_published(file(name).c_str()), "architectures names " + name + end))
        << name;
  }
  EXPECT_TRUE(read_published(file("LlamaForCausalLM").c_str()).notes.empty());
  EXPECT_TRUE(read_published(file("GPT2LMHeadModel").c_str()).notes.empty());
}

TEST(HfPublishedTest, CrossAttentionIsRefused) {
  const std::string file = std::string(kLlamaWith) + R"("add_cross_attention": true})";
  EXPECT_EQ(refusal_of(file.c_str()),
            "config.json: add_cross_attention: 'true' asks for weights that are not described for "
            "this family; expected false");
}

TEST(HfPublishedTest, AnUnknownListWithAnEntryPerLayerIsRefused) {
  const std::string file = std::string(kLlamaWith) + R"("block_plans": [{}, {}, {}, {}]})";
  EXPECT_EQ(refusal_of(file.c_str()),
            "config.json: config key 'block_plans' ([{},{},{},{}]) may change tensor shapes and "
            "Placet does not know it for this model family (ignore it with --ignore-key)");
  // As many token numbers as layers say nothing.
  EXPECT_EQ(refusal_of((std::string(kLlamaWith) + R"("stop_token_ids": [1, 2, 3, 4]})").c_str()),
            "no error");
}

// The published gemma-2-9b names its window twice, c4ai-command-r7b the order of its layers in a
// word, starcoder2-3b two activations, mamba-130m-hf the width of its states twice.
TEST(HfPublishedTest, OldKeysBesideNewOnesAreNotInTheWay) {
  EXPECT_EQ(
      refusal_of((std::string(kLlamaWith) +
                  R"("sliding_window_size": 4096, "order_of_interleaved_layers": "local_attn_first",
                           "hidden_act": "silu", "activation_function": "gelu"})")
                     .c_str()),
      "no error");
  const std::string mamba = R"({"model_type": "mamba", "d_model": 8, "hidden_size": 8, "n_layer": 1,
      "num_hidden_layers": 1, "vocab_size": 10, "state_size": 2, "conv_kernel": 3,
      "time_step_rank": 1, "intermediate_size": 16, "d_inner": )";
  // Tied embedding 10 x 8; in 32 x 8, convolution 16 x 3 and bias 16, x (1 + 2 + 2) x 16, steps
  // 16 x 1 and bias 16, A 16 x 2, D 16, out 8 x 16, two norms of 8.
  EXPECT_EQ(total_of((mamba + "16}").c_str()),
            80 + 256 + 48 + 16 + 80 + 16 + 16 + 32 + 16 + 128 + 16);
  EXPECT_NE(refusal_of((mamba + "24}").c_str()).find("contradicts"), std::string::npos);
}

TEST(HfPublishedTest, SlipsOfThePenAreRefusedWithTheKeyMeant) {
  const auto meant = [](const std::string& setting) {
    const std::string refusal = refusal_of((std::string(kLlamaWith) + setting + "}").c_str());
    const std::size_t place = refusal.find("did you mean '");
    return place == std::string::npos ? refusal : refusal.substr(place);
  };
  EXPECT_EQ(meant(R"("tie_word_embedding": true)"), "did you mean 'tie_word_embeddings'?");
  EXPECT_EQ(meant(R"("attention_bais": true)"), "did you mean 'attention_bias'?");
  EXPECT_EQ(meant(R"("mlp_bais": true)"), "did you mean 'mlp_bias'?");
  EXPECT_EQ(meant(R"("numKeyValueHeads": 8)"), "did you mean 'num_key_value_heads'?");
  EXPECT_EQ(meant(R"("num_kv_head": 8)"), "did you mean 'num_key_value_heads'?");
  EXPECT_EQ(meant(R"("kv_heads": 8)"), "did you mean 'num_key_value_heads'?");
}

TEST(HfPublishedTest, SettingsThatChangeTensorsElsewhereAreRefused) {
  for (const std::string setting :
       {R"("multi_query_group_num": 8)", R"("use_cla": true)", R"("cross_layer_sharing": true)",
        R"("blocks": [{"heads": 4}])"}) {
    EXPECT_NE(
        refusal_of((std::string(kLlamaWith) + setting + "}").c_str()).find("does not know it"),
        std::string::npos)
        << setting;
  }
  EXPECT_EQ(refusal_of((std::string(kLlamaWith) + R"("multi_query": false})").c_str()), "no error");
}

TEST(HfPublishedTest, NoneOfSomethingUnknownIsNotInTheWay) {
  EXPECT_EQ(refusal_of((std::string(kLlamaWith) + R"("n_special": 0})").c_str()), "no error");
}

// The library takes a null for false, and its default only where the key is absent.
TEST(HfPublishedTest, ANullSwitchIsOff) {
  const std::string cohere = R"({"model_type": "cohere", "hidden_size": 8, "num_hidden_layers": 1,
      "num_attention_heads": 2, "intermediate_size": 12, "vocab_size": 16)";
  EXPECT_TRUE(read_published((cohere + "}").c_str()).head.tied);
  EXPECT_FALSE(read_published((cohere + R"(, "tie_word_embeddings": null})").c_str()).head.tied);
}

TEST(HfPublishedTest, ANullHeadSizeIsHiddenOverHeads) {
  const std::string ernie = R"({"model_type": "ernie4_5", "hidden_size": 8, "num_hidden_layers": 1,
      "num_attention_heads": 2, "intermediate_size": 12, "vocab_size": 16)";
  const auto rows = [](const std::string& text) {
    const Architecture a = read_published(text.c_str());
    return std::get<Attention>(a.shapes[0][0].branches[0].mixer).head_size;
  };
  EXPECT_EQ(rows(ernie + "}"), 128);  // the family's
  EXPECT_EQ(rows(ernie + R"(, "head_dim": null})"), 4);
}

TEST(HfPublishedTest, NullKvHeadsAreAsManyAsHeads) {
  const std::string mistral = R"({"model_type": "mistral", "hidden_size": 16,
      "num_hidden_layers": 1, "num_attention_heads": 16, "intermediate_size": 12,
      "vocab_size": 16)";
  const auto kv_heads = [](const std::string& text) {
    const Architecture a = read_published(text.c_str());
    return std::get<Attention>(a.shapes[0][0].branches[0].mixer).kv_heads;
  };
  EXPECT_EQ(kv_heads(mistral + "}"), 8);  // the family's
  EXPECT_EQ(kv_heads(mistral + R"(, "num_key_value_heads": null})"), 16);
}

// tiiuae/falcon-mamba-7b says expand 16 and intermediate_size 8192, which is twice its hidden size.
TEST(HfPublishedTest, TheWidthOfAStateSpaceWinsOverItsFactor) {
  EXPECT_EQ(total_of(R"({"architectures": ["FalconMambaForCausalLM"], "conv_kernel": 4,
      "expand": 16, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 8192,
      "model_type": "falcon_mamba", "num_hidden_layers": 64, "state_size": 16,
      "tie_word_embeddings": false, "time_step_rank": 256, "use_bias": false,
      "use_conv_bias": true, "vocab_size": 65024})"),
            7'272'665'088);
}

TEST(HfPublishedTest, NullSharedExpertsAreNone) {
  const std::string text = R"({"model_type": "deepseek_v2", "hidden_size": 8,
      "num_hidden_layers": 1, "num_attention_heads": 2, "kv_lora_rank": 4, "qk_rope_head_dim": 2,
      "qk_nope_head_dim": 2, "intermediate_size": 12, "moe_intermediate_size": 4,
      "n_routed_experts": 4, "num_experts_per_tok": 2, "vocab_size": 16, "n_shared_experts": )";
  // Two of 3 x 4 x 8.
  EXPECT_EQ(total_of((text + "2}").c_str()), total_of((text + "null}").c_str()) + 2 * 96);
}

TEST(HfPublishedTest, ListedMixturesWinOverCounts) {
  const Architecture a = read_published(R"({"model_type": "deepseek_v3", "hidden_size": 8,
      "num_hidden_layers": 3, "num_attention_heads": 2, "kv_lora_rank": 4, "qk_rope_head_dim": 2,
      "qk_nope_head_dim": 2, "intermediate_size": 12, "moe_intermediate_size": 4,
      "n_routed_experts": 4, "num_experts_per_tok": 2, "vocab_size": 16,
      "mlp_layer_types": ["dense", "sparse", "dense"]})");
  EXPECT_EQ(a.order, (std::vector<int>{0, 1, 0}));
}

}  // namespace
}  // namespace placet
