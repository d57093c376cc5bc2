#include "catalog/cluster_parts.h"

#include "catalog/device_rates.h"

#include <algorithm>
#include <cmath>

#include "units/error.h"

namespace placet {
namespace {

// Bounds beyond which a figure is a slip of the pen: a thousand times a figure of today.
constexpr Range kLinkGigabytes{0.01, 100'000};
constexpr Range kLatencyMicroseconds{0.01, 1'000'000};
constexpr Range kHostGibibytes{1, 1'000'000};

}  // namespace

double read_figure(const Reader& reader, Range range, std::vector<Fact>& facts) {
  reader.allow({"value", "kind", "source", "date"});
  const double value = reader.at("value").number(range);
  const std::vector<std::string> kinds = {"peak", "datasheet", "measured", "recalled",
                                          "calibrated"};
  const std::string kind = kinds[reader.at("kind").one_of(kinds)];
  const std::string source = reader.at("source").text();
  const std::string date = reader.at("date").text();
  facts.push_back({.key = reader.path(),
                   .value = reader.at("value").print(),
                   .source = kind + ": " + source + " (" + date + ")"});
  return value;
}

void check_sheet(const Reader& reader, const std::string& schema, const std::string& name) {
  if (reader.at("schema").text() != schema) {
    reader.at("schema").fail("is another schema", '"' + schema + '"');
  }
  if (reader.at("name").text() != name) {
    reader.at("name").fail("differs from the name of its file", '"' + name + '"');
  }
  reader.at("title").text();
}

Level load_link(const Catalog& catalog, const std::string& reference, std::int64_t devices,
                const std::string& where) {
  const Document document =
      open_document(file_of(catalog, "hardware/links", "link", reference, where));
  const std::string name = name_of_reference(reference);
  const Reader reader(document);
  reader.allow({"schema", "name", "title", "bandwidth_gb_s", "latency_us", "efficiency",
                "exchange_efficiency", "all_reduce", "notes"});
  check_sheet(reader, "placet.link/1", name);
  std::vector<Fact> facts;
  Level level;
  level.link = name;
  level.devices = devices;
  level.bandwidth =
      gigabytes_per_second(read_figure(reader.at("bandwidth_gb_s"), kLinkGigabytes, facts));
  level.latency = microseconds(read_figure(reader.at("latency_us"), kLatencyMicroseconds, facts));
  if (const auto efficiency = reader.find("efficiency")) {
    level.efficiency = read_figure(*efficiency, {0.01, 1}, facts);
  }
  if (const auto exchanges = reader.find("exchange_efficiency")) {
    level.exchange_efficiency = read_figure(*exchanges, {0.01, 1}, facts);
  }
  level.all_reduce = read_bus_curves(reader, facts);
  return level;
}

Host load_host(const Catalog& catalog, const std::string& reference, const std::string& where) {
  const auto path = file_of(catalog, "hardware/hosts", "host", reference, where);
  const Document document = open_document(path);
  const Reader reader(document);
  reader.allow({"schema", "name", "title", "devices", "memory_gib", "device_to_host_gb_s",
                "device_to_nvme_gb_s", "links", "notes"});
  check_sheet(reader, "placet.host/1", name_of_reference(reference));
  std::vector<Fact> facts;
  Host host;
  host.name = reference;
  host.devices = reader.at("devices").whole({1, 1024});
  host.memory = round_up_to_bytes(
      std::floor(read_figure(reader.at("memory_gib"), kHostGibibytes, facts) * 0x1p30));
  host.link =
      gigabytes_per_second(read_figure(reader.at("device_to_host_gb_s"), kLinkGigabytes, facts));
  host.nvme =
      gigabytes_per_second(read_figure(reader.at("device_to_nvme_gb_s"), kLinkGigabytes, facts));
  for (const Reader& link : reader.at("links").items()) {
    link.allow({"link", "devices"});
    const std::int64_t before = host.levels.empty() ? 1 : host.levels.back().devices;
    const std::int64_t devices = link.at("devices").whole({before + 1, kMostDevices});
    host.levels.push_back(load_link(catalog, reference_in(path, link.at("link").text()), devices,
                                    link.at("link").where()));
  }
  return host;
}

DeviceGroup assemble_group(const Device& device, const Host& host, Level network,
                           std::int64_t count) {
  DeviceGroup group;
  group.device = device;
  group.count = count;
  group.per_host = host.devices;
  group.host_memory = host.memory;
  group.host_link = host.link;
  group.nvme_link = host.nvme;
  group.host = host.name;
  for (const Level& level : host.levels) {
    group.levels.push_back(level);
    if (level.devices >= count) break;
  }
  if (group.levels.empty() || group.levels.back().devices < count) {
    group.levels.push_back(std::move(network));
  }
  group.levels.back().devices = std::max<std::int64_t>(count, 1);
  return group;
}

}  // namespace placet
