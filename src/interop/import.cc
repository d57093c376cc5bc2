#include "interop/import.h"

#include <algorithm>
#include <array>
#include <optional>

#include "catalog/reader.h"
#include "interop/lint.h"
#include "units/checked.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

// Words that a job file takes as they are. Whole numbers are written without quotes.
constexpr std::array kJobWords = {"model",       "cluster",   "seq",       "global-batch",
                                  "micro-batch", "recompute", "precision", "optimizer",
                                  "clip",        "engine"};
constexpr std::array kNumbers = {"seq", "global-batch", "micro-batch", "clip"};

bool is_unresolved(const std::string& value) {
  return value.find('$') != std::string::npos || value == "auto" || value.find("{{") == 0;
}

std::string nearest_key(const Dialect& dialect, const std::string& path) {
  std::vector<std::string> known;
  for (const auto& [key, meaning] : dialect.keys) {
    if (!key.ends_with('*')) known.push_back(key);
  }
  return nearest(path, known);
}

// What becomes of a key that gives no word.
Fate fate_of(const std::string& effect) {
  if (effect == "none") return Fate::no_effect;
  return effect == "kept" ? Fate::kept : Fate::not_modelled;
}

// What a value says; none: it has no counterpart.
std::optional<std::string> counterpart(const KeyMeaning& meaning, const std::string& value) {
  if (meaning.values.empty()) return value;
  auto found = meaning.values.find(value);
  if (found == meaning.values.end()) found = meaning.values.find("*");
  return found == meaning.values.end() ? std::nullopt : std::optional(found->second);
}

void understand(const KeyMeaning& meaning, LedgerLine& line, Imported& imported) {
  if (meaning.word.empty()) {
    line.fate = fate_of(meaning.effect);
    line.what = line.fate == Fate::not_modelled ? meaning.effect : "";
    return;
  }
  line.what = meaning.word;
  if (is_unresolved(line.setting.value)) {
    line.fate = Fate::unresolved;
    return;
  }
  const auto value = counterpart(meaning, line.setting.value);
  if (!value) {
    imported.unclear.insert(meaning.word);
    line.fate = Fate::not_modelled;
    line.what = meaning.word + ": this value has no counterpart";
    return;
  }
  // A word that rules read may still be one that a job cannot say.
  line.fate = meaning.effect.empty() ? Fate::understood : Fate::not_modelled;
  if (!meaning.effect.empty()) line.what = meaning.effect;
  imported.words[meaning.word] = *value;
}

// Comparing spellings is dear, and nobody reads more of them.
constexpr std::size_t kMostNearest = 100;

void read_ledger(const Source& source, const Dialect* dialect, Imported& imported) {
  std::size_t compared = 0;
  for (const Setting& setting : source.settings) {
    LedgerLine line{.file = source.file, .setting = setting, .fate = Fate::unknown, .what = {}};
    const KeyMeaning* meaning = dialect == nullptr ? nullptr : meaning_of(*dialect, setting.path);
    if (meaning != nullptr) {
      understand(*meaning, line, imported);
    } else if (source.form == SourceForm::arguments && !setting.path.starts_with('-')) {
      line.fate = Fate::kept;  // a variable: its uses are settings of their own
    } else if (dialect != nullptr && compared++ < kMostNearest) {
      line.what = nearest_key(*dialect, setting.path);
    }
    imported.ledger.push_back(std::move(line));
  }
}

std::optional<long long> product_of(const std::vector<std::string>& names, const Words& words) {
  long long product = 1;
  for (const std::string& name : names) {
    const auto found = words.find(name);
    const auto number = whole_number(found == words.end() ? name : found->second);
    if (!number || *number < 1) return std::nullopt;
    product = checked_multiply(product, *number, name);
  }
  return product;
}

// None: what it stands on is not known.
std::optional<std::string> value_of(const DerivedWord& derived, const Words& words) {
  if (!holds(derived.when, words)) return std::nullopt;
  if (!derived.text.empty()) return filled(derived.text, words);
  const auto above = product_of(derived.product, words);
  const auto below = product_of(derived.over, words);
  if (!above || !below || *above % *below != 0) return std::nullopt;
  return std::to_string(*above / *below);
}

// What holds where nothing is said of a word.
bool is_default(const DerivedWord& derived) {
  const bool is_one = derived.product == std::vector<std::string>{"1"} && derived.over.empty();
  return derived.when.empty() && (is_one || !derived.text.empty());
}

// Each derived word, in the order of the file, where what it stands on is known. A default does not
// take the place of what was said and not understood.
void derive_words(const Dialect& dialect, const std::set<std::string>& unclear, Words& words,
                  const Words& given) {
  for (const DerivedWord& derived : dialect.derived) {
    const bool is_said = words.contains(derived.word) && !derived.replaces;
    if (given.contains(derived.word) || is_said) continue;
    if (is_default(derived) && unclear.contains(derived.word)) continue;
    if (const auto value = value_of(derived, words)) words[derived.word] = *value;
  }
}

// The first terms of an axis that apply. The last entry of a dialect has no condition.
std::string terms_of(const DialectAxis& axis, const Words& words) {
  for (const AxisTerms& terms : axis.terms) {
    if (!holds(terms.when, words)) continue;
    if (const auto text = filled(terms.terms, words)) return *text;
  }
  refuse("dialect: axes: " + axis.name, "", "has no terms for what the sources say",
         "terms without a condition at the end");
}

std::string placement_of(const Dialect& dialect, const Words& words, std::string& unsaid) {
  std::string placement;
  for (const DialectAxis& axis : dialect.axes) {
    const auto degree = words.find(axis.degree);
    const auto number = degree == words.end() ? std::nullopt : whole_number(degree->second);
    if (!number || *number < 1) {
      unsaid = axis.degree;
      return "";
    }
    if (*number == 1) continue;
    const std::string terms = terms_of(axis, words);
    placement += (placement.empty() ? "" : " ") + axis.name + "=" + degree->second + ":" + terms;
  }
  return placement;
}

void make_job(const Dialect& dialect, Imported& imported) {
  for (const char* word : kJobWords) {
    if (const auto found = imported.words.find(word); found != imported.words.end()) {
      imported.job[word] = found->second;
    }
  }
  std::string unsaid;
  const std::string placement = placement_of(dialect, imported.words, unsaid);
  if (!placement.empty()) imported.job["placement"] = placement;
  if (!imported.job.contains("model")) imported.missing.push_back({"the model", "--model NAME"});
  if (!unsaid.empty()) {
    imported.missing.push_back(
        {"the degree '" + unsaid + "' (how many devices there are)", "--world-size N"});
  } else if (placement.empty()) {
    imported.missing.push_back({"an axis of more than one device", "--world-size N"});
  }
  if (!imported.job.contains("seq")) imported.missing.push_back({"the sequence", "--seq N"});
}

// "file:line" of the setting that says a word last.
std::string place_of(const std::string& word, const Imported& imported) {
  std::string place = word;
  for (const LedgerLine& line : imported.ledger) {
    if (line.fate != Fate::understood || line.what != word) continue;
    place = line.file + ":" + std::to_string(line.setting.line);
  }
  return place;
}

std::string job_line(const std::string& word, const std::string& value, const Imported& imported) {
  if (std::find(kNumbers.begin(), kNumbers.end(), word) == kNumbers.end()) {
    // What JSON escapes in a text, TOML escapes alike.
    return word + " = " + Json(value).dump() + "\n";
  }
  const bool is_number = !value.empty() &&
                         value.find_first_not_of("0123456789.eE+-") == std::string::npos &&
                         value.find_first_of("0123456789") != std::string::npos;
  if (!is_number) {
    throw InputError({.where = place_of(word, imported),
                      .value = value,
                      .problem = "is no number that '" + word + "' of a job can be",
                      .allowed = "a number",
                      .nearest = {},
                      .excerpt = {}});
  }
  return word + " = " + value + "\n";
}

}  // namespace

std::string name_of(Fate fate) {
  switch (fate) {
    case Fate::understood:
      return "understood";
    case Fate::no_effect:
      return "no effect";
    case Fate::kept:
      return "kept";
    case Fate::not_modelled:
      return "not modelled";
    case Fate::unknown:
      return "unknown";
    case Fate::unresolved:
      return "unresolved";
  }
  fail_internally("every fate has a name");
}

Imported import_sources(const Catalog& catalog, const ImportRequest& request) {
  Imported imported;
  std::optional<Dialect> leading;
  for (const Source& source : request.sources) {
    std::optional<Dialect> dialect = request.dialect.empty()
                                         ? guess_dialect(catalog, source)
                                         : load_dialect(catalog, request.dialect, "--dialect");
    imported.dialects.push_back(dialect ? dialect->name : "");
    read_ledger(source, dialect ? &*dialect : nullptr, imported);
    if (dialect && (!leading || leading->axes.empty())) leading = std::move(dialect);
  }
  if (!leading) {
    throw InputError({.where = request.sources.front().file,
                      .value = {},
                      .problem = "holds no key by which a dialect is known",
                      .allowed = "a configuration of a dialect in data/dialects, or --dialect NAME",
                      .nearest = {},
                      .excerpt = {}});
  }
  for (const auto& [word, value] : request.given) imported.words[word] = value;
  derive_words(*leading, imported.unclear, imported.words, request.given);
  make_job(*leading, imported);
  imported.findings = lint(catalog, request.sources, imported);
  return imported;
}

std::string job_text(const Imported& imported) {
  if (!imported.missing.empty()) {
    std::string what, flags;
    for (const MissingFact& fact : imported.missing) {
      what += (what.empty() ? "" : ", ") + fact.what;
      flags += (flags.empty() ? "" : " ") + fact.flag;
    }
    throw InputError({.where = imported.ledger.empty() ? "sources" : imported.ledger.front().file,
                      .value = {},
                      .problem = "does not say " + what,
                      .allowed = flags,
                      .nearest = {},
                      .excerpt = {}});
  }
  std::string text;
  for (const auto& [word, value] : imported.job) text += job_line(word, value, imported);
  return text;
}

bool is_lossy(const Imported& imported) {
  return std::any_of(imported.ledger.begin(), imported.ledger.end(), [](const LedgerLine& line) {
    return line.fate == Fate::not_modelled || line.fate == Fate::unknown ||
           line.fate == Fate::unresolved;
  });
}

}  // namespace placet
