#include "validate/score.h"

namespace placet {

std::string reason_of(const InputError& error) {
  InputFault fault = error.fault();
  fault.where.clear();
  fault.excerpt.clear();
  return describe(fault);
}

void FactList::add_filled(const std::string& source, const std::vector<FilledCell>& cells) {
  for (const FilledCell& cell : cells) {
    const Filling& filling = *cell.filling;
    const std::string_view origin = filling.is_custom    ? kCustom
                                    : filling.from_table ? kAssumedFromTable
                                                         : kAssumed;
    add({.origin = std::string(origin),
         .key = source + ": " + std::string(cell.column),
         .value = std::string(cell.value),
         .source = filling.evidence.source});
  }
}

void FactList::add(UsedFact fact, std::int64_t rows) {
  auto& known = facts_[{fact.origin, fact.key, fact.value}];
  const std::int64_t before = known.rows;
  known = std::move(fact);
  known.rows = before + rows;
}

void FactList::add_profile(const Profile& profile, std::int64_t rows,
                           const std::map<std::string, std::int64_t>& term_rows) {
  const std::string memory = "memory.";
  for (const Fact& fact : profile.facts) {
    std::int64_t touched = rows;
    if (fact.key.starts_with("messages.")) touched = 0;
    if (fact.key.starts_with(memory)) {
      const auto found = term_rows.find(fact.key.substr(memory.size()));
      touched = found == term_rows.end() ? 0 : found->second;
    }
    add({.origin = profile.name + "@" + profile.version,
         .key = fact.key,
         .value = fact.value,
         .source = fact.source},
        touched);
  }
}

std::vector<UsedFact> FactList::list() const {
  std::vector<UsedFact> facts;
  facts.reserve(facts_.size());
  for (const auto& [key, fact] : facts_) facts.push_back(fact);
  return facts;
}

}  // namespace placet
