#include "cli/word_explanations.h"

#include <algorithm>
#include <array>
#include <set>

#include "catalog/meant.h"
#include "catalog/profile_catalog.h"
#include "catalog/reader.h"
#include "catalog/strategy_catalog.h"
#include "catalog/word_file.h"
#include "placement/grammar.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

/// A folder of the catalogue whose files are words: what each is, and which file of data/words
/// holds second names.
struct Shelf {
  const char* folder;
  const char* kind;
  const char* words;
};
constexpr std::array kShelves = {Shelf{"strategies", "strategy", "strategies"},
                                 Shelf{"schedules", "schedule", "strategies"},
                                 Shelf{"attention", "exchange of attention", "strategies"},
                                 Shelf{"hardware/devices", "device", "devices"},
                                 Shelf{"hardware/links", "link", "links"},
                                 Shelf{"hardware/hosts", "host", "hosts"},
                                 Shelf{"clusters", "cluster", "clusters"},
                                 Shelf{"models", "model", "models"},
                                 Shelf{"engines", "engine", "engines"},
                                 Shelf{"precisions", "precision", "precisions"},
                                 Shelf{"formats", "number format", "formats"},
                                 Shelf{"optimizers", "optimizer", "optimizers"},
                                 Shelf{"lint", "lint rule", "lint"},
                                 Shelf{"dialects", "dialect", "dialects"}};

constexpr std::size_t kMostFacts = 200;

std::string plain_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.dump();
}

// --- files

/// Where a figure of a file comes from: "datasheet, a page, 2025-06".
std::string origin_of(const Json& figure) {
  std::string source;
  for (const char* part : {"kind", "source", "date"}) {
    if (!figure.contains(part)) continue;
    source += (source.empty() ? "" : ", ") + plain_text(figure[part]);
  }
  return source;
}

/// Figures with a source, and plain values, under their key path.
void add_facts(const Json& object, const std::string& prefix, std::vector<ExplainedFact>& facts) {
  static const std::set<std::string> kSaidElsewhere = {"schema", "name",    "title", "description",
                                                       "source", "sources", "date",  "config",
                                                       "notes",  "options", "given"};
  for (const auto& [key, value] : object.items()) {
    if (facts.size() >= kMostFacts) return;
    if (prefix.empty() && kSaidElsewhere.contains(key)) continue;
    std::string path = prefix;
    if (!path.empty()) path += '.';
    path += key;
    if (value.is_object() && value.contains("value")) {
      facts.push_back({path, plain_text(value["value"]), origin_of(value)});
    } else if (value.is_object()) {
      add_facts(value, path, facts);
    } else {
      facts.push_back({path, plain_text(value), {}});
    }
  }
}

std::string text_at(const Json& object, const char* key) {
  return object.contains(key) && object[key].is_string() ? object[key].get<std::string>()
                                                         : std::string();
}

Explanation explanation_of_file(const Catalog& catalog, const Shelf& shelf,
                                const std::string& stem) {
  const Document document = open_document(path_in(catalog, shelf.folder, stem));
  const Json& json = document.value;
  Explanation one{.kind = shelf.kind, .word = stem};
  for (const char* key : {"title", "description", "message"}) {
    if (one.title.empty()) one.title = text_at(json, key);
  }
  one.meaning = text_at(json, "notes");
  add_facts(json, {}, one.facts);
  if (const std::string source = text_at(json, "source"); !source.empty()) {
    one.sources.push_back(source);
  }
  if (json.contains("sources")) {
    for (const Json& source : json["sources"]) one.sources.push_back(plain_text(source));
  }
  return one;
}

/// The modes of a word of the grammar, with the picture of each.
void add_modes(const Catalog& catalog, const std::string& word, Explanation& one) {
  const WordFile modes = load_words(catalog, "modes");
  Placement placement;
  try {
    placement = parse_placement("x=2:" + word, load_strategies(catalog).vocabulary);
  } catch (const InputError&) {
    return;  // a term that stands beside others only
  }
  const How& how = placement.axes.front().how;
  one.facts.clear();
  one.facts.push_back({"cut", std::string(name_of(how.cut)), {}});
  one.picture.push_back("                    device 0    device 1");
  for (State state : kStates) {
    const std::string symbol(symbol_of(how.modes[state]));
    const auto entry = std::ranges::find(modes.entries, symbol, &WordEntry::word);
    std::string line = std::string(name_of(state));
    line.resize(14, ' ');
    line += symbol;
    line.resize(20, ' ');
    if (entry == modes.entries.end()) continue;
    if (!entry->picture.empty()) line += entry->picture.front();
    one.picture.push_back(line);
    one.facts.push_back({std::string(name_of(state)), symbol + ", " + entry->title, {}});
  }
}

/// The files of a name: one, or of an engine its versions, newest first.
std::vector<std::string> files_of(const Catalog& catalog, const Shelf& shelf,
                                  const std::string& word) {
  std::vector<std::string> found;
  for (const std::string& stem : names_in(catalog, shelf.folder)) {
    const bool is_version =
        stem.starts_with(word + "@") && stem.find('-', word.size() + 1) == std::string::npos;
    if (stem == word || is_version) found.push_back(stem);
  }
  std::ranges::reverse(found);
  return found;
}

/// Names of a shelf as words: of engines without their versions.
std::vector<std::string> words_on(const Catalog& catalog, const Shelf& shelf) {
  std::set<std::string> words;
  for (const std::string& stem : names_in(catalog, shelf.folder)) {
    words.insert(stem);
    words.insert(stem.substr(0, stem.find('@')));
  }
  return {words.begin(), words.end()};
}

/// What may be laid over the engine's version, and what it says of some jobs only, before its
/// facts.
void add_variants(const Catalog& catalog, const std::string& stem, Explanation& one) {
  std::vector<ExplainedFact> facts;
  const EngineVariants variants = engine_variants(catalog, stem);
  facts.reserve(variants.options.size() + variants.sizes.size() + variants.cases.size());
  for (const EngineOption& option : variants.options) {
    facts.push_back({"option +" + option.name, option.title, {}});
  }
  for (const EngineSize& size : variants.sizes) {
    facts.push_back({"--set " + size.name + "=" + std::to_string(size.standard), size.title, {}});
  }
  for (const EngineCase& given : variants.cases) {
    facts.push_back({"where", given.when, given.what});
  }
  one.facts.insert(one.facts.begin(), facts.begin(), facts.end());
}

/// Of each engine's file that offers the word as an option, what the option says.
void add_engine_options(const Catalog& catalog, const std::string& word,
                        std::vector<Explanation>& out) {
  for (const std::string& stem : profile_names(catalog)) {
    const Document document = open_document(path_in(catalog, "engines", stem));
    if (!document.value.contains("options")) continue;
    for (const auto& [name, facts] : document.value["options"].items()) {
      if (squeezed(name) != squeezed(word)) continue;
      Explanation one{
          .kind = "option of an engine", .word = name, .title = text_at(facts, "title")};
      one.meaning.append("--engine ").append(stem).append("+").append(name);
      add_facts(facts, {}, one.facts);
      out.push_back(std::move(one));
    }
  }
}

std::set<std::string> option_words_of(const Catalog& catalog) {
  std::set<std::string> words;
  for (const std::string& name : profile_names_with_options(catalog)) {
    const std::size_t plus = name.find('+');
    if (plus != std::string::npos) words.insert(name.substr(plus + 1));
  }
  return words;
}

// --- entries of data/words

bool is_called(const WordEntry& entry, const std::string& word) {
  const std::string plain = squeezed(word);
  const auto is_it = [&](const std::string& one) {
    return one == word || (!plain.empty() && squeezed(one) == plain);
  };
  return is_it(entry.word) || std::ranges::any_of(entry.also, is_it);
}

void add_entries(const Catalog& catalog, const std::string& word, std::vector<Explanation>& out) {
  for (const std::string& name : names_in(catalog, "words")) {
    const WordFile file = load_words(catalog, name);
    for (const WordEntry& entry : file.entries) {
      if (!is_called(entry, word)) continue;
      out.push_back({.kind = file.kind,
                     .word = entry.word,
                     .title = entry.title,
                     .meaning = entry.meaning,
                     .picture = entry.picture,
                     .facts = {},
                     .sources = {entry.source}});
    }
  }
}

/// "'h100' is taken as h100-sxm: the SXM5 board of 80 GB", before what else is said.
void say_what_is_meant(const std::string& word, const MeantName& meant, Explanation& one) {
  if (meant.note.empty()) return;
  one.meaning = "'" + word + "' is taken as " + meant.name + ": " + meant.note +
                (one.meaning.empty() ? "" : ". " + one.meaning);
}

void add_files(const Catalog& catalog, const std::string& word, std::vector<Explanation>& out) {
  for (const Shelf& shelf : kShelves) {
    const MeantName meant =
        meant_name(load_words(catalog, shelf.words), words_on(catalog, shelf), word);
    if (meant.name.empty()) continue;
    for (const std::string& stem : files_of(catalog, shelf, meant.name)) {
      Explanation one = explanation_of_file(catalog, shelf, stem);
      say_what_is_meant(word, meant, one);
      if (std::string_view(shelf.words) == "strategies") add_modes(catalog, stem, one);
      if (std::string_view(shelf.folder) == "engines") add_variants(catalog, stem, one);
      out.push_back(std::move(one));
    }
  }
}

}  // namespace

std::vector<std::string> explained_words(const Catalog& catalog) {
  std::set<std::string> words;
  for (const Shelf& shelf : kShelves) {
    for (std::string& word : words_on(catalog, shelf)) words.insert(std::move(word));
  }
  words.merge(option_words_of(catalog));
  for (const std::string& name : names_in(catalog, "words")) {
    for (WordEntry& entry : load_words(catalog, name).entries) words.insert(std::move(entry.word));
  }
  return {words.begin(), words.end()};
}

std::vector<Explanation> explanations_of(const Catalog& catalog, const std::string& word) {
  std::vector<Explanation> out;
  add_entries(catalog, word, out);
  add_files(catalog, word, out);
  add_engine_options(catalog, word, out);
  if (!out.empty()) return out;
  const Meant engine = meant_engine(catalog, word);
  if (engine.text != word) {
    out = explanations_of(catalog, engine.text);
    for (const std::string& note : engine.notes) {
      out.front().meaning = note + ". " + out.front().meaning;
    }
    return out;
  }
  const std::vector<std::string> words = explained_words(catalog);
  throw InputError({.where = "placet explain",
                    .value = word,
                    .problem = "is no word of placet",
                    .allowed = "one that `placet explain --names` lists",
                    .nearest = nearest(word, words)});
}

}  // namespace placet
