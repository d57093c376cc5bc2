// Real configurations, where they are at hand: each is read or refused with a reason, and the
// ledger holds the keys that another reader finds.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "catalog/reader.h"
#include "interop/import.h"
#include "units/error.h"

namespace placet {
namespace {

namespace fs = std::filesystem;

const fs::path kFixtures = fs::path(PLACET_SOURCE_DIR) / "../shared/fixtures";

bool holds_objects(const Json& list) {
  for (const Json& item : list) {
    if (item.is_structured()) return true;
  }
  return false;
}

// Paths of the leaves: a list of plain values and an empty object are one.
void collect(const Json& value, const std::string& path, std::multiset<std::string>& paths) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, inner] : value.items()) {
      collect(inner, path.empty() ? key : path + "." + key, paths);
    }
  } else if (value.is_array() && holds_objects(value)) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      collect(value[i], path + "[" + std::to_string(i) + "]", paths);
    }
  } else {
    paths.insert(path);
  }
}

TEST(FixturesTest, LedgerHoldsTheKeysOfEveryFixture) {
  if (!fs::exists(kFixtures)) GTEST_SKIP() << "no fixtures at " << kFixtures;
  const Catalog catalog = find_catalog();
  std::size_t read = 0;
  for (const char* folder : {"torchtitan", "deepspeed"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kFixtures / folder)) {
      const std::string ending = entry.path().extension().string();
      if (ending != ".toml" && ending != ".json") continue;
      std::multiset<std::string> keys, ledger;
      Imported result;
      try {
        collect(read_document(entry.path()), "", keys);
        result = import_sources(
            catalog, {.sources = {read_source(entry.path())}, .dialect = {}, .given = {}});
      } catch (const InputError& error) {
        EXPECT_NE(std::string(error.what()), "");
        continue;  // parts of documentation: no document, or no key that tells the dialect
      }
      for (const LedgerLine& line : result.ledger) ledger.insert(line.setting.path);
      EXPECT_EQ(ledger, keys) << entry.path();
      ++read;
    }
  }
  EXPECT_GT(read, 70U);
}

}  // namespace
}  // namespace placet
