#include "catalog/cluster_catalog.h"

#include <cmath>

#include "catalog/cluster_parts.h"
#include "catalog/device_rates.h"
#include "catalog/memory.h"
#include "catalog/network_words.h"
#include "catalog/reader.h"
#include "catalog/word_file.h"
#include "units/checked.h"
#include "units/error.h"
#include "units/nearest.h"
#include "units/number.h"

namespace placet {
namespace {

constexpr Range kDeviceGibibytes{0.5, 10'000};
constexpr Range kMemoryGigabytes{1, 1'000'000};

// How large a part of a cluster is asked to be. Neither: what the job needs.
struct Size {
  std::optional<std::int64_t> nodes;
  std::optional<std::int64_t> devices;
};

struct Part {
  std::string name;
  Size size;
  std::string network;  // behind '@'; empty: the usual one
};

std::int64_t read_count(std::string_view text, const std::string& whole, const std::string& where) {
  const auto count = number_in<std::int64_t>(text);
  if (!count || *count < 1 || *count > kMostDevices) {
    throw InputError(
        {.where = where,
         .value = whole,
         .problem = "has no valid size",
         .allowed = "NAME:NODES or COUNTxNAME, each from 1 to " + std::to_string(kMostDevices)});
  }
  return *count;
}

// "64xh100-sxm", "h100-sxm:8" or "h100-sxm", each also with "@NETWORK" behind it.
Part parse_part(const std::string& whole, const std::string& where) {
  const std::size_t at = whole.find('@');
  const std::string text = whole.substr(0, at);
  Part part{.name = text, .size = {}, .network = {}};
  if (at != std::string::npos) {
    part.network = whole.substr(at + 1);
    if (part.network.empty()) {
      throw InputError({.where = where,
                        .value = whole,
                        .problem = "names no network behind '@'",
                        .allowed = "such as h100-sxm:8@roce-400 or h100-sxm:8@400gbit"});
    }
  }
  const std::size_t times = text.find('x');
  if (times != std::string::npos && times > 0 && text.find_first_not_of("0123456789") == times) {
    part.size.devices = read_count(std::string_view(text).substr(0, times), text, where);
    part.name = text.substr(times + 1);
  }
  const std::size_t colon = part.name.rfind(':');
  if (colon != std::string::npos) {
    if (part.size.devices) read_count("", text, where);
    part.size.nodes = read_count(std::string_view(part.name).substr(colon + 1), text, where);
    part.name = part.name.substr(0, colon);
  }
  if (part.name.empty()) {
    throw InputError({.where = where,
                      .value = text,
                      .problem = "names no device",
                      .allowed = "such as h100-sxm:8, 64xh100-sxm or a cluster file"});
  }
  return part;
}

std::vector<Part> parse_parts(const std::string& text, const std::string& where) {
  std::vector<Part> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(',', begin);
    parts.push_back(parse_part(text.substr(begin, end - begin), where));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

// One group of a cluster file.
struct GroupSpec {
  Device device;
  Host host;
  Level network;
  std::optional<std::int64_t> count;  // if the file says it
  std::int64_t share = 1;             // else in proportion to this
  double oversubscription = 1;        // of the uplinks of leaf switches
  std::int64_t leaf_hosts = 0;        // hosts below one leaf switch; 0: not known
  std::vector<Level> levels;          // instead of all of the above, where the file measures them
  DeviceGroup hosts;                  // what else was measured of the hosts: its host_ members
};

// A link by name or file, or a rate. Leaf switches of `leaf_hosts` hosts, whose uplinks carry one
// part in `oversubscription` of what their hosts send, are a level of their own.
void read_network_of(const Catalog& catalog, const std::filesystem::path& path,
                     const Reader& reader, const std::string& usual, GroupSpec& group) {
  const auto network = reader.find("network");
  const std::string where = network ? network->where() : reader.at("device").where();
  if (network && names_a_file(network->text()) && !is_network(catalog, network->text())) {
    group.network = load_link(catalog, reference_in(path, network->text()), 1, where);
  } else {
    const std::string said = network ? meant_network(catalog, network->text()).text : usual;
    group.network = names_a_file(said) && !is_network(catalog, said)
                        ? load_link(catalog, said, 1, where)
                        : read_network(catalog, said, group.host.devices, where);
  }
  const auto ratio = reader.find("oversubscription");
  const auto hosts = reader.find("leaf_hosts");
  if (!ratio) {
    if (hosts) hosts->fail("is given without 'oversubscription'", "both, or neither");
    return;
  }
  group.oversubscription = ratio->number({1, 1000});
  if (hosts) group.leaf_hosts = hosts->whole({1, 1'000'000});
}

// A level whose link was measured: what the link's file says, but for what stands here.
Level read_level(const Catalog& catalog, const Reader& reader, std::int64_t per_host) {
  reader.allow({"link", "devices", "gb_s", "gb_s_of_all", "latency_us", "efficiency"});
  const Reader link = reader.at("link");
  Level level =
      read_network(catalog, meant_network(catalog, link.text()).text, per_host, link.where());
  level.devices = reader.at("devices").whole({1, kMostDevices});
  if (const auto rate = reader.find("gb_s")) {
    level.bandwidth = gigabytes_per_second(rate->number({0.001, 100'000}));
    level.efficiency = 1;
    level.all_reduce.clear();
  }
  if (const auto part = reader.find("efficiency")) level.efficiency = part->number({0.01, 1});
  if (const auto rate = reader.find("gb_s_of_all")) {
    level.bandwidth_of_all = gigabytes_per_second(rate->number({0.001, 100'000}));
  }
  if (const auto wait = reader.find("latency_us")) {
    level.latency = microseconds(wait->number({0.001, 1'000'000}));
  }
  return level;
}

// What was measured of links and hosts, in place of what their files say.
void read_measured(const Catalog& catalog, const Reader& reader, GroupSpec& group) {
  if (const auto levels = reader.find("levels")) {
    for (const Reader& level : levels->items()) {
      group.levels.push_back(read_level(catalog, level, group.host.devices));
    }
    if (group.levels.empty()) levels->fail("is empty", "at least one level, innermost first");
  }
  if (const auto pace = reader.find("host_pace")) group.hosts.host_pace = pace->number({0.01, 100});
  if (const auto ahead = reader.find("host_runs_ahead")) {
    group.hosts.host_runs_ahead = ahead->flag();
  }
  if (const auto wait = reader.find("host_latency_us")) {
    group.hosts.host_per_member = microseconds(wait->number({0, 1'000'000}));
    group.hosts.host_per_neighbour = group.hosts.host_per_member;
  }
  if (const auto wait = reader.find("host_latency_inside_us")) {
    group.hosts.host_per_neighbour = microseconds(wait->number({0, 1'000'000}));
  }
}

GroupSpec read_group(const Catalog& catalog, const std::filesystem::path& path,
                     const Reader& reader) {
  const auto meant = [&](const Reader& key) { return reference_in(path, key.text()); };
  reader.allow({"device", "host", "network", "nodes", "devices", "per_host", "memory_gib",
                "host_memory_gib", "share", "oversubscription", "leaf_hosts", "levels", "host_pace",
                "host_runs_ahead", "host_latency_us", "host_latency_inside_us"});
  GroupSpec group;
  const Reader name = reader.at("device");
  const DeviceSheet sheet = load_device(catalog, meant(name), name.where());
  group.device = sheet.device;
  const auto host = reader.find("host");
  group.host =
      load_host(catalog, host ? meant(*host) : sheet.host, host ? host->where() : name.where());
  if (const auto per_host = reader.find("per_host")) {
    group.host.devices = per_host->whole({1, 1024});
    if (!group.host.levels.empty()) {
      group.host.levels.back().devices =
          std::max(group.host.levels.back().devices, group.host.devices);
    }
  }
  read_network_of(catalog, path, reader, sheet.network, group);
  read_measured(catalog, reader, group);
  if (const auto memory = reader.find("memory_gib")) {
    group.device.memory = round_up_to_bytes(std::floor(memory->number(kDeviceGibibytes) * 0x1p30));
    group.device.memory_source = memory->where();
  }
  if (const auto memory = reader.find("host_memory_gib")) {
    group.host.memory = round_up_to_bytes(std::floor(memory->number({1, 1'000'000}) * 0x1p30));
  }
  const auto nodes = reader.find("nodes");
  const auto devices = reader.find("devices");
  if (nodes && devices) nodes->fail("is given beside 'devices'", "one of nodes and devices");
  if (nodes) {
    group.count = checked_multiply(nodes->whole({1, kMostDevices}), group.host.devices, "devices");
  }
  if (devices) group.count = devices->whole({1, kMostDevices});
  if (const auto share = reader.find("share")) group.share = share->whole({1, 1'000'000});
  return group;
}

// A file of data/clusters or of the user's own.
struct ClusterFile {
  std::string title;
  std::string source;
  std::vector<GroupSpec> groups;
  Level between;
};

ClusterFile read_cluster_file(const Catalog& catalog, const std::filesystem::path& path) {
  const Document document = open_document(path);
  const Reader reader(document);
  reader.allow({"schema", "name", "title", "source", "groups", "between_groups"});
  if (const auto schema = reader.find("schema"); schema && schema->text() != "placet.cluster/1") {
    schema->fail("is another schema", "\"placet.cluster/1\"");
  }
  ClusterFile file;
  if (const auto name = reader.find("name")) name->text();
  if (const auto title = reader.find("title")) file.title = title->text();
  if (const auto source = reader.find("source")) file.source = source->text();
  for (const Reader& group : reader.at("groups").items()) {
    file.groups.push_back(read_group(catalog, path, group));
  }
  if (file.groups.empty()) reader.at("groups").fail("is empty", "at least one group");
  const auto between = reader.find("between_groups");
  if (between) {
    file.between = load_link(catalog, reference_in(path, between->text()), 1, between->where());
  } else if (file.groups.size() > 1) {
    reader.at("between_groups");
  }
  return file;
}

// Nodes, or devices past one for each group, are dealt to the groups by their shares.
void require_dealt(std::int64_t all, std::int64_t shares, bool are_nodes,
                   const std::string& where) {
  if (all % shares == 0 || (!are_nodes && all < shares)) return;
  const std::int64_t below = all / shares * shares;
  const std::string above = std::to_string(below + shares);
  throw InputError({.where = where,
                    .value = std::to_string(all),
                    .problem = std::string(are_nodes ? "nodes" : "devices") +
                               " cannot be dealt to the groups of this cluster",
                    .allowed = below > 0 ? std::to_string(below) + " or " + above : above});
}

// Gives every group its number of devices: what the file says, unless a size is asked for.
void set_counts(ClusterFile& file, const Size& size, std::optional<std::int64_t> needed,
                const std::string& where) {
  std::int64_t shares = 0;
  bool all_counted = true;
  for (const GroupSpec& group : file.groups) {
    shares += group.share;
    all_counted = all_counted && group.count.has_value();
  }
  const std::optional<std::int64_t> asked = size.nodes ? size.nodes : size.devices;
  if (all_counted && !asked) return;
  const std::optional<std::int64_t> all = asked ? asked : needed;
  if (!all) {
    for (GroupSpec& group : file.groups) group.count = group.count.value_or(group.host.devices);
    return;
  }
  require_dealt(*all, shares, size.nodes.has_value(), where);
  for (GroupSpec& group : file.groups) {
    const std::int64_t part = checked_multiply(*all, group.share, "devices") / shares;
    group.count = size.nodes ? checked_multiply(part, group.host.devices, "devices") : part;
    if (part > 0) continue;
    throw InputError({.where = where,
                      .value = std::to_string(*all),
                      .problem = "devices leave a group of the cluster empty",
                      .allowed = "at least one device for each group"});
  }
}

DeviceGroup group_of_links(const GroupSpec& spec) {
  if (!spec.levels.empty()) {
    DeviceGroup group = assemble_group(spec.device, spec.host, spec.network, *spec.count);
    group.levels.clear();
    for (const Level& level : spec.levels) {
      group.levels.push_back(level);
      if (level.devices >= *spec.count) break;
    }
    group.levels.back().devices = std::max<std::int64_t>(*spec.count, 1);
    return group;
  }
  if (spec.oversubscription <= 1) {
    return assemble_group(spec.device, spec.host, spec.network, *spec.count);
  }
  Host host = spec.host;
  Level spine = spec.network;
  const std::int64_t leaf = checked_multiply(spec.leaf_hosts, host.devices, "devices");
  const std::int64_t inside = host.levels.empty() ? 1 : host.levels.back().devices;
  if (leaf > inside) {
    host.levels.push_back(spec.network);
    host.levels.back().devices = leaf;
  }
  spine.bandwidth = spine.bandwidth / spec.oversubscription;
  spine.all_reduce.clear();
  return assemble_group(spec.device, host, std::move(spine), *spec.count);
}

DeviceGroup group_of(const GroupSpec& spec) {
  DeviceGroup group = group_of_links(spec);
  group.host_pace = spec.hosts.host_pace;
  group.host_runs_ahead = spec.hosts.host_runs_ahead;
  group.host_per_member = spec.hosts.host_per_member;
  group.host_per_neighbour = spec.hosts.host_per_neighbour;
  return group;
}

// A bare device as a cluster of one group.
ClusterFile cluster_of_device(const Catalog& catalog, const std::string& name,
                              const std::string& where) {
  const DeviceSheet sheet = load_device(catalog, name, where);
  GroupSpec group;
  group.device = sheet.device;
  group.host = load_host(catalog, sheet.host, where);
  group.network = load_link(catalog, sheet.network, 1, where);
  return {.title = sheet.title, .source = {}, .groups = {group}, .between = {}};
}

// Unknown names that begin others ("h100") are answered with those, not with the nearest spelling.
[[noreturn]] void fail_unknown(const Catalog& catalog, const std::string& name,
                               const std::string& where) {
  std::vector<std::string> names = names_in(catalog, "hardware/devices");
  for (std::string& cluster : names_in(catalog, "clusters")) names.push_back(std::move(cluster));
  std::vector<std::string> longer;
  for (const std::string& other : names) {
    if (!name.empty() && other.starts_with(name + "-")) longer.push_back(other);
  }
  // "8h1000" is near "h100", and not "8h1000" near anything; second names count as well.
  for (const char* kind : {"devices", "clusters"}) {
    for (const Alias& alias : load_words(catalog, kind).aliases) names.push_back(alias.word);
  }
  const std::size_t digits = name.find_first_not_of("0123456789");
  const std::string word = lower_case(name.substr(digits == std::string::npos ? 0 : digits));
  throw InputError(
      {.where = where,
       .value = name,
       .problem = "is no known device or cluster",
       .allowed = longer.empty()
                      ? "a name that `placet devices` or `placet clusters` lists, or a file"
                      : list_words(longer),
       .nearest = longer.empty() ? nearest(word, names) : std::string()});
}

ClusterFile find_part(const Catalog& catalog, const std::string& name, const std::string& where) {
  if (names_a_file(name)) return read_cluster_file(catalog, name);
  if (has_file(catalog, "hardware/devices", name)) return cluster_of_device(catalog, name, where);
  if (has_file(catalog, "clusters", name)) {
    return read_cluster_file(catalog, path_in(catalog, "clusters", name));
  }
  fail_unknown(catalog, name, where);
}

}  // namespace

DeviceSheet load_device(const Catalog& catalog, const std::string& reference,
                        const std::string& where) {
  const auto path = file_of(catalog, "hardware/devices", "device", reference, where);
  const std::string name = name_of_reference(reference);
  const Document document = open_document(path);
  const Reader reader(document);
  reader.allow({"schema", "name", "title", "memory_gib", "nominal_memory_gb", "peak_tflops",
                "best_matmul_tflops", "memory_bandwidth_gb_s", "compute", "attention",
                "price_usd_per_hour", "host", "network", "notes", "reads_both_orders"});
  check_sheet(reader, "placet.device/1", name);
  DeviceSheet sheet;
  sheet.title = reader.at("title").text();
  sheet.device.name = name;
  const Reader memory = reader.at("memory_gib");
  sheet.device.memory =
      round_up_to_bytes(std::floor(read_figure(memory, kDeviceGibibytes, sheet.facts) * 0x1p30));
  sheet.device.memory_source = memory.at("source").text();
  sheet.memory_kind = memory.at("kind").text();
  sheet.nominal_memory_gb = reader.at("nominal_memory_gb").number(kDeviceGibibytes);
  const Reader peaks = reader.at("peak_tflops");
  peaks.allow({"bf16", "fp16", "fp8", "fp4"});
  for (const auto& [format, peak] : peaks.members()) {
    const auto rate = teraflops_per_second(read_figure(peak, kTeraflops, sheet.facts));
    if (format == "bf16") sheet.device.peak_bf16 = rate;
    if (format == "fp16") sheet.peak_fp16 = rate;
    if (format == "fp8") sheet.peak_fp8 = rate;
  }
  if (const auto best = reader.find("best_matmul_tflops")) {
    best->allow({"bf16", "fp16", "fp8", "fp4"});
    for (const auto& [format, rate] : best->members()) read_figure(rate, kTeraflops, sheet.facts);
  }
  sheet.device.memory_bandwidth = gigabytes_per_second(
      read_figure(reader.at("memory_bandwidth_gb_s"), kMemoryGigabytes, sheet.facts));
  read_rates(reader, sheet.device, sheet.facts);
  if (const auto orders = reader.find("reads_both_orders")) {
    orders->allow({"value", "source", "date"});
    orders->at("source").text();
    orders->at("date").text();
    sheet.device.reads_both_orders = orders->at("value").flag();
  }
  if (const auto price = reader.find("price_usd_per_hour")) {
    sheet.device.price_per_hour = read_figure(*price, {0.001, 10'000}, sheet.facts);
  }
  sheet.host = reference_in(path, reader.at("host").text());
  sheet.network = reference_in(path, reader.at("network").text());
  if (const auto notes = reader.find("notes")) sheet.notes = notes->text();
  return sheet;
}

DeviceGroup load_group(const Catalog& catalog, const std::string& device, std::int64_t count,
                       const std::string& where) {
  ClusterFile file = cluster_of_device(catalog, device, where);
  file.groups.front().count = count;
  return group_of(file.groups.front());
}

namespace {

/// The file of a part with its network and its counts.
ClusterFile read_part(const Catalog& catalog, const Part& part,
                      std::optional<std::int64_t> devices_needed, const std::string& where) {
  ClusterFile file = find_part(catalog, part.name, where);
  if (!part.network.empty()) {
    for (GroupSpec& spec : file.groups) {
      spec.network = read_network(catalog, part.network, spec.host.devices, where);
      spec.oversubscription = 1;
    }
  }
  set_counts(file, part.size, devices_needed, where);
  return file;
}

/// Adds the devices of a part. Parts that are joined without a file meet over the slowest network
/// among them.
void add_part(const ClusterFile& file, Cluster& cluster) {
  for (const GroupSpec& spec : file.groups) {
    cluster.groups.push_back(group_of(spec));
    const bool slower = cluster.between_groups.link.empty() ||
                        spec.network.bandwidth < cluster.between_groups.bandwidth;
    if (file.between.link.empty() && slower) cluster.between_groups = spec.network;
  }
  if (!file.between.link.empty()) cluster.between_groups = file.between;
}

Cluster read_cluster(const Catalog& catalog, const std::string& text,
                     std::optional<std::int64_t> devices_needed, const std::string& where) {
  Cluster cluster;
  cluster.name = text;
  const std::vector<Part> parts = parse_parts(text, where);
  if (parts.size() > 1) devices_needed.reset();  // a bare part of several is one node
  for (const Part& part : parts) {
    add_part(read_part(catalog, part, devices_needed, where), cluster);
  }
  if (cluster.groups.size() == 1) {
    cluster.between_groups = {};
  } else {
    cluster.between_groups.devices = devices_of(cluster);
  }
  return cluster;
}

}  // namespace

Cluster load_cluster(const Catalog& catalog, const std::string& text,
                     std::optional<std::int64_t> devices_needed, const std::string& where) {
  const auto read = [&] { return read_cluster(catalog, text, devices_needed, where); };
  const bool has_path = text.find('/') != std::string::npos ||
                        text.find(".json") != std::string::npos ||
                        text.find(".toml") != std::string::npos;
  if (has_path) return read();
  const std::string needed = devices_needed ? std::to_string(*devices_needed) : "any";
  return remembered<Cluster>(catalog, "cluster " + needed + " " + text, read);
}

ClusterSheet load_cluster_sheet(const Catalog& catalog, const std::string& name) {
  ClusterFile file = read_cluster_file(catalog, path_in(catalog, "clusters", name));
  for (GroupSpec& group : file.groups) group.count = group.host.devices;
  ClusterSheet sheet{.name = name, .title = file.title, .source = file.source, .node = {}};
  sheet.node.name = name;
  for (const GroupSpec& group : file.groups) sheet.node.groups.push_back(group_of(group));
  sheet.node.between_groups = file.between;
  return sheet;
}

}  // namespace placet
