#include "catalog/profile_catalog.h"

#include <algorithm>
#include <cctype>
#include <compare>
#include <map>
#include <string_view>

#include "catalog/profile_facts.h"
#include "catalog/reader.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

constexpr const char* kProfileSchema = "placet.engine/1";
constexpr const char* kEngines = "engines";
constexpr std::size_t kMostHeirs = 32;  // files that one starts from, one after the other

// The digits that a text begins with.
std::string_view leading_digits(std::string_view text) {
  return text.substr(0, text.find_first_not_of("0123456789"));
}

// Two runs of digits as numbers of any size.
std::strong_ordering compare_numbers(std::string_view a, std::string_view b) {
  a.remove_prefix(std::min(a.find_first_not_of('0'), a.size()));
  b.remove_prefix(std::min(b.find_first_not_of('0'), b.size()));
  return a.size() != b.size() ? a.size() <=> b.size() : a <=> b;
}

// Whether version `a` is older than `b`: runs of digits compare as numbers, the rest as text.
bool older(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    const std::string_view x = leading_digits(a);
    const std::string_view y = leading_digits(b);
    const bool numbers = !x.empty() && !y.empty();
    const auto order = numbers ? compare_numbers(x, y) : a.front() <=> b.front();
    if (std::is_neq(order)) return std::is_lt(order);
    a.remove_prefix(numbers ? x.size() : 1);
    b.remove_prefix(numbers ? y.size() : 1);
  }
  return a.size() < b.size();
}

struct NameAndVersion {
  std::string name;
  std::string version;  // empty: the newest
};

NameAndVersion split_version(const std::string& text) {
  const std::size_t at = text.find('@');
  if (at == std::string::npos) return {text, ""};
  return {text.substr(0, at), text.substr(at + 1)};
}

// Versions of one engine, oldest first.
std::vector<std::string> versions_of(const std::vector<std::string>& files,
                                     const std::string& name) {
  std::vector<std::string> versions;
  for (const std::string& file : files) {
    const NameAndVersion parts = split_version(file);
    if (parts.name == name) versions.push_back(parts.version);
  }
  std::sort(versions.begin(), versions.end(), older);
  return versions;
}

// The newest version; variants of a version ("2024.12-late") are chosen only by their whole name,
// unless there is nothing else.
std::string newest_of(const std::vector<std::string>& versions) {
  const auto plain = std::find_if(versions.rbegin(), versions.rend(), [](const std::string& v) {
    return v.find('-') == std::string::npos;
  });
  return plain != versions.rend() ? *plain : versions.back();
}

// The name of the file (without .json) that `text` speaks of.
std::string resolve(const Catalog& catalog, const std::string& text, const std::string& where) {
  const std::vector<std::string> files = names_in(catalog, "engines");
  if (std::find(files.begin(), files.end(), text) != files.end()) return text;
  const NameAndVersion asked = split_version(text);
  const std::vector<std::string> versions = versions_of(files, asked.name);
  if (!versions.empty() && asked.version.empty() && text.find('@') == std::string::npos) {
    return asked.name + "@" + newest_of(versions);
  }
  if (!versions.empty()) {
    throw InputError({.where = where,
                      .value = text,
                      .problem = "is not a known version of " + asked.name,
                      .allowed = list_words(versions)});
  }
  std::vector<std::string> names;
  for (const std::string& file : files) {
    const std::string name = split_version(file).name;
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  throw InputError({.where = where,
                    .value = text,
                    .problem = "is not a known engine",
                    .allowed = list_words(names),
                    .nearest = nearest(asked.name, names)});
}

void check_heading(const Reader& reader, const std::string& stem) {
  if (reader.at("schema").text() != kProfileSchema) {
    reader.at("schema").fail("is another schema", '"' + std::string(kProfileSchema) + '"');
  }
  const NameAndVersion file = split_version(stem);
  const Reader name = reader.at("name");
  if (name.text() != file.name) {
    name.fail("differs from the name of its file", '"' + file.name + '"');
  }
  const Reader version = reader.at("version");
  if (version.text() != file.version) {
    version.fail("differs from the version in the name of its file", '"' + file.version + '"');
  }
  const Reader date = reader.at("date");
  const std::string text = date.text();
  const bool fits = (text.size() == 4 || text.size() == 7 || text.size() == 10) &&
                    text.find_first_not_of("0123456789-") == std::string::npos;
  if (!fits) date.fail("is not a date", "a year, year-month or year-month-day such as 2025-06");
}

using Paths = std::vector<std::filesystem::path>;

std::filesystem::path path_of(const Catalog& catalog, const std::string& stem) {
  return path_in(catalog, kEngines, stem);
}

// The file that the file at `path` inherits from: by a path from its own folder, or by name; under
// its own name the one that it hides. Empty: none.
std::filesystem::path parent_of(const Catalog& catalog, const std::filesystem::path& path,
                                const Reader& reader) {
  const auto inherits = reader.find("inherits");
  if (!inherits) return {};
  const std::string reference = reference_in(path, inherits->text());
  if (names_a_file(reference)) return reference;
  const std::string stem = resolve(catalog, reference, inherits->where());
  const auto hidden =
      stem == path.stem().string() ? hidden_by(catalog, kEngines, path) : std::filesystem::path();
  return hidden.empty() ? path_of(catalog, stem) : hidden;
}

Profile load_file(const Catalog& catalog, const std::filesystem::path& path, Paths heirs);

// The profile that the file at `path`, the last of the heirs, starts from.
Profile start_of(const Catalog& catalog, const std::filesystem::path& path, const Reader& reader,
                 const Paths& heirs) {
  const std::filesystem::path parent = parent_of(catalog, path, reader);
  if (parent.empty()) {
    Profile profile;
    profile.saved = plain_saved_table();
    return profile;
  }
  const Reader inherits = reader.at("inherits");
  if (std::find(heirs.begin(), heirs.end(), parent.lexically_normal()) != heirs.end()) {
    inherits.fail("goes round in a circle", "a profile that does not inherit this one");
  }
  if (heirs.size() >= kMostHeirs) {
    inherits.fail("is one file too many in a row",
                  "at most " + std::to_string(kMostHeirs) + " that inherit from each other");
  }
  return load_file(catalog, parent, heirs);
}

Profile load_file(const Catalog& catalog, const std::filesystem::path& path, Paths heirs) {
  const Document document = open_document(path);
  const Reader reader(document);
  const std::string stem = path.stem().string();
  reader.allow(profile_keys());
  check_heading(reader, stem);
  heirs.push_back(path.lexically_normal());
  Profile profile = start_of(catalog, path, reader, heirs);
  profile.name = reader.at("name").text();
  profile.version = reader.at("version").text();
  profile.date = reader.at("date").text();
  read_facts(catalog, reader, profile);
  return profile;
}

// "name@version+option+option" apart.
struct WithOptions {
  std::string base;
  std::vector<std::string> options;
};

WithOptions split_options(const std::string& text) {
  WithOptions out;
  std::size_t plus = text.find('+');
  out.base = text.substr(0, plus);
  while (plus != std::string::npos) {
    const std::size_t begin = plus + 1;
    plus = text.find('+', begin);
    out.options.push_back(text.substr(begin, plus - begin));
  }
  return out;
}

std::filesystem::path parent_of(const Catalog& catalog, const std::filesystem::path& path) {
  const Document document = open_document(path);
  return parent_of(catalog, path, Reader(document));
}

// Adds the files whose names begin with that of the version, by the words behind it.
void add_options(const std::vector<std::string>& files, const std::string& version,
                 std::map<std::string, std::string>& options) {
  for (const std::string& file : files) {
    if (file.starts_with(version + "-")) options.emplace(file.substr(version.size() + 1), file);
  }
}

// By option of a version the file that it is in: words behind the version's name in the names of
// files, or behind that of a version that it inherits from.
std::map<std::string, std::string> options_of(const Catalog& catalog, const std::string& version) {
  const std::vector<std::string> files = names_in(catalog, "engines");
  std::map<std::string, std::string> options;
  for (auto path = path_of(catalog, version); !path.empty(); path = parent_of(catalog, path)) {
    add_options(files, path.stem().string(), options);
  }
  return options;
}

// The files between a version and the file of one of its options, which comes last: an option may
// inherit from another one.
Paths files_of_option(const Catalog& catalog, const std::string& option, const std::string& file) {
  const std::string version = file.substr(0, file.size() - option.size() - 1);
  Paths files;
  for (auto path = path_of(catalog, file); !path.empty() && path.stem().string() != version;
       path = parent_of(catalog, path)) {
    if (files.size() > kMostHeirs) {
      refuse(files.back().string() + ": inherits", version, "goes round in a circle",
             "a profile that does not inherit this one");
    }
    files.insert(files.begin(), path);
  }
  return files;
}

// Lays options over a profile. Two of them may not say different things about one fact.
class OptionLayers {
 public:
  OptionLayers(const Catalog& catalog, std::string base, std::string where)
      : catalog_(catalog),
        base_(std::move(base)),
        where_(std::move(where)),
        profile_(load_file(catalog, path_of(catalog, base_), {})) {}

  void lay(const std::string& option) {
    const std::map<std::string, std::string> options = options_of(catalog_, base_);
    const auto found = options.find(option);
    if (found == options.end()) refuse_option(option, options);
    Profile alone = load_file(catalog_, path_of(catalog_, base_), {});
    for (const std::filesystem::path& file : files_of_option(catalog_, option, found->second)) {
      lay_file(file, option, alone);
    }
    profile_.version += "+" + option;
  }

  Profile take() { return std::move(profile_); }

 private:
  [[noreturn]] void refuse_option(const std::string& option,
                                  const std::map<std::string, std::string>& options) const {
    std::vector<std::string> words;
    words.reserve(options.size());
    for (const auto& [word, file] : options) words.push_back(word);
    throw InputError({.where = where_,
                      .value = option,
                      .problem = "is not an option of " + base_,
                      .allowed = words.empty() ? "no option" : list_words(words),
                      .nearest = nearest(option, words)});
  }

  /// `alone`: the version with what this option has laid over it so far, and no other.
  void lay_file(const std::filesystem::path& file, const std::string& option, Profile& alone) {
    const Document document = open_document(file);
    const Reader reader(document);
    alone.facts.clear();
    read_facts(catalog_, reader, alone);
    if (std::find(laid_.begin(), laid_.end(), file) != laid_.end()) return;
    laid_.push_back(file);
    for (const Fact& fact : alone.facts) {
      const auto [known, is_new] = said_.emplace(fact.key, Said{option, fact.value});
      if (is_new || known->second.value == fact.value) continue;
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
  std::string base_;
  std::string where_;
  Profile profile_;
  Paths laid_;
  std::map<std::string, Said> said_;  // by fact
};

}  // namespace

Profile load_profile(const Catalog& catalog, const std::string& text, const std::string& where) {
  if (names_a_file(text)) return load_file(catalog, text, {});
  const WithOptions asked = split_options(text);
  OptionLayers layers(catalog, resolve(catalog, asked.base, where), where);
  for (const std::string& option : asked.options) layers.lay(option);
  return layers.take();
}

std::vector<std::string> profile_names(const Catalog& catalog) {
  std::vector<std::string> files = names_in(catalog, "engines");
  std::sort(files.begin(), files.end(), [](const std::string& a, const std::string& b) {
    const NameAndVersion x = split_version(a);
    const NameAndVersion y = split_version(b);
    return x.name != y.name ? x.name < y.name : older(x.version, y.version);
  });
  return files;
}

std::string profile_title(const Catalog& catalog, const std::string& name) {
  const Document document = open_document(path_of(catalog, name));
  const auto title = Reader(document).find("title");
  return title ? title->text() : std::string();
}

}  // namespace placet
