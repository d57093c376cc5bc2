#include "validate/run_model.h"

namespace placet {

PlainDecoder decoder_of(const RunShape& shape) {
  return {.name = "run",
          .layers = shape.layers,
          .hidden = shape.hidden,
          .heads = shape.heads,
          .kv_heads = shape.kv_heads,
          .head_size = shape.head_size,
          .ffn = shape.ffn,
          .mlp_type = shape.mlp_type,
          .vocabulary = shape.vocabulary,
          .tied = shape.tied,
          .positions = shape.positions,
          .experts = shape.experts,
          .experts_per_token = shape.experts_per_token,
          .expert_width = shape.expert_width,
          .shared_experts = shape.shared_experts,
          .dense_blocks = shape.dense_blocks,
          .sequence = shape.sequence,
          .dropout = shape.dropout};
}

}  // namespace placet
