#include "call/judged.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>
#include <utility>

#include "derive/derive.h"
#include "profile/conditions.h"
#include "simulate/advice.h"
#include "units/checked.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr std::int64_t kModelSequence = 4096;

/// A step is played pass by pass: time and memory grow with their number.
constexpr std::int64_t kMostMicroBatches = 1'000'000;

void require_few_micro_batches(const Job& job) {
  const std::int64_t count = micro_batches_per_step(job);
  if (count <= kMostMicroBatches) return;
  throw InputError({.where = "--global-batch",
                    .value = std::to_string(job.batch.global),
                    .problem = "makes " + std::to_string(count) + " micro-batches in a step",
                    .allowed = "at most " + std::to_string(kMostMicroBatches) +
                               " of them: fewer samples, or a larger --micro-batch"});
}

// Bytes per step are comparable only if a step is the same: without --global-batch, the least one
// that every placement can make.
std::vector<Job> load_all(const Catalog& catalog, const std::vector<JobRequest>& requests) {
  std::vector<Job> jobs;
  jobs.reserve(requests.size());
  std::int64_t samples = 1;
  bool differ = false;
  for (const JobRequest& request : requests) {
    jobs.push_back(load_job(catalog, request));
    const std::int64_t global = jobs.back().batch.global;
    differ = differ || global != jobs.front().batch.global;
    samples = checked_multiply(samples / std::gcd(samples, global), global, "samples");
  }
  const JobRequest& request = requests.front();
  if (request.global_batch || !differ) return jobs;
  for (Job& job : jobs) {
    job.batch.global = samples;
    job.model.notes.back() = "--global-batch was not given: a step of " + std::to_string(samples) +
                             " samples, which all can make, is assumed";
  }
  return jobs;
}

// Every placement on every cluster, the placements of a cluster together.
std::vector<JobRequest> requests_for(const JobRequest& request,
                                     const std::vector<std::string>& placements,
                                     std::vector<std::string> clusters) {
  if (clusters.empty()) clusters.push_back(request.cluster.value_or(""));
  std::vector<JobRequest> requests;
  requests.reserve(clusters.size() * placements.size());
  for (const std::string& cluster : clusters) {
    for (const std::string& placement : placements) {
      requests.push_back(request);
      if (!cluster.empty()) requests.back().cluster = cluster;
      requests.back().placement = placement;
    }
  }
  return requests;
}

void play(const StepRequest& request, const Job& job, const Prepared& prepared, PlayedStep& out) {
  out.has_time = true;
  out.time = derive_time(job, prepared);
  out.parts = step_parts(job, prepared);
  out.stragglers = read_stragglers(request.stragglers, out.parts.stages());
  SimulateChoice choice;
  for (const Straggler& straggler : out.stragglers) {
    choice.slower.resize(out.parts.stages(), 1);
    choice.slower[static_cast<std::size_t>(straggler.stage)] = straggler.factor;
  }
  out.simulated = simulate(out.parts, choice);
  const bool disturbed = !out.stragglers.empty();
  const Simulation even = disturbed ? simulate(out.parts, {.most_slices = 0}) : Simulation();
  const Simulation& undisturbed = disturbed ? even : out.simulated;
  out.undisturbed = undisturbed.step;
  std::ranges::move(advice_on(job, out.time, undisturbed, {}), std::back_inserter(out.findings));
}

}  // namespace

Judged judged_of(const Catalog& catalog, const JobRequest& request, ShownClasses shown) {
  const auto job = std::make_shared<const Job>(load_job(catalog, request));
  const Prepared prepared = prepare(*job);
  Judged judged{.job = job, .derivation = derive(*job, prepared)};
  reserve_shown(*job, prepared, shown, judged.derivation);
  if (judged.derivation.meaningful) judged.lengths = spread_of_lengths(*job, prepared);
  return judged;
}

PlayedStep played_step_of(const Catalog& catalog, const StepRequest& request) {
  const auto job = std::make_shared<const Job>(load_job(catalog, with_shapes(request.job)));
  require_few_micro_batches(*job);
  if (!job->cluster) {
    fail_missing(request.job, "cluster",
                 "devices and links, on which time depends: such as h100-sxm:8");
  }
  require_shapes(*job, "time");
  const Prepared prepared = prepare(*job);
  PlayedStep out{.judged = {.job = job, .derivation = derive(*job, prepared)}};
  reserve_shown(*job, prepared, ShownClasses::fullest, out.judged.derivation);
  out.findings = out.judged.derivation.findings;
  out.similar = similar_runs(catalog, *job);
  if (out.judged.derivation.meaningful) play(request, *job, prepared, out);
  return out;
}

Timeline PlayedStep::timeline() const {
  ensure(has_time, "only a step that was played has a timeline");
  return {.judged = judged,
          .time = time,
          .parts = parts,
          .simulated = simulated,
          .findings = findings,
          .stragglers = stragglers,
          .undisturbed = undisturbed,
          .similar = similar};
}

std::vector<Judged> compared_of(const Catalog& catalog, const JobRequest& request,
                                std::vector<std::string> placements,
                                std::vector<std::string> clusters) {
  if (placements.empty() && request.placement) placements.push_back(*request.placement);
  if (placements.empty()) {
    throw InputError(
        {.where = "--placement",
         .problem = "is missing",
         .allowed = "two or more, such as --placement dp=8:ddp --placement dp=8:zero3"});
  }
  std::vector<Judged> all;
  for (Job& job : load_all(catalog, requests_for(request, placements, std::move(clusters)))) {
    auto kept = std::make_shared<const Job>(std::move(job));
    const Prepared prepared = prepare(*kept);
    Derivation derivation = derive(*kept, prepared);
    reserve_shown(*kept, prepared, ShownClasses::fullest, derivation);
    Judged judged{.job = std::move(kept), .derivation = std::move(derivation)};
    const bool has_time =
        judged.job->cluster && judged.derivation.meaningful && !is_bare(judged.job->model);
    if (has_time) judged.time = derive_time(*judged.job, prepared);
    all.push_back(std::move(judged));
  }
  return all;
}

ShownModel shown_model_of(const Catalog& catalog, const JobRequest& request) {
  ShownModel shown{.model = load_requested_model(catalog, request)};
  const std::int64_t longest = shown.model.figures.max_sequence;
  shown.sequence =
      request.sequence.value_or(longest > 0 ? std::min(longest, kModelSequence) : kModelSequence);
  return shown;
}

}  // namespace placet
