// Jobs over the catalogue's strategies and their products, for tests that lower them.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "catalog/job.h"
#include "program/program.h"

namespace placet::testing {

struct CatalogueJob {
  std::string model;
  std::string placement;
  std::string recompute = {};
  std::string lora = {};
  std::string balance = {};
  std::string precision = {};
  std::string engine = {};
};

/// What a test of the job is called.
inline void PrintTo(const CatalogueJob& job, std::ostream* out) {
  *out << job.model << " " << job.placement;
}

/// One for each kind of cut, mode and realisation, over small and large models.
std::vector<CatalogueJob> few_catalogue_jobs();

/// Over 300: single strategies and products of two to five axes for many families of models.
std::vector<CatalogueJob> all_catalogue_jobs();

/// Loads one: 4096 tokens, two micro-batches, or eight under a pipeline, a norm limit.
Job load(const CatalogueJob& what);

/// The program of a small one with twelve micro-batches: most of a pipeline's are rounds of loops.
Program with_long_pipeline(const CatalogueJob& what);

/// What is wrong with the job's program, or empty: it must be judged equivalent in full size, and
/// the small one as well; the small one must be equal in the algebraic run, and read back from its
/// text as the same program.
std::string fault_of(const CatalogueJob& what);

}  // namespace placet::testing
