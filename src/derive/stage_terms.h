// What belongs to a stage as a whole: traffic between stages, and the engine's own messages
// (docs/theory.md §4.4). Inside of communication.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "derive/derivation.h"
#include "derive/layout.h"
#include "derive/stages.h"

namespace placet {

/// Messages over a stage's boundaries per step: activations that leave it, and that come in; their
/// gradients, the other way, as far as something trained stands before the boundary.
struct Crossings {
  std::int64_t out = 0;
  std::int64_t in = 0;
  std::int64_t back = 0;      // gradients of what came in
  std::int64_t returned = 0;  // gradients of what left

  friend bool operator==(const Crossings&, const Crossings&) = default;
};
Crossings crossings_of(const Layout& layout, const Stage& stage);

/// Adds activations and gradients that cross the stage's boundaries, and the reduction of gradients
/// of tensors that several stages hold. Nothing where there is one stage.
void write_between_stages(const Layout& layout, const Stage& stage,
                          std::vector<CommunicationTerm>& terms);

/// Adds the messages of the profile whose conditions hold on the stage.
void write_engine_messages(const Layout& layout, const Stage& stage,
                           std::vector<CommunicationTerm>& terms);

}  // namespace placet
