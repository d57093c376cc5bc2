// Splitting device classes so that a fault concerns whole classes.
//
// Along each axis, coordinates that occur in the choice in the same way stay together; each class
// is cut to the boxes that these groups make. All classes are cut alike, so that the groups of
// collectives remain unions of boxes.
#include <algorithm>

#include "program/fault_parts.h"
#include "program/text_names.h"

namespace placet {
namespace {

using Groups = std::vector<std::vector<std::int64_t>>;

bool is_chosen(const Program& program, const RankChoice& choice, std::int64_t rank) {
  if (choice.ranks && (rank < choice.ranks->first || rank > choice.ranks->last)) return false;
  std::int64_t rest = rank;
  for (std::size_t a = program.axes.size() - 1; a-- > 0;) {
    const ProgramAxis& axis = program.axes[a];
    const auto named = choice.coordinates.find(axis.name);
    if (named != choice.coordinates.end() && named->second != rest % axis.degree) return false;
    rest /= axis.degree;
  }
  return true;
}

/// The coordinates of one axis, those together that are chosen in the same way whatever the other
/// coordinates are.
Groups groups_along(const Program& program, std::size_t axis, const std::vector<bool>& chosen) {
  std::int64_t inner = 1;
  for (std::size_t a = axis + 1; a + 1 < program.axes.size(); ++a) inner *= program.axes[a].degree;
  const std::int64_t degree = program.axes[axis].degree;
  const auto all = static_cast<std::int64_t>(chosen.size());
  Groups groups;
  std::map<std::vector<bool>, std::size_t> known;
  for (std::int64_t c = 0; c < degree; ++c) {
    std::vector<bool> signature;
    for (std::int64_t outer = 0; outer < all; outer += degree * inner) {
      const auto begin = chosen.begin() + static_cast<std::ptrdiff_t>(outer + c * inner);
      signature.insert(signature.end(), begin, begin + static_cast<std::ptrdiff_t>(inner));
    }
    const auto [found, is_new] = known.try_emplace(std::move(signature), groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].push_back(c);
  }
  return groups;
}

std::vector<std::int64_t> common(const std::vector<std::int64_t>& box,
                                 const std::vector<std::int64_t>& group) {
  if (box.empty()) return group;
  std::vector<std::int64_t> both;
  std::ranges::set_intersection(box, group, std::back_inserter(both));
  return both;
}

/// Splits classes along one axis.
std::vector<DeviceClass> split_along(const Program& program, std::size_t axis,
                                     const Groups& groups) {
  std::vector<DeviceClass> out;
  for (const DeviceClass& c : program.classes) {
    for (std::size_t g = 0; g < groups.size(); ++g) {
      std::vector<std::int64_t> mine = common(c.box[axis], groups[g]);
      if (mine.empty()) continue;
      DeviceClass part = c;
      const bool whole = mine.size() == c.box[axis].size() || groups.size() == 1;
      if (!whole) part.name += "." + program.axes[axis].name + std::to_string(mine[0]);
      if (groups.size() > 1) part.box[axis] = std::move(mine);
      out.push_back(std::move(part));
    }
  }
  return out;
}

std::int64_t first_rank(const Program& program, const DeviceClass& c) {
  std::int64_t rank = 0;
  for (std::size_t a = 0; a + 1 < program.axes.size(); ++a) {
    rank = rank * program.axes[a].degree + (c.box[a].empty() ? 0 : c.box[a][0]);
  }
  return rank;
}

}  // namespace

std::pair<Program, std::vector<bool>> split_classes(Program program, const RankChoice& choice) {
  std::int64_t devices = 1;
  for (std::size_t a = 0; a + 1 < program.axes.size(); ++a) devices *= program.axes[a].degree;
  std::vector<bool> chosen(static_cast<std::size_t>(devices));
  for (std::int64_t r = 0; r < devices; ++r) {
    chosen[static_cast<std::size_t>(r)] = is_chosen(program, choice, r);
  }
  const bool some = std::ranges::find(chosen, true) != chosen.end();
  for (std::size_t a = 0; some && a + 1 < program.axes.size(); ++a) {
    const Groups groups = groups_along(program, a, chosen);
    if (groups.size() > 1) program.classes = split_along(program, a, groups);
  }
  std::vector<bool> taken;
  taken.reserve(program.classes.size());
  for (const DeviceClass& c : program.classes) {
    taken.push_back(chosen[static_cast<std::size_t>(first_rank(program, c))]);
  }
  return {std::move(program), std::move(taken)};
}

}  // namespace placet
