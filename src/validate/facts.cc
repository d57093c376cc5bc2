#include "validate/score.h"

namespace placet {

void FactList::add(UsedFact fact, std::int64_t rows) {
  auto& known = facts_[{fact.origin, fact.key, fact.value}];
  const std::int64_t before = known.rows;
  known = std::move(fact);
  known.rows = before + rows;
}

void FactList::add_profile(const Profile& profile, std::int64_t rows) {
  for (const Fact& fact : profile.facts) {
    add({.origin = profile.name + "@" + profile.version,
         .key = fact.key,
         .value = fact.value,
         .source = fact.source},
        rows);
  }
}

std::vector<UsedFact> FactList::list() const {
  std::vector<UsedFact> facts;
  for (const auto& [key, fact] : facts_) facts.push_back(fact);
  return facts;
}

}  // namespace placet
