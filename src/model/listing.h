// What `placet model` prints: every tensor as a checkpoint would list it, and FLOPs per token.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/model.h"
#include "units/quantity.h"

namespace placet {

/// A group of equal tensors, as in a checkpoint.
struct TensorEntry {
  std::string name;                 // "{}" for the block, "{expert}", "{head}"
  std::vector<std::int64_t> shape;  // of one of them; what is kept apart has no dim for it
  std::optional<Dtype> dtype;       // none: the job's parameter format
  std::string tensor_class;         // the most special one: "experts", "norms", ...; "" if none
  bool trainable = true;
  bool shared = false;     // a further use of a tensor listed before; not counted again
  std::int64_t count = 0;  // tensors of this shape: blocks x experts or heads kept apart

  friend bool operator==(const TensorEntry&, const TensorEntry&) = default;
};

/// All tensors, kinds in order, parameters in order of use. The products of shapes and counts of
/// the entries that are not shared add up to count_parameters(model).total.
std::vector<TensorEntry> list_tensors(const Model& model);

/// What of a model is trained.
struct TrainedPart {
  std::int64_t trained = 0;  // parameters, each shared tensor once
  std::int64_t total = 0;
  /// Modules that own a trained tensor, "*" for the block, expert or head, each once, in order of
  /// use: "model.layers.*.self_attn.q_proj", also where it is its adapters that are trained.
  std::vector<std::string> modules;

  double share() const;
  friend bool operator==(const TrainedPart&, const TrainedPart&) = default;
};

TrainedPart trained_part(const Model& model);

struct FlopsPerToken {
  Flops forward;
  Flops training;

  friend bool operator==(const FlopsPerToken&, const FlopsPerToken&) = default;
};

/// Model FLOPs of one token in a sequence of `sequence` tokens, the usual convention:
///   forward  = 2 N + 4 s w
///   training = forward + 2 N' + 8 s w' + 2 T
/// N = active parameters without the embedding (ParameterCounts), T those that are trained, w = the
/// sum over blocks of heads x head size (ModelFigures::attention_width), s = sequence; N' and w'
/// are those of the units from the first with a trained tensor on: backward goes no further. Where
/// everything is trained this is 6 N + 12 s w. Attention is not halved for causality (Narayanan et
/// al., arXiv:2104.04473, equation 3, per token; PaLM, arXiv:2204.02311, appendix B). Case: N = 10,
/// w = 2, s = 3 gives 20 + 24 = 44 forward and 60 + 72 = 132 for training; with adapters of 1
/// beside 10 frozen in all units, 22 + 24 + 22 + 48 + 2 = 118. Windows and recurrences are not
/// discounted. sequence = 0 leaves attention out.
FlopsPerToken flops_per_token(const Model& model, std::int64_t sequence);

}  // namespace placet
