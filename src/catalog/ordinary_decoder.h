// A decoder of a given number of parameters, where only the number is known: "decoder=7B". Its
// shape follows from a rule in a data file (docs/formats.md, section 4), so that what depends on
// shapes (activations, attention, tensor cuts, time) can be asked before a model is designed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "catalog/catalog.h"
#include "model/model.h"

namespace placet {

/// The rule: of the numbers of blocks in steps, the one whose MLP comes nearest to `ffn_per_hidden`
/// times hidden when it is as wide as the wanted number of parameters asks for.
struct DecoderRule {
  std::int64_t head_size = 128;
  std::int64_t hidden_per_block = 128;
  std::int64_t step = 2;           // of blocks
  std::int64_t grouped_from = 24;  // blocks: from here on
  std::int64_t grouped_step = 8;   // of blocks
  std::int64_t grouped_kv_heads = 8;
  std::int64_t ffn_per_hidden = 3;
  std::int64_t ffn_step = 64;
  std::int64_t vocabulary = 32000;
};

struct DecoderShape {
  std::int64_t blocks = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t ffn = 0;
  std::int64_t parameters = 0;

  friend bool operator==(const DecoderShape&, const DecoderShape&) = default;
};

/// The shape nearest to so many parameters; none where no shape comes within 1 %. Case:
/// 7e9 with 32,000 tokens: 32 blocks of 4096, where attention has 2 x 4096^2 + 2 x 4096 x 1024 and
/// embedding and head 2 x 32000 x 4096, leave 13,726 columns to the MLP: 13,696 in steps of 64.
std::optional<DecoderShape> decoder_shape(const DecoderRule& rule, std::int64_t parameters);

/// The model that `word` ("decoder=7B", "decoder=7e9") means, with a note of what was built; none
/// if the word is not of that form. Throws InputError for a size that no such decoder has.
std::optional<Model> ordinary_decoder(const Catalog& catalog, std::string_view word);

}  // namespace placet
