#include "catalog/family_files.h"

#include <algorithm>
#include <filesystem>
#include <type_traits>

#include "catalog/family_fields.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr int kMostLikes = 8;

/// Sets the fields that an object names; the others stay as they are.
class FieldReader {
 public:
  FieldReader(const Reader& object, std::deque<std::string>& texts)
      : object_(object), texts_(texts) {}

  template <class Field>
  void operator()(const char* name, Field& field) {
    names_.emplace_back(name);
    if (const auto value = object_.find(name)) set(*value, field);
  }

  /// Names of all fields that were asked for.
  const std::vector<std::string>& names() const { return names_; }

 private:
  void set(const Reader& value, std::string_view& field) {
    // An empty name says that there is none.
    const bool empty = value.json() == Json("");
    texts_.push_back(empty ? "" : value.text());
    field = texts_.back();
  }
  void set(const Reader& value, bool& field) { field = value.flag(); }
  void set(const Reader& value, std::int64_t& field) {
    field = value.whole({.least = 0, .greatest = kMostRows});
  }
  void set(const Reader& value, double& field) {
    field = value.number({.least = 0, .greatest = 1e9});
  }

  /// A flag, a key that is off where a file leaves it out, or a key with its default.
  void set(const Reader& value, Switch& field) {
    if (value.is_object()) {
      value.allow({"key", "default"});
      set(value.at("key"), field.key);
      field.fallback = value.at("default").flag();
    } else if (value.is_text()) {
      set(value, field.key);
      field.fallback = false;
    } else {
      field = {.fallback = value.flag()};
    }
  }

  template <class Field>
  void set(const Reader& value, std::optional<Field>& field) {
    if (value.json().is_null()) return field.reset();
    if (!field) field.emplace();
    set(value, *field);
  }

  template <class Field>
  void set(const Reader& value, Field& field) {
    if constexpr (std::is_enum_v<Field>) {
      constexpr auto kWords = words_of(Field{});
      const std::vector<std::string> words(kWords.begin(), kWords.end());
      field = static_cast<Field>(value.one_of(words));
    } else {
      FieldReader inner(value, texts_);
      visit_fields(inner, field);
      value.allow(inner.names());
    }
  }

  const Reader& object_;
  std::deque<std::string>& texts_;
  std::vector<std::string> names_;
};

std::optional<std::filesystem::path> path_of_family(const Catalog& catalog,
                                                    const std::string& model_type) {
  const bool plain = !model_type.empty() && model_type.front() != '.' &&
                     model_type.find_first_of(std::string("/\\\0", 3)) == std::string::npos;
  if (!plain) return std::nullopt;
  const std::vector<CatalogFile> files = layers_of(catalog, "families", model_type);
  return files.empty() ? std::nullopt : std::optional(files.front().path);
}

void read_keys(const Reader& reader, FamilyFile& family) {
  if (const auto keys = reader.find("keys_without_meaning")) {
    for (const Reader& key : keys->items()) family.without_meaning.push_back(key.text());
  }
  if (const auto keys = reader.find("fixed_keys")) {
    for (const auto& [key, value] : keys->members()) family.fixed.emplace_back(key, value.json());
  }
}

/// Reads a file over what it is like. `likes` counts the files on the way.
void read_over(const Catalog& catalog, const std::filesystem::path& path, int likes,
               FamilyFile& family) {
  const Document document = open_document(path);
  const Reader reader(document);
  if (const auto like = reader.find("like")) {
    // A file that is like its own name is like the one that it hides.
    const bool is_own = like->text() == path.stem().string();
    const auto hidden = is_own ? hidden_by(catalog, "families", path) : std::filesystem::path();
    const auto base =
        hidden.empty() ? path_of_family(catalog, like->text()) : std::optional(hidden);
    if (!base || likes == kMostLikes) {
      like->fail(base ? "is like another too often" : "names no file of data/families",
                 "the name of a family's file");
    }
    read_over(catalog, *base, likes + 1, family);
  }
  FieldReader fields(reader, family.texts);
  visit_fields(fields, family.facts);
  std::vector<std::string> allowed = fields.names();
  for (const char* key :
       {"schema", "name", "like", "source", "date", "keys_without_meaning", "fixed_keys"}) {
    allowed.emplace_back(key);
  }
  reader.allow(allowed);
  const std::vector<std::string> schemas{"placet.family-file/1"};
  reader.at("schema").one_of(schemas);
  if (reader.at("name").text() != path.stem().string()) {
    reader.at("name").fail("is not the name of the file", path.stem().string());
  }
  reader.at("source").text();
  reader.at("date").text();
  read_keys(reader, family);
}

}  // namespace

std::optional<FamilyFile> load_family_file(const Catalog& catalog, const std::string& model_type) {
  const auto path = path_of_family(catalog, model_type);
  if (!path) return std::nullopt;
  FamilyFile family;
  family.texts.push_back(model_type);
  family.facts.family = family.texts.back();
  read_over(catalog, *path, 0, family);
  return family;
}

Architecture read_with_family_file(ConfigObject& config, const FamilyFile& family) {
  for (const std::string& key : family.without_meaning) config.know({key});
  for (const auto& [key, value] : family.fixed) {
    const Json& said = config.raw(key);
    if (!said.is_null() && said != value) {
      config.fail(key, "is not described for this family", value.dump());
    }
  }
  return read_decoder(config, family.facts);
}

}  // namespace placet
