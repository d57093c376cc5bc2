#include "check/held.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "check/places.h"
#include "units/at.h"
#include "units/checked.h"

namespace placet {
namespace {

constexpr std::int64_t kMostPartsHeld = 65536;

/// A tensor of a buffer that a class begins with.
struct Holder {
  int family = 0;  // the first of those of that type
  int piece = 0;
  int device_class = 0;
  std::int64_t micro_batch = 0;
  friend auto operator<=>(const Holder&, const Holder&) = default;
};

/// Who holds what when a step begins.
class Holdings {
 public:
  explicit Holdings(const Program& program) : program_(program) {
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
    return coordinates_of(program_, program_.classes[at(one.device_class)], axis);
  }

  /// Coordinates of an axis that the same holders have, taken as one place.
  struct Places {
    std::int64_t count = 0;
    std::vector<std::vector<std::int64_t>> of;  // by holder
  };

  Places places_along(int axis, const std::vector<Holder>& holders) const {
    std::vector<std::vector<std::size_t>> there(at(program_.axes[at(axis)].degree));
    for (std::size_t h = 0; h < holders.size(); ++h) {
      for (const std::int64_t x : coordinates(holders[h], axis)) there[at(x)].push_back(h);
    }
    const std::set<std::vector<std::size_t>> alike(there.begin(), there.end());
    Places out{.count = 0, .of = std::vector<std::vector<std::int64_t>>(holders.size())};
    for (const std::vector<std::size_t>& own : alike) {
      for (const std::size_t h : own) out.of[h].push_back(out.count);
      ++out.count;
    }
    return out;
  }

  /// Whether every part has a holder: a part is a place along each axis that divides the tensor.
  /// No, where these are too many to be looked at.
  bool covers(const std::vector<Holder>& holders) const {
    std::vector<Places> along;
    std::int64_t parts = 1;
    for (const int axis : dividing(holders[0])) {
      parts = saturating_multiply(parts, along.emplace_back(places_along(axis, holders)).count);
    }
    if (parts > kMostPartsHeld) return false;
    std::vector<bool> held(at(parts), false);
    for (std::size_t h = 0; h < holders.size(); ++h) {
      for (const std::int64_t part : parts_of(h, along)) held[at(part)] = true;
    }
    return std::ranges::all_of(held, [](bool one) { return one; });
  }

  /// The parts that a holder has, row-major.
  static std::vector<std::int64_t> parts_of(std::size_t holder, const std::vector<Places>& along) {
    std::vector<std::int64_t> parts{0};
    for (const Places& places : along) {
      std::vector<std::int64_t> more;
      more.reserve(parts.size() * places.of[holder].size());
      for (const std::int64_t part : parts) {
        for (const std::int64_t x : places.of[holder]) more.push_back(part * places.count + x);
      }
      parts = std::move(more);
    }
    return parts;
  }

  const Program& program_;
  std::map<Key, std::set<Holder>> holders_;
  std::map<int, int> like_;  // by family
  std::map<std::vector<Holder>, bool> covers_;
};

}  // namespace

std::vector<StateRef> find_unheld(const Program& program) { return Holdings(program).missing(); }

}  // namespace placet
