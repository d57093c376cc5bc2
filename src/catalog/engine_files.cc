#include "catalog/engine_files.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "catalog/profile_facts.h"
#include "catalog/versions.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

constexpr const char* kProfileSchema = "placet.engine/1";
constexpr const char* kLibrarySchema = "placet.library/1";
constexpr std::size_t kMostHeirs = 32;  // files that one starts from, one after the other

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
  std::sort(versions.begin(), versions.end(), is_older_version);
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

// The file that another inherits from: by a path from its own folder, or by name, with options
// behind it; under its own name the one that it hides. Empty: none.
std::filesystem::path parent_of(const Catalog& catalog, EngineFile& file) {
  const Reader reader(file.document);
  const auto inherits = reader.find("inherits");
  if (!inherits) return {};
  const std::string said = inherits->text();
  const std::size_t plus = said.find('+');
  const std::string reference = reference_in(file.path, said.substr(0, plus));
  if (names_a_file(reference)) return reference;
  file.inherited = words_behind(said, plus);
  const std::string stem = engine_stem(catalog, reference, inherits->where());
  const auto hidden =
      stem == file.stem() ? hidden_by(catalog, kEngines, file.path) : std::filesystem::path();
  return hidden.empty() ? path_in(catalog, kEngines, stem) : hidden;
}

// Throws where a file that others start from starts from one of them.
void require_no_circle(const EngineFiles& heirs, const std::filesystem::path& parent) {
  const Reader inherits = Reader(heirs.back().document).at("inherits");
  const auto same = [&](const EngineFile& file) {
    return file.path.lexically_normal() == parent.lexically_normal();
  };
  if (std::ranges::any_of(heirs, same)) {
    inherits.fail("goes round in a circle", "a profile that does not inherit this one");
  }
  if (heirs.size() >= kMostHeirs) {
    inherits.fail("is one file too many in a row",
                  "at most " + std::to_string(kMostHeirs) + " that inherit from each other");
  }
}

}  // namespace

std::string engine_stem(const Catalog& catalog, const std::string& text, const std::string& where) {
  const std::vector<std::string> files = names_in(catalog, kEngines);
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

std::vector<std::string> words_behind(const std::string& text, std::size_t plus) {
  std::vector<std::string> words;
  while (plus != std::string::npos) {
    const std::size_t begin = plus + 1;
    plus = text.find('+', begin);
    words.push_back(text.substr(begin, plus - begin));
  }
  return words;
}

EngineFile read_library(const Catalog& catalog, const std::string& name) {
  const std::filesystem::path path = path_in(catalog, kLibraries, name);
  EngineFile library{
      .path = path, .document = open_document(path), .inherited = {}, .libraries = {}};
  const Reader reader(library.document);
  reader.allow({"schema", "name", "title", "options"});
  if (reader.at("schema").text() != kLibrarySchema) {
    reader.at("schema").fail("is another schema", '"' + std::string(kLibrarySchema) + '"');
  }
  reader.at("title").text();
  return library;
}

std::vector<EngineFile> read_libraries(const Catalog& catalog, const Document& engine) {
  std::vector<EngineFile> libraries;
  const auto listed = Reader(engine).find("libraries");
  if (!listed) return libraries;
  const std::vector<std::string> known = names_in(catalog, kLibraries);
  for (const Reader& name : listed->items()) {
    if (std::ranges::find(known, name.text()) == known.end()) {
      name.fail("is no file of data/libraries", list_words(known));
    }
    libraries.push_back(read_library(catalog, name.text()));
  }
  return libraries;
}

EngineFiles read_engine(const Catalog& catalog, const std::filesystem::path& path) {
  EngineFiles files;
  for (auto next = path; !next.empty();) {
    if (!files.empty()) require_no_circle(files, next);
    files.push_back(
        {.path = next, .document = open_document(next), .inherited = {}, .libraries = {}});
    const Reader reader(files.back().document);
    reader.allow(profile_keys());
    check_heading(reader, files.back().stem());
    files.back().libraries = read_libraries(catalog, files.back().document);
    next = parent_of(catalog, files.back());
  }
  std::ranges::reverse(files);
  return files;
}

std::vector<std::string> engine_stems(const Catalog& catalog) {
  std::vector<std::string> files = names_in(catalog, kEngines);
  std::ranges::sort(files, [](const std::string& a, const std::string& b) {
    const NameAndVersion x = split_version(a);
    const NameAndVersion y = split_version(b);
    return x.name != y.name ? x.name < y.name : is_older_version(x.version, y.version);
  });
  return files;
}

std::vector<std::pair<std::string, std::string>> options_in_files(const Catalog& catalog,
                                                                  const std::string& stem) {
  std::vector<std::pair<std::string, std::string>> options;
  for (const std::string& file : names_in(catalog, kEngines)) {
    if (file.starts_with(stem + "-")) options.emplace_back(file.substr(stem.size() + 1), file);
  }
  return options;
}

}  // namespace placet
