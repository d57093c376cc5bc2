#include "validate/run_time.h"

#include "catalog/cluster_catalog.h"
#include "catalog/cluster_parts.h"
#include "catalog/network_words.h"
#include "model/listing.h"

namespace placet {
namespace {

constexpr Range kRates{1e-9, 1e18};

std::int64_t devices_of(const RunDegrees& degrees) {
  return degrees.data * degrees.tensor * degrees.layer * degrees.context;
}

/// FLOPs of a sample as a source counts them: the usual model FLOPs, or, with recomputation, those
/// of arXiv 2104.04473, equation 3: 96 s l h^2 (1 + s / 6h + V / 16 l h).
std::optional<double> counted_flops(std::string_view kind, const RunFacts& facts,
                                    const Model& model) {
  const double s = static_cast<double>(facts.batch.sequence);
  if (kind == "model") return in_flops(flops_per_token(model, facts.batch.sequence).training) * s;
  if (!kind.starts_with("hardware")) return std::nullopt;
  const double l = static_cast<double>(model.figures.blocks);
  const double h = static_cast<double>(model.figures.hidden);
  const double v = static_cast<double>(model.figures.vocabulary);
  return 96 * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
}

/// The innermost links join fewer devices than they could: slices, with a level of their own above.
void divide_in_slices(DeviceGroup& group, std::int64_t devices) {
  if (devices >= group.count) return;
  if (group.levels.size() == 1) group.levels.push_back(group.levels.front());
  group.levels.front().devices = devices;
}

/// Hosts of another size than the device's usual ones, whose links then join as many.
void set_hosts(DeviceGroup& group, const RunFacts& facts) {
  if (facts.devices_per_host == 0 || facts.devices_per_host == group.per_host) return;
  const bool joins_host = group.levels.front().devices == std::min(group.per_host, group.count);
  group.per_host = facts.devices_per_host;
  if (!joins_host || !facts.cluster.empty() || group.levels.size() < 2) return;
  group.levels.front().devices = std::min(facts.devices_per_host, group.count);
}

}  // namespace

std::optional<double> measured_step(RowReader& reader, const RunFacts& facts, const Model& model) {
  const auto cell = [&](const char* column) -> std::optional<double> {
    const std::string_view text = reader.stated(column);
    if (text.empty()) return std::nullopt;
    return number_of(text, kRates, column);
  };
  if (const auto step = cell("step_time_s")) return step;
  const double devices = static_cast<double>(devices_of(facts.degrees));
  const double samples = static_cast<double>(facts.batch.global);
  const double tokens = samples * static_cast<double>(facts.batch.sequence);
  if (const auto rate = cell("tokens_per_s_total")) return tokens / *rate;
  if (const auto rate = cell("tokens_per_s_per_gpu")) return tokens / (*rate * devices);
  if (const auto step = cell("step_time_s_derived")) return step;
  if (const auto rate = cell("samples_per_s")) return samples / *rate;
  const auto rate = cell("tflops_per_gpu");
  const std::optional<double> work = counted_flops(reader.stated("tflops_kind"), facts, model);
  if (!rate || !work) return std::nullopt;
  return *work * samples / (*rate * 1e12 * devices);
}

Cluster cluster_of(const Catalog& catalog, const RunFacts& facts, const std::string& device,
                   const std::string& where) {
  const std::string name = facts.cluster.empty() ? device : facts.cluster;
  Cluster cluster =
      load_cluster(catalog, std::to_string(devices_of(facts.degrees)) + "x" + name, {}, where);
  DeviceGroup& group = cluster.groups.front();
  set_hosts(group, facts);
  if (facts.slice_devices > 0) divide_in_slices(group, facts.slice_devices);
  if (!facts.network.empty() && group.count > group.per_host) {
    group.levels.back() = read_network(catalog, facts.network, group.per_host, where);
    group.levels.back().devices = group.count;
  }
  if (!facts.link_inside.empty() && group.levels.size() > 1) {
    const std::int64_t inside = group.levels.front().devices;
    group.levels.front() = read_network(catalog, facts.link_inside, 1, where);
    group.levels.front().devices = inside;
  }
  if (facts.intra_bandwidth && group.levels.size() > 1) {
    Level& inside = group.levels.front();
    inside.bandwidth = gigabytes_per_second(*facts.intra_bandwidth);
    inside.efficiency = 1;
    inside.all_reduce.clear();
  }
  const double sharers = group.levels.size() > 1 ? static_cast<double>(group.per_host) : 1.0;
  if (facts.network_bandwidth && group.levels.size() > 1) {
    Level& last = group.levels.back();
    last.bandwidth = gigabytes_per_second(*facts.network_bandwidth / sharers);
    last.efficiency = 1;
    last.all_reduce.clear();
  }
  if (facts.bandwidth_of_all) {
    group.levels.back().bandwidth_of_all = gigabytes_per_second(*facts.bandwidth_of_all / sharers);
  }
  if (facts.network_latency && group.levels.size() > 1) {
    group.levels.back().latency = microseconds(*facts.network_latency);
  }
  if (facts.host_latency) {
    group.host_per_member = microseconds(*facts.host_latency);
    group.host_per_neighbour =
        microseconds(facts.host_latency_inside.value_or(*facts.host_latency));
  }
  group.host_pace = facts.host_pace;
  return cluster;
}

}  // namespace placet
