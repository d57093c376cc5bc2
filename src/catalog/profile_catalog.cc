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

Profile load_file(const Catalog& catalog, const std::filesystem::path& path,
                  std::vector<std::string> heirs);

// The profile that the file starts from.
Profile start_of(const Catalog& catalog, const Reader& reader,
                 const std::vector<std::string>& heirs) {
  const auto inherits = reader.find("inherits");
  if (!inherits) {
    Profile profile;
    profile.saved = plain_saved_table();
    return profile;
  }
  const std::string file = resolve(catalog, inherits->text(), inherits->where());
  if (std::find(heirs.begin(), heirs.end(), file) != heirs.end()) {
    inherits->fail("goes round in a circle", "a profile that does not inherit this one");
  }
  return load_file(catalog, catalog.root / "engines" / (file + ".json"), heirs);
}

Profile load_file(const Catalog& catalog, const std::filesystem::path& path,
                  std::vector<std::string> heirs) {
  const Document document = open_document(path);
  const Reader reader(document);
  const std::string stem = path.stem().string();
  reader.allow(profile_keys());
  check_heading(reader, stem);
  heirs.push_back(stem);
  Profile profile = start_of(catalog, reader, heirs);
  profile.name = reader.at("name").text();
  profile.version = reader.at("version").text();
  profile.date = reader.at("date").text();
  read_facts(catalog, reader, profile);
  return profile;
}

}  // namespace

Profile load_profile(const Catalog& catalog, const std::string& text, const std::string& where) {
  if (names_a_file(text)) return load_file(catalog, text, {});
  return load_file(catalog, catalog.root / "engines" / (resolve(catalog, text, where) + ".json"),
                   {});
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
  const Document document = open_document(catalog.root / "engines" / (name + ".json"));
  const auto title = Reader(document).find("title");
  return title ? title->text() : std::string();
}

}  // namespace placet
