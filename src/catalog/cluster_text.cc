#include "catalog/cluster_text.h"

#include "catalog/network_words.h"
#include "catalog/reader.h"

namespace placet {
namespace {

constexpr double kGiga = 1e9;
constexpr double kMicro = 1e6;

Json level_json(const Catalog& catalog, const Level& level, std::int64_t per_host) {
  const Level usual = read_network(catalog, level.link, per_host, "links");
  Json json = {{"link", level.link}, {"devices", level.devices}};
  if (level.bandwidth != usual.bandwidth || level.efficiency != usual.efficiency) {
    json["gb_s"] = in_bytes_per_second(level.bandwidth) / kGiga;
    json["efficiency"] = level.efficiency;
  }
  if (level.latency != usual.latency) json["latency_us"] = in_seconds(level.latency) * kMicro;
  if (level.bandwidth_of_all != usual.bandwidth_of_all) {
    json["gb_s_of_all"] = in_bytes_per_second(level.bandwidth_of_all) / kGiga;
  }
  return json;
}

}  // namespace

std::string print_group(const Catalog& catalog, const DeviceGroup& group) {
  Json json = {{"device", group.device.name},
               {"host", group.host},
               {"per_host", group.per_host},
               {"devices", group.count},
               {"levels", Json::array()}};
  for (const Level& level : group.levels) {
    json["levels"].push_back(level_json(catalog, level, group.per_host));
  }
  if (group.host_pace != 1) json["host_pace"] = group.host_pace;
  if (group.host_runs_ahead) json["host_runs_ahead"] = true;
  if (group.host_per_member > Seconds()) {
    json["host_latency_us"] = in_seconds(group.host_per_member) * kMicro;
    json["host_latency_inside_us"] = in_seconds(group.host_per_neighbour) * kMicro;
  }
  return Json{{"schema", "placet.cluster/1"}, {"groups", Json::array({json})}}.dump(2) + "\n";
}

}  // namespace placet
