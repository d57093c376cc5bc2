#include "plan_export.h"

#include <gtest/gtest.h>

#include "call/plans.h"
#include "catalog/memory.h"
#include "interop/export.h"

namespace placet {
namespace {

struct OwnDialect {
  const char* engine;
  const char* dialect;
};

// Engines of which all plans are to be sayable.
const std::vector<OwnDialect> kOwn = {{"accelerate@1", "accelerate"},
                                      {"accelerate@1", "axolotl"},
                                      {"deepspeed@0.19.3", "deepspeed"},
                                      {"megatron-deepspeed@2022+neox", "gpt-neox"},
                                      {"megatron-deepspeed@2022+neox+zero1", "gpt-neox"},
                                      {"hf-trainer@5", "axolotl"},
                                      {"maxtext@2024", "maxtext"},
                                      {"megatron-bridge@2026", "llamafactory"},
                                      {"llm-foundry@2023", "llm-foundry"},
                                      {"megatron-bridge@2026", "megatron-bridge"},
                                      {"megatron@2026", "megatron"},
                                      {"megatron@2026+fsdp", "megatron"},
                                      {"megatron@2024", "nemo"},
                                      {"nanotron@2026.04", "nanotron"},
                                      {"torchtitan@2026.02", "torchtitan"}};

void expect_sayable(const Catalog& catalog, const JobRequest& job, const char* dialect) {
  const Exported exported = export_job(catalog, job, dialect);
  for (const JobDifference& word : exported.unsaid) {
    ADD_FAILURE() << dialect << ", " << *job.model << " on " << *job.cluster << ", "
                  << *job.placement << ": " << word.word << " is " << word.one << ", said is "
                  << word.other;
  }
}

std::size_t expect_plans(const Catalog& catalog, const Trained& trained, const OwnDialect& own) {
  PlanRequest request;
  request.flags.model = trained.model;
  request.flags.cluster = trained.cluster;
  request.flags.sequence = trained.sequence;
  request.flags.global_batch = trained.batch;
  request.flags.engine = own.engine;
  request.top = 6;
  request.front = 6;
  const JobRequest said = request_of(catalog, request.flags, AskedOf::what_to_train);
  const PlannedJob planned = planned_of(catalog, request, said, {});
  for (const std::vector<PlanLine>* plans : {&planned.sheet.plans, &planned.sheet.front}) {
    for (const PlanLine& plan : *plans) {
      expect_sayable(catalog, request_of_plan(said, planned.sheet, plan), own.dialect);
    }
  }
  return planned.sheet.plans.size() + planned.sheet.front.size();
}

}  // namespace

std::size_t expect_plans_are_sayable(const std::vector<Trained>& trained) {
  Catalog catalog = find_catalog();
  catalog.memory = std::make_shared<CatalogMemory>();
  std::size_t plans = 0;
  for (const OwnDialect& own : kOwn) {
    for (const Trained& one : trained) plans += expect_plans(catalog, one, own);
  }
  return plans;
}

}  // namespace placet
