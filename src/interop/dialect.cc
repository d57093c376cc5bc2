#include "interop/dialect.h"

#include <algorithm>
#include <array>

#include "catalog/reader.h"
#include "interop/rule_reader.h"

namespace placet {
namespace {

const std::array<std::string, 4> kForms = {"toml", "yaml", "json", "arguments"};

std::vector<std::string> texts_at(const Reader& object, const char* key) {
  std::vector<std::string> texts;
  if (const auto list = object.find(key)) {
    for (const Reader& item : list->items()) texts.push_back(item.text());
  }
  return texts;
}

// "word" alone, or an object that says more.
KeyMeaning read_word_key(const Reader& value) {
  KeyMeaning meaning;
  if (value.is_text()) {
    meaning.word = value.text();
    return meaning;
  }
  value.allow({"word", "values", "not-modelled"});
  meaning.word = value.at("word").text();
  if (const auto figure = value.find("not-modelled")) meaning.effect = figure->text();
  if (const auto values = value.find("values")) {
    for (const auto& [spelling, said] : values->members()) meaning.values[spelling] = said.text();
  }
  return meaning;
}

void read_keys(const Reader& object, Dialect& dialect) {
  object.allow({"understood", "none", "kept", "not-modelled"});
  if (const auto understood = object.find("understood")) {
    for (const auto& [path, value] : understood->members()) {
      dialect.keys[path] = read_word_key(value);
    }
  }
  for (const char* effect : {"none", "kept"}) {
    for (const std::string& path : texts_at(object, effect)) {
      dialect.keys[path] = {.word = {}, .values = {}, .effect = effect};
    }
  }
  if (const auto figures = object.find("not-modelled")) {
    for (const auto& [path, figure] : figures->members()) {
      dialect.keys[path] = {.word = {}, .values = {}, .effect = figure.text()};
    }
  }
}

DerivedWord read_derived(const Reader& object) {
  object.allow({"word", "when", "product", "over", "text", "replaces"});
  DerivedWord derived{.word = object.at("word").text(),
                      .when = conditions_at(object, "when"),
                      .product = texts_at(object, "product"),
                      .over = texts_at(object, "over"),
                      .text = {},
                      .replaces = false};
  if (const auto text = object.find("text")) derived.text = text->text();
  if (const auto replaces = object.find("replaces")) derived.replaces = replaces->flag();
  return derived;
}

DialectAxis read_axis(const Reader& object) {
  object.allow({"name", "degree", "terms"});
  DialectAxis axis{
      .name = object.at("name").text(), .degree = object.at("degree").text(), .terms = {}};
  for (const Reader& item : object.at("terms").items()) {
    item.allow({"when", "terms"});
    axis.terms.push_back({.when = conditions_at(item, "when"), .terms = item.at("terms").text()});
  }
  return axis;
}

std::size_t marks_in(const Dialect& dialect, const Source& source) {
  const auto has = [&](const std::string& mark) {
    return std::any_of(source.settings.begin(), source.settings.end(), [&](const Setting& setting) {
      return setting.path == mark || setting.path.starts_with(mark + ".");
    });
  };
  return static_cast<std::size_t>(std::count_if(dialect.marks.begin(), dialect.marks.end(), has));
}

}  // namespace

const KeyMeaning* meaning_of(const Dialect& dialect, const std::string& path) {
  if (const auto found = dialect.keys.find(path); found != dialect.keys.end()) {
    return &found->second;
  }
  const KeyMeaning* best = nullptr;
  std::size_t longest = 0;
  for (const auto& [key, meaning] : dialect.keys) {
    if (!key.ends_with('*') || key.size() <= longest) continue;
    if (!path.starts_with(key.substr(0, key.size() - 1))) continue;
    best = &meaning;
    longest = key.size();
  }
  return best;
}

Dialect load_dialect(const Catalog& catalog, const std::string& name, const std::string& where) {
  const Document document = open_document(file_of(catalog, "dialects", "dialect", name, where));
  const Reader reader(document);
  reader.allow(
      {"schema", "name", "title", "form", "source", "date", "marks", "keys", "derived", "axes"});
  Dialect dialect;
  dialect.name = name;
  dialect.title = reader.at("title").text();
  dialect.form = static_cast<SourceForm>(reader.at("form").one_of(kForms));
  reader.at("source").text();
  reader.at("date").text();
  dialect.marks = texts_at(reader, "marks");
  read_keys(reader.at("keys"), dialect);
  for (const Reader& item : reader.at("derived").items()) {
    dialect.derived.push_back(read_derived(item));
  }
  for (const Reader& item : reader.at("axes").items()) dialect.axes.push_back(read_axis(item));
  return dialect;
}

std::optional<Dialect> guess_dialect(const Catalog& catalog, const Source& source) {
  std::optional<Dialect> best;
  std::size_t most = 0;
  for (const std::string& name : names_in(catalog, "dialects")) {
    Dialect dialect = load_dialect(catalog, name, "dialect");
    if (dialect.form != source.form) continue;
    const std::size_t marks = marks_in(dialect, source);
    if (marks == 0 || marks < most) continue;
    most = marks;
    best = std::move(dialect);
  }
  return best;
}

}  // namespace placet
