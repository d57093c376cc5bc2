#include "execute/rank_kind.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

constexpr std::array<std::pair<std::string_view, RankKind>, 3> kRankKinds = {{
    {"virtual", RankKind::in_one_process},
    {"process", RankKind::in_processes},
    {"mpi", RankKind::over_mpi},
}};

}  // namespace

std::string_view name_of(RankKind kind) {
  return std::ranges::find(kRankKinds, kind, &std::pair<std::string_view, RankKind>::second)->first;
}

RankKind rank_kind_from(const std::string& word) {
  std::vector<std::string> names;
  names.reserve(kRankKinds.size());
  for (const auto& [name, kind] : kRankKinds) {
    if (name == word) return kind;
    names.emplace_back(name);
  }
  throw InputError({.where = "--ranks",
                    .value = word,
                    .problem = "is no kind of ranks",
                    .allowed = "virtual, process or mpi",
                    .nearest = nearest(word, names)});
}

}  // namespace placet
