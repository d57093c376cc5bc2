// Which recurrence and which nonlinearities a recurrent mixer has, as its model's code fixes them.
// Costs do not depend on them; what a step computes on real numbers does (docs/theory.md §6.11).
#pragma once

#include <cstdint>
#include <string_view>

namespace placet {

/// How the channels of a recurrent mixer depend on the tokens before.
enum class Recurrence : std::uint8_t {
  selective_scan,      // Mamba: decays per channel and entry of its state (arXiv 2312.00752)
  head_scan,           // Mamba-2: one decay per head (arXiv 2405.21060)
  delta_rule,          // gated delta nets: a decay and a strength per head (arXiv 2412.06464)
  channel_delta_rule,  // Kimi delta attention: decays per key channel (arXiv 2510.26692)
  linear_attention,    // lightning attention: fixed decays per head (arXiv 2501.08313)
  input_gate           // none: what enters the convolution is multiplied by another stream (LFM2)
};
/// The name of the function in a step program: "selective_scan".
std::string_view name_of(Recurrence recurrence);

/// What entries of a stream go through.
enum class Nonlinearity : std::uint8_t {
  act,      // the model's activation
  silu,     // x sigmoid(x)
  sigmoid,  // 1 / (1 + exp(-x))
  none
};
/// The name of the function in a step program; that of none gives what it is given.
std::string_view name_of(Nonlinearity nonlinearity);

}  // namespace placet
