// Words of the sources to the words of a job.
#include <array>
#include <optional>

#include "catalog/meant.h"
#include "interop/import_parts.h"
#include "units/checked.h"
#include "units/error.h"

namespace placet {
namespace {

// Words that a job file takes as they are. Whole numbers are written without quotes.
constexpr std::array kJobWords = {"model",       "cluster",      "seq",       "global-batch",
                                  "micro-batch", "recompute",    "precision", "optimizer",
                                  "clip",        "engine",       "lora",      "placement",
                                  "routing",     "balance-loss", "lengths"};
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

std::optional<long long> sum_of(const std::vector<std::string>& names, const Words& words) {
  long long sum = 0;
  for (const std::string& name : names) {
    const auto found = words.find(name);
    const auto number = whole_number(found == words.end() ? name : found->second);
    if (!number || *number < 0) return std::nullopt;
    sum = checked_add(sum, *number, name);
  }
  return sum;
}

// None: what it stands on is not known.
std::optional<std::string> value_of(const DerivedWord& derived, const Words& words) {
  if (!holds(derived.when, words)) return std::nullopt;
  if (!derived.text.empty()) return filled(derived.text, words);
  const auto above = product_of(derived.product, words);
  const auto below = product_of(derived.over, words);
  if (!above || !below || *above % *below != 0) return std::nullopt;
  const auto less = sum_of(derived.minus, words);
  if (!less || *less > *above / *below) return std::nullopt;
  return std::to_string(*above / *below - *less);
}

// What holds where nothing is said of a word.
bool is_default(const DerivedWord& derived) {
  const bool is_one = derived.product == std::vector<std::string>{"1"} && derived.over.empty();
  return derived.when.empty() && (is_one || !derived.text.empty());
}

// What the engine takes for a word of which nothing is said.
void take_defaults(const Dialect& dialect, const std::set<std::string>& unclear, Words& words) {
  for (const auto& [path, meaning] : dialect.keys) {
    if (meaning.default_value.empty() || unclear.contains(meaning.word)) continue;
    const auto found = meaning.values.find(meaning.default_value);
    words.emplace(meaning.word,
                  found == meaning.values.end() ? meaning.default_value : found->second);
  }
}

}  // namespace

// Each derived word, in the order of the file, where what it stands on is known. A default does not
// take the place of what was said and not understood.
void derive_words(const Dialect& dialect, const std::set<std::string>& unclear, Words& words,
                  const Words& given) {
  take_defaults(dialect, unclear, words);
  for (const DerivedWord& derived : dialect.derived) {
    const bool is_said = words.contains(derived.word) && !derived.replaces;
    if (given.contains(derived.word) || is_said) continue;
    if (is_default(derived) && unclear.contains(derived.word)) continue;
    if (const auto value = value_of(derived, words)) words[derived.word] = *value;
  }
}

namespace {

// The first terms of an axis that apply. The last entry of a dialect has no condition.
std::string terms_of(const DialectAxis& axis, const Words& words) {
  for (const AxisTerms& terms : axis.terms) {
    if (!holds(terms.when, words)) continue;
    // What a word adds to terms may be a blank: nothing.
    if (auto text = filled(terms.terms, words)) {
      std::erase(*text, ' ');
      return *text;
    }
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

// Names of one owner, "meta-llama/...", that the catalogue does not hold are no model here.
bool is_model(const Catalog& catalog, const std::string& word) {
  try {
    meant_model(catalog, word);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

void check_model(const Catalog& catalog, Imported& imported) {
  const auto model = imported.job.find("model");
  if (model == imported.job.end()) {
    imported.missing.push_back({"the model", "--model NAME"});
  } else if (!is_model(catalog, model->second)) {
    imported.missing.push_back(
        {"a model that is known ('" + model->second + "' is not)", "--model NAME"});
    imported.job.erase(model);
  }
}

void add_needs(const Dialect& dialect, Imported& imported) {
  for (const NeededFact& need : dialect.needs) {
    if (!holds(need.when, imported.words)) continue;
    imported.missing.push_back({filled(need.what, imported.words).value_or(need.what),
                                filled(need.flag, imported.words).value_or(need.flag)});
  }
}

void add_placement(const Dialect& dialect, Imported& imported) {
  if (imported.job.contains("placement")) return;
  if (dialect.axes.empty()) {
    imported.missing.push_back({"a placement", "--placement TEXT"});
    return;
  }
  std::string unsaid;
  const std::string placement = placement_of(dialect, imported.words, unsaid);
  if (!placement.empty()) {
    imported.job["placement"] = placement;
  } else if (unsaid.empty()) {
    const DialectAxis& axis = dialect.axes.back();  // one device
    imported.job["placement"] = axis.name + "=1:" + terms_of(axis, imported.words);
  } else if (imported.unclear.contains(unsaid)) {
    imported.missing.push_back({"the degree '" + unsaid + "'", "--set " + unsaid + "=N"});
  } else if (imported.words.contains("world-size")) {
    imported.missing.push_back({"degrees that divide " + imported.words.at("world-size") +
                                    " devices ('" + unsaid + "' is left over)",
                                "--world-size N"});
  } else {
    imported.missing.push_back(
        {"the degree '" + unsaid + "' (how many devices there are)", "--world-size N"});
  }
}

}  // namespace

void make_job(const Catalog& catalog, const Dialect& dialect, Imported& imported) {
  for (const char* word : kJobWords) {
    if (const auto found = imported.words.find(word); found != imported.words.end()) {
      imported.job[word] = found->second;
    }
  }
  check_model(catalog, imported);
  add_needs(dialect, imported);
  add_placement(dialect, imported);
  if (!imported.job.contains("seq")) imported.missing.push_back({"the sequence", "--seq N"});
}

}  // namespace placet
