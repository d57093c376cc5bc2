// Changes to what is trained: frozen tensors, low-rank adapters, quantized frozen bases.
//
// A pattern with * and ? is compared with a parameter's whole checkpoint name, with each of its
// dotted parts, and with the names of the operators that use it: "q_proj", "attention.*" and
// "model.layers.{}.mlp.*" all work.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace placet {

/// Whether `text` is matched as a whole by `pattern`: * any number of characters, ? one.
bool matches_pattern(std::string_view pattern, std::string_view text);

/// The model with every parameter that matches a pattern frozen. Both uses of a shared tensor
/// freeze together. Throws InputError for a pattern that matches nothing.
Model with_frozen(Model model, std::span<const std::string> patterns);

/// What with_lora adds.
struct Adapters {
  std::int64_t rank = 0;
  std::vector<std::string> patterns = {};  // of the weights that get them
  bool all_linear = false;                 // instead: linear operators of blocks, as PEFT has it
  bool drops = false;                      // dropout before A
};

/// Low-rank adapters (LoRA, arXiv 2106.09685, section 4): beside each linear operator y = W x that
/// matches, y = W x + B (A x) with A [rank, in] and B [out, rank]; experts get one pair each.
/// Everything else is frozen. Both new operators and the sum stand in the region of W, so where a
/// cut divides the rows of W, B is cut, A is whole and A's gradient is partial; where it divides
/// the columns, A is cut, B is whole and B's gradient is partial.
/// Without patterns: the query and value projections of attention (section 4.2 there), or the fused
/// tensor that holds them. Routers and tied output matrices get none. With all_linear: every linear
/// operator but the output matrix; experts, which are one tensor of all, get none
/// (huggingface/peft 0.21.2 src/peft/tuners/tuners_utils.py, _maybe_include_all_linear_layers).
/// With drops, A takes its input with some entries set to zero, by a mask of its own.
/// Throws InputError if rank < 1, if it is not below the smaller side of a matched weight, or for a
/// pattern that matches no linear operator.
/// Case: W [6, 4], rank 2 adds 2 x 4 + 6 x 2 = 20 trainable parameters.
Model with_lora(Model model, const Adapters& adapters);

/// The model whose frozen weights of linear operators inside blocks are stored as `dtype` (QLoRA,
/// arXiv 2305.14314: nf4); embedding, norms, biases and head keep the job's format.
Model with_frozen_format(Model model, Dtype dtype);

}  // namespace placet
