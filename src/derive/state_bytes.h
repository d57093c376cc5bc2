// Bytes of the four states by the medium on which they rest, and amounts with a name.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "derive/layout.h"
#include "placement/placement.h"

namespace placet {

/// By state.
struct StateBytes {
  std::array<std::int64_t, 4> device{};
  std::array<std::int64_t, 4> host{};
  std::array<std::int64_t, 4> nvme{};

  std::int64_t off_device(State state) const {
    const auto s = static_cast<std::size_t>(state);
    return host[s] + nvme[s];
  }
  /// Throws std::overflow_error past 2^63.
  StateBytes& operator+=(const StateBytes& other);
  StateBytes& operator-=(const StateBytes& other);

  /// Of so many tensors. Throws std::overflow_error past 2^63.
  friend StateBytes operator*(StateBytes bytes, std::int64_t count);
};

/// The format in which the gradient of a parameter is added up and rests.
Dtype gradient_dtype(const Job& job, const LocalParameter& local);

/// Whether the optimizer keeps a master copy of the parameter.
bool has_master(const Job& job, const Parameter& parameter);

/// Bytes at rest of one parameter's states by medium, from its local sizes.
StateBytes state_bytes(const Job& job, const Parameter& parameter, const LocalParameter& local);

/// Bytes of elements of a parameter as they are gathered: in the format of the tensor itself with
/// the constants of its blocks, else in the job's format for gathers.
Bytes gathered_bytes(const Job& job, const Parameter& parameter, std::int64_t elements);

/// A part of what is alive, as reports call it.
struct NamedBytes {
  std::string_view what;
  std::int64_t bytes = 0;
};

}  // namespace placet
