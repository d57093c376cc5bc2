#include "catalog/profile_facts.h"

#include <algorithm>

#include "catalog/training_catalog.h"

namespace placet {
namespace {

// The formats that an engine uses unless the job says otherwise.
void read_engine_precision(const Catalog& catalog, const Reader& value, Profile& profile) {
  if (value.is_text()) {
    profile.precision =
        load_precision(catalog, value.text(), profile.precision, value.where()).precision;
    return;
  }
  value.allow({"parameters", "compute", "gather", "gradients", "reduce", "master"});
  std::string text;
  for (const auto& [key, dtype] : value.members()) {
    text += (text.empty() ? "" : ",") + key + "=" + dtype.text();
  }
  if (text.empty()) value.fail("says nothing", "at least one format");
  profile.precision = read_precision(catalog, text, profile.precision, value.where()).precision;
  profile.precision.name = "formats of " + profile.name;
}

std::vector<std::string> fact_keys() {
  std::vector<std::string> keys = {"precision", "saves",    "inner_gradients",    "memory",
                                   "messages",  "refusals", "recompute_policies", "timing"};
  for (std::string& key : scalar_keys()) keys.push_back(std::move(key));
  return keys;
}

}  // namespace

std::vector<std::string> profile_keys() {
  std::vector<std::string> keys = fact_keys();
  for (const char* key : {"schema", "name", "version", "date", "title", "notes", "inherits",
                          "options", "libraries", "given", "numbers"}) {
    keys.emplace_back(key);
  }
  return keys;
}

std::vector<std::string> option_keys() {
  std::vector<std::string> keys = fact_keys();
  keys.insert(keys.end(), {"title", "includes", "notes"});
  return keys;
}

std::vector<std::string> case_keys() {
  std::vector<std::string> keys = fact_keys();
  std::erase_if(keys, [](const std::string& key) {
    return key == "precision" || key == "clips_by_default" || key == "recompute_policies";
  });
  keys.insert(keys.end(), {"what", "when", "includes", "notes"});
  return keys;
}

void note_fact(Profile& profile, const std::string& key, const std::string& value,
               const std::string& source) {
  const auto it = std::find_if(profile.facts.begin(), profile.facts.end(),
                               [&](const Fact& fact) { return fact.key == key; });
  if (it != profile.facts.end()) {
    *it = {key, value, source};
  } else {
    profile.facts.push_back({key, value, source});
  }
}

void read_facts(const Catalog& catalog, const Reader& reader, Profile& profile) {
  if (const auto title = reader.find("title")) title->text();
  if (const auto notes = reader.find("notes")) {
    for (const Reader& note : notes->items()) note.text();
  }
  if (const auto fact = reader.find("precision")) {
    fact->allow({"value", "unless", "source"});
    read_engine_precision(catalog, fact->at("value"), profile);
    const auto unless = fact->find("unless");
    profile.precision_unless = unless ? unless->text() : "";
    note_fact(profile, "precision", fact->at("value").print(), fact->at("source").text());
  }
  read_scalars(reader, profile);
  read_timing(reader, profile);
  read_saves(reader, profile);
  read_policies(reader, profile);
  read_memory(reader, profile);
  read_messages(reader, profile);
  read_refusals(reader, profile);
}

}  // namespace placet
