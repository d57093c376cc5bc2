// A decoder that sizes alone describe: what a table of runs says of a model, and a model file of
// `"model_type": "plain_decoder"` (docs/formats.md, section 4).
#pragma once

#include <cstdint>
#include <string>

#include "catalog/config_object.h"
#include "model/architecture.h"

namespace placet {

/// Sizes of the transformer. The names are those of the columns of tables of runs.
struct PlainDecoder {
  std::string name = "plain decoder";
  std::int64_t layers = 1;
  std::int64_t hidden = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_size = 1;
  std::int64_t ffn = 0;
  std::string mlp_type;  // swiglu, geglu, gelu, relu, relu2
  std::int64_t vocabulary = 1;
  bool tied = false;
  std::string positions;     // learned, rope, alibi
  std::int64_t experts = 0;  // routed; 0: dense
  std::int64_t experts_per_token = 0;
  std::int64_t expert_width = 0;
  std::int64_t shared_experts = 0;
  std::int64_t dense_blocks = 0;  // leading blocks without experts
  std::int64_t sequence = 1;      // rows of learned positions
  double dropout = 0;

  friend auto operator<=>(const PlainDecoder&, const PlainDecoder&) = default;
};

/// A decoder of equal blocks (but for leading dense ones before experts), attention then MLP. What
/// sizes do not say follows the two common layouts: with a gated MLP, RMS norms and no
/// biases (arXiv 2302.13971, section 2.2); otherwise layer norms and biases everywhere, and one
/// fused tensor for queries, keys and values (GPT-2, Radford et al. 2019, section 2.3). Throws
/// InputError that speaks of `where` and the column for a word that is not known.
Architecture architecture_of(const PlainDecoder& shape, const std::string& where);

/// The decoder of a model file, and the file of a decoder: one reads what the other prints.
Architecture read_plain_decoder(ConfigObject& config);
std::string print_plain_decoder(const PlainDecoder& shape);

}  // namespace placet
