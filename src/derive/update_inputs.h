// What the update of a parameter needs and its device does not hold: gradients and optimizer state
// that rest divided, or in host memory, while the update sees them whole, or runs on the device
// (docs/theory.md §3.5, §4.4).
#pragma once

#include <array>
#include <cstdint>

#include "derive/layout.h"
#include "derive/state_bytes.h"

namespace placet {

/// Axes over which the gradient is gathered: it was reduced to owners, and the optimizer state is
/// not divided along them, or only at rest.
AxisMask gradient_gather_axes(const LocalParameter& parameter);

/// Elements of the gradient after that gather: whole, or the part of Ω along other
/// axes. Case: 12 elements, scattered over 2 and over 3 devices, state divided over the 3: 4.
std::int64_t gathered_gradient(const Layout& layout, const LocalParameter& parameter);

/// Bytes of the optimizer state of one parameter, whole along the axes that divide it only at rest;
/// 0 where there are none.
std::int64_t gathered_state(const Layout& layout, const Parameter& declared,
                            const LocalParameter& parameter);

/// Elements of a matrix that axes tear and the optimizer sees whole; 0 where nothing is torn.
std::int64_t gathered_matrix(const Layout& layout, const Parameter& declared,
                             const LocalParameter& parameter);

/// The part of the update that runs on the host: where the optimizer state rests, unless it is told
/// to run on the device, or on the host although no state rests there.
Rational updated_on_host(const LocalParameter& parameter);

/// Elements of `elements` of which `part` crosses the host link.
std::int64_t elements_moved(std::int64_t elements, const Rational& part);

/// What is on the device beside the states at rest while parameters are updated, in bytes.
struct UpdateInputs {
  std::int64_t gradients_gathered = 0;
  std::int64_t gradients_copied = 0;  // from host memory
  std::int64_t state_gathered = 0;
  std::int64_t state_copied = 0;
  std::int64_t matrices = 0;

  std::int64_t total() const {
    return gradients_gathered + gradients_copied + state_gathered + state_copied + matrices;
  }
  UpdateInputs& operator+=(const UpdateInputs& other);
  UpdateInputs& operator-=(const UpdateInputs& other);
};

/// Its parts, named as terms.
std::array<NamedBytes, 5> named_parts(const UpdateInputs& inputs);

/// Of one parameter. What is gathered after it was copied in counts once, whole. Case: 8 elements,
/// bf16 gradients and 12 bytes of state each, both divided at rest over 4 devices and whole at the
/// update: 16 and 96 bytes.
UpdateInputs update_inputs(const Layout& layout, const Parameter& declared,
                           const LocalParameter& parameter);

}  // namespace placet
