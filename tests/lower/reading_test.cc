// Programs of whole models are well-formed, and read back from their text as the same program: one
// model of every family of the catalogue, in full size.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "catalog/model_catalog.h"
#include "lower/catalogue_jobs.h"
#include "lower/lower.h"
#include "program/text.h"
#include "program/wellformed.h"
#include "units/error.h"

namespace placet::testing {
namespace {

/// By family, its first model of the catalogue.
std::map<std::string, std::string> models_by_family() {
  const Catalog catalog = find_catalog();
  std::map<std::string, std::string> models;
  for (const std::string& name : model_names(catalog)) {
    models.emplace(load_model(catalog, name).family, name);
  }
  return models;
}

/// The program; none where the model has parts that have no step program yet, as the refusal says.
std::optional<Program> program_of(const CatalogueJob& what) {
  try {
    return lower(load(what));
  } catch (const InputError& refused) {
    EXPECT_NE(std::string(refused.what()).find("no step program yet"), std::string::npos)
        << what.model << ": " << refused.what();
    return std::nullopt;
  }
}

/// What is wrong with it as a text, or empty.
std::string fault_in_reading(const Program& program) {
  try {
    require_wellformed(program, {.where = "program"});
    if (program_from(to_text(program), "program") != program) return "is another program";
  } catch (const InputError& refused) {
    return refused.what();
  }
  return {};
}

TEST(Reading, ModelsOfEveryFamily) {
  std::set<std::string> read;
  for (const auto& [family, model] : models_by_family()) {
    const std::optional<Program> program = program_of({model, "dp=2:zero1 tp=2:tp"});
    if (!program) continue;
    EXPECT_EQ(fault_in_reading(*program), "") << model;
    read.insert(family);
  }
  EXPECT_GE(read.size(), 30U);
  EXPECT_TRUE(read.contains("jamba"));
}

// State spaces, delta nets and linear attention, whose channels lie side by side in groups.
TEST(Reading, BlocksWithStateGroups) {
  for (const char* model : {"nemotron-h-8b", "qwen3-next-80b-a3b", "codestral-mamba-7b",
                            "minimax-text-01", "jamba-v0.1"}) {
    for (const char* placement : {"dp=2:zero1 tp=2:tp+sp", "pp=2:1f1b dp=2:zero3"}) {
      EXPECT_EQ(fault_of({model, placement}), "") << model << " " << placement;
    }
  }
}

}  // namespace
}  // namespace placet::testing
