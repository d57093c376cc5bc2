#include "catalog/cluster_catalog.h"

#include <gtest/gtest.h>

#include "catalog/catalog_files.h"

namespace placet {
namespace {

Cluster load(const std::string& text, std::optional<std::int64_t> needed = std::nullopt) {
  return load_cluster(repository_catalog(), text, needed, "--cluster");
}

std::string complaint(const std::string& text) {
  return message_of([&] { load(text); });
}

TEST(DevicesTest, EveryFileOfTheCatalogueReads) {
  const std::vector<std::string> names = names_in(repository_catalog(), "hardware/devices");
  EXPECT_GE(names.size(), 29U);
  for (const std::string& name : names) {
    const DeviceSheet sheet = load_device(repository_catalog(), name, "test");
    EXPECT_GT(sheet.device.memory, gibibytes(14)) << name;
    EXPECT_LE(in_gigabytes(sheet.device.memory), sheet.nominal_memory_gb * 1.074) << name;
    EXPECT_GE(sheet.facts.size(), 2U) << name;
    EXPECT_FALSE(load_group(repository_catalog(), name, 64, "test").levels.empty()) << name;
  }
}

TEST(DevicesTest, H100HasWhatItsDriverReports) {
  const DeviceSheet sheet = load_device(repository_catalog(), "h100-sxm", "test");
  EXPECT_EQ(sheet.memory_kind, "measured");
  EXPECT_NEAR(in_gibibytes(sheet.device.memory), 79.10, 1e-6);
  EXPECT_EQ(sheet.device.peak_bf16, teraflops_per_second(989));
}

TEST(ClustersTest, EveryFileOfTheCatalogueReads) {
  for (const std::string& name : names_in(repository_catalog(), "clusters")) {
    EXPECT_GT(devices_of(load_cluster_sheet(repository_catalog(), name).node), 0) << name;
  }
}

TEST(ClusterSpecTest, NodesAndDevices) {
  EXPECT_EQ(devices_of(load("h100-sxm:8")), 64);
  EXPECT_EQ(devices_of(load("64xh100-sxm")), 64);
  EXPECT_EQ(devices_of(load("h100-sxm")), 8) << "one node";
  EXPECT_EQ(devices_of(load("h100-sxm", 24)), 24) << "what the placement needs";
  EXPECT_EQ(devices_of(load("h100-sxm:8", 24)), 64) << "a size that is said holds";
  EXPECT_EQ(load("h100-sxm:8").name, "h100-sxm:8");
}

TEST(ClusterSpecTest, LevelsAreTheHostsLinksAndTheNetwork) {
  const DeviceGroup node = load("8xh100-sxm").groups.front();
  ASSERT_EQ(node.levels.size(), 1U) << "one host needs no network";
  EXPECT_EQ(node.levels[0].link, "nvlink-4");
  const DeviceGroup many = load("h100-sxm:2").groups.front();
  ASSERT_EQ(many.levels.size(), 2U);
  EXPECT_EQ(many.levels[1].link, "infiniband-ndr-400");
  EXPECT_EQ(many.levels[1].bandwidth, gigabytes_per_second(50));
  EXPECT_EQ(many.levels[1].devices, 16);
}

// 18 trays of 4 devices are one NVLink domain.
TEST(ClusterSpecTest, ALinkMayJoinSeveralHosts) {
  EXPECT_EQ(load("72xgb200").groups.front().levels.size(), 1U);
  const DeviceGroup two = load("144xgb200").groups.front();
  ASSERT_EQ(two.levels.size(), 2U);
  EXPECT_EQ(two.levels[0].devices, 72);
  EXPECT_EQ(two.per_host, 4);
}

TEST(ClusterSpecTest, MixedClustersMeetOverTheSlowerNetwork) {
  const Cluster cluster = load("512xa100-80gb-sxm,512xh100-sxm");
  ASSERT_EQ(cluster.groups.size(), 2U);
  EXPECT_EQ(devices_of(cluster), 1024);
  EXPECT_EQ(cluster.groups[1].device.name, "h100-sxm");
  EXPECT_EQ(cluster.between_groups.link, "infiniband-hdr-200");
}

TEST(ClusterSpecTest, NamedClustersAreSizedAlike) {
  const Cluster cluster = load("llama3-h100:2");
  EXPECT_EQ(devices_of(cluster), 16);
  EXPECT_EQ(cluster.groups.front().levels.back().link, "roce-400");
  EXPECT_EQ(devices_of(load("64xmixed-a100-h100")), 64);
  EXPECT_EQ(load("64xmixed-a100-h100").groups[0].count, 32);
}

TEST(ClusterSpecTest, WrongSpellingsAreExplained) {
  EXPECT_EQ(complaint("h100sxm:8"),
            "--cluster: 'h100sxm' is no known device or cluster; expected a name that `placet "
            "devices` or `placet clusters` lists, or a file; did you mean 'h100-sxm'?");
  EXPECT_EQ(complaint("h100-sxm:zero").substr(0, 44),
            "--cluster: 'h100-sxm:zero' has no valid size");
  EXPECT_EQ(complaint("0xh100-sxm").substr(0, 41), "--cluster: '0xh100-sxm' has no valid size");
  EXPECT_EQ(complaint("8xh100-sxm:8").substr(0, 43), "--cluster: '8xh100-sxm:8' has no valid size");
  EXPECT_EQ(complaint("h100-sxm:8,").substr(0, 28), "--cluster: names no device; ");
  EXPECT_EQ(complaint("../etc:8").find("no error"), std::string::npos);
}

// Cluster files.

std::string file_complaint(const std::string& name, const std::string& text) {
  const TestFolder folder;
  const std::string file = folder.write(name, text);
  return message_of([&] { load(file); }, folder.path());
}

TEST(ClusterFileTest, TomlWithOverrides) {
  const TestFolder folder;
  const std::string file = folder.write("mine.toml",
                                        "[[groups]]\n"
                                        "device = \"h100-sxm\"\n"
                                        "nodes = 4\n"
                                        "network = \"ethernet-25\"\n"
                                        "memory_gib = 70\n"
                                        "host_memory_gib = 512\n");
  const Cluster cluster = load(file);
  EXPECT_EQ(devices_of(cluster), 32);
  EXPECT_EQ(smallest_memory(cluster), gibibytes(70));
  EXPECT_EQ(cluster.groups[0].host_memory, gibibytes(512));
  EXPECT_EQ(cluster.groups[0].levels.back().link, "ethernet-25");
  EXPECT_EQ(devices_of(load("16x" + file)), 16) << "a size that is asked for wins";
}

TEST(ClusterFileTest, WrongFilesAreRefusedWithTheKeyPath) {
  EXPECT_EQ(file_complaint("c.toml", "[[groups]]\ndevice = \"h100-smx\"\n"),
            "c.toml: groups[0].device: 'h100-smx' is not a known device; expected a name that "
            "`placet devices` lists; did you mean 'h100-sxm'?");
  EXPECT_EQ(file_complaint("c.toml", "[[groups]]\ndevice = \"h100-sxm\"\nnode = 4\n").substr(0, 44),
            "c.toml: groups[0]: 'node' is not a key here;");
  EXPECT_EQ(file_complaint("c.toml", "[[groups]]\ndevice = \"h100-sxm\"\nnodes = 0\n"),
            "c.toml: groups[0].nodes: '0' is out of range; expected a whole number from 1 to "
            "100000000");
  EXPECT_EQ(
      file_complaint("c.toml", "[[groups]]\ndevice = \"h100-sxm\"\nnodes = 2\ndevices = 16\n"),
      "c.toml: groups[0].nodes: '2' is given beside 'devices'; expected one of nodes and devices");
  EXPECT_EQ(file_complaint("c.toml", "[[groups]]\ndevice = \"h100-sxm\"\nmemory_gib = 80e9\n"),
            "c.toml: groups[0].memory_gib: '80000000000.0' is out of range; expected a number from "
            "0.5 to 10000");
  EXPECT_EQ(file_complaint("c.json", "{\"groups\": []}"),
            "c.json: groups: '[]' is empty; expected at least one group");
  EXPECT_EQ(file_complaint("c.json", "{\"name\": \"x\"}"), "c.json: the key 'groups' is missing");
  EXPECT_EQ(
      file_complaint("c.toml", "[[groups]]\ndevice = \"h100-sxm\"\n[[groups]]\ndevice = \"l4\"\n"),
      "c.toml: the key 'between_groups' is missing");
}

// Device files: a copy of the catalogue with one file more.

std::string device_complaint(const std::string& text) {
  const TestFolder folder;
  folder.copy("hardware");
  folder.write("hardware/devices/new.json", text);
  return message_of([&] { load_device(Catalog{folder.path()}, "new", "test"); }, folder.path());
}

constexpr const char* kFigure =
    R"({"value": 80, "kind": "datasheet", "source": "s", "date": "2024"})";

std::string device_file(const std::string& memory, const std::string& rest) {
  return R"({"schema": "placet.device/1", "name": "new", "title": "t", "memory_gib": )" + memory +
         R"(, "nominal_memory_gb": 80, "peak_tflops": {}, "memory_bandwidth_gb_s": {"value": 2000,
         "kind": "peak", "source": "s", "date": "2024"}, "host": "hgx-h100", "network":
         "infiniband-ndr-400")" +
         rest + "}";
}

TEST(DeviceFileTest, WrongFilesAreRefusedWithTheKeyPath) {
  const std::string file = "hardware/devices/new.json: ";
  EXPECT_EQ(device_complaint(device_file(kFigure, "")), "no error");
  EXPECT_EQ(device_complaint(device_file("80", "")),
            file +
                "memory_gib: '80' is not an object; expected an object with the keys value, "
                "kind, source or date");
  EXPECT_EQ(
      device_complaint(device_file(R"({"value": 80, "kind": "datasheet", "date": "2024"})", "")),
      file + "memory_gib: the key 'source' is missing");
  EXPECT_EQ(device_complaint(device_file(
                R"({"value": 80, "kind": "guess", "source": "s", "date": "2024"})", "")),
            file +
                "memory_gib.kind: 'guess' is not known; expected peak, datasheet, measured, "
                "recalled or calibrated");
  EXPECT_EQ(device_complaint(device_file(
                R"({"value": 85899345920, "kind": "peak", "source": "s", "date": "2024"})", "")),
            file +
                "memory_gib.value: '85899345920' is out of range; expected a number from 0.5 to "
                "10000");
  EXPECT_EQ(device_complaint(device_file(kFigure, R"(, "tdp": 700)")).substr(0, 60),
            (file + "'tdp' is not a key here; expected schema, name, title").substr(0, 60));
}

TEST(DeviceFileTest, TheNameIsThatOfTheFile) {
  const TestFolder folder;
  folder.write("hardware/devices/other.json", device_file(kFigure, ""));
  EXPECT_EQ(
      message_of([&] { load_device(Catalog{folder.path()}, "other", "test"); }, folder.path()),
      "hardware/devices/other.json: name: 'new' differs from the name of its file; expected "
      "\"other\"");
}

}  // namespace
}  // namespace placet
