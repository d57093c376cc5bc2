// Words of the sources to the words of a job.
#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>

#include "catalog/job.h"
#include "catalog/meant.h"
#include "catalog/reader.h"
#include "interop/import_parts.h"
#include "units/checked.h"
#include "units/error.h"

namespace placet {
namespace {

// Words that a job file takes as they are. Whole numbers are written without quotes.
constexpr std::array<std::string_view, 17> kJobWords = {
    "model",     "cluster",      "seq",     "global-batch", "micro-batch", "recompute",
    "precision", "optimizer",    "clip",    "engine",       "lora",        "placement",
    "routing",   "balance-loss", "lengths", "freeze",       "ignore_keys"};

// A product of numbers above 0, some of which may be decimal fractions ("0.25").
struct Product {
  long long value = 1;
  long long over = 1;
};

// "0.25" as 25 over 100; none: it is no number above 0 of at most nine digits behind the point.
std::optional<Product> factor_of(std::string text) {
  constexpr std::size_t kMostDigits = 9;
  Product factor;
  if (const std::size_t point = text.find('.'); point != std::string::npos) {
    const std::size_t digits = text.size() - point - 1;
    if (digits > kMostDigits) return std::nullopt;
    text.erase(point, 1);
    for (std::size_t i = 0; i < digits; ++i) factor.over *= 10;
  }
  const auto number = whole_number(text);
  if (!number || *number < 1) return std::nullopt;
  factor.value = *number;
  return factor;
}

std::optional<Product> product_of(const std::vector<std::string>& names, const Words& words) {
  Product product;
  for (const std::string& name : names) {
    const auto found = words.find(name);
    const auto factor = factor_of(found == words.end() ? name : found->second);
    if (!factor) return std::nullopt;
    product.value = checked_multiply(product.value, factor->value, name);
    product.over = checked_multiply(product.over, factor->over, name);
  }
  return product;
}

// value / over as a decimal fraction of at most nine digits; none: it is no such number.
std::optional<std::string> decimal_of(long long value, long long over) {
  std::string text = std::to_string(value / over);
  long long left = value % over;
  if (left != 0) text += '.';
  for (int digits = 0; left != 0; ++digits) {
    if (digits == 9) return std::nullopt;
    left = checked_multiply(left, 10LL, "digits");
    text += std::to_string(left / over);
    left %= over;
  }
  return text;
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
  if (!derived.of_model.empty()) {
    const auto size = words.find(derived.of_model + "-" + derived.size);
    return size == words.end() ? std::nullopt : std::optional(size->second);
  }
  const auto above = product_of(derived.product, words);
  const auto below = product_of(derived.over, words);
  const auto more = sum_of(derived.plus, words);
  const auto less = sum_of(derived.minus, words);
  if (!above || !below || !more || !less) return std::nullopt;
  const long long whole =
      checked_add(above->value, checked_multiply(*more, above->over, derived.word), derived.word);
  const long long sum = checked_multiply(whole, below->over, derived.word);
  const long long over = checked_multiply(above->over, below->value, derived.word);
  if (derived.is_decimal && *less == 0) return decimal_of(sum, over);
  if ((sum % over != 0 && !derived.rounds_down) || *less > sum / over) return std::nullopt;
  return std::to_string(sum / over - *less);
}

// What the engine takes for a word of which nothing is said.
// What holds where nothing is said of a word.
bool is_default(const DerivedWord& derived) {
  const bool is_one = derived.product == std::vector<std::string>{"1"} && derived.over.empty();
  return derived.when.empty() && (is_one || !derived.text.empty());
}

void take_defaults(const Dialect& dialect, const std::set<std::string>& unclear, Words& words) {
  for (const auto& [path, meaning] : dialect.keys) {
    if (meaning.default_value.empty() || unclear.contains(meaning.word)) continue;
    const auto found = meaning.values.find(meaning.default_value);
    words.emplace(meaning.word,
                  found == meaning.values.end() ? meaning.default_value : found->second);
  }
}

// A word, where what it stands on is known. A default does not take the place of what was said and
// not understood.
void derive_word(const DerivedWord& derived, const std::set<std::string>& unclear, Words& words,
                 const Words& given) {
  const bool is_said = words.contains(derived.word) && !derived.replaces;
  if (given.contains(derived.word) || is_said) return;
  if (is_default(derived) && unclear.contains(derived.word)) return;
  if (words.contains(derived.word + "-unread") && !derived.replaces) return;
  if (const auto value = value_of(derived, words)) words[derived.word] = *value;
}

}  // namespace

// Each derived word, in the order of the file.
void derive_words(const Dialect& dialect, const std::set<std::string>& unclear, Words& words,
                  const Words& given) {
  take_defaults(dialect, unclear, words);
  for (const DerivedWord& derived : dialect.derived) derive_word(derived, unclear, words, given);
}

void derive_beside(const Dialect& dialect, const std::set<std::string>& unclear, Words& words,
                   const Words& given) {
  for (const DerivedWord& derived : dialect.derived) {
    if (derived.beside) derive_word(derived, unclear, words, given);
  }
}

namespace {

// The first terms that apply; none: there are none. What a word adds to terms may be a blank:
// nothing.
std::optional<std::string> first_of(const std::vector<AxisTerms>& list, const Words& words) {
  for (const AxisTerms& terms : list) {
    if (!holds(terms.when, words)) continue;
    if (auto text = filled(terms.terms, words)) {
      std::erase(*text, ' ');
      return text;
    }
  }
  return std::nullopt;
}

// The last entry of a dialect's axis has no condition.
std::string terms_of(const DialectAxis& axis, const Words& words) {
  if (auto text = first_of(axis.terms, words)) return *text;
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
    const auto shares = first_of(axis.shares, words);
    placement += (placement.empty() ? "" : " ") + axis.name + "=" + degree->second;
    placement += (shares ? "[" + *shares + "]" : "") + ":" + terms_of(axis, words);
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

// Whether a model is told by a path that is not on this machine.
bool is_elsewhere(const Catalog& catalog, const std::string& model) {
  std::error_code error;
  if (model.starts_with('{') || !names_a_file(model) || std::filesystem::exists(model, error)) {
    return false;
  }
  // "Qwen/Qwen3-8B" looks like a path and means a model of the catalogue.
  return is_model(catalog, model) && names_a_file(meant_model(catalog, model).text);
}

// A number, true or false as JSON has them, or a text.
Json plain_json(const std::string& text) {
  const Json read = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return read.is_number() || read.is_boolean() || read.is_null() ? read : Json(text);
}

// The configuration of a model that the words describe; empty: they describe none.
std::string described_model(const Dialect& dialect, const Words& words) {
  for (const DescribedModel& model : dialect.models) {
    const bool is_known = std::ranges::all_of(
        model.asks, [&](const std::string& word) { return words.contains(word); });
    if (!is_known || !holds(model.when, words)) continue;
    Json config = Json::object();
    for (const auto& [key, text] : model.config) {
      if (const auto value = filled(text, words)) config[key] = plain_json(*value);
    }
    return config.dump();
  }
  return "";
}

void describe_model(const Dialect& dialect, Imported& imported) {
  if (imported.job.contains("model")) return;
  const std::string model = described_model(dialect, imported.words);
  if (!model.empty()) imported.job["model"] = model;
}

// The fewest words that a described model still asks for.
std::vector<std::string> asked_of_model(const Dialect& dialect, const Words& words) {
  std::vector<std::string> fewest;
  for (const DescribedModel& model : dialect.models) {
    if (!holds(model.when, words)) continue;
    std::vector<std::string> asked;
    std::ranges::copy_if(model.asks, std::back_inserter(asked),
                         [&](const std::string& word) { return !words.contains(word); });
    if (fewest.empty() || asked.size() < fewest.size()) fewest = std::move(asked);
  }
  return fewest;
}

// The conditions of a description that do not hold.
std::vector<WordCondition> unmet_of(const DescribedModel& model, const Words& words) {
  std::vector<WordCondition> unmet;
  std::ranges::copy_if(model.when, std::back_inserter(unmet), [&](const WordCondition& condition) {
    return !holds(std::span(&condition, 1), words);
  });
  return unmet;
}

// What keeps the description that comes nearest from being the model's, "'gated' is not said";
// empty: there is none that comes near.
std::string model_misfit(const Dialect& dialect, const Words& words) {
  constexpr std::ptrdiff_t kFew = 2;  // words that are not said
  constexpr std::size_t kFar = 3;
  std::vector<WordCondition> fewest(kFar);
  for (const DescribedModel& model : dialect.models) {
    const std::ptrdiff_t unsaid = std::ranges::count_if(
        model.asks, [&](const std::string& word) { return !words.contains(word); });
    std::vector<WordCondition> unmet = unmet_of(model, words);
    if (unsaid <= kFew && unmet.size() < fewest.size()) fewest = std::move(unmet);
  }
  if (fewest.size() >= kFar) return "";
  std::string text;
  for (const WordCondition& condition : fewest) {
    const auto found = words.find(condition.word);
    const bool is_flag = condition.known.has_value();
    text += (text.empty() ? "'" : ", '") + condition.word + "' is ";
    text += found == words.end() ? "not said" : is_flag ? "said" : "'" + found->second + "'";
  }
  return text;
}

MissingFact missing_model(const Dialect& dialect, const Words& words) {
  constexpr std::size_t kFew = 2;
  const std::vector<std::string> asked = asked_of_model(dialect, words);
  if (asked.empty() || asked.size() > kFew) {
    const std::string misfit = model_misfit(dialect, words);
    const std::string why = misfit.empty() ? "" : " (none fits that is described: " + misfit + ")";
    return {"the model" + why, "--model NAME"};
  }
  MissingFact missing{"the model's", ""};
  for (const std::string& word : asked) {
    missing.what += (word == asked.front() ? " " : " and ") + word;
    missing.flag += "--set " + word + "=N ";
  }
  missing.flag += "or --model NAME";
  return missing;
}

void check_model(const Catalog& catalog, const Dialect& dialect, Imported& imported) {
  const auto model = imported.job.find("model");
  if (model == imported.job.end()) {
    imported.missing.push_back(missing_model(dialect, imported.words));
  } else if (!is_model(catalog, model->second)) {
    imported.missing.push_back(
        {"a model that is known ('" + model->second + "' is not)", "--model NAME"});
    imported.job.erase(model);
  } else if (is_elsewhere(catalog, model->second)) {
    imported.missing.push_back(
        {"a model that can be read ('" + model->second + "' is not on this machine)",
         "--model NAME"});
    imported.job.erase(model);
  }
}

// What the values of a word are products and quotients of.
std::set<std::string> operands_of(const Dialect& dialect, const std::string& word) {
  std::set<std::string> operands;
  for (const DerivedWord& derived : dialect.derived) {
    if (derived.word != word) continue;
    operands.insert(derived.product.begin(), derived.product.end());
    operands.insert(derived.over.begin(), derived.over.end());
  }
  return operands;
}

// The word, of those that an unknown one follows from, of which something was said that nobody can
// read; empty: there is none. `seen`: words that were looked at.
std::string open_word_of(const Dialect& dialect, const std::string& word, const Imported& imported,
                         std::set<std::string>& seen) {
  if (imported.words.contains(word) || !seen.insert(word).second) return "";
  if (imported.unclear.contains(word)) return word;
  for (const std::string& operand : operands_of(dialect, word)) {
    std::string open = open_word_of(dialect, operand, imported, seen);
    if (!open.empty()) return open;
  }
  return "";
}

// A word of which nothing is said, that an unknown one is a product or quotient of; empty: there is
// none.
std::string lacking_operand_of(const Dialect& dialect, const std::string& word,
                               const Words& words) {
  const std::set<std::string> operands = operands_of(dialect, word);
  const auto lacking = std::ranges::find_if(operands, [&](const std::string& operand) {
    return !whole_number(operand) && !words.contains(operand);
  });
  return lacking == operands.end() ? "" : *lacking;
}

// Axes whose degree is told, but those of one device: "cp=4, ep=8".
std::string told_axes(const Dialect& dialect, const Words& words) {
  std::string text;
  for (const DialectAxis& axis : dialect.axes) {
    const auto told = words.find(axis.degree);
    if (told == words.end() || told->second == "1") continue;
    text += (text.empty() ? "" : ", ") + axis.name + "=" + told->second;
  }
  return text;
}

void add_placement(const Dialect& dialect, Imported& imported) {
  const bool is_asked = std::ranges::any_of(imported.missing, [](const MissingFact& fact) {
    return fact.flag.starts_with("--placement");
  });
  if (is_asked || imported.job.contains("placement")) return;
  if (dialect.axes.empty()) {
    imported.missing.push_back({"a placement", "--placement TEXT"});
    return;
  }
  std::string unsaid;
  const std::string placement = placement_of(dialect, imported.words, unsaid);
  std::set<std::string> seen;
  std::string open = open_word_of(dialect, unsaid, imported, seen);
  if (open.empty()) open = lacking_operand_of(dialect, unsaid, imported.words);
  if (!placement.empty()) {
    imported.job["placement"] = placement;
  } else if (unsaid.empty()) {
    // One device. What its data axis says (states moved to the host, say) holds all the same.
    const auto data = std::ranges::find(dialect.axes, "dp", &DialectAxis::name);
    const DialectAxis& axis = data != dialect.axes.end() ? *data : dialect.axes.back();
    imported.job["placement"] = axis.name + "=1:" + terms_of(axis, imported.words);
  } else if (!open.empty() && imported.words.contains("world-size")) {
    imported.missing.push_back({"the degree '" + open + "'", "--set " + open + "=N"});
  } else if (imported.words.contains("world-size")) {
    const std::string told = told_axes(dialect, imported.words);
    imported.missing.push_back({"degrees whose product divides " + imported.words.at("world-size") +
                                    " devices (no whole number is left for '" + unsaid + "'" +
                                    (told.empty() ? "" : " beside " + told) + ")",
                                "--world-size N or --placement TEXT"});
  } else {
    imported.missing.push_back(
        {"the degree '" + unsaid + "' (how many devices there are)", "--world-size N"});
  }
}

}  // namespace

bool is_job_word(const std::string& word) {
  return std::ranges::find(kJobWords, word) != kJobWords.end();
}

namespace {

// What was said of the batch and has no value that anybody can read ("auto").
void add_open_batch(Imported& imported) {
  const auto is_open = [&](const char* word) {
    return imported.unclear.contains(word) && !imported.words.contains(word);
  };
  if (is_open("micro-batch")) {
    imported.missing.push_back({"samples of a micro-batch", "--micro-batch N"});
  }
  const bool is_known = imported.job.contains("global-batch");
  if (!is_known && (is_open("global-batch") || is_open("micro-batches"))) {
    imported.missing.push_back({"samples of a step", "--global-batch N"});
  }
}

}  // namespace

namespace {

// The sizes of a model, by their words; empty: it is not known.
Words sizes_of(const Catalog& catalog, const std::string& model) {
  JobRequest request;
  request.model = model;
  ModelFigures figures;
  try {
    figures = load_requested_model(catalog, request).figures;
  } catch (const InputError&) {
    return {};  // make_job asks for another
  }
  Words sizes;
  const auto add = [&](const char* word, std::int64_t count) {
    if (count > 0) sizes.emplace(word, std::to_string(count));
  };
  add("layers", figures.blocks);
  add("hidden", figures.hidden);
  add("heads", figures.heads);
  add("kv-heads", figures.kv_heads);
  add("experts", figures.experts);
  add("vocabulary", figures.vocabulary);
  return sizes;
}

// The model of the catalogue that a name or a path speaks of by one of its last two parts; empty:
// there is none. Case: "/models/Qwen3-8B/tokenizer.json", "Qwen/Qwen3-8B".
std::string model_named(const Catalog& catalog, std::string path) {
  for (int parts = 0; parts < 2 && !path.empty(); ++parts) {
    while (path.ends_with('/')) path.pop_back();
    const std::size_t begin = path.rfind('/') + 1;  // 0 where there is none
    const std::string part = path.substr(begin);
    path.erase(begin);
    if (!part.empty() && is_model(catalog, part)) {
      std::string name = meant_model(catalog, part).text;
      if (has_file(catalog, "models", name)) return name;
    }
  }
  return "";
}

}  // namespace

void take_model_by_path(const Catalog& catalog, Words& words, std::vector<LedgerLine>& ledger) {
  const auto model = words.find("model");
  if (model == words.end() || !is_elsewhere(catalog, model->second)) return;
  const std::string name = model_named(catalog, model->second);
  if (name.empty()) return;
  for (LedgerLine& line : ledger) {
    if (line.setting.value != model->second || line.fate != Fate::understood) continue;
    line.what += ": " + name + " is assumed by the path's name, as there is no such path here";
  }
  model->second = name;
}

void add_model_words(const Catalog& catalog, Words& words) {
  const auto model = words.find("model");
  if (model == words.end()) return;
  Words sizes = sizes_of(catalog, model->second);
  sizes.erase("vocabulary");  // the job's own, which may be padded
  words.merge(sizes);
}

void add_named_sizes(const Catalog& catalog, const Dialect& dialect, Words& words) {
  for (const DerivedWord& derived : dialect.derived) {
    const auto path = words.find(derived.of_model);
    const bool is_asked = !derived.of_model.empty() && !words.contains(derived.word);
    if (!is_asked || path == words.end()) continue;
    const std::string name = model_named(catalog, path->second);
    const Words sizes = name.empty() ? Words() : sizes_of(catalog, name);
    const auto size = sizes.find(derived.size);
    if (size == sizes.end()) continue;
    words[derived.of_model + "-" + derived.size] = size->second;
    words[derived.of_model + "-model"] = name;
  }
}

void note_named_sizes(const Dialect& dialect, Imported& imported) {
  const Words& words = imported.words;
  for (const DerivedWord& derived : dialect.derived) {
    const auto size = words.find(derived.of_model + "-" + derived.size);
    const auto value = words.find(derived.word);
    if (derived.of_model.empty() || size == words.end() || value == words.end()) continue;
    const bool is_said = imported.given.contains(derived.word) || value->second != size->second ||
                         std::ranges::any_of(imported.ledger, [&](const LedgerLine& line) {
                           return line.word == derived.word && !line.said.empty();
                         });
    if (is_said) continue;
    for (LedgerLine& line : imported.ledger) {
      if (line.word != derived.of_model || line.fate != Fate::understood) continue;
      line.what = line.word + ": " + derived.word + " " + value->second + " is assumed, as of " +
                  words.at(derived.of_model + "-model");
    }
  }
}

namespace {

constexpr std::size_t kMostBatches = 10000;

// "[192, 16, 9_765_625]" and "192 16 9_765_625" item by item.
std::vector<std::string> items_of(const std::string& list) {
  std::vector<std::string> items;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t begin = std::min(list.find_first_not_of(", []", at), list.size());
    at = std::min(list.find_first_of(", []", begin), list.size());
    if (begin < at) items.push_back(list.substr(begin, at - begin));
  }
  return items;
}

// "0:16" and "2.4B:320".
std::vector<long long> batches_by_samples(const std::vector<std::string>& items) {
  std::vector<long long> batches;
  for (const std::string& item : items) {
    const std::size_t colon = item.find(':');
    const auto batch = colon == std::string::npos
                           ? std::nullopt
                           : whole_number(plain_spelling(item.substr(colon + 1), ValueKind::whole));
    if (!batch || *batch < 1) return {};
    batches.push_back(*batch);
  }
  return batches;
}

}  // namespace

std::vector<long long> batches_of_ramp(const Words& words) {
  const auto ramp = words.find("batch-ramp");
  if (ramp == words.end()) return {};
  const std::vector<std::string> items = items_of(ramp->second);
  if (!items.empty() && items.front().find(':') != std::string::npos) {
    return batches_by_samples(items);
  }
  const auto whole = [&](std::size_t i) {
    return whole_number(plain_spelling(items[i], ValueKind::whole));
  };
  const auto last = words.find("global-batch");
  const auto end = last == words.end() ? std::nullopt : whole_number(last->second);
  if (items.size() != 3 || !end) return {};
  const auto begin = whole(0), step = whole(1);
  const bool comes_out =
      begin && step && *begin > 0 && *step > 0 && *begin <= *end && (*end - *begin) % *step == 0;
  if (!comes_out || static_cast<std::size_t>((*end - *begin) / *step) > kMostBatches) return {};
  std::vector<long long> batches;
  for (long long batch = *begin; batch <= *end; batch += *step) batches.push_back(batch);
  return batches;
}

void add_needs(const Dialect& dialect, Imported& imported) {
  for (const NeededFact& need : dialect.needs) {
    const bool is_given =
        need.flag.starts_with("--placement") && imported.words.contains("placement");
    if (is_given || !holds(need.when, imported.words)) continue;
    imported.missing.push_back({filled(need.what, imported.words).value_or(need.what),
                                filled(need.flag, imported.words).value_or(need.flag)});
  }
}

void make_job(const Catalog& catalog, const Dialect& dialect, Imported& imported) {
  for (const std::string_view name : kJobWords) {
    const std::string word(name);
    if (const auto found = imported.words.find(word); found != imported.words.end()) {
      imported.job[word] = found->second;
    }
  }
  // An engine's options are put together of words, some of which are blanks.
  if (imported.job.contains("engine")) std::erase(imported.job["engine"], ' ');
  describe_model(dialect, imported);
  check_model(catalog, dialect, imported);
  add_placement(dialect, imported);
  add_open_batch(imported);
  if (!imported.job.contains("seq")) imported.missing.push_back({"the sequence", "--seq N"});
}

}  // namespace placet
