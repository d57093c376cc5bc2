// Options of engines, all with all.
#include <gtest/gtest.h>

#include "amount.h"
#include "catalog/catalog_files.h"
#include "catalog/profile_catalog.h"

namespace placet {
namespace {

using testing::runs_all;

// Daily work lays each option over a quarter of the others, and under a quarter.
TEST(OptionTest, AnyTwoOptionsOfTheCatalogueAreLaidOrRefusedByName) {
  const Catalog& catalog = repository_catalog();
  const std::size_t step = runs_all() ? 1 : 4;
  for (const std::string& version : profile_names(catalog)) {
    const EngineVariants variants = engine_variants(catalog, version);
    const std::size_t count = variants.options.size();
    for (std::size_t a = 0; a < count; ++a) {
      for (std::size_t b = a % step; b < count; b += step) {
        const std::string name =
            version + "+" + variants.options[a].name + "+" + variants.options[b].name;
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
