// Options of engines, all with all.
#include <gtest/gtest.h>

#include "amount.h"
#include "catalog/catalog_files.h"
#include "catalog/profile_catalog.h"

namespace placet {
namespace {

using testing::runs_all;

TEST(OptionTest, AnyTwoOptionsOfTheCatalogueAreLaidOrRefusedByName) {
  const Catalog& catalog = repository_catalog();
  const int step = runs_all() ? 1 : 4;
  int pair = 0;
  for (const std::string& version : profile_names(catalog)) {
    const EngineVariants variants = engine_variants(catalog, version);
    for (const EngineOption& a : variants.options) {
      for (const EngineOption& b : variants.options) {
        if (pair++ % step != 0) continue;
        const std::string name = version + "+" + a.name + "+" + b.name;
        const std::string message = message_of([&] { load_profile(catalog, name, "x"); });
        const bool fine =
            message == "no error" || message.find("says something else about") != std::string::npos;
        EXPECT_TRUE(fine) << name << ": " << message;
      }
    }
  }
}

}  // namespace
}  // namespace placet
