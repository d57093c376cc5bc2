// Random jobs on random clusters, for properties of time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "catalog/cluster_catalog.h"
#include "derive/derive.h"
#include "derive/random_jobs.h"

namespace placet::testing {

struct TimedJob {
  Job job;
  Prepared prepared;
};

/// Calls visit(timed job, its description) for a few placements of every model, those that mean
/// something.
template <class Visit>
void each_timed_job(std::uint32_t seed, int placements, Visit visit) {
  const std::vector<std::string> clusters = {"h100-sxm:2", "a100-80gb-sxm:64", "v100-32gb-sxm:1",
                                             "16xa100-80gb-sxm,16xh100-sxm"};
  const Catalog catalog{PLACET_SOURCE_DIR "/data"};
  RandomJobs random(seed, {.most_axes = 4, .most_devices = 4096});
  for (const std::string& name : random.models()) {
    Job job;
    job.model = random.model(name);
    for (int i = 0; i < placements; ++i) {
      random.place(job);
      job.cluster = load_cluster(catalog, random.any_of(clusters), std::nullopt, "a test");
      TimedJob timed{job, prepare(job)};
      if (derive(timed.job, timed.prepared).meaningful) visit(timed, random.describe(job));
    }
  }
}

}  // namespace placet::testing
