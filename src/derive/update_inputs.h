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
  // Where parts stand apart from the whole (Profile::parts_stand_apart):
  std::int64_t own_gradients = 0;  // what reductions leave to owners, until the update
  std::int64_t sums = 0;           // gradients in the format of sums, while they are reduced
  std::int64_t updated = 0;        // updated parameters on their way to where they rest

  std::int64_t total() const;
  UpdateInputs& operator+=(const UpdateInputs& other);
  UpdateInputs& operator-=(const UpdateInputs& other);
};

/// Its parts, one by one.
inline constexpr std::array kUpdateParts = {&UpdateInputs::gradients_gathered,
                                            &UpdateInputs::gradients_copied,
                                            &UpdateInputs::state_gathered,
                                            &UpdateInputs::state_copied,
                                            &UpdateInputs::matrices,
                                            &UpdateInputs::own_gradients,
                                            &UpdateInputs::sums,
                                            &UpdateInputs::updated};

/// The same, named as terms.
std::array<NamedBytes, 8> named_parts(const UpdateInputs& inputs);

/// The same by when it is there, where parts stand apart from the whole. Gradients of all units are
/// reduced, unit by unit, before the first is updated.
struct UpdateTimes {
  UpdateInputs reducing;  // while the unit's gradients are reduced
  UpdateInputs reduced;   // from then on, until `taken` takes its place
  UpdateInputs gathered;  // of `taken`, what was gathered from `reduced`
  UpdateInputs taken;     // gradients as the update takes them
  UpdateInputs left;      // of these, what is still there once the host has its gradients
  UpdateInputs updating;  // while the unit is updated

  UpdateTimes& operator+=(const UpdateTimes& other);
  UpdateTimes& operator-=(const UpdateTimes& other);
};
UpdateTimes update_times(const Layout& layout, const Parameter& declared,
                         const LocalParameter& parameter);

/// The copy in which a gradient is summed that rests in another format, where no part of its own is
/// left of it by then; in bytes. Case: 6 elements, gradients in bf16, sums in fp32: 24.
std::int64_t summed_copy(const Layout& layout, const LocalParameter& parameter);

/// Of one parameter. What is gathered after it was copied in counts once, whole. Case: 8 elements,
/// bf16 gradients and 12 bytes of state each, both divided at rest over 4 devices and whole at the
/// update: 16 and 96 bytes.
UpdateInputs update_inputs(const Layout& layout, const Parameter& declared,
                           const LocalParameter& parameter);

}  // namespace placet
