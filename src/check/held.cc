#include "check/held.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "units/at.h"
#include "units/checked.h"

namespace placet {
namespace {

constexpr std::int64_t kMostPlaces = 65536;

/// A tensor of a buffer that a class begins with.
struct Holder {
  int family = 0;  // the first of those of that type
  int piece = 0;
  int device_class = 0;
  std::int64_t micro_batch = 0;
  friend auto operator<=>(const Holder&, const Holder&) = default;
};

class Held {
 public:
  explicit Held(const Program& program) : program_(program) {
    for (int c = 0; c < static_cast<int>(program.classes.size()); ++c) {
      for (const Initial& initial : program.classes[at(c)].initial) note(c, initial);
    }
  }

  std::vector<StateRef> missing() {
    std::vector<StateRef> out;
    const Reference& reference = program_.reference;
    for (int u = 0; u < static_cast<int>(reference.units.size()); ++u) {
      const ReferenceKind& kind = reference.kinds[at(reference.units[at(u)].kind)];
      for (int p = 0; p < static_cast<int>(kind.parameters.size()); ++p) {
        const ReferenceParameter& own = kind.parameters[at(p)];
        if (own.trainable && !own.tied) add_missing(u, p, own, out);
      }
    }
    return out;
  }

 private:
  using Key = std::tuple<int, int, int>;  // unit, parameter, state or -1

  void add_missing(int unit, int parameter, const ReferenceParameter& own,
                   std::vector<StateRef>& out) {
    const auto states = static_cast<int>(program_.reference.rules[at(own.rule)].states.size());
    for (int s = -1; s < states; ++s) {
      if (is_held({unit, parameter, s})) continue;
      out.push_back({.kind = s < 0 ? StateRef::Kind::parameter : StateRef::Kind::state,
                     .unit = unit,
                     .tensor = parameter,
                     .state = std::max(s, 0)});
    }
  }

  void note(int c, const Initial& initial) {
    const int family = first_like(initial.buffer.family);
    for (int p = 0; p < static_cast<int>(initial.pieces.size()); ++p) {
      const StateRef& ref = initial.pieces[at(p)];
      const bool is_state = ref.kind == StateRef::Kind::state;
      if (!is_state && ref.kind != StateRef::Kind::parameter) continue;
      holders_[{ref.unit, ref.tensor, is_state ? ref.state : -1}].insert(
          {family, p, c, initial.buffer.micro_batch.offset});
    }
  }

  /// The first family whose buffers have the type of this one.
  int first_like(int family) {
    const auto [known, fresh] = like_.try_emplace(family, family);
    if (!fresh) return known->second;
    const BufferType& type = program_.families[at(family)].type;
    for (const auto& [other, first] : like_) {
      if (program_.families[at(other)].type == type) return known->second = first;
    }
    return family;
  }

  /// Whether the holders by buffers of one type have all of it.
  bool is_held(const Key& key) {
    const auto found = holders_.find(key);
    if (found == holders_.end()) return false;
    std::map<std::pair<int, int>, std::vector<Holder>> alike;
    for (const Holder& h : found->second) alike[{h.family, h.piece}].push_back(h);
    return std::ranges::any_of(alike, [&](const auto& one) {
      const auto [known, fresh] = covers_.try_emplace(one.second, false);
      if (fresh) known->second = covers(one.second);
      return known->second;
    });
  }

  /// Axes that divide a tensor of a family.
  AxisList dividing(const Holder& one) const {
    const BufferType& type = program_.families[at(one.family)].type;
    std::set<int> axes(type.flat.begin(), type.flat.end());
    for (const DividedDim& dim : type.pieces[at(one.piece)].dims) {
      for (const AxisList& level : dim.by) axes.insert(level.begin(), level.end());
    }
    std::erase_if(axes, [&](int a) { return program_.axes[at(a)].degree == 1; });
    return {axes.begin(), axes.end()};
  }

  std::vector<std::int64_t> coordinates(const Holder& one, int axis) const {
    if (at(axis) + 1 == program_.axes.size()) return {one.micro_batch};
    const auto& box = program_.classes[at(one.device_class)].box;
    if (at(axis) < box.size() && !box[at(axis)].empty()) return box[at(axis)];
    std::vector<std::int64_t> all(at(static_cast<int>(program_.axes[at(axis)].degree)));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  bool covers(const std::vector<Holder>& holders) const {
    const AxisList axes = dividing(holders[0]);
    std::int64_t places = 1;
    for (int axis : axes) places = saturating_multiply(places, program_.axes[at(axis)].degree);
    if (places <= kMostPlaces) return stand_everywhere(axes, places, holders);
    return std::ranges::all_of(axes, [&](int axis) {
      return stand_everywhere({axis}, program_.axes[at(axis)].degree, holders);
    });
  }

  bool stand_everywhere(const AxisList& axes, std::int64_t places,
                        const std::vector<Holder>& holders) const {
    std::vector<bool> seen(static_cast<std::size_t>(places), false);
    for (const Holder& one : holders) {
      std::vector<std::int64_t> own{0};
      for (int axis : axes) {
        own = spread(own, program_.axes[at(axis)].degree, coordinates(one, axis));
      }
      for (const std::int64_t place : own) seen[static_cast<std::size_t>(place)] = true;
    }
    return std::ranges::all_of(seen, [](bool one) { return one; });
  }

  /// Places along one axis more, row-major.
  static std::vector<std::int64_t> spread(const std::vector<std::int64_t>& places,
                                          std::int64_t degree,
                                          const std::vector<std::int64_t>& coordinates) {
    std::vector<std::int64_t> out;
    out.reserve(places.size() * coordinates.size());
    for (std::int64_t place : places) {
      for (std::int64_t x : coordinates) out.push_back(place * degree + x);
    }
    return out;
  }

  const Program& program_;
  std::map<Key, std::set<Holder>> holders_;
  std::map<int, int> like_;  // by family
  std::map<std::vector<Holder>, bool> covers_;
};

}  // namespace

std::vector<StateRef> find_unheld(const Program& program) { return Held(program).missing(); }

}  // namespace placet
