// The builders of a block's mixers. Used by build.cc only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/unit_builder.h"

namespace placet {

/// What a mixer returns: a value of the hidden size, in the parallel region if it is partial where
/// a cut divides the last contraction, and the bias that must be added once it is whole.
struct Mixed {
  int value = 0;
  std::optional<std::pair<OperatorPlace, Contraction>> bias;
};

/// Of an operator inside the mixer of tokens, between its first and its last contraction.
inline OperatorPlace token_mixer(std::string name) {
  return {.name = std::move(name),
          .region = Region::parallel,
          .module = Module::attention,
          .classes = bit_of(TensorClass::attention)};
}

/// Several residual streams and the one that was made of them.
struct MixedStreams {
  int streams = 0;
  int read = 0;
  std::vector<int> coefficients;  // none or one
};

Dim streams_dim(const Architecture& architecture);
/// The streams that blocks pass on, from the embedding's result.
int open_streams(UnitBuilder& unit, const Architecture& architecture, int stream);
MixedStreams read_streams(UnitBuilder& unit, const StreamMixing& mixing, const std::string& prefix,
                          int streams, const Dim& hidden);
int return_to_streams(UnitBuilder& unit, const StreamMixing& mixing, const std::string& prefix,
                      const MixedStreams& mixed, int result);
/// The second table of tokens; its rows ride on with the stream.
int join_block_inputs(UnitBuilder& unit, const BlockInputs& inputs, int ids, int stream);

/// `input` is the position of a value [sample, token, hidden].
Mixed build_attention(UnitBuilder& unit, const Attention& attention, int input);
Mixed build_state_space(UnitBuilder& unit, const StateSpace& state, int input);
Mixed build_mlp(UnitBuilder& unit, const Mlp& mlp, int input);
/// `stream` is what the router reads where it does not read the input.
Mixed build_moe(UnitBuilder& unit, const Moe& moe, int input, int stream);
Mixed build_projection(UnitBuilder& unit, const Projection& projection, int input);

}  // namespace placet
