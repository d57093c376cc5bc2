#include "call/request_words.h"

#include <algorithm>
#include <array>
#include <utility>

#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

struct JobWord {
  std::string_view key;
  std::string JobFlags::*word;
};
constexpr std::array kJobWords = {JobWord{"model", &JobFlags::model},
                                  JobWord{"job", &JobFlags::job_file},
                                  JobWord{"cluster", &JobFlags::cluster},
                                  JobWord{"seq", &JobFlags::sequence},
                                  JobWord{"lengths", &JobFlags::lengths},
                                  JobWord{"global-batch", &JobFlags::global_batch},
                                  JobWord{"micro-batch", &JobFlags::micro_batch},
                                  JobWord{"recompute", &JobFlags::recompute},
                                  JobWord{"precision", &JobFlags::precision},
                                  JobWord{"optimizer", &JobFlags::optimizer},
                                  JobWord{"lora", &JobFlags::lora},
                                  JobWord{"loss", &JobFlags::loss},
                                  JobWord{"clip", &JobFlags::clip},
                                  JobWord{"routing", &JobFlags::routing},
                                  JobWord{"balance-loss", &JobFlags::balance_loss},
                                  JobWord{"engine", &JobFlags::engine},
                                  JobWord{"dialect", &JobFlags::dialect},
                                  JobWord{"world-size", &JobFlags::world}};

struct JobList {
  std::string_view key;
  std::vector<std::string> JobFlags::*words;
};
constexpr std::array kJobLists = {JobList{"placement", &JobFlags::placements},
                                  JobList{"freeze", &JobFlags::freeze},
                                  JobList{"ignore-key", &JobFlags::ignore_keys},
                                  JobList{"from", &JobFlags::from}, JobList{"set", &JobFlags::set}};

struct SourceWord {
  std::string_view key;
  std::string SourceWords::*word;
};
constexpr std::array kSourceWords = {SourceWord{"dialect", &SourceWords::dialect},
                                     SourceWord{"model", &SourceWords::model},
                                     SourceWord{"cluster", &SourceWords::cluster},
                                     SourceWord{"engine", &SourceWords::engine},
                                     SourceWord{"placement", &SourceWords::placement},
                                     SourceWord{"world-size", &SourceWords::world},
                                     SourceWord{"seq", &SourceWords::sequence},
                                     SourceWord{"global-batch", &SourceWords::global_batch},
                                     SourceWord{"micro-batch", &SourceWords::micro_batch}};

// A name, or {"file": NAME, "text": TEXT}.
std::string source_in(const Reader& value, SourceTexts& texts) {
  if (!value.is_object()) return word_in(value);
  value.allow({"file", "text"});
  std::string name = value.at("file").text();
  const Reader text = value.at("text");
  if (!text.is_text()) text.fail("is no text", "the text of a configuration");
  if (!texts.emplace(name, text.json().get<std::string>()).second) {
    value.at("file").fail("is said twice", "a name for each text");
  }
  return name;
}

// A model's name, or its config.json.
std::string model_in(const Reader& value) {
  return value.is_object() ? value.print() : word_in(value);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

bool flag_in(const Reader& request, std::string_view key) {
  const auto value = request.find(key);
  return value && value->flag();
}

std::size_t count_in(const Reader& request, std::string_view key, WholeRange range,
                     std::size_t otherwise) {
  const auto value = request.find(key);
  return value ? static_cast<std::size_t>(value->whole(range)) : otherwise;
}

std::optional<double> fraction_in(const Reader& request, std::string_view key, Range range) {
  const auto value = request.find(key);
  return value ? std::optional(value->number(range)) : std::nullopt;
}

}  // namespace

std::string word_in(const Reader& value) {
  if (value.is_text()) return value.text();
  if (value.json().is_number()) return value.print();
  value.fail("is no word", "a text or a number");
}

std::vector<std::string> words_in(const Reader& request, std::string_view key) {
  std::vector<std::string> words;
  const auto value = request.find(key);
  if (!value) return words;
  if (!value->is_list()) return {word_in(*value)};
  for (const Reader& item : value->items()) words.push_back(word_in(item));
  return words;
}

JobFlags job_flags_in(const Reader& request) {
  JobFlags flags;
  for (const JobWord& one : kJobWords) {
    const auto value = request.find(one.key);
    if (!value) continue;
    flags.*one.word = one.key == "model" ? model_in(*value) : word_in(*value);
  }
  for (const JobList& one : kJobLists) {
    if (one.key != "from") flags.*one.words = words_in(request, one.key);
  }
  flags.from = sources_in(request, "from", flags.texts);
  return flags;
}

std::vector<std::string> sources_in(const Reader& request, std::string_view key,
                                    SourceTexts& texts) {
  std::vector<std::string> names;
  const auto value = request.find(key);
  if (!value) return names;
  if (!value->is_list()) return {source_in(*value, texts)};
  for (const Reader& item : value->items()) names.push_back(source_in(item, texts));
  return names;
}

SourceWords source_words_in(const Reader& request) {
  SourceWords words;
  words.sources = sources_in(request, "sources", words.texts);
  for (const SourceWord& one : kSourceWords) {
    const auto value = request.find(one.key);
    if (value) words.*one.word = one.key == "model" ? model_in(*value) : word_in(*value);
  }
  words.set = words_in(request, "set");
  return words;
}

JobWords job_words_of(const JobFlags& flags) {
  JobWords words;
  for (const JobWord& one : kJobWords) {
    if (!(flags.*one.word).empty()) words.push_back({std::string(one.key), {flags.*one.word}});
  }
  for (const JobList& one : kJobLists) {
    if (!(flags.*one.words).empty()) words.emplace_back(one.key, flags.*one.words);
  }
  return words;
}

JobFlags filled(JobFlags flags, const JobWords& words, const std::string& where) {
  for (const auto& [key, said] : words) {
    const auto* word = std::ranges::find(kJobWords, key, &JobWord::key);
    const auto* list = std::ranges::find(kJobLists, key, &JobList::key);
    if (word != kJobWords.end() && said.size() == 1) {
      if ((flags.*word->word).empty()) flags.*word->word = said.front();
    } else if (list != kJobLists.end()) {
      if ((flags.*list->words).empty()) flags.*list->words = said;
    } else {
      throw InputError({.where = where,
                        .value = key,
                        .problem = "is no word of a job",
                        .allowed = "the words of a job file"});
    }
  }
  return flags;
}

PlanRequest plan_request_in(const Reader& request) {
  PlanRequest plan{.flags = job_flags_in(request)};
  if (const auto goal = request.find("goal")) {
    const std::vector<std::string> goals = {"time", "memory", "cost"};
    plan.goal = goals[goal->one_of(goals)];
  }
  plan.top = count_in(request, "top", {1, 100}, plan.top);
  plan.fix = joined(words_in(request, "fix"));
  plan.require = joined(words_in(request, "require"));
  plan.price = joined(words_in(request, "price"));
  plan.tokens = joined(words_in(request, "tokens"));
  plan.scale = joined(words_in(request, "scale"));
  plan.front = count_in(request, "front", {1, 50}, 0);
  plan.front_step = fraction_in(request, "front-step", {0, 0.9});
  plan.goodput = fraction_in(request, "goodput", {0.01, 1});
  plan.max_memory = fraction_in(request, "max-memory", {});
  plan.allow_tight = flag_in(request, "allow-tight");
  if (const auto proofs = request.find("proofs")) plan.proofs = proofs->flag();
  return plan;
}

ProgramRequest program_request_in(const Reader& request) {
  ProgramRequest program{.job = job_flags_in(request)};
  program.seeds = static_cast<int>(count_in(request, "seeds", {1, 100}, 2));
  program.faults = words_in(request, "fault");
  program.accepted = words_in(request, "accept");
  program.list_faults = flag_in(request, "list-faults");
  for (const std::string& word : program.accepted) {
    if (word != kAuxScope) request.at("accept").fail("is nothing to accept", kAuxScope);
  }
  return program;
}

RunRequest run_request_in(const Reader& request) {
  RunRequest run{.program = program_request_in(request)};
  run.steps =
      static_cast<int>(count_in(request, "steps", {1, 1000}, static_cast<std::size_t>(run.steps)));
  if (const auto mode = request.find("mode")) run.mode = word_in(*mode);
  if (const auto order = request.find("order")) run.order = word_in(*order);
  run.meanings = words_in(request, "meaning");
  run.watch = flag_in(request, "watch");
  run.tells_times = flag_in(request, "times");
  return run;
}

namespace {

void allow_keys(const Reader& request, const std::vector<std::string>& known) {
  for (const auto& [key, value] : request.members()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    throw InputError({.where = request.where(),
                      .value = key,
                      .problem = "is not a flag here",
                      .allowed = list_words(known),
                      .nearest = nearest(key, known)});
  }
}

}  // namespace

void allow_flags(const Reader& request, const std::vector<std::string_view>& others) {
  std::vector<std::string> known = {"subcommand"};
  for (const JobWord& one : kJobWords) known.emplace_back(one.key);
  for (const JobList& one : kJobLists) known.emplace_back(one.key);
  for (const std::string_view key : others) known.emplace_back(key);
  allow_keys(request, known);
}

void allow_source_flags(const Reader& request, const std::vector<std::string_view>& others) {
  std::vector<std::string> known = {"subcommand", "sources", "set"};
  for (const SourceWord& one : kSourceWords) known.emplace_back(one.key);
  for (const std::string_view key : others) known.emplace_back(key);
  allow_keys(request, known);
}

}  // namespace placet
