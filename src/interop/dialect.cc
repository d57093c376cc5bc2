#include "interop/dialect.h"

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <string_view>

#include "catalog/memory.h"
#include "catalog/reader.h"
#include "catalog/versions.h"
#include "interop/rule_reader.h"
#include "units/nearest.h"

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

std::string text_at(const Reader& object, const char* key) {
  const auto value = object.find(key);
  if (!value) return {};
  return value->is_text() ? value->text() : value->print();
}

const std::array<std::string, 8> kKinds = {"text",  "whole",  "flag",  "file",
                                           "names", "stages", "zeros", "devices"};

// "word" alone, or an object that says more.
KeyMeaning read_word_key(const Reader& value) {
  KeyMeaning meaning;
  if (value.is_text()) {
    meaning.word = value.text();
    return meaning;
  }
  value.allow({"word", "values", "each", "not-modelled", "assumed", "type", "default", "source",
               "since", "until", "aliases"});
  meaning.word = value.at("word").text();
  meaning.effect = text_at(value, "not-modelled");
  meaning.assumed = texts_at(value, "assumed");
  meaning.default_value = text_at(value, "default");
  meaning.default_source = text_at(value, "source");
  meaning.since = text_at(value, "since");
  meaning.until = text_at(value, "until");
  if (const auto each = value.find("each")) meaning.each = each->flag();
  if (const auto kind = value.find("type")) {
    meaning.kind = static_cast<ValueKind>(kind->one_of(kKinds));
  }
  if (!meaning.default_value.empty()) value.at("source").text();
  if (const auto values = value.find("values")) {
    for (const auto& [spelling, said] : values->members()) meaning.values[spelling] = said.text();
  }
  return meaning;
}

void read_understood(const Reader& object, Dialect& dialect) {
  for (const auto& [path, value] : object.members()) {
    KeyMeaning meaning = read_word_key(value);
    dialect.keys[path] = meaning;
    meaning.default_value.clear();
    if (!value.is_object()) continue;
    for (const std::string& alias : texts_at(value, "aliases")) dialect.keys[alias] = meaning;
  }
}

// The figure that a key could change, alone or with the values that change none.
void read_figure(const Reader& value, KeyMeaning& meaning) {
  if (value.is_text()) {
    meaning.effect = value.text();
    return;
  }
  value.allow({"could-change", "assumed", "type"});
  meaning.effect = value.at("could-change").text();
  meaning.assumed = texts_at(value, "assumed");
  if (const auto kind = value.find("type")) {
    meaning.kind = static_cast<ValueKind>(kind->one_of(kKinds));
  }
}

void read_keys(const Reader& object, Dialect& dialect) {
  object.allow({"understood", "none", "kept", "not-modelled"});
  if (const auto understood = object.find("understood")) read_understood(*understood, dialect);
  for (const char* effect : {"none", "kept"}) {
    for (const std::string& path : texts_at(object, effect)) dialect.keys[path].effect = effect;
  }
  if (const auto figures = object.find("not-modelled")) {
    for (const auto& [path, figure] : figures->members()) read_figure(figure, dialect.keys[path]);
  }
}

}  // namespace

DerivedWord read_derived(const Reader& object) {
  object.allow({"word", "when", "product", "plus", "over", "minus", "text", "replaces", "rounds",
                "decimal", "beside", "of-model", "size"});
  DerivedWord derived{.word = object.at("word").text(),
                      .when = conditions_at(object, "when"),
                      .product = texts_at(object, "product"),
                      .plus = texts_at(object, "plus"),
                      .over = texts_at(object, "over"),
                      .minus = texts_at(object, "minus"),
                      .text = {},
                      .of_model = {},
                      .size = {},
                      .replaces = false,
                      .rounds_down = false,
                      .is_decimal = false,
                      .beside = false};
  if (const auto text = object.find("text")) derived.text = text->text();
  if (const auto model = object.find("of-model")) {
    derived.of_model = model->text();
    static const std::array<std::string, 6> kSizes = {"layers",   "hidden",  "heads",
                                                      "kv-heads", "experts", "vocabulary"};
    derived.size = kSizes.at(object.at("size").one_of(kSizes));
  }
  if (const auto replaces = object.find("replaces")) derived.replaces = replaces->flag();
  if (const auto beside = object.find("beside")) derived.beside = beside->flag();
  if (const auto decimal = object.find("decimal")) derived.is_decimal = decimal->flag();
  if (const auto rounds = object.find("rounds")) {
    static const std::array<std::string, 1> kWays = {"down"};
    rounds->one_of(kWays);
    derived.rounds_down = true;
  }
  return derived;
}

namespace {

std::vector<AxisTerms> read_terms(const Reader& list, const char* key) {
  std::vector<AxisTerms> terms;
  for (const Reader& item : list.items()) {
    item.allow({"when", key});
    terms.push_back({.when = conditions_at(item, "when"), .terms = item.at(key).text()});
  }
  return terms;
}

DialectAxis read_axis(const Reader& object) {
  object.allow({"name", "degree", "terms", "shares"});
  DialectAxis axis{.name = object.at("name").text(),
                   .degree = object.at("degree").text(),
                   .terms = read_terms(object.at("terms"), "terms"),
                   .shares = {}};
  if (const auto shares = object.find("shares")) axis.shares = read_terms(*shares, "shares");
  return axis;
}

BeyondJob read_beyond(const Reader& object) {
  object.allow({"when", "word", "could-change"});
  return {.when = conditions_at(object, "when"),
          .word = object.at("word").text(),
          .effect = object.at("could-change").text()};
}

NeededFact read_need(const Reader& object) {
  object.allow({"when", "what", "flag"});
  return {.when = conditions_at(object, "when"),
          .what = object.at("what").text(),
          .flag = object.at("flag").text()};
}

void read_unknown(const Reader& reader, Dialect& dialect) {
  const auto unknown = reader.find("unknown");
  if (!unknown) return;
  for (const Reader& item : unknown->items()) {
    item.allow({"under", "severity", "what", "source"});
    item.at("source").text();
    static const std::array<std::string, 3> kSeverities = {"error", "warning", "advice"};
    dialect.unknown.push_back({.under = text_at(item, "under"),
                               .severity = kSeverities.at(item.at("severity").one_of(kSeverities)),
                               .what = item.at("what").text()});
  }
}

void read_agreements(const Reader& reader, Dialect& dialect) {
  const auto list = reader.find("must-agree");
  if (!list) return;
  for (const Reader& item : list->items()) {
    item.allow({"with", "words", "when", "what", "source"});
    item.at("source").text();
    dialect.must_agree.push_back({.with = texts_at(item, "with"),
                                  .words = texts_at(item, "words"),
                                  .when = conditions_at(item, "when"),
                                  .what = item.at("what").text()});
  }
}

void read_models(const Reader& reader, Dialect& dialect) {
  const auto models = reader.find("models");
  if (!models) return;
  for (const Reader& item : models->items()) {
    item.allow({"when", "asks", "config", "source"});
    item.at("source").text();
    DescribedModel model{
        .when = conditions_at(item, "when"), .asks = texts_at(item, "asks"), .config = {}};
    for (const auto& [key, value] : item.at("config").members()) {
      model.config.emplace_back(key, value.is_text() ? value.text() : value.print());
    }
    dialect.models.push_back(std::move(model));
  }
}

// What a dialect has of the one that it is like: all that it does not say itself. Keys of that one
// stand below `under`.
void add_base(const Dialect& base, const std::string& under, Dialect& dialect) {
  for (const auto& [path, meaning] : base.keys) dialect.keys.emplace(under + path, meaning);
  dialect.derived.insert(dialect.derived.end(), base.derived.begin(), base.derived.end());
  dialect.needs.insert(dialect.needs.end(), base.needs.begin(), base.needs.end());
  if (dialect.axes.empty()) dialect.axes = base.axes;
  dialect.beyond.insert(dialect.beyond.end(), base.beyond.begin(), base.beyond.end());
  dialect.models.insert(dialect.models.end(), base.models.begin(), base.models.end());
  for (UnknownKeys keys : base.unknown) {
    keys.under.insert(0, under);
    dialect.unknown.push_back(std::move(keys));
  }
}

// JSON is read as the part of YAML that it is.
bool is_alike(SourceForm a, SourceForm b) {
  const auto is_yaml = [](SourceForm form) {
    return form == SourceForm::yaml || form == SourceForm::json;
  };
  return a == b || (is_yaml(a) && is_yaml(b));
}

// An option's name with dashes for underscores: many readers of options take both.
std::string dashed(std::string path) {
  if (!path.starts_with("--")) return path;
  std::replace(path.begin(), path.end(), '_', '-');
  return path;
}

// By mark the heads that have it, by position.
using Marks = std::map<std::string, std::vector<std::size_t>, std::less<>>;

Marks heads_by_mark(const std::vector<DialectHead>& heads, const Source& source) {
  Marks marks;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    if (!is_alike(heads[i].form, source.form)) continue;
    for (const std::string& mark : heads[i].marks) {
      std::vector<std::size_t>& those = marks[dashed(mark)];
      if (those.empty() || those.back() != i) those.push_back(i);  // one mark in two spellings
    }
  }
  return marks;
}

// The marks that a source has: its keys, objects that hold keys, and, with '$' in front, programs
// and scripts that it calls.
std::set<std::string, std::less<>> marks_of(const Source& source, const Marks& known) {
  std::set<std::string, std::less<>> seen;
  for (const Setting& setting : source.settings) {
    const std::string path = dashed(setting.path);
    for (std::size_t end = 0; end < path.size();) {
      end = std::min(path.find('.', end + 1), path.size());
      const auto mark = known.find(std::string_view(path).substr(0, end));
      if (mark != known.end()) seen.insert(mark->first);
    }
  }
  for (const std::string& command : source.commands) {
    if (known.contains("$" + command)) seen.insert("$" + command);
  }
  return seen;
}

// Whether a source has all marks of "$train.py & --stage".
bool has_all(const std::set<std::string, std::less<>>& seen, std::string_view marks) {
  constexpr std::string_view kBetween = " & ";
  while (true) {
    const std::size_t end = marks.find(kBetween);
    if (!seen.contains(dashed(std::string(marks.substr(0, end))))) return false;
    if (end == std::string_view::npos) return true;
    marks.remove_prefix(end + kBetween.size());
  }
}

// For each head how many of its marks the source has; none where it lacks those that tell it.
std::vector<std::size_t> marks_in(const std::vector<DialectHead>& heads, const Source& source) {
  const Marks known = heads_by_mark(heads, source);
  const std::set<std::string, std::less<>> seen = marks_of(source, known);
  std::vector<std::size_t> counts(heads.size(), 0);
  for (const std::string& mark : seen) {
    for (const std::size_t head : known.at(mark)) ++counts[head];
  }
  const auto is_seen = [&](const std::string& told) { return has_all(seen, told); };
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const std::vector<std::string>& told_by = heads[i].told_by;
    if (!told_by.empty() && std::ranges::none_of(told_by, is_seen)) counts[i] = 0;
  }
  return counts;
}

}  // namespace

const KeyMeaning* meaning_of(const Dialect& dialect, const std::string& path) {
  if (const auto found = dialect.keys.find(path); found != dialect.keys.end()) {
    return &found->second;
  }
  if (const std::string other = dashed(path); other != path) {
    return meaning_of(dialect, other);
  }
  const auto longest = std::ranges::find_if(
      dialect.beginnings, [&](const std::string& own) { return path.starts_with(own); });
  return longest == dialect.beginnings.end() ? nullptr : &dialect.keys.at(*longest + "*");
}

bool speaks_of(const Dialect& dialect, const std::string& word) {
  const auto asks = [&](const std::vector<WordCondition>& when) {
    return std::ranges::any_of(when, [&](const WordCondition& c) { return c.word == word; });
  };
  return std::ranges::any_of(dialect.keys, [&](const auto& k) { return k.second.word == word; }) ||
         std::ranges::any_of(dialect.derived,
                             [&](const auto& d) { return d.word == word || asks(d.when); }) ||
         std::ranges::any_of(dialect.axes, [&](const auto& a) { return a.degree == word; });
}

namespace {

constexpr int kMostLike = 8;

// By its head a dialect is found, and no more than that is read then (read_head).
void refuse_head_behind_keys(const Reader& reader) {
  bool is_behind = false;
  for (const auto& [key, value] : reader.members()) {
    if (is_behind && (key == "form" || key == "marks" || key == "told-by")) {
      value.fail("stands behind 'keys', where nobody looks for it", "in front of 'keys'");
    }
    is_behind = is_behind || key == "keys";
  }
}

Dialect read_dialect(const Catalog& catalog, const std::string& name, const std::string& where,
                     int depth) {
  const Document document = open_document(file_of(catalog, "dialects", "dialect", name, where));
  const Reader reader(document);
  reader.allow({"schema",    "name",   "title",     "form",    "source",  "date",
                "like",      "under",  "marks",     "told-by", "keys",    "derived",
                "needs",     "axes",   "beyond",    "models",  "unknown", "gives-way-to",
                "yields-to", "export", "must-agree"});
  refuse_head_behind_keys(reader);
  Dialect dialect;
  dialect.name = name;
  dialect.title = reader.at("title").text();
  dialect.form = static_cast<SourceForm>(reader.at("form").one_of(kForms));
  reader.at("source").text();
  reader.at("date").text();
  dialect.marks = texts_at(reader, "marks");
  dialect.told_by = texts_at(reader, "told-by");
  dialect.gives_way_to = texts_at(reader, "gives-way-to");
  dialect.yields_to = texts_at(reader, "yields-to");
  read_keys(reader.at("keys"), dialect);
  for (const Reader& item : reader.at("derived").items()) {
    dialect.derived.push_back(read_derived(item));
  }
  if (const auto needs = reader.find("needs")) {
    for (const Reader& item : needs->items()) dialect.needs.push_back(read_need(item));
  }
  if (const auto beyond = reader.find("beyond")) {
    for (const Reader& item : beyond->items()) dialect.beyond.push_back(read_beyond(item));
  }
  read_models(reader, dialect);
  read_unknown(reader, dialect);
  read_agreements(reader, dialect);
  for (const Reader& item : reader.at("axes").items()) dialect.axes.push_back(read_axis(item));
  if (const auto like = reader.find("like")) {
    if (depth == kMostLike) like->fail("is a chain that is too long", std::to_string(kMostLike));
    add_base(read_dialect(catalog, like->text(), like->where(), depth + 1),
             text_at(reader, "under"), dialect);
  }
  return dialect;
}

}  // namespace

Dialect load_dialect(const Catalog& catalog, const std::string& name, const std::string& where) {
  const std::string newest = newest_of_name(names_in(catalog, "dialects"), name);
  Dialect dialect = read_dialect(catalog, newest.empty() ? name : newest, where, 0);
  for (const auto& [path, meaning] : dialect.keys) {
    if (path.ends_with('*')) dialect.beginnings.push_back(path.substr(0, path.size() - 1));
  }
  std::ranges::stable_sort(dialect.beginnings, std::greater{}, &std::string::size);
  return dialect;
}

SharedDialect shared_dialect(const Catalog& catalog, const std::string& name,
                             const std::string& where) {
  return shared<Dialect>(catalog, "dialect " + name,
                         [&] { return load_dialect(catalog, name, where); });
}

namespace {

// Keys that a dialect has, as they are written or nearly so.
std::size_t keys_in(const Dialect& dialect, const Source& source) {
  std::vector<std::string> known;
  for (const auto& [path, meaning] : dialect.keys) {
    if (!path.ends_with('*') && !meaning.word.empty()) known.push_back(path);
  }
  constexpr std::size_t kMostCompared = 20;  // settings of a file without marks
  std::size_t found = 0;
  for (std::size_t i = 0; i < source.settings.size() && i < kMostCompared; ++i) {
    const std::string& path = source.settings[i].path;
    if (meaning_of(dialect, path) != nullptr || !nearest(path, known).empty()) ++found;
  }
  return found;
}

// The head of a file: its lists of keys, which are long, are not read.
DialectHead read_head(const CatalogFile& file) {
  const Document document = open_front(file.path, "keys");
  const Reader reader(document);
  if (!reader.has("form") || !reader.has("marks")) {  // they may stand further down
    const Document whole = open_document(file.path);
    refuse_head_behind_keys(Reader(whole));
  }
  return {.name = file.name,
          .form = static_cast<SourceForm>(reader.at("form").one_of(kForms)),
          .marks = texts_at(reader, "marks"),
          .told_by = texts_at(reader, "told-by")};
}

}  // namespace

std::shared_ptr<const std::vector<DialectHead>> dialect_heads(const Catalog& catalog) {
  return shared<std::vector<DialectHead>>(catalog, "dialect heads", [&] {
    std::vector<DialectHead> heads;
    for (const CatalogFile& file : files_in(catalog, "dialects")) heads.push_back(read_head(file));
    return heads;
  });
}

namespace {

// Without a mark: the dialect in the form of the source that knows most of its keys.
std::string guess_by_keys(const Catalog& catalog, const std::vector<DialectHead>& heads,
                          const Source& source) {
  std::string best;
  std::size_t most = source.settings.size() / 2;
  for (const DialectHead& head : heads) {
    if (head.form != source.form || !head.told_by.empty()) continue;  // told by a mark alone
    const SharedDialect dialect = shared_dialect(catalog, head.name, "dialect");
    const std::size_t keys = dialect->axes.empty() ? 0 : keys_in(*dialect, source);
    if (keys <= most) continue;
    most = keys;
    best = head.name;
  }
  return best;
}

}  // namespace

std::string guess_dialect(const Catalog& catalog, const std::vector<DialectHead>& heads,
                          const Source& source) {
  std::string best;
  std::size_t most = 0;
  const std::vector<std::size_t> marks = marks_in(heads, source);
  for (std::size_t i = 0; i < heads.size(); ++i) {
    if (marks[i] == 0 || marks[i] < most) continue;
    most = marks[i];
    best = heads[i].name;
  }
  const bool has_keys = source.form != SourceForm::arguments;
  return best.empty() && has_keys ? guess_by_keys(catalog, heads, source) : best;
}

}  // namespace placet
