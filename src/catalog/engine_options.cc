#include "catalog/engine_options.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <set>
#include <string_view>
#include <utility>

#include "catalog/engine_numbers.h"
#include "catalog/profile_facts.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

// The words that follow a version behind dashes, taken apart into words of options: the longest
// first. None: they are no such words.
std::optional<std::vector<std::string>> options_spelled(const std::vector<std::string>& words,
                                                        std::string_view text) {
  for (std::size_t end = text.size(); end != std::string_view::npos && end > 0;
       end = text.rfind('-', end - 1)) {
    const std::string first(text.substr(0, end));
    if (std::ranges::find(words, first) == words.end()) continue;
    if (end == text.size()) return std::vector{first};
    auto rest = options_spelled(words, text.substr(end + 1));
    if (!rest) continue;
    rest->insert(rest->begin(), first);
    return rest;
  }
  return std::nullopt;
}

// "name@version-option" where no file has that name.
std::optional<EngineName> named_with_dashes(const Catalog& catalog, const std::string& base) {
  const std::vector<std::string> stems = names_in(catalog, kEngines);
  const auto is_file = [&](const std::string& stem) {
    return std::ranges::find(stems, stem) != stems.end();
  };
  if (is_file(base)) return std::nullopt;
  for (std::size_t dash = base.rfind('-'); dash != std::string::npos && dash > 0;
       dash = base.rfind('-', dash - 1)) {
    const std::string stem = base.substr(0, dash);
    if (stem.find('@') == std::string::npos || !is_file(stem)) continue;
    auto options = options_spelled(option_words(catalog, stem), base.substr(dash + 1));
    if (options) return EngineName{stem, std::move(*options)};
  }
  return std::nullopt;
}

// The files between a version and one that holds an option of it, which comes last: it may inherit
// from another option.
EngineFiles files_behind(const Catalog& catalog, EngineFilesView version, const std::string& stem) {
  EngineFiles files = read_engine(catalog, path_in(catalog, kEngines, stem));
  const auto is_of_version = [&](const EngineFile& file) {
    return std::ranges::find(version, file.path, &EngineFile::path) != version.end();
  };
  std::erase_if(files, is_of_version);
  return files;
}

// Lays options over a profile. Two of them may not say different things about one fact.
class OptionLayers {
 public:
  OptionLayers(const Catalog& catalog, EngineFilesView version, Profile profile, std::string where)
      : catalog_(catalog),
        version_(version),
        places_(options_of(catalog, version)),
        plain_(profile),
        profile_(std::move(profile)),
        where_(std::move(where)) {}

  void lay(const std::string& option) {
    Profile alone = plain_;
    lay_with_included(option, option, alone);
    profile_.version += "+" + option;
  }

  // A number is what the user says: it stands over what options say of the same fact.
  void set(const std::string& number, const std::vector<std::string>& options) {
    const std::string plain = plain_number(version_, number, where_);
    for (const Document& facts : facts_of_number(version_, plain, options)) {
      Reader(facts).allow(option_keys());
      read_facts(catalog_, Reader(facts), profile_);
    }
    profile_.version += "+" + plain;
  }

  Profile take() { return std::move(profile_); }

 private:
  /// `said`: the option that the user named. `alone`: the version with what that has laid over it
  /// so far, and no other.
  void lay_with_included(const std::string& option, const std::string& said, Profile& alone) {
    const auto found = places_.find(option);
    if (found == places_.end()) refuse_option(option);
    if (found->second.file == nullptr) {
      for (const EngineFile& file : files_behind(catalog_, version_, found->second.stem)) {
        lay_facts(Reader(file.document), said, alone);
      }
      return;
    }
    const Reader facts = Reader(found->second.file->document).at("options").at(option);
    facts.allow(option_keys());
    if (const auto included = facts.find("includes")) {
      for (const Reader& other : included->items()) {
        if (other.text() == option) other.fail("includes itself", "another option");
        lay_with_included(other.text(), said, alone);
      }
    }
    lay_facts(facts, said, alone);
  }

  [[noreturn]] void refuse_option(const std::string& option) const {
    std::vector<std::string> words;
    words.reserve(places_.size());
    for (const auto& [word, place] : places_) words.push_back(word);
    throw InputError({.where = where_,
                      .value = option,
                      .problem = "is not an option of " + version_.back().stem(),
                      .allowed = words.empty() ? "no option" : list_words(words),
                      .nearest = nearest(option, words)});
  }

  void lay_facts(const Reader& reader, const std::string& option, Profile& alone) {
    const std::vector<Fact> before = alone.facts;
    read_facts(catalog_, reader, alone);
    if (!laid_.insert(reader.where()).second) return;
    for (const Fact& fact : alone.facts) {
      if (std::ranges::find(before, fact) != before.end()) continue;
      const auto [known, is_new] = said_.emplace(fact.key, Said{option, fact.value});
      if (is_new || known->second.value == fact.value) continue;
      if (known->second.option == option) {
        known->second.value = fact.value;
        continue;
      }
      throw InputError(
          {.where = where_,
           .value = option,
           .problem = "says something else about '" + fact.key + "' than " + known->second.option,
           .allowed = "options that speak of different facts"});
    }
    read_facts(catalog_, reader, profile_);
  }

  /// What an option says about a fact.
  struct Said {
    std::string option;
    std::string value;
  };

  const Catalog& catalog_;
  EngineFilesView version_;
  std::map<std::string, OptionPlace> places_;
  Profile plain_;
  Profile profile_;
  std::string where_;
  std::set<std::string> laid_;        // places of facts
  std::map<std::string, Said> said_;  // by fact
};

void add_options_in(const EngineFile& file, std::map<std::string, OptionPlace>& places) {
  const Reader reader(file.document);
  const auto options = reader.find("options");
  if (!options) return;
  for (const auto& [word, facts] : options->members()) {
    places.emplace(word, OptionPlace{.file = &file, .stem = {}});
  }
}

}  // namespace

std::map<std::string, OptionPlace> options_of(const Catalog& catalog, EngineFilesView version) {
  std::map<std::string, OptionPlace> places;
  for (const EngineFile& file : std::views::reverse(version)) {
    add_options_in(file, places);
    for (const EngineFile& library : file.libraries) add_options_in(library, places);
    for (const auto& [word, stem] : options_in_files(catalog, file.stem())) {
      places.emplace(word, OptionPlace{.file = nullptr, .stem = stem});
    }
  }
  return places;
}

std::vector<std::string> option_words(const Catalog& catalog, const std::string& stem) {
  const EngineFiles version = read_engine(catalog, path_in(catalog, kEngines, stem));
  std::vector<std::string> words;
  for (const auto& [word, place] : options_of(catalog, version)) words.push_back(word);
  return words;
}

EngineName engine_named(const Catalog& catalog, const std::string& text, const std::string& where) {
  const std::size_t plus = text.find('+');
  const std::string base = text.substr(0, plus);
  EngineName name;
  if (auto dashed = named_with_dashes(catalog, base)) {
    name = std::move(*dashed);
  } else {
    name.stem = engine_stem(catalog, base, where);
  }
  for (std::string& word : words_behind(text, plus)) name.options.push_back(std::move(word));
  return name;
}

Profile with_options(const Catalog& catalog, EngineFilesView version, Profile profile,
                     const std::vector<std::string>& options, const std::string& where) {
  if (options.empty()) return profile;
  OptionLayers layers(catalog, version, std::move(profile), where);
  const auto is_number = [](const std::string& option) {
    return option.find('=') != std::string::npos;
  };
  for (const std::string& option : options) {
    if (!is_number(option)) layers.lay(option);
  }
  for (const std::string& option : options) {
    if (is_number(option)) layers.set(option, options);
  }
  return layers.take();
}

}  // namespace placet
