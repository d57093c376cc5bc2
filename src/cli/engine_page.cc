#include "cli/engine_page.h"

#include <algorithm>
#include <set>

#include "catalog/meant.h"
#include "catalog/profile_catalog.h"
#include "catalog/reader.h"

namespace placet {
namespace {

/// Versions of an engine, the newest last; of "name@version" that one.
std::vector<std::string> versions_of(const Catalog& catalog, const std::string& name) {
  std::vector<std::string> versions;
  for (const std::string& stem : profile_names(catalog)) {
    if (stem == name || stem.starts_with(name + "@")) versions.push_back(stem);
  }
  return versions;
}

/// The first source of each different kind that stands below an object, at most three.
void add_sources(const Json& object, std::set<std::string>& sources) {
  constexpr std::size_t kMost = 3;
  if (object.is_array()) {
    for (const Json& item : object) add_sources(item, sources);
  }
  if (!object.is_object() || sources.size() >= kMost) return;
  for (const auto& [key, value] : object.items()) {
    if (key == "source" && value.is_string()) sources.insert(value.get<std::string>());
    if (value.is_structured()) add_sources(value, sources);
    if (sources.size() >= kMost) return;
  }
}

std::string joined(const std::set<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : "; ") + text;
  return all;
}

/// Where an option's facts come from.
std::string origin_of(const EngineOption& option) {
  if (option.file.empty()) return {};
  const Document document = open_document(option.file);
  std::set<std::string> sources;
  add_sources(document.value["options"][option.name], sources);
  return joined(sources);
}

void add_chosen(const Catalog& catalog, const std::string& stem,
                std::vector<ExplainedFact>& facts) {
  const EngineVariants variants = engine_variants(catalog, stem);
  for (const EngineOption& option : variants.options) {
    facts.push_back({"option +" + option.name, option.title, origin_of(option)});
  }
  for (const EngineCase& given : variants.cases) {
    facts.push_back({"where", given.when, given.what});
  }
}

}  // namespace

std::vector<Explanation> engine_page(const Catalog& catalog, const std::string& name) {
  const std::string meant = meant_engine(catalog, name).text;
  const std::vector<std::string> versions = versions_of(catalog, meant.substr(0, meant.find('+')));
  if (versions.empty()) return {};
  const std::string& newest = versions.back();
  const Profile profile = load_profile(catalog, newest, "NAME");
  Explanation page{.kind = "engine", .word = newest, .title = profile_title(catalog, newest)};
  page.meaning = versions.size() > 1
                     ? "the newest of " + std::to_string(versions.size()) + " versions: --engine " +
                           newest.substr(0, newest.find('@'))
                     : "";
  for (const std::string& version : versions) {
    page.facts.push_back({"version", version, profile_title(catalog, version)});
  }
  add_chosen(catalog, newest, page.facts);
  for (const Refusal& refusal : profile.refusals) {
    page.facts.push_back(
        {"refuses", refusal.what + " (instead: " + refusal.cure + ")", refusal.source});
  }
  return {page};
}

}  // namespace placet
