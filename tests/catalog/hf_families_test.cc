// Every family that the transformers library holds: our parameters against the library's, tensor by
// tensor (families.json, written by make_families.py).
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "catalog/catalog_files.h"
#include "catalog/hf_config.h"
#include "catalog/reader.h"
#include "model/build.h"
#include "model/listing.h"

namespace placet {
namespace {

const Json& families() {
  static const Json document = read_document(source_dir() / "tests/catalog/families.json");
  return document;
}

std::string label(const Json& entry) {
  return entry.at("family").get<std::string>() + " " + entry.at("variant").get<std::string>();
}

// Elements by checkpoint name, second uses of shared tensors left out.
std::map<std::string, std::int64_t> elements_by_name(const Model& model) {
  std::map<std::string, std::int64_t> elements;
  for (const TensorEntry& tensor : list_tensors(model)) {
    if (tensor.shared) continue;
    std::int64_t each = 1;
    for (const std::int64_t size : tensor.shape) each *= size;
    elements[tensor.name] += each * tensor.count;
  }
  return elements;
}

void expect_equal(const Json& entry, const Json& config) {
  const Model model = build_model(read_hf_config(config, "config.json"));
  validate(model);
  EXPECT_EQ(elements_by_name(model),
            (entry.at("elements").get<std::map<std::string, std::int64_t>>()));
}

// The settings alone: what they leave out takes the library's defaults.
TEST(HfFamiliesTest, TensorsEqualTheLibrarysFromFewSettings) {
  for (const Json& entry : families()) {
    SCOPED_TRACE(label(entry));
    expect_equal(entry, entry.at("settings"));
  }
}

// The file as the library saves it, with every key it writes.
TEST(HfFamiliesTest, TensorsEqualTheLibrarysFromSavedFiles) {
  for (const Json& entry : families()) {
    SCOPED_TRACE(label(entry));
    expect_equal(entry, entry.at("saved"));
  }
}

// Families and spellings of a later version of the library, by their totals (family_totals.json,
// written by make_family_totals.py). Prediction modules are not in the library's models.
TEST(HfFamiliesTest, TotalsEqualTheLaterLibrarys) {
  const Json totals = read_document(source_dir() / "tests/catalog/family_totals.json");
  ASSERT_GE(totals.size(), 20U);
  for (const Json& entry : totals) {
    for (const char* form : {"settings", "saved"}) {
      SCOPED_TRACE(entry.at("family").get<std::string>() + " " + form);
      const Model model = build_model(read_hf_config(entry.at(form), "config.json"));
      validate(model);
      EXPECT_EQ(count_parameters(model).total, entry.at("total").get<std::int64_t>());
    }
  }
}

TEST(HfFamiliesTest, TheTableCoversFiftyFamilies) {
  std::set<std::string> names;
  for (const Json& entry : families()) names.insert(entry.at("family").get<std::string>());
  EXPECT_GE(names.size(), 55U);
  const std::vector<std::string> known = hf_families();
  for (const std::string& name : names) {
    EXPECT_NE(std::find(known.begin(), known.end(), name), known.end()) << name;
  }
}

// A thousand-layer file is no slower to read than a short one: equal blocks share a kind.
TEST(HfFamiliesTest, ManyLayersShareKinds) {
  Json config = families().at(0).at("settings");
  config["num_hidden_layers"] = 100'000;
  const Model model = build_model(read_hf_config(config, "config.json"));
  EXPECT_EQ(model.kinds.size(), 3U);
  EXPECT_EQ(model.units.size(), 100'002U);
}

}  // namespace
}  // namespace placet
