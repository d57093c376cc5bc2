// Configurations that people run, where they are at hand: no rule calls one wrong that is not.
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include "interop/import.h"
#include "units/error.h"

namespace placet {
namespace {

namespace fs = std::filesystem;

const fs::path kFixtures = fs::path(PLACET_SOURCE_DIR) / "../shared/fixtures";

// Errors that are true, as the files stand. gpt3_175b.args: one node of 8 devices, tensor 8 and
// pipeline 16, which are 128: the engine refuses another number of nodes than 16 or more.
// test_invalid_keys.yaml: a file of the launcher's own tests, which has to be refused for its two
// keys. llama3_405b.toml: converters = ["float8"] at a commit that registers
// quantize.linear.float8 and stops with KeyError at the other name.
const std::set<std::string> kTrue = {
    "accelerate/test_invalid_keys.yaml PL001", "megatron/gpt3_175b.args PL018",
    "torchtitan/2026-02-last-toml/models__llama3__llama3_405b.toml PL047"};

// None: a part of a page, or of no dialect.
std::optional<Imported> read_fixture(const Catalog& catalog, const fs::path& file) {
  try {
    return import_sources(catalog, {.sources = {read_source(file)}, .dialect = {}, .given = {}});
  } catch (const InputError&) {
    return std::nullopt;
  }
}

TEST(GoodFixturesTest, ErrorsAreTrueOnes) {
  if (!fs::exists(kFixtures)) GTEST_SKIP() << "no fixtures at " << kFixtures;
  const Catalog catalog = find_catalog();
  std::set<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(kFixtures)) {
    const std::string name = fs::relative(entry.path(), kFixtures).string();
    if (!entry.is_regular_file() || name.starts_with("broken/")) continue;
    const auto imported = read_fixture(catalog, entry.path());
    if (!imported) continue;
    for (const LintFinding& finding : imported->findings) {
      if (finding.severity == "error") found.insert(name + " " + finding.code);
    }
  }
  EXPECT_EQ(found, kTrue);
}

}  // namespace
}  // namespace placet
