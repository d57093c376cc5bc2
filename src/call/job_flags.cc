#include "call/job_flags.h"

#include <algorithm>
#include <set>

#include "catalog/meant.h"
#include "catalog/model_catalog.h"
#include "catalog/profile_catalog.h"
#include "catalog/reader.h"
#include "units/error.h"
#include "units/nearest.h"
#include "units/number.h"

namespace placet {
namespace {

constexpr std::int64_t kMostTokens = 1'000'000'000;
constexpr std::int64_t kMostSamples = 1'000'000'000'000;

std::optional<std::string> said(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

std::optional<std::int64_t> whole(const std::string& text, const char* flag, std::int64_t most) {
  if (text.empty()) return std::nullopt;
  const auto n = number_in<std::int64_t>(text);
  if (n && *n >= 1 && *n <= most) return n;
  throw InputError({.where = flag,
                    .value = text,
                    .problem = "is not a whole number in range",
                    .allowed = "1 to " + std::to_string(most)});
}

/// Tokens may be written as "4k"; samples may not: of those a k is a thousand to some and 1024 to
/// others.
std::optional<std::int64_t> tokens(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto n = tokens_in(text);
  if (n && *n >= 1 && *n <= kMostTokens) return n;
  throw InputError(
      {.where = "--seq",
       .value = text,
       .problem = "is not a number of tokens",
       .allowed = "1 to " + std::to_string(kMostTokens) + ", also as 4k (4096) or 1M (1048576)"});
}

std::optional<std::int64_t> samples(const std::string& text, const char* flag) {
  const auto kilo = text.empty() ? std::nullopt : tokens_in(text);
  if (!kilo || number_in<std::int64_t>(text)) return whole(text, flag, kMostSamples);
  throw InputError({.where = flag,
                    .value = text,
                    .problem = "counts samples, not tokens, and takes no k or M",
                    .allowed = "a whole number of samples, such as 1024; tokens per step are "
                               "samples times --seq"});
}

std::optional<double> number(const std::string& text, const char* flag) {
  if (text.empty()) return std::nullopt;
  const auto n = number_in<double>(text);
  if (n && *n >= 0 && *n <= 1e12) return n;
  throw InputError(
      {.where = flag, .value = text, .problem = "is not a norm", .allowed = "0 to 1e12"});
}

}  // namespace

namespace {

JobRequest request_of_words(const JobFlags& flags) {
  JobRequest request;
  request.model = said(flags.model);
  request.cluster = said(flags.clusters.empty() ? flags.cluster : flags.clusters.front());
  if (!flags.placements.empty()) request.placement = flags.placements.front();
  request.sequence = tokens(flags.sequence);
  if (!flags.lengths.empty()) request.lengths = parse_lengths(flags.lengths, "--lengths");
  request.global_batch = samples(flags.global_batch, "--global-batch");
  request.micro_batch = samples(flags.micro_batch, "--micro-batch");
  request.recompute = said(flags.recompute);
  request.precision = said(flags.precision);
  request.optimizer = said(flags.optimizer);
  request.freeze = flags.freeze;
  request.ignore_keys = flags.ignore_keys;
  request.lora = said(flags.lora);
  request.loss = said(flags.loss);
  request.clip = number(flags.clip, "--clip");
  request.routing = said(flags.routing);
  request.balance_loss = said(flags.balance_loss);
  request.engine = said(flags.engine);
  return request;
}

SourceWords source_words(const JobFlags& flags) {
  SourceWords words{.sources = flags.from,
                    .texts = flags.texts,
                    .dialect = flags.dialect,
                    .model = flags.model,
                    .cluster = flags.cluster,
                    .engine = flags.engine,
                    .set = flags.set};
  if (!flags.placements.empty()) words.placement = flags.placements.front();
  words.world = flags.world;
  const auto whole = [](const auto& number) {
    return number ? std::to_string(*number) : std::string();
  };
  words.sequence = whole(tokens(flags.sequence));
  words.global_batch = whole(samples(flags.global_batch, "--global-batch"));
  words.micro_batch = whole(samples(flags.micro_batch, "--micro-batch"));
  return words;
}

// Takes a number that was set before out of an engine's name.
void drop_number(const std::string& name, std::string& engine) {
  const std::size_t begin = engine.find("+" + name + "=");
  if (begin == std::string::npos) return;
  const std::size_t end = std::min(engine.find('+', begin + 1), engine.size());
  engine.erase(begin, end - begin);
}

// The numbers that --set gives, behind the engine's name. `unread`: what no source took for a word
// of its own. Throws InputError for what is neither.
std::string engine_set(const Catalog& catalog, std::string engine, const JobFlags& flags,
                       const std::set<std::string>& unread) {
  const std::vector<EngineSize> sizes = engine_variants(catalog, engine).sizes;
  std::vector<std::string> names;
  names.reserve(sizes.size());
  for (const EngineSize& size : sizes) names.push_back(size.name);
  for (const std::string& one : flags.set) {
    const std::string name = one.substr(0, one.find('='));
    if (std::ranges::find(names, name) != names.end()) {
      drop_number(name, engine);
      engine += "+" + one;
    } else if (flags.from.empty() || unread.contains(name)) {
      throw InputError({.where = "--set",
                        .value = one,
                        .problem = "is no number that " + engine + " lets one set",
                        .allowed = names.empty() ? "none" : list_words(names),
                        .nearest = nearest(name, names)});
    }
  }
  return engine;
}

void require_alone(const JobFlags& flags) {
  const bool has_sources = !flags.from.empty();
  if (has_sources && !flags.job_file.empty()) {
    throw InputError({.where = "--from",
                      .value = flags.from.front(),
                      .problem = "stands beside --job",
                      .allowed = "one of the two"});
  }
  if (has_sources || (flags.dialect.empty() && flags.world.empty())) return;
  throw InputError({.where = flags.dialect.empty() ? "--world-size" : "--dialect",
                    .value = flags.dialect.empty() ? flags.world : flags.dialect,
                    .problem = "says how sources are read, and there are none",
                    .allowed = "--from SOURCES beside it"});
}

}  // namespace

JobRequest request_of(const Catalog& catalog, const JobFlags& flags, AskedOf asked) {
  require_alone(flags);
  JobRequest request = request_of_words(flags);
  std::set<std::string> unread;
  if (!flags.job_file.empty()) request = merge(request, read_job_file(flags.job_file));
  if (!flags.from.empty()) {
    request = merge(request, request_of_sources(catalog, source_words(flags), asked, unread));
  }
  if (flags.set.empty()) return request;
  const std::string engine = meant_engine(catalog, request.engine.value_or("placet")).text;
  request.engine = engine_set(catalog, engine, flags, unread);
  return request;
}

void require_one_placement(const JobFlags& flags) {
  if (flags.placements.size() <= 1) return;
  throw InputError({.where = "--placement",
                    .value = flags.placements[1],
                    .problem = "is a second placement",
                    .allowed = "one; `placet compare` takes several"});
}

JobRequest with_shapes(JobRequest request) {
  if (request.model && !request.model->starts_with("params=") && parse_count(*request.model)) {
    request.model = "decoder=" + *request.model;
  }
  return request;
}

void require_shapes(const Job& job, std::string_view what) {
  if (!is_bare(job.model)) return;
  throw InputError({.where = "MODEL",
                    .value = job.model.name,
                    .problem = "is a bare count of parameters",
                    .allowed = "a model with shapes, as " + std::string(what) +
                               " depends on them: a name that `placet models` lists, a "
                               "config.json, or decoder=" +
                               std::to_string(count_parameters(job.model).total) +
                               " for an ordinary decoder of that size"});
}

}  // namespace placet
