// Small architectures, written out, for the tests of this folder.
#pragma once

#include <string>

#include "model/architecture.h"

namespace placet {

inline Weights weight(const std::string& stem) { return {.weight = stem + ".weight"}; }
inline Weights weight_and_bias(const std::string& stem) {
  return {.weight = stem + ".weight", .bias = stem + ".bias"};
}
inline Norm rms(const std::string& stem) { return {.kind = NormKind::rms, .names = weight(stem)}; }

/// hidden 8, two heads of 4, one kv head, ffn 12, vocabulary 16, `layers` equal blocks.
inline Architecture small_llama(int layers = 2) {
  Attention attention{.heads = 2,
                      .kv_heads = 1,
                      .head_size = 4,
                      .value_head_size = 4,
                      .query = weight("b.{}.q"),
                      .key = weight("b.{}.k"),
                      .value = weight("b.{}.v"),
                      .output = weight("b.{}.o"),
                      .rotary_size = 4};
  Mlp mlp{.width = 12,
          .activation = "silu",
          .gate = weight("b.{}.gate"),
          .up = weight("b.{}.up"),
          .down = weight("b.{}.down")};
  Architecture a{.name = "small", .family = "llama", .hidden = 8};
  a.embedding = {.vocabulary = 16, .width = 8, .tokens = "embed.weight"};
  a.shapes = {{Sublayer{.branches = {{.norm = rms("b.{}.n1"), .mixer = attention}}},
               Sublayer{.branches = {{.norm = rms("b.{}.n2"), .mixer = mlp}}}}};
  a.order.assign(static_cast<std::size_t>(layers), 0);
  a.head = {.norm = rms("norm"), .output = weight("head")};
  return a;
}

/// The same with biases everywhere, dropout, one fused tensor for q, k and v, no gate and no
/// rotation.
inline Architecture small_gpt() {
  Architecture a = small_llama(1);
  a.family = "gpt";
  Attention attention{.heads = 2,
                      .kv_heads = 2,
                      .head_size = 4,
                      .value_head_size = 4,
                      .layout = QkvLayout::fused,
                      .order = WeightOrder::in_out,
                      .fused = weight_and_bias("b.{}.qkv"),
                      .output = weight_and_bias("b.{}.o"),
                      .dropout = 0.1};
  Mlp mlp{.width = 12,
          .gated = false,
          .activation = "gelu",
          .up = weight_and_bias("b.{}.up"),
          .down = weight_and_bias("b.{}.down")};
  a.shapes = {{Sublayer{.branches = {{.norm = rms("b.{}.n1"), .mixer = attention, .dropout = 0.1}}},
               Sublayer{.branches = {{.norm = rms("b.{}.n2"), .mixer = mlp, .dropout = 0.1}}}}};
  a.embedding.positions = "positions.weight";
  a.embedding.position_rows = 32;
  a.head.tied = true;
  return a;
}

/// small_llama with a mixture of four experts of width 6, two per token, a shared expert with a
/// gate, and norms of queries and keys.
inline Architecture small_moe() {
  Architecture a = small_llama(1);
  auto& attention = std::get<Attention>(a.shapes[0][0].branches[0].mixer);
  attention.qk_norm = QkNorm{.query = rms("b.{}.qn"), .key = rms("b.{}.kn")};
  const auto mlp = [](const std::string& stem, std::int64_t width) {
    return Mlp{.width = width,
               .activation = "silu",
               .gate = weight(stem + "gate"),
               .up = weight(stem + "up"),
               .down = weight(stem + "down")};
  };
  a.shapes[0][1].branches[0].mixer = Moe{.experts = 4,
                                         .experts_per_token = 2,
                                         .router = weight("b.{}.router"),
                                         .correction = "b.{}.offset",
                                         .expert = mlp("b.{}.experts.{expert}.", 6),
                                         .shared = mlp("b.{}.shared.", 10),
                                         .shared_gate = weight("b.{}.shared_gate")};
  return a;
}

}  // namespace placet
