// The model of a job: named, told by a path, or described by its sizes.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "catalog/job.h"
#include "catalog/meant.h"
#include "catalog/reader.h"
#include "interop/import_parts.h"
#include "units/error.h"

namespace placet {
namespace {

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

// The lines of the ledger that say a size of the model.
std::vector<LedgerLine*> lines_of_sizes(Imported& imported) {
  static const std::set<std::string, std::less<>> kSizes = {"layers", "hidden", "experts"};
  std::vector<LedgerLine*> lines;
  for (LedgerLine& line : imported.ledger) {
    if (line.fate == Fate::understood && kSizes.contains(line.word)) lines.push_back(&line);
  }
  return lines;
}

// Sizes that sources say and a model that was given has otherwise: the model's are taken. A model
// is not read where nothing is said.
void note_other_sizes(const Catalog& catalog, const std::string& model, Imported& imported) {
  const std::vector<LedgerLine*> lines = lines_of_sizes(imported);
  if (lines.empty() || model.starts_with('{')) return;
  const Words sizes = sizes_of(catalog, model);
  for (LedgerLine* line : lines) {
    const auto size = sizes.find(line->word);
    const auto said = whole_number(plain_spelling(line->said, ValueKind::whole));
    if (!said || size == sizes.end() || std::to_string(*said) == size->second) continue;
    line->other_size = size->second + " of '" + model + "'";
  }
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
  } else {
    note_other_sizes(catalog, model->second, imported);
  }
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

void settle_model(const Catalog& catalog, const Dialect& dialect, Imported& imported) {
  describe_model(dialect, imported);
  check_model(catalog, dialect, imported);
}

}  // namespace placet
