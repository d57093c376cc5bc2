#include "check/masks.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "check/places.h"
#include "program/known_functions.h"
#include "program/walk.h"
#include "units/at.h"

namespace placet {
namespace {

/// More classes take longer than what is learned is worth.
constexpr std::size_t kMostClasses = 64;

/// exp_dot and exp_seen, and with a window exp_dot.W; not their derivatives, of which nothing is
/// known.
bool is_causal(const Statement& s) {
  const FunctionName name = function_name(s.function);
  if (name.derivative >= 0 || s.positions.size() != 2) return false;
  return (name.stem == "exp_dot" && s.operands.size() >= 2) ||
         (name.stem == "exp_seen" && !s.operands.empty());
}

/// The axes of the mesh that divide what causal kernels say of where they are.
std::set<int> axes_of_masks(const Program& program) {
  std::set<int> axes;
  const int mesh = static_cast<int>(program.axes.size()) - 1;
  const auto note = [&](const Instruction& i) {
    if (!calls_kernel(i.kind) || !is_causal(program.kernels[at(i.kernel)])) return;
    for (const Position& p : i.positions) {
      for (const AxisList& level : p.by) axes.insert(level.begin(), level.end());
    }
  };
  for (const DeviceClass& c : program.classes) {
    for_each_written_instruction(program, c.body, note);
  }
  std::erase_if(axes, [&](int a) { return a >= mesh || program.axes[at(a)].degree == 1; });
  return axes;
}

/// Whether a statement takes one of two positions for anything but to compare them.
bool uses_otherwise(const Statement& s, const CausalDims& pair) {
  const auto takes = [&](int d) { return std::ranges::find(s.positions, d) != s.positions.end(); };
  if (!takes(pair.first) && !takes(pair.second)) return false;
  return !is_causal(s) || s.positions[0] != pair.first || s.positions[1] != pair.second;
}

/// Classes of one coordinate along an axis; none: there are too many.
std::vector<DeviceClass> taken_apart(const Program& program, int axis) {
  std::vector<DeviceClass> parts;
  for (const DeviceClass& whole : program.classes) {
    for (const std::int64_t coordinate : coordinates_of(program, whole, axis)) {
      if (parts.size() == kMostClasses) return {};
      parts.push_back(whole);
      parts.back().box[at(axis)] = {coordinate};
    }
  }
  return parts;
}

std::optional<std::size_t> place_of(const std::vector<int>& dims, int d) {
  const auto found = std::ranges::find(dims, d);
  if (found == dims.end()) return std::nullopt;
  return static_cast<std::size_t>(found - dims.begin());
}

/// Dims between which all that is added up is zero; none: between none.
std::optional<CausalDims> causal_dims(const Statement& s,
                                      const std::vector<std::optional<CausalPlaces>>& places) {
  if (is_causal(s)) return CausalDims{s.positions[0], s.positions[1]};
  if (s.products.empty()) return std::nullopt;
  const std::optional<CausalDims> first = causal_dims(s.products[0], places);
  const bool alike = std::ranges::all_of(
      s.products, [&](const Product& p) { return causal_dims(p, places) == first; });
  return alike ? first : std::nullopt;
}

}  // namespace

std::vector<std::optional<CausalPlaces>> causal_places(const Kernel& kernel) {
  std::vector<std::optional<CausalPlaces>> places(kernel.tensors.size());
  for (const Statement& s : kernel.statements) {
    const std::optional<CausalDims> dims = causal_dims(s, places);
    if (!dims) continue;
    const auto query = place_of(s.result.dims, dims->first);
    const auto key = place_of(s.result.dims, dims->second);
    if (query && key) places[at(s.result.tensor)] = {.query = *query, .key = *key};
  }
  return places;
}

std::optional<CausalDims> causal_dims(const Product& product,
                                      const std::vector<std::optional<CausalPlaces>>& places) {
  for (const Operand& o : product.operands) {
    const std::optional<CausalPlaces>& own = places[at(o.tensor)];
    if (own) return CausalDims{o.dims[own->query], o.dims[own->key]};
  }
  return std::nullopt;
}

bool is_causal(const Kernel& kernel) {
  return std::ranges::any_of(kernel.statements, [](const Statement& s) { return is_causal(s); });
}

std::vector<CausalDims> compared_positions(const Kernel& kernel) {
  std::vector<CausalDims> pairs;
  for (const Statement& s : kernel.statements) {
    if (is_causal(s)) pairs.emplace_back(s.positions[0], s.positions[1]);
  }
  std::erase_if(pairs, [&](const CausalDims& pair) {
    return std::ranges::any_of(kernel.statements,
                               [&](const Statement& s) { return uses_otherwise(s, pair); });
  });
  return pairs;
}

std::optional<Program> with_masks_apart(const Program& program) {
  const std::set<int> axes = axes_of_masks(program);
  if (axes.empty()) return std::nullopt;
  Program out = program;
  for (const int axis : axes) {
    out.classes = taken_apart(out, axis);
    if (out.classes.empty()) return std::nullopt;
  }
  return out;
}

}  // namespace placet
