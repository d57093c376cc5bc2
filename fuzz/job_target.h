// A job file in either form: its words, and those of them that are texts with a form of their own.
#pragma once

#include "catalog/job.h"
#include "catalog/training_catalog.h"
#include "target.h"

namespace placet::fuzz {

inline void read_job(const std::filesystem::path& path) {
  static const Catalog kCatalog = find_catalog();
  const JobRequest request = read_job_file(path);
  if (request.recompute) parse_recompute(*request.recompute, "--recompute");
  if (request.routing) parse_routing(*request.routing, "--routing");
  if (request.precision) read_precision(kCatalog, *request.precision, {}, "--precision");
}

}  // namespace placet::fuzz
