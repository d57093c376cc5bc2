#include "call/job_flags.h"

#include "catalog/meant.h"
#include "units/error.h"
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

JobRequest request_of(const JobFlags& flags) {
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
  return flags.job_file.empty() ? request : merge(request, read_job_file(flags.job_file));
}

void require_one_placement(const JobFlags& flags) {
  if (flags.placements.size() <= 1) return;
  throw InputError({.where = "--placement",
                    .value = flags.placements[1],
                    .problem = "is a second placement",
                    .allowed = "one; `placet compare` takes several"});
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
