// A model small enough to count by hand: hidden 8, 2 heads of 4, 1 kv head, a gated MLP of 16, a
// vocabulary of 10, no biases.
#pragma once

#include "model/architecture.h"
#include "model/build.h"
#include "profile/job.h"

namespace placet {

inline Architecture small_architecture(int blocks) {
  const Norm norm{.kind = NormKind::rms, .names = {.weight = "norm"}};
  Attention attention{.heads = 2, .kv_heads = 1, .head_size = 4, .value_head_size = 4};
  attention.query.weight = "q";
  attention.key.weight = "k";
  attention.value.weight = "v";
  attention.output.weight = "o";
  attention.rotary_size = 4;
  Mlp mlp{.width = 16, .gated = true};
  mlp.gate.weight = "gate";
  mlp.up.weight = "up";
  mlp.down.weight = "down";
  Branch first{.norm = norm};
  first.mixer = attention;
  Branch second{.norm = norm};
  second.mixer = mlp;
  Architecture out;
  out.name = "small";
  out.hidden = 8;
  out.embedding = {.vocabulary = 10, .width = 8, .tokens = "embed"};
  out.shapes = {{Sublayer{.branches = {first}}, Sublayer{.branches = {second}}}};
  out.order.assign(static_cast<std::size_t>(blocks), 0);
  out.head.norm = norm;
  out.head.output.weight = "lm_head";
  return out;
}

/// An axis with one cut and one tuple of modes.
inline AxisPlacement axis(const char* name, std::int64_t degree, Cut cut, Modes modes = {}) {
  AxisPlacement out;
  out.axis = AxisName(name);
  out.degree = degree;
  out.how.cut = cut;
  out.how.modes = modes;
  return out;
}

inline constexpr Modes kOptimizerSharded{.optimizer = Mode::sharded};
inline constexpr Modes kGradientsToo{.optimizer = Mode::sharded, .gradients = Mode::sharded};
inline constexpr Modes kAllSharded{
    .parameters = Mode::sharded_gather, .optimizer = Mode::sharded, .gradients = Mode::sharded};
inline constexpr Modes kTensorWhole{
    .parameters = Mode::sharded, .optimizer = Mode::sharded, .gradients = Mode::sharded};
inline constexpr Modes kTensorSplit{.parameters = Mode::sharded,
                                    .optimizer = Mode::sharded,
                                    .gradients = Mode::sharded,
                                    .activations = Mode::sharded_gather};
inline constexpr Modes kStages{.parameters = Mode::sharded,
                               .optimizer = Mode::sharded,
                               .gradients = Mode::sharded,
                               .activations = Mode::sharded};

/// A job of the plain theory: bf16 mixed precision, Adam, `sequence` tokens, one sample a
/// micro-batch.
inline Job plain_job(Model model, std::vector<AxisPlacement> axes, std::int64_t sequence,
                     std::int64_t global) {
  Job job;
  job.model = std::move(model);
  job.placement.axes = std::move(axes);
  job.attention.resize(job.placement.axes.size());
  job.batch = {.sequence = sequence, .global = global, .micro = 1};
  job.optimizer.states = {{.what = "first moment"}, {.what = "second moment"}};
  job.profile.saved = plain_saved_table();
  return job;
}

}  // namespace placet
