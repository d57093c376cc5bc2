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

struct Broken {
  const char* file;
  const char* finding;  // code and line
  Words given = {};     // what the people who met the fault knew beside the file
};

// What the people who met these faults, or the engine, said is wrong in them. Of all files of
// the index but one that is to be accepted.
const std::vector<Broken>& broken_files() {
  static const std::vector<Broken> all = {
      {"accelerate_deepspeed_gas4_vs_trainer2.yaml", "PL026:3"},
      {"accelerate_fsdp2_dp_replicate_world1.yaml", "PL018:23"},
      {"ds_hpz_no_convergence.fragment", "PL028:14"},
      {"ds_mics_with_zero_init.fragment", "PL029:11"},
      {"ds_misspelt_top_level_key.json", "PL001:2"},
      {"ds_nvme_misspelt_key.fragment", "PL001:11"},
      {"ds_nvme_misspelt_key.fragment", "PL001:21"},
      {"ds_nvme_misspelt_key.fragment", "PL001:31"},
      {"ds_ratio_below_1_on_nvme.json", "PL022:18"},
      {"ds_stage2_offload_param.json", "PL021:11"},
      {"from_prose/megatron_40_layers_pp8_vpp2.args", "PL013:3"},
      {"from_prose/megatron_48_layers_first11_last13_pp2.args", "PL024:4"},
      {"from_prose/megatron_80_layers_pp16_vpp.args", "PL013:3"},
      {"from_prose/megatron_gpt2_30_layers_pp4.args", "PL012:1"},
      {"from_prose/megatron_last_stage_layers_pp1.args", "PL014:3"},
      {"from_prose/megatron_zero2_dp1_8gpus.args", "PL019:3", {{"world-size", "8"}}},
      {"from_prose/nanotron_pp8_accumulation1.yaml", "PL057:5"},
      {"from_prose/qwen_28_heads_tp8.args", "PL003:2"},
      {"from_prose/torchtitan_kv_heads2_tp4.toml", "PL056:5"},
      {"glm45_air_46_layers_pp4.args", "PL012:2", {{"model", "glm-4.5-air"}}},
      {"megatron_ds_zero3_pp1_pipelinemodule.args", "PL015:6"},
      {"nemo_mixtral_8x7b_ep_tp_without_sp.yaml", "PL016:87"},
      {"nemo_mixtral_8x7b_sp_without_tp.yaml", "PL017:128"},
      {"torchtitan_llama4_lbs16_grouped_mm.toml", "PL030:31"}};
  return all;
}

std::string findings_in(const Catalog& catalog, const Broken& broken) {
  const Imported result =
      import_sources(catalog, {.sources = {read_source(kFixtures / "broken" / broken.file)},
                               .dialect = {},
                               .given = broken.given});
  std::string found;
  for (const LintFinding& f : result.findings) {
    found += f.code + ":" + std::to_string(f.line) + (f.severity == "error" ? "! " : " ");
  }
  return found;
}

TEST(FixturesTest, FaultsAreNamedWithTheirLine) {
  if (!fs::exists(kFixtures)) GTEST_SKIP() << "no fixtures at " << kFixtures;
  const Catalog catalog = find_catalog();
  for (const Broken& broken : broken_files()) {
    const std::string found = findings_in(catalog, broken);
    EXPECT_NE(found.find(broken.finding), std::string::npos) << broken.file << ": " << found;
  }
}

TEST(FixturesTest, WhatIsToBeAcceptedHasNoError) {
  if (!fs::exists(kFixtures)) GTEST_SKIP() << "no fixtures at " << kFixtures;
  const std::string found =
      findings_in(find_catalog(), {"accelerate_fsdp2_dp_shard_only.yaml", "none"});
  EXPECT_EQ(found.find('!'), std::string::npos) << found;
}

}  // namespace
}  // namespace placet
