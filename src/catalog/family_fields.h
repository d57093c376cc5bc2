// The fields of a family's facts and the words for them in data/families/*.json, once for all: a
// visitor is called with the name and the field of each. What a field means stands in decoder.h.
#pragma once

#include <array>
#include <string_view>

#include "catalog/decoder.h"

namespace placet {

/// The words of a choice, in the order of its enum.
constexpr std::array<std::string_view, 3> words_of(NormKind) { return {"none", "rms", "layer"}; }
constexpr std::array<std::string_view, 3> words_of(QkNorm::Span) {
  return {"per_head", "each_head", "full"};
}
constexpr std::array<std::string_view, 2> words_of(WeightOrder) { return {"out_in", "in_out"}; }
constexpr std::array<std::string_view, 3> words_of(MoeFacts::Storage) {
  return {"apart", "stacked", "bare"};
}
constexpr std::array<std::string_view, 3> words_of(MoeFacts::Shared) {
  return {"none", "counted", "sized"};
}
constexpr std::array<std::string_view, 4> words_of(MoeFacts::Layers) {
  return {"all", "after_dense", "stepped", "ranged"};
}
constexpr std::array<std::string_view, 3> words_of(DecoderFacts::Predictions) {
  return {"none", "modelled", "left_out"};
}

template <class Visitor>
void visit_fields(Visitor& v, NormFacts& f) {
  v("kind", f.kind);
  v("weight", f.weight);
  v("bias", f.bias);
}

template <class Visitor>
void visit_fields(Visitor& v, QkNormFacts& f) {
  v("on", f.on);
  v("span", f.span);
  v("query", f.query);
  v("key", f.key);
  v("norm", f.norm);
}

template <class Visitor>
void visit_fields(Visitor& v, WindowFacts& f) {
  v("size_key", f.size_key);
  v("on", f.on);
  v("size", f.size);
  v("period_key", f.period_key);
  v("period", f.period);
  v("first_key", f.first_key);
  v("unrotated_without", f.unrotated_without);
  v("unrotated_period", f.unrotated_period);
}

template <class Visitor>
void visit_fields(Visitor& v, SelectorFacts& f) {
  v("heads", f.heads);
  v("head_size", f.head_size);
  v("keys", f.keys);
}

template <class Visitor>
void visit_fields(Visitor& v, OtherAttentionFacts& f) {
  v("windowed", f.windowed);
  v("heads", f.heads);
  v("kv_heads", f.kv_heads);
  v("head_size", f.head_size);
  v("value_size", f.value_size);
}

template <class Visitor>
void visit_fields(Visitor& v, AttentionFacts& f) {
  v("prefix", f.prefix);
  v("query", f.query);
  v("key", f.key);
  v("value", f.value);
  v("output", f.output);
  v("fused", f.fused);
  v("bias", f.bias);
  v("output_bias", f.output_bias);
  v("heads", f.heads);
  v("kv_heads", f.kv_heads);
  v("head_size", f.head_size);
  v("rotary_fraction", f.rotary_fraction);
  v("qk_norm", f.qk_norm);
  v("window", f.window);
  v("caps_scores", f.caps_scores);
  v("sinks", f.sinks);
  v("sinks_windowed", f.sinks_windowed);
  v("sinks_full", f.sinks_full);
  v("value_size", f.value_size);
  v("other", f.other);
  v("latent", f.latent);
  v("selector", f.selector);
  v("gate", f.gate);
  v("gated", f.gated);
  v("gate_per_head", f.gate_per_head);
}

template <class Visitor>
void visit_fields(Visitor& v, MlpFacts& f) {
  v("prefix", f.prefix);
  v("gated", f.gated);
  v("gate", f.gate);
  v("up", f.up);
  v("down", f.down);
  v("fused", f.fused);
  v("bias", f.bias);
  v("width", f.width);
}

template <class Visitor>
void visit_fields(Visitor& v, MoeFacts& f) {
  v("prefix", f.prefix);
  v("router", f.router);
  v("router_bias", f.router_bias);
  v("correction", f.correction);
  v("storage", f.storage);
  v("order", f.order);
  v("expert", f.expert);
  v("shared", f.shared);
  v("shared_key", f.shared_key);
  v("shared_default", f.shared_fallback);
  v("shared_mlp", f.shared_mlp);
  v("shared_gate", f.shared_gate);
  v("layers", f.layers);
  v("dense_default", f.dense_fallback);
}

template <class Visitor>
void visit_fields(Visitor& v, DecoderFacts& f) {
  v("family", f.family);
  v("layer", f.layer);
  v("embedding", f.embedding);
  v("final_norm", f.final_norm);
  v("output", f.output);
  v("tied", f.tied);
  v("output_bias", f.output_bias);
  v("norm", f.norm);
  v("attention_norm", f.attention_norm);
  v("attention_norm_after", f.attention_norm_after);
  v("mlp_norm", f.mlp_norm);
  v("mlp_norm_after", f.mlp_norm_after);
  v("parallel", f.parallel);
  v("parallel_norm", f.parallel_norm);
  v("vocabulary", f.vocabulary);
  v("caps_logits", f.caps_logits);
  v("attention", f.attention);
  v("mlp", f.mlp);
  v("moe", f.moe);
  v("predictions", f.predictions);
  v("residual_dropout", f.residual_dropout);
  v("attention_dropout", f.attention_dropout);
}

}  // namespace placet
