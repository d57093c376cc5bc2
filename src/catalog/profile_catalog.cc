#include "catalog/profile_catalog.h"

#include <algorithm>

#include "catalog/engine_files.h"
#include "catalog/engine_numbers.h"
#include "catalog/engine_options.h"
#include "catalog/engine_setting.h"
#include "catalog/memory.h"
#include "catalog/profile_facts.h"
#include "catalog/reader.h"

namespace placet {
namespace {

// The blocks of facts of a file that hold for some jobs, in order.
std::vector<Reader> cases_in(const EngineFile& file) {
  const auto given = Reader(file.document).find("given");
  if (!given) return {};
  std::vector<Reader> cases = given->items();
  for (const Reader& one : cases) {
    one.allow(case_keys());
    one.at("what").text();
  }
  return cases;
}

std::vector<std::string> texts_of(const std::optional<Reader>& list) {
  std::vector<std::string> words;
  if (!list) return words;
  for (const Reader& word : list->items()) words.push_back(word.text());
  return words;
}

// The facts of a case, those of the options that it includes first.
Profile with_case(const Catalog& catalog, EngineFilesView files, const Reader& one,
                  Profile profile) {
  const std::string version = profile.version;
  profile =
      with_options(catalog, files, std::move(profile), texts_of(one.find("includes")), one.where());
  profile.version = version;
  read_facts(catalog, one, profile);
  return profile;
}

// Lays the facts of the last file over what those before it say: its own, then those that hold for
// the setting. Without one no case holds.
Profile with_file(const Catalog& catalog, EngineFilesView files, const EngineSetting* setting,
                  Profile profile) {
  const EngineFile& file = files.back();
  profile = with_options(catalog, files.first(files.size() - 1), std::move(profile), file.inherited,
                         file.document.where + ": inherits");
  const Reader reader(file.document);
  profile.name = reader.at("name").text();
  profile.version = reader.at("version").text();
  profile.date = reader.at("date").text();
  read_facts(catalog, reader, profile);
  for (const Reader& one : cases_in(file)) {
    if (setting == nullptr || !holds(one.at("when"), *setting)) continue;
    profile = with_case(catalog, files, one, std::move(profile));
  }
  return profile;
}

Profile profile_of(const Catalog& catalog, EngineFilesView files, const EngineSetting* setting) {
  Profile profile;
  profile.saved = plain_saved_table();
  for (std::size_t f = 1; f <= files.size(); ++f) {
    profile = with_file(catalog, files.first(f), setting, std::move(profile));
  }
  return profile;
}

Profile load(const Catalog& catalog, const std::string& text, const EngineSetting* setting,
             const std::string& where) {
  if (names_a_file(text)) return profile_of(catalog, read_engine(catalog, text), setting);
  const EngineName asked = engine_named(catalog, text, where);
  const EngineFiles files = read_engine(catalog, path_in(catalog, kEngines, asked.stem));
  return with_options(catalog, files, profile_of(catalog, files, setting), asked.options, where);
}

/// The file of a version, and those of the libraries whose options it has.
std::vector<Document> documents_of(const Catalog& catalog, const std::string& stem) {
  std::vector<Document> documents{open_document(path_in(catalog, kEngines, stem))};
  for (EngineFile& library : read_libraries(catalog, documents.front())) {
    documents.push_back(std::move(library.document));
  }
  return documents;
}

/// Words of the options that a version's own file and its libraries offer.
std::vector<std::string> words_offered(const Catalog& catalog, const std::string& stem) {
  std::vector<std::string> words;
  for (const Document& document : documents_of(catalog, stem)) {
    const auto options = Reader(document).find("options");
    if (!options) continue;
    for (const auto& [word, facts] : options->members()) words.push_back(word);
  }
  return words;
}

/// All of a setting, part by part.
std::string key_of(const EngineSetting& setting) {
  std::string key = "\n" + setting.model + "\n" + setting.family + "\n" + setting.products + "\n" +
                    std::string(name_of(setting.compute)) + (setting.has_experts ? "\ne" : "\n-") +
                    (setting.shares_keys ? "s" : "-");
  for (const std::string& device : setting.devices) key += "\n" + device;
  return key;
}

}  // namespace

Profile load_profile(const Catalog& catalog, const std::string& text, const std::string& where) {
  const auto read = [&] { return load(catalog, text, nullptr, where); };
  return names_a_file(text) ? read() : remembered<Profile>(catalog, "profile " + text, read);
}

Profile load_profile(const Catalog& catalog, const std::string& text, const Job& job,
                     const std::string& where) {
  const EngineSetting setting = setting_of(job);
  const auto read = [&] { return load(catalog, text, &setting, where); };
  if (names_a_file(text)) return read();
  return remembered<Profile>(catalog, "profile " + text + key_of(setting), read);
}

std::vector<std::string> profile_names(const Catalog& catalog) { return engine_stems(catalog); }

std::vector<std::string> profile_names_with_options(const Catalog& catalog) {
  std::vector<std::string> names;
  for (const std::string& stem : engine_stems(catalog)) {
    names.push_back(stem);
    for (const std::string& word : words_offered(catalog, stem)) {
      names.push_back(stem);
      names.back().append("+").append(word);
    }
  }
  return names;
}

std::string profile_title(const Catalog& catalog, const std::string& name) {
  const std::size_t plus = name.find('+');
  const std::vector<Document> documents = documents_of(catalog, name.substr(0, plus));
  if (plus == std::string::npos) {
    const auto title = Reader(documents.front()).find("title");
    return title ? title->text() : std::string();
  }
  for (const Document& document : documents) {
    const auto options = Reader(document).find("options");
    const auto facts = options ? options->find(name.substr(plus + 1)) : options;
    if (facts) return facts->at("title").text();
  }
  return {};
}

EngineVariants engine_variants(const Catalog& catalog, const std::string& name) {
  const EngineFiles files =
      read_engine(catalog, path_in(catalog, kEngines, engine_named(catalog, name, "engines").stem));
  EngineVariants variants;
  for (const auto& [word, place] : options_of(catalog, files)) {
    EngineOption option{.name = word, .title = {}, .file = {}};
    if (place.file != nullptr) {
      option.file = place.file->path;
      option.title = Reader(place.file->document).at("options").at(word).at("title").text();
    } else {
      option.title = profile_title(catalog, place.stem);
    }
    variants.options.push_back(std::move(option));
  }
  for (const auto& [name_of, place] : numbers_of(files)) {
    variants.sizes.push_back({.name = name_of, .title = place.title, .standard = place.standard});
  }
  for (const EngineFile& file : files) {
    for (const Reader& one : cases_in(file)) {
      variants.cases.push_back({.what = one.at("what").text(), .when = one.at("when").print()});
    }
  }
  return variants;
}

void require_readable_engine(const Catalog& catalog, const std::string& name,
                             const std::string& where) {
  const Profile plain = load_profile(catalog, name, where);
  const EngineFiles files =
      names_a_file(name)
          ? read_engine(catalog, name)
          : read_engine(catalog, path_in(catalog, kEngines, engine_stem(catalog, name, where)));
  for (const EngineFile& file : files) {
    for (const Reader& one : cases_in(file)) {
      holds(one.at("when"), EngineSetting{});
      with_case(catalog, files, one, plain);
    }
  }
  for (const auto& [word, place] : options_of(catalog, files)) {
    with_options(catalog, files, plain, {word}, where);
  }
  for (const auto& [word, place] : numbers_of(files)) {
    with_options(catalog, files, plain, {word + "=" + std::to_string(place.standard)}, where);
  }
}

void require_readable_library(const Catalog& catalog, const std::string& name) {
  const EngineFile library = read_library(catalog, name);
  Profile plain;
  plain.saved = plain_saved_table();
  for (const auto& [word, facts] : Reader(library.document).at("options").members()) {
    facts.allow(option_keys());
    facts.at("title").text();
    Profile profile = plain;
    read_facts(catalog, facts, profile);
  }
}

}  // namespace placet
