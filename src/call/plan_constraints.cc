#include "call/plan_constraints.h"

#include <algorithm>
#include <set>

#include "catalog/reader.h"
#include "placement/grammar.h"
#include "units/error.h"
#include "units/nearest.h"
#include "units/number.h"

namespace placet {
namespace {

constexpr std::int64_t kLargestFixed = 1 << 24;

std::vector<std::string> split(const std::string& text, const char* separators) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

AxisRole role_named(const Choices& choices, const std::string& name, const std::string& item) {
  std::vector<std::string> names;
  for (int r = 0; r < kAxisRoleCount; ++r) {
    const auto role = static_cast<AxisRole>(r);
    names.push_back(axis_name(choices, role));
    if (names.back() == name) return role;
  }
  throw InputError({.where = "--fix",
                    .value = item,
                    .problem = "names no axis of a plan",
                    .allowed = list_words(names) + ", such as tp=8 or tp=8:tp+sp",
                    .nearest = nearest(name, names)});
}

std::int64_t degree_of_item(const std::string& text, const std::string& item) {
  const auto degree = number_in<std::int64_t>(text);
  if (degree && *degree >= 1 && *degree <= kLargestFixed) return *degree;
  throw InputError({.where = "--fix",
                    .value = item,
                    .problem = "has no degree",
                    .allowed = "NAME=DEGREE or NAME=DEGREE:TERMS, such as tp=8 or tp=8:tp+sp"});
}

bool allows_some(const std::vector<bool>& choices) {
  return std::ranges::find(choices, true) != choices.end();
}

bool has_states(AxisRole role) { return role == AxisRole::batch || role == AxisRole::replica; }

void fix_words(const Choices& choices, const Vocabulary& vocabulary, AxisRole role,
               const std::string& text, PlanConstraints& out) {
  std::vector<std::string> texts = texts_of(choices, role);
  const std::string meant = canonical_terms(text, vocabulary);
  std::vector<bool> allowed;
  allowed.reserve(texts.size());
  for (const std::string& one : texts) allowed.push_back(canonical_terms(one, vocabulary) == meant);
  if (!allows_some(allowed)) {
    std::ranges::sort(texts);
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    throw InputError({.where = "--fix",
                      .value = text,
                      .problem = "is not among the terms to choose from",
                      .allowed = list_words(texts),
                      .nearest = nearest(text, texts)});
  }
  if (!has_states(role)) {
    out.words[role] = allowed;
    return;
  }
  if (out.states.empty()) out.states.assign(allowed.size(), true);
  for (std::size_t s = 0; s < allowed.size(); ++s) out.states[s] = out.states[s] && allowed[s];
}

/// The words of a term list without arguments: "zero3", "keep", "offload".
std::set<std::string> terms_of(const std::string& text) {
  std::set<std::string> out;
  for (const std::string& term : split(text, "+ ")) out.insert(term.substr(0, term.find('(')));
  return out;
}

/// Takes a term's presence or absence to the choices that hold it.
class Requirement {
 public:
  Requirement(const Choices& choices, PlanConstraints& out) : choices_(choices), out_(out) {}

  void add(const std::string& item) {
    const bool absent = item.starts_with("no-");
    const std::string term = absent ? item.substr(3) : item;
    bool known = false;
    for (int r = 0; r < kAxisRoleCount; ++r) {
      const auto role = static_cast<AxisRole>(r);
      if (!has_states(role)) known = add_words(role, term, absent) || known;
    }
    std::vector<std::string> states;
    states.reserve(choices_.states.size());
    for (const StateWord& state : choices_.states) states.push_back(state.text);
    if (narrow(states, term, absent, out_.states)) {
      known = true;
      out_.uses_states |= !absent;
      require(allows_some(out_.states), kOthers);
    }
    if (narrow(choices_.offloads, term, absent, out_.offloads)) {
      known = true;
      require(allows_some(out_.offloads), kOthers);
    }
    if (!known) fail(item, term);
    if (!against_.empty()) {
      refuse("--require", item, "contradicts " + against_, "terms that some plan has together");
    }
  }

 private:
  static constexpr const char* kOthers = "the other terms";

  bool add_words(AxisRole role, const std::string& term, bool absent) {
    std::vector<bool>& allowed = out_.words[role];
    if (!narrow(choices_.roles[at(role)].words, term, absent, allowed)) return false;
    const auto found = out_.degrees.find(role);
    const std::int64_t degree = found == out_.degrees.end() ? 0 : found->second;
    const std::string fixed = "--fix " + axis_name(choices_, role) + "=" + std::to_string(degree);
    if (!absent) {
      out_.used.try_emplace(role, term);
      require(degree != 1, fixed);
    }
    // Without words there is no axis.
    const bool may_be = allows_some(allowed);
    require(may_be || degree <= 1, fixed);
    require(may_be || !out_.used.contains(role), kOthers);
    return true;
  }

  /// What an item must leave; else it contradicts what is named.
  void require(bool kept, const std::string& named) {
    if (!kept && against_.empty()) against_ = named;
  }

  /// Leaves what has the term, or has it not. False if nothing has it.
  bool narrow(const std::vector<std::string>& texts, const std::string& term, bool absent,
              std::vector<bool>& allowed) {
    std::vector<bool> has;
    has.reserve(texts.size());
    for (const std::string& text : texts) has.push_back(terms_of(text).contains(term));
    if (!allows_some(has)) return false;
    if (allowed.empty()) allowed.assign(texts.size(), true);
    for (std::size_t i = 0; i < has.size(); ++i) allowed[i] = allowed[i] && has[i] != absent;
    return true;
  }

  [[noreturn]] void fail(const std::string& item, const std::string& term) const {
    std::set<std::string> all;
    const auto add_all = [&](const std::string& text) { all.merge(terms_of(text)); };
    for (const Choices::Role& role : choices_.roles) std::ranges::for_each(role.words, add_all);
    for (const StateWord& state : choices_.states) add_all(state.text);
    std::ranges::for_each(choices_.offloads, add_all);
    all.erase("over");
    const std::vector<std::string> words(all.begin(), all.end());
    throw InputError({.where = "--require",
                      .value = item,
                      .problem = "is no term that a plan may have",
                      .allowed = list_words(words) + ", each also with no- in front",
                      .nearest = nearest(term, words)});
  }

  const Choices& choices_;
  PlanConstraints& out_;
  std::string against_;  // empty: something is left
};

}  // namespace

std::vector<std::string> split_outside_brackets(const std::string& text,
                                                std::string_view separators) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    depth += (c == '[' || c == '(' ? 1 : 0) - (c == ']' || c == ')' ? 1 : 0);
    if (depth == 0 && separators.find(c) != std::string_view::npos) {
      if (!parts.back().empty()) parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

std::vector<std::string> texts_of(const Choices& choices, AxisRole role) {
  if (!has_states(role)) return choices.roles[at(role)].words;
  std::vector<std::string> out;
  for (std::size_t s = 0; s < choices.states.size(); ++s) {
    out.push_back(choices.word(role, 0, s, 0).text);
  }
  return out;
}

std::string canonical_terms(const std::string& terms, const Vocabulary& vocabulary) {
  try {
    return print_placement(parse_placement("a=2:" + terms, vocabulary), vocabulary);
  } catch (const InputError&) {
    return terms;
  }
}

std::string axis_name(const Choices& choices, AxisRole role) {
  return std::string(choices.word(role, 0, 0, 0).axis.axis.text());
}

PlanConstraints read_constraints(const Choices& choices, const Vocabulary& vocabulary,
                                 const std::string& fix, const std::string& require) {
  PlanConstraints out;
  for (const std::string& item : split_outside_brackets(fix, " ,")) {
    if (item.find('[') != std::string::npos) {
      refuse("--fix", item, "has shares, which the plan is to find", "the axis without them");
    }
    const std::size_t equals = std::min(item.find('='), item.size());
    const std::size_t colon = std::min(item.find(':'), item.size());
    const AxisRole role = role_named(choices, item.substr(0, equals), item);
    if (out.degrees.contains(role)) {
      refuse("--fix", item, "settles its axis for the second time", "each axis once");
    }
    const std::size_t begin = std::min(equals + 1, item.size());
    out.degrees[role] = degree_of_item(item.substr(begin, colon - std::min(begin, colon)), item);
    if (colon < item.size()) fix_words(choices, vocabulary, role, item.substr(colon + 1), out);
  }
  Requirement requirement(choices, out);
  for (const std::string& item : split(require, " ,")) requirement.add(item);
  return out;
}

}  // namespace placet
