// Models of which a part is frozen, for properties of jobs that train the rest.
#pragma once

#include <array>
#include <cstdint>

#include "model/model.h"

namespace placet::testing {

enum class FrozenPart : std::uint8_t {
  nothing,
  embedding,
  lower_blocks,     // the embedding and so many of the first blocks
  below_head,       // all but the head
  all_but_adapters  // adapters beside query and value projections are trained
};
inline constexpr std::array kFrozenParts = {FrozenPart::nothing, FrozenPart::embedding,
                                            FrozenPart::lower_blocks, FrozenPart::below_head,
                                            FrozenPart::all_but_adapters};

/// The model with a part of it frozen and kinds of units as derivations want them
/// (with_gradients_needed). `blocks`: of lower_blocks. Both uses of a tied tensor freeze together.
Model with_frozen_part(Model model, FrozenPart part, std::int64_t blocks);

}  // namespace placet::testing
