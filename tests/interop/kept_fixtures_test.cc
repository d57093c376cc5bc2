// Real configurations, where they are at hand, written again: every key of the file is in the
// result with its value, but those that a word changed.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "catalog/memory.h"
#include "interop/export.h"
#include "units/error.h"

namespace placet {
namespace {

namespace fs = std::filesystem;

const fs::path kKeptFixtures = fs::path(PLACET_SOURCE_DIR) / "../shared/fixtures";

Catalog quick_catalog() {
  Catalog catalog = find_catalog();
  catalog.memory = std::make_shared<CatalogMemory>();
  return catalog;
}

// What stands elsewhere when a file of these is used.
Words facts_for(const Imported& alone) {
  const Words all = {{"model", "llama-3.1-8b"},
                     {"seq", "4096"},
                     {"global-batch", "128"},
                     {"micro-batch", "1"},
                     {"placement", "dp=64:ddp"}};
  Words given;
  for (const MissingFact& fact : alone.missing) {
    for (const auto& [word, value] : all) {
      if (fact.flag.starts_with("--" + word)) given[word] = value;
    }
  }
  return given;
}

struct Fixture {
  Original origin;
  std::string dialect;
};

// None: no configuration of a dialect that is written, or one that makes no job on 64 devices.
std::optional<Fixture> fixture_of(const Catalog& catalog, const fs::path& file,
                                  const std::vector<std::string>& writable) {
  Fixture fixture;
  Original& origin = fixture.origin;
  const ConfigurationText read = read_source_text(file);
  origin.text = read.text;
  origin.source = parse_source(read.text, read.form, file.string());
  ImportRequest request{.sources = {origin.source}, .dialect = {}, .given = {{"world-size", "64"}}};
  const Imported alone = import_sources(catalog, request);
  fixture.dialect = alone.dialects.front();
  if (std::ranges::count(writable, fixture.dialect) == 0) return std::nullopt;
  origin.given = facts_for(alone);
  for (const auto& [word, value] : origin.given) request.given[word] = value;
  const Imported said = import_sources(catalog, request);
  if (!said.missing.empty() || said.dialects.size() > 1) return std::nullopt;
  origin.said = request_of_words(said.job, file.string());
  load_job(catalog, origin.said);
  return fixture;
}

std::map<std::string, std::multiset<std::string>> values_in(const Source& source) {
  std::map<std::string, std::multiset<std::string>> values;
  for (const Setting& setting : source.settings) values[setting.path].insert(setting.value);
  return values;
}

// Keys of the source that the written file lacks, or has with another value.
std::set<std::string> changed_keys(const Original& origin, const Exported& exported) {
  const ExportedFile& file = exported.files.front();
  const auto after = values_in(parse_source(file.text, origin.source.form, file.name));
  std::set<std::string> changed;
  for (const auto& [key, values] : values_in(origin.source)) {
    const auto found = after.find(key);
    if (found == after.end() || found->second != values) changed.insert(key);
  }
  return changed;
}

// Calls visit(file, fixture) for each that makes a job; gives how many did.
template <class Visit>
std::size_t each_fixture(const Catalog& catalog, Visit visit) {
  const std::vector<std::string> writable = writable_dialects(catalog);
  std::size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kKeptFixtures)) {
    const std::string name = fs::relative(entry.path(), kKeptFixtures).string();
    if (!entry.is_regular_file() || name.starts_with("broken/")) continue;
    std::optional<Fixture> fixture;
    try {
      fixture = fixture_of(catalog, entry.path(), writable);
    } catch (const InputError&) {
      continue;  // a part of a page, no dialect, or no job on 64 devices
    }
    if (!fixture) continue;
    visit(name, *fixture);
    ++count;
  }
  return count;
}

// A script of its own cannot hold what a command of the source's prints.
bool is_open_value(const std::string& message) {
  return message.find("does not say the value of") != std::string::npos &&
         message.find("$(") != std::string::npos;
}

TEST(KeptFixturesTest, WithoutAChangeTheTextStaysAsItIs) {
  if (!fs::exists(kKeptFixtures)) GTEST_SKIP() << "no fixtures at " << kKeptFixtures;
  const Catalog catalog = quick_catalog();
  std::size_t refused = 0;
  const std::size_t count =
      each_fixture(catalog, [&](const std::string& name, const Fixture& fixture) {
        try {
          const Exported exported =
              export_over(catalog, fixture.origin.said, fixture.origin, fixture.dialect);
          EXPECT_EQ(exported.files.front().text, fixture.origin.text) << name;
          EXPECT_EQ(exported.unsaid, std::vector<JobDifference>{}) << name;
        } catch (const InputError& error) {
          EXPECT_TRUE(is_open_value(error.what())) << name << ": " << error.what();
          ++refused;
        }
      });
  EXPECT_GT(count, 80U);
  EXPECT_LE(refused, 2U) << "of " << count;
}

TEST(KeptFixturesTest, AChangeLeavesAllOtherKeysAsTheyAre) {
  if (!fs::exists(kKeptFixtures)) GTEST_SKIP() << "no fixtures at " << kKeptFixtures;
  const Catalog catalog = quick_catalog();
  std::size_t refused = 0;
  const std::size_t count =
      each_fixture(catalog, [&](const std::string& name, const Fixture& fixture) {
        JobRequest meant = fixture.origin.said;
        meant.clip = 0.25;
        meant.global_batch = fixture.origin.said.global_batch.value_or(64) * 2;
        try {
          const Exported exported = export_over(catalog, meant, fixture.origin, fixture.dialect);
          for (const JobDifference& word : exported.unsaid) {
            ADD_FAILURE() << name << ": " << word.word << " " << word.one << " " << word.other;
          }
          EXPECT_LE(changed_keys(fixture.origin, exported).size(), 4U) << name;
        } catch (const InputError& error) {
          const std::string said = error.what();
          const bool is_place = said.find("cannot be changed in place") != std::string::npos;
          EXPECT_TRUE(is_place || is_open_value(said)) << name << ": " << said;
          ++refused;
        }
      });
  EXPECT_GT(count, 80U);
  EXPECT_LE(refused, count / 20) << "of " << count;
}

}  // namespace
}  // namespace placet
