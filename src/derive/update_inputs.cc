#include "derive/update_inputs.h"

#include "derive/state_bytes.h"
#include "units/checked.h"
#include "units/shares.h"

namespace placet {

AxisMask gradient_gather_axes(const LocalParameter& parameter) {
  const AxisMask reduced = parameter.scattered_each | parameter.deferred;
  return parameter.partial & reduced & (parameter.regathered | ~parameter.owned);
}

std::int64_t gathered_gradient(const Layout& layout, const LocalParameter& parameter) {
  const AxisMask gathered = gradient_gather_axes(parameter);
  return own_part(layout, parameter.elements, parameter.partial & parameter.owned & ~gathered);
}

std::int64_t gathered_state(const Layout& layout, const Parameter& declared,
                            const LocalParameter& parameter) {
  const Job& job = *layout.job;
  const bool gathers =
      parameter.regathered != 0 && degree_of(job.placement, parameter.regathered) > 1;
  if (!gathers) return 0;
  LocalParameter whole = parameter;
  whole.rest[1] = own_part(layout, parameter.elements, parameter.owned);
  whole.on_host = {};
  return state_bytes(job, declared, whole).device[1];
}

std::int64_t gathered_matrix(const Layout& layout, const Parameter& declared,
                             const LocalParameter& parameter) {
  const Job& job = *layout.job;
  const bool whole = region_of(job.optimizer, declared) == UpdateRegion::matrix;
  if (!whole || declared.dims.size() < 2) return 0;
  const std::int64_t torn = degree_of(job.placement, parameter.cut_rows | parameter.cut_columns);
  if (torn == 1) return 0;
  const std::int64_t own = own_part(layout, parameter.elements, parameter.owned);
  return checked_multiply(own, torn, "matrices for the update");
}

Rational updated_on_host(const LocalParameter& parameter) {
  const Rational offloaded = parameter.on_host[static_cast<std::size_t>(State::optimizer)];
  if (!parameter.update) return offloaded;
  if (*parameter.update == Medium::device) return Rational(0);
  return offloaded == Rational(0) ? Rational(1) : offloaded;
}

std::int64_t elements_moved(std::int64_t elements, const Rational& part) {
  return in_bytes(part_rounded_up(bytes(elements), part));
}

UpdateInputs& UpdateInputs::operator+=(const UpdateInputs& other) {
  gradients_gathered += other.gradients_gathered;
  gradients_copied += other.gradients_copied;
  state_gathered += other.state_gathered;
  state_copied += other.state_copied;
  matrices += other.matrices;
  return *this;
}

UpdateInputs& UpdateInputs::operator-=(const UpdateInputs& other) {
  gradients_gathered -= other.gradients_gathered;
  gradients_copied -= other.gradients_copied;
  state_gathered -= other.state_gathered;
  state_copied -= other.state_copied;
  matrices -= other.matrices;
  return *this;
}

std::array<NamedBytes, 5> named_parts(const UpdateInputs& inputs) {
  return {{{"gradients gathered for the update", inputs.gradients_gathered},
           {"gradients copied in for the update", inputs.gradients_copied},
           {"optimizer state gathered for the update", inputs.state_gathered},
           {"optimizer state copied in for the update", inputs.state_copied},
           {"matrices gathered for the update", inputs.matrices}}};
}

UpdateInputs update_inputs(const Layout& layout, const Parameter& declared,
                           const LocalParameter& parameter) {
  UpdateInputs out;
  if (!parameter.trainable) return out;
  const Job& job = *layout.job;
  const Rational updated = updated_on_host(parameter);
  const auto gradient_bytes = [&](std::int64_t elements) {
    return in_bytes(bytes_of(elements, job.precision.gradients));
  };
  const AxisMask gathered = gradient_gather_axes(parameter);
  if (gathered != 0 && degree_of(job.placement, gathered) > 1) {
    out.gradients_gathered = gradient_bytes(gathered_gradient(layout, parameter));
  } else if (parameter.on_host[2] > updated) {
    const Rational comes_back = parameter.on_host[2] - updated;
    out.gradients_copied = gradient_bytes(elements_moved(parameter.rest[2], comes_back));
  }
  out.state_gathered = gathered_state(layout, declared, parameter);
  const bool copies = parameter.on_host[1] != Rational(0) && updated == Rational(0);
  if (out.state_gathered == 0 && copies) {
    out.state_copied = state_bytes(job, declared, parameter).off_device(State::optimizer);
  }
  out.matrices = gradient_bytes(gathered_matrix(layout, declared, parameter));
  return out;
}

}  // namespace placet
