#include "derive/update_inputs.h"

#include <utility>

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
  return own_part(layout, parameter, parameter.elements,
                  parameter.partial & parameter.owned & ~gathered);
}

std::int64_t gathered_state(const Layout& layout, const Parameter& declared,
                            const LocalParameter& parameter) {
  const Job& job = *layout.job;
  const bool gathers =
      parameter.regathered != 0 && degree_of(job.placement, parameter.regathered) > 1;
  if (!gathers) return 0;
  LocalParameter whole = parameter;
  whole.rest[1] = own_part(layout, parameter, parameter.elements, parameter.owned);
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
  const std::int64_t own = own_part(layout, parameter, parameter.elements, parameter.owned);
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

std::int64_t UpdateInputs::total() const {
  return gradients_gathered + gradients_copied + state_gathered + state_copied + matrices +
         own_gradients + sums + updated;
}

UpdateInputs& UpdateInputs::operator+=(const UpdateInputs& other) {
  for (const auto part : kUpdateParts) this->*part += other.*part;
  return *this;
}

UpdateInputs& UpdateInputs::operator-=(const UpdateInputs& other) {
  for (const auto part : kUpdateParts) this->*part -= other.*part;
  return *this;
}

std::array<NamedBytes, 8> named_parts(const UpdateInputs& inputs) {
  return {{{"gradients gathered for the update", inputs.gradients_gathered},
           {"gradients copied in for the update", inputs.gradients_copied},
           {"optimizer state gathered for the update", inputs.state_gathered},
           {"optimizer state copied in for the update", inputs.state_copied},
           {"matrices gathered for the update", inputs.matrices},
           {"reduced gradients of the device's own parts", inputs.own_gradients},
           {"gradients in the format of sums", inputs.sums},
           {"updated parameters on their way", inputs.updated}}};
}

namespace {

/// Updated parameters on their way to where they rest.
std::int64_t updated_parts(const Layout& layout, const Parameter& declared,
                           const LocalParameter& parameter) {
  const Job& job = *layout.job;
  if (parameter.materialized != 0) return 0;
  const auto part_of = [&](AxisMask axes) {
    return in_bytes(
        bytes_of(own_part(layout, parameter, parameter.elements, axes), job.precision.parameters));
  };
  const AxisMask rests = real_axes(job.placement, parameter.divided[0]);
  const AxisMask owned = real_axes(job.placement, parameter.owned);
  const bool sends = (owned & ~rests) != 0;
  const bool rests_on_host = parameter.on_host[0] == Rational(1);
  const bool updated_there = updated_on_host(parameter) == Rational(1);
  const bool master = has_master(job, declared);
  std::int64_t bytes = 0;
  if (sends && !(rests_on_host && updated_there)) bytes += part_of(owned);
  if (!sends && master && (rests & ~owned) != 0 && !updated_there) bytes += part_of(rests);
  if (rests_on_host && !updated_there && !master) bytes += part_of(rests);
  if (rests_on_host && !updated_there && sends) bytes += part_of(rests);
  return bytes;
}

}  // namespace

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

namespace {

/// Axes along which a gradient is still to be put together after backward, and of these those over
/// which it goes to its owners.
struct OpenAxes {
  AxisMask all = 0;
  AxisMask to_owner = 0;
};

OpenAxes open_axes(const Layout& layout, const LocalParameter& parameter) {
  OpenAxes out;
  out.all = real_axes(layout.job->placement, parameter.partial & ~parameter.scattered_each);
  out.to_owner = out.all & (parameter.owned | parameter.deferred);
  return out;
}

}  // namespace

std::int64_t summed_copy(const Layout& layout, const LocalParameter& parameter) {
  const Precision& precision = layout.job->precision;
  const bool apart = precision.reduce != precision.gradients;
  if (!apart || open_axes(layout, parameter).to_owner != 0) return 0;
  const AxisMask each = parameter.partial & parameter.scattered_each;
  return in_bytes(
      bytes_of(own_part(layout, parameter, parameter.elements, each), precision.reduce));
}

UpdateTimes& UpdateTimes::operator+=(const UpdateTimes& other) {
  reducing += other.reducing;
  reduced += other.reduced;
  gathered += other.gathered;
  taken += other.taken;
  left += other.left;
  updating += other.updating;
  return *this;
}

UpdateTimes& UpdateTimes::operator-=(const UpdateTimes& other) {
  reducing -= other.reducing;
  reduced -= other.reduced;
  gathered -= other.gathered;
  taken -= other.taken;
  left -= other.left;
  updating -= other.updating;
  return *this;
}

UpdateTimes update_times(const Layout& layout, const Parameter& declared,
                         const LocalParameter& parameter) {
  UpdateTimes out;
  if (!parameter.trainable) return out;
  const Job& job = *layout.job;
  const Precision& precision = job.precision;
  const auto part_of = [&](AxisMask axes, Dtype dtype) {
    return in_bytes(bytes_of(own_part(layout, parameter, parameter.elements, axes), dtype));
  };
  const UpdateInputs all = update_inputs(layout, declared, parameter);
  const AxisMask each = parameter.partial & parameter.scattered_each;
  const auto [open, to_owner] = open_axes(layout, parameter);
  const Rational updated = updated_on_host(parameter);
  if (parameter.on_host[2] > updated) {
    const std::int64_t rest = own_part(layout, parameter, parameter.elements, each);
    const std::int64_t copied = elements_moved(rest, parameter.on_host[2] - updated);
    (to_owner != 0 ? out.reducing : out.reduced).gradients_copied =
        in_bytes(bytes_of(copied, precision.gradients));
  }
  if (to_owner != 0) {
    out.reduced.own_gradients = part_of(each | to_owner, precision.reduce);
  } else if (precision.reduce != precision.gradients) {
    // Of a tensor that is complete but for heads that several devices hold, their rows.
    const std::int64_t heads = parameter.replicas > 1 ? parameter.replicated : 0;
    const std::int64_t summed =
        own_part(layout, parameter, open != 0 ? parameter.elements : heads, each);
    out.reducing.sums = in_bytes(bytes_of(summed, precision.reduce));
  }
  out.gathered.gradients_gathered = all.gradients_gathered;
  out.taken = all.gradients_gathered != 0 ? out.gathered : out.reduced;
  const bool leaves = updated == Rational(1) && parameter.on_host[2] == Rational(0);
  if (!leaves) out.left = out.taken;
  out.updating = {.state_gathered = all.state_gathered,
                  .state_copied = all.state_copied,
                  .matrices = all.matrices,
                  .updated = updated_parts(layout, declared, parameter)};
  return out;
}

}  // namespace placet
