#include "placement/placement.h"

#include <algorithm>
#include <ranges>
#include <span>

#include "units/checked.h"
#include "units/error.h"

namespace placet {
namespace {

// The table of meaningful modes, in its own order: bit i of a set is the i-th mode of the enum, and
// the first mode of a list is the default.
struct Allowed {
  std::array<Mode, 4> modes{};
  std::size_t count = 0;

  constexpr std::span<const Mode> list() const { return {modes.data(), count}; }
};

template <class... M>
constexpr Allowed allow(M... modes) {
  return {{modes...}, sizeof...(modes)};
}

constexpr Mode R = Mode::replicated;
constexpr Mode S = Mode::sharded;
constexpr Mode G = Mode::sharded_gather;
constexpr Mode M = Mode::materialized;
constexpr Mode O = Mode::offloaded;

// By cut, then by state: parameters, optimizer, gradients, activations.
constexpr std::array<std::array<Allowed, 4>, kCutCount> kMeaningful = {{
    {allow(R, G, M, O), allow(R, S, G, O), allow(R, S, M, O), allow(R, M, O)},  // batch
    {allow(S, O), allow(S, G, O), allow(S, M, O), allow(R, G, M, O)},           // tensor
    {allow(R, G, M, O), allow(R, S, G, O), allow(R, S, M, O), allow(S, M, O)},  // sequence
    {allow(S, O), allow(S, O), allow(S, M, O), allow(S, M, O)},                 // layer
    {allow(S, O), allow(S, O), allow(S, M, O), allow(R, M, O)},                 // expert
}};

std::span<const Mode> allowed_modes(Cut cut, State state) {
  return kMeaningful[static_cast<std::size_t>(cut)][static_cast<std::size_t>(state)].list();
}

/// What rests on the device: all of it, a part, or nothing.
constexpr int resting(Mode mode) {
  switch (mode) {
    case Mode::replicated:
      return 2;
    case Mode::sharded:
    case Mode::sharded_gather:
      return 1;
    case Mode::materialized:
    case Mode::offloaded:
      return 0;
  }
  return 0;
}

Mode nearest_mode(Cut cut, State state, Mode mode) {
  const std::span<const Mode> allowed = allowed_modes(cut, state);
  if (std::ranges::find(allowed, mode) != allowed.end()) return mode;
  const auto same =
      std::ranges::find_if(allowed, [&](Mode m) { return resting(m) == resting(mode); });
  return same != allowed.end() ? *same : allowed.front();
}

bool matches(const Selector& selector, ClassSet classes, std::optional<std::int64_t> block) {
  if (const auto* tensor_class = std::get_if<TensorClass>(&selector)) {
    return contains(classes, *tensor_class);
  }
  if (const auto* range = std::get_if<BlockRange>(&selector)) {
    return block.has_value() && range->first <= *block && *block <= range->last;
  }
  return false;
}

}  // namespace

std::string_view name_of(State state) {
  switch (state) {
    case State::parameters:
      return "parameters";
    case State::optimizer:
      return "optimizer";
    case State::gradients:
      return "gradients";
    case State::activations:
      return "activations";
  }
  fail_internally("every state has a name");
}

std::string_view symbol_of(Mode mode) {
  switch (mode) {
    case Mode::replicated:
      return "R";
    case Mode::sharded:
      return "S";
    case Mode::sharded_gather:
      return "S*";
    case Mode::materialized:
      return "M";
    case Mode::offloaded:
      return "O";
  }
  fail_internally("every mode has a symbol");
}

std::string_view name_of(Cut cut) {
  switch (cut) {
    case Cut::batch:
      return "batch";
    case Cut::tensor:
      return "tensor";
    case Cut::sequence:
      return "sequence";
    case Cut::layer:
      return "layer";
    case Cut::expert:
      return "expert";
  }
  fail_internally("every cut has a name");
}

std::int64_t devices_of(const Placement& placement) {
  std::int64_t devices = 1;
  for (const AxisPlacement& axis : placement.axes) {
    devices = checked_multiply(devices, axis.degree, "devices of the placement");
  }
  return devices;
}

const How& how_of(const AxisPlacement& axis, ClassSet classes, std::optional<std::int64_t> block) {
  for (const Override& last : axis.overrides | std::views::reverse) {
    if (matches(last.selector, classes, block)) return last.how;
  }
  return axis.how;
}

bool is_meaningful(Cut cut, State state, Mode mode) {
  const std::span<const Mode> allowed = allowed_modes(cut, state);
  return std::ranges::find(allowed, mode) != allowed.end();
}

Modes default_modes(Cut cut) {
  return {.parameters = allowed_modes(cut, State::parameters).front(),
          .optimizer = allowed_modes(cut, State::optimizer).front(),
          .gradients = allowed_modes(cut, State::gradients).front(),
          .activations = allowed_modes(cut, State::activations).front()};
}

Modes nearest_meaningful(Cut cut, const Modes& modes) {
  return {.parameters = nearest_mode(cut, State::parameters, modes.parameters),
          .optimizer = nearest_mode(cut, State::optimizer, modes.optimizer),
          .gradients = nearest_mode(cut, State::gradients, modes.gradients),
          .activations = nearest_mode(cut, State::activations, modes.activations)};
}

}  // namespace placet
