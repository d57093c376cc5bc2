// Words of the sources to the words of a job.
#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>

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
  settle_model(catalog, dialect, imported);
  add_placement(dialect, imported);
  add_open_batch(imported);
  if (!imported.job.contains("seq")) imported.missing.push_back({"the sequence", "--seq N"});
}

}  // namespace placet
