// The builders of a block's mixers. Used by build.cc only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

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

/// `input` is the position of a value [sample, token, hidden].
Mixed build_attention(UnitBuilder& unit, const Attention& attention, int input);
Mixed build_state_space(UnitBuilder& unit, const StateSpace& state, int input);
Mixed build_mlp(UnitBuilder& unit, const Mlp& mlp, int input);
Mixed build_moe(UnitBuilder& unit, const Moe& moe, int input);
Mixed build_projection(UnitBuilder& unit, const Projection& projection, int input);

}  // namespace placet
