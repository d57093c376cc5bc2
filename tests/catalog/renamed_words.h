// The catalogue of strategies with every name replaced by a random word: what must give the same
// placements, and so the same derivations (docs/theory.md §1, "strategy").
#pragma once

#include <map>
#include <random>
#include <string>
#include <string_view>

#include "catalog/strategy_catalog.h"

namespace placet::testing {

struct RenamedCatalog {
  StrategyCatalog catalog;
  std::map<std::string, std::string> new_name;  // by old name
};

inline std::string random_word(std::mt19937& generator) {
  std::string word;
  std::uniform_int_distribution<int> letter('a', 'z');
  for (int i = 0; i < 12; ++i) word += static_cast<char>(letter(generator));
  return word;
}

inline void rename_words(PartialHow& partial, const std::map<std::string, std::string>& names) {
  for (auto* word : {&partial.schedule, &partial.attention}) {
    if (*word) (*word)->word = names.at((*word)->word);
  }
  if (partial.method) partial.method = names.at(*partial.method);
}

inline RenamedCatalog renamed(const StrategyCatalog& original, std::uint32_t seed) {
  RenamedCatalog out{.catalog = original};
  std::mt19937 generator(seed);
  Vocabulary& words = out.catalog.vocabulary;
  for (auto& one : words.strategies) out.new_name[one.name] = random_word(generator);
  for (auto& one : words.realisations) out.new_name[one.name] = random_word(generator);
  for (Strategy& one : words.strategies) {
    one.name = out.new_name.at(one.name);
    rename_words(one.meaning.sets, out.new_name);
    rename_words(one.meaning.suggests, out.new_name);
  }
  for (Realisation& one : words.realisations) one.name = out.new_name.at(one.name);
  words = ordered(words);
  out.catalog.schedules.clear();
  for (auto [name, value] : original.schedules) {
    value.schedule.name = out.new_name.at(name);
    out.catalog.schedules.emplace(out.new_name.at(name), value);
  }
  out.catalog.attention.clear();
  for (auto [name, value] : original.attention) {
    value.name = out.new_name.at(name);
    out.catalog.attention.emplace(out.new_name.at(name), value);
  }
  out.catalog.methods.clear();
  for (auto [name, value] : original.methods) {
    value.name = out.new_name.at(name);
    out.catalog.methods.emplace(value.name, value);
  }
  out.catalog.default_schedule = out.new_name.at(original.default_schedule);
  out.catalog.default_attention = out.new_name.at(original.default_attention);
  return out;
}

/// A placement without whitespace around its terms, in the new words: terms follow ':' or '+'.
inline std::string translated(std::string_view text, const RenamedCatalog& words) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const bool term = i > 0 && (text[i - 1] == ':' || text[i - 1] == '+');
    std::size_t end = i;
    while (term && end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '-')) {
      ++end;
    }
    const auto found = words.new_name.find(std::string(text.substr(i, end - i)));
    if (end == i) ++end;
    out += found != words.new_name.end() ? found->second : std::string(text.substr(i, end - i));
    i = end;
  }
  return out;
}

}  // namespace placet::testing
