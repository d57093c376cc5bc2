// Random jobs on random clusters, for properties of time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "catalog/cluster_catalog.h"
#include "derive/derive.h"
#include "derive/random_jobs.h"
#include "model/frozen_parts.h"
#include "model/gradients.h"

namespace placet::testing {

struct TimedJob {
  Job job;
  Prepared prepared;
};

/// The model with the embedding and some of the first blocks frozen, or all but the head.
inline Model part_of(const Model& model, RandomJobs& random) {
  const FrozenPart part = random.one_in(4) ? FrozenPart::below_head : FrozenPart::lower_blocks;
  return with_frozen_part(model, part, random.pick(0, model.figures.blocks));
}

/// Kinds of units that nothing trains.
inline std::string text_of_frozen(const Model& model) {
  std::string text;
  for (const UnitKind& kind : model.kinds) {
    if (!trains(kind)) text += ", " + kind.name + " frozen";
  }
  return text;
}

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
    const Model whole = random.model(name);
    for (int i = 0; i < placements; ++i) {
      job.model = random.one_in(2) ? whole : part_of(whole, random);
      random.place(job);
      job.cluster = load_cluster(catalog, random.any_of(clusters), std::nullopt, "a test");
      TimedJob timed{job, prepare(job)};
      const std::string text = random.describe(job) + text_of_frozen(job.model);
      if (derive(timed.job, timed.prepared).meaningful) visit(timed, text);
    }
  }
}

}  // namespace placet::testing
