#include "check/held.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
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

  std::vector<Unheld> missing() {
    std::vector<Unheld> out;
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
                   std::vector<Unheld>& out) {
    const auto states = static_cast<int>(program_.reference.rules[at(own.rule)].states.size());
    for (int s = -1; s < states; ++s) {
      std::optional<Unheld> lack = lack_of({unit, parameter, s});
      if (!lack) continue;
      lack->state = {.kind = s < 0 ? StateRef::Kind::parameter : StateRef::Kind::state,
                     .unit = unit,
                     .tensor = parameter,
                     .state = std::max(s, 0)};
      out.push_back(*std::move(lack));
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

  /// What is missing of it, in the buffers of one type; none: those of some type have all.
  std::optional<Unheld> lack_of(const Key& key) {
    const auto found = holders_.find(key);
    if (found == holders_.end()) return Unheld{};
    std::map<std::pair<int, int>, std::vector<Holder>> alike;
    for (const Holder& h : found->second) alike[{h.family, h.piece}].push_back(h);
    std::optional<Unheld> lack;
    for (const auto& [type, holders] : alike) {
      const auto [known, fresh] = lacks_.try_emplace(holders);
      if (fresh) known->second = lack_of(holders);
      if (!known->second) return std::nullopt;
      if (!lack) lack = known->second;
    }
    return lack;
  }

  /// Axes that divide a tensor of a family, or where it is a part of a row any tensor of that: the
  /// part begins where these end.
  AxisList dividing(const Holder& one) const {
    const BufferType& type = program_.families[at(one.family)].type;
    std::set<int> axes(type.flat.begin(), type.flat.end());
    for (std::size_t p = 0; p < type.pieces.size(); ++p) {
      if (type.flat.empty() && p != at(one.piece)) continue;
      for (const DividedDim& dim : type.pieces[p].dims) {
        for (const AxisList& level : dim.by) axes.insert(level.begin(), level.end());
      }
    }
    std::erase_if(axes, [&](int a) { return program_.axes[at(a)].degree == 1; });
    return {axes.begin(), axes.end()};
  }

  /// The coordinates that a holder names along an axis; none: it has all.
  std::vector<std::int64_t> named_by(const Holder& one, int axis) const {
    if (at(axis) + 1 == program_.axes.size()) return {one.micro_batch};
    return named(program_.classes[at(one.device_class)], axis);
  }

  /// Coordinates of an axis that the same holders have, taken as one place. Those that no holder
  /// names are alike.
  struct Places {
    int axis = 0;
    std::map<std::int64_t, int> of;   // of each coordinate that is named
    std::vector<std::int64_t> first;  // of each place a coordinate
    std::int64_t count() const { return static_cast<std::int64_t>(first.size()); }
  };

  /// Work grows with what holders name, not with the axis.
  Places places_along(int axis, const std::vector<Holder>& holders) const {
    Places out{.axis = axis, .of = {}, .first = {}};
    int count = 1;
    for (const Holder& h : holders) {
      std::map<int, int> with;  // of a place what this holder has
      for (const std::int64_t x : named_by(h, axis)) {
        int& place = out.of[x];
        const auto [to, fresh] = with.try_emplace(place, count);
        if (fresh) ++count;
        place = to->second;
      }
    }
    number(out);
    return out;
  }

  /// Numbers places without gaps, and finds their coordinates.
  void number(Places& places) const {
    std::map<int, int> numbers;
    std::int64_t unnamed = 0;
    for (auto& [x, place] : places.of) {
      if (x == unnamed) ++unnamed;
      const auto [known, fresh] = numbers.try_emplace(place, places.count());
      if (fresh) places.first.push_back(x);
      place = known->second;
    }
    if (unnamed < program_.axes[at(places.axis)].degree) places.first.push_back(unnamed);
  }

  /// The places of a holder along an axis.
  std::vector<std::int64_t> places_of(const Holder& one, const Places& along) const {
    const std::vector<std::int64_t> own = named_by(one, along.axis);
    std::vector<std::int64_t> places(own.empty() ? along.first.size() : own.size());
    if (own.empty()) {
      std::iota(places.begin(), places.end(), 0);
      return places;
    }
    std::ranges::transform(own, places.begin(), [&](std::int64_t x) { return along.of.at(x); });
    std::ranges::sort(places);
    places.erase(std::ranges::unique(places).begin(), places.end());
    return places;
  }

  /// A part that has no holder; none: all have. A part is a place along each axis that divides the
  /// tensor; where these are too many, none is looked at.
  std::optional<Unheld> lack_of(const std::vector<Holder>& holders) const {
    Unheld lack{.state = {}, .family = holders[0].family, .axes = dividing(holders[0])};
    std::vector<Places> along;
    std::int64_t parts = 1;
    for (const int axis : lack.axes) {
      parts = saturating_multiply(parts, along.emplace_back(places_along(axis, holders)).count());
    }
    if (parts > kMostPartsHeld) return lack;
    std::vector<bool> held(at(parts), false);
    for (const Holder& h : holders) {
      for (const std::int64_t part : parts_of(h, along)) held[at(part)] = true;
    }
    const auto missing = std::ranges::find(held, false);
    if (missing == held.end()) return std::nullopt;
    lack.place = place_of(missing - held.begin(), along);
    return lack;
  }

  /// A coordinate along each axis at which a part lies.
  static std::vector<std::int64_t> place_of(std::int64_t part, const std::vector<Places>& along) {
    std::vector<std::int64_t> place(along.size());
    for (std::size_t k = along.size(); k-- > 0;) {
      place[k] = along[k].first[at(part % along[k].count())];
      part /= along[k].count();
    }
    return place;
  }

  /// The parts that a holder has, row-major.
  std::vector<std::int64_t> parts_of(const Holder& holder, const std::vector<Places>& along) const {
    std::vector<std::int64_t> parts{0};
    for (const Places& places : along) {
      const std::vector<std::int64_t> own = places_of(holder, places);
      std::vector<std::int64_t> more;
      more.reserve(parts.size() * own.size());
      for (const std::int64_t part : parts) {
        for (const std::int64_t x : own) more.push_back(part * places.count() + x);
      }
      parts = std::move(more);
    }
    return parts;
  }

  const Program& program_;
  std::map<Key, std::set<Holder>> holders_;
  std::map<int, int> like_;  // by family
  std::map<std::vector<Holder>, std::optional<Unheld>> lacks_;
};

/// "dp 1, tp 0".
std::string text_of(const Program& program, const Unheld& unheld) {
  std::string text;
  for (std::size_t k = 0; k < unheld.place.size(); ++k) {
    text += (k == 0 ? "" : ", ") + program.axes[at(unheld.axes[k])].name + " " +
            std::to_string(unheld.place[k]);
  }
  return text;
}

}  // namespace

std::vector<Unheld> find_unheld(const Program& program) { return Holdings(program).missing(); }

CheckFinding finding_on(const Program& program, const Unheld& unheld) {
  CheckFinding finding{.condition = Condition::state_consistency, .ranks = "all"};
  finding.expected = "every part of it on some device when the step begins";
  if (unheld.family < 0) {
    finding.difference = "no device has it when the step begins";
    finding.found = "no class that 'holds' it";
    finding.fix = "let classes hold it that have all its parts between them, and update it there";
    return finding;
  }
  const std::string buffer = "'" + program.families[at(unheld.family)].name + "'";
  if (unheld.place.empty()) {
    finding.difference = "whether devices have all of it when the step begins is not known";
    finding.found = "more parts of " + buffer + " that differ in who holds them than are looked at";
    finding.fix = "make one class of those that do the same";
    return finding;
  }
  const std::string where = text_of(program, unheld);
  finding.difference = "no device has some part of it when the step begins";
  finding.found = "no class that 'holds' the part of " + buffer + " at " + where;
  finding.fix = "let a class hold that part too, and update it there";
  return finding;
}

}  // namespace placet
