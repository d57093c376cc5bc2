// The words of a job as a caller gives them, and the request that they make with a job file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "call/sources.h"
#include "catalog/job.h"

namespace placet {

/// The words as they stand on the command line, or in a request document.
struct JobFlags {
  std::string model, cluster, sequence, lengths, global_batch, micro_batch, recompute, precision,
      optimizer, lora, loss, clip, routing, balance_loss, engine, job_file;
  std::vector<std::string> placements;
  std::vector<std::string> clusters;  // of compare, beside or instead of `cluster`
  std::vector<std::string> freeze;
  std::vector<std::string> ignore_keys;
  std::vector<std::string> from;  // configurations of engines: --from
  SourceTexts texts;              // of those that are at hand
  std::string dialect, world;     // how they are read, and the devices that they leave open
  std::vector<std::string> set;   // NAME=VALUE: numbers of the engine, and words of a dialect
};

/// Refuses a second placement, for commands that take one.
void require_one_placement(const JobFlags& flags);

/// The request that flags make together with a job file, or with configurations of engines. Numbers
/// set for the engine stand behind its name. Throws InputError for numbers that are none. Of
/// several placements the first is taken; compare goes through them itself.
JobRequest request_of(const Catalog& catalog, const JobFlags& flags, AskedOf asked = AskedOf::all);

/// The request with an ordinary decoder of that size where its model is a number alone ("7B"): for
/// what depends on shapes. What was built is a note of the model.
JobRequest with_shapes(JobRequest request);

/// Refuses a model of which nothing but a count of parameters is known: `what` needs shapes.
void require_shapes(const Job& job, std::string_view what);

/// The work on the request of these words. What it finds wrong with a word of the job file is said
/// of the file.
template <class Work>
auto on_said(const Catalog& catalog, const JobFlags& flags, AskedOf asked, Work work) {
  const JobRequest request = request_of(catalog, flags, asked);
  try {
    return work(request);
  } catch (const InputError& error) {
    throw InputError(named_as_said(error.fault(), request));
  }
}

}  // namespace placet
