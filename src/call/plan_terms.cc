#include "call/plan_terms.h"

#include <algorithm>
#include <optional>
#include <set>

#include "catalog/cluster_catalog.h"
#include "catalog/reader.h"
#include "units/error.h"
#include "units/nearest.h"
#include "units/number.h"

namespace placet {
namespace {

constexpr double kMostTrainedTokens = 1e18;
constexpr double kMostPrice = 10'000;
constexpr std::int64_t kMostDevices = 1 << 20;
constexpr std::size_t kMostScales = 16;

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

double power_of(char suffix) {
  switch (suffix) {
    case 'K':
      return 1e3;
    case 'M':
      return 1e6;
    case 'B':
      return 1e9;
    case 'T':
      return 1e12;
    default:
      return 1;
  }
}

double price_of(const std::string& text, const std::string& item) {
  const std::optional<double> price = number_in<double>(text);
  if (price && *price > 0 && *price <= kMostPrice) return *price;
  throw InputError({.where = "--price",
                    .value = item,
                    .problem = "has no price",
                    .allowed = "US dollars of a device's hour, such as 2.5 or h100-sxm=2.5"});
}

void set_price(const std::string& item, Cluster& cluster) {
  const std::size_t equals = std::min(item.find('='), item.size());
  const bool for_all = equals == item.size();
  const double price = price_of(for_all ? item : item.substr(equals + 1), item);
  const std::string name = for_all ? std::string() : item.substr(0, equals);
  std::vector<std::string> names;
  bool known = false;
  for (DeviceGroup& group : cluster.groups) {
    names.push_back(group.device.name);
    if (!for_all && group.device.name != name) continue;
    group.device.price_per_hour = price;
    known = true;
  }
  if (known) return;
  throw InputError({.where = "--price",
                    .value = item,
                    .problem = "names no device of the cluster",
                    .allowed = list_words(names),
                    .nearest = nearest(name, names)});
}

}  // namespace

double read_tokens(const std::string& text) {
  if (text.empty()) return 0;
  const double power = power_of(text.back());
  const std::string digits = power > 1 ? text.substr(0, text.size() - 1) : text;
  const std::optional<double> number = number_in<double>(digits);
  if (number && *number > 0 && *number * power <= kMostTrainedTokens) return *number * power;
  throw InputError({.where = "--tokens",
                    .value = text,
                    .problem = "is no number of tokens",
                    .allowed = "a number, with K, M, B or T for thousands to trillions: 15T"});
}

void set_prices(const std::string& text, Cluster& cluster) {
  if (text.empty()) return;
  const std::vector<std::string> items = parts_of(text);
  std::set<std::string> names;
  for (const std::string& item : items) {
    if (!names.insert(item.substr(0, item.find('='))).second) {
      refuse("--price", item, "prices its device for the second time", "each device once");
    }
    if (items.size() > 1 && item.find('=') == std::string::npos) {
      refuse("--price", item, "is the price of all devices, beside others",
             "one price, or DEVICE=USD of each device");
    }
    set_price(item, cluster);
  }
}

std::vector<std::int64_t> read_scale(const std::string& text) {
  std::vector<std::int64_t> out;
  if (text.empty()) return out;
  for (const std::string& item : parts_of(text)) {
    const std::optional<std::int64_t> n = number_in<std::int64_t>(item);
    if (!n || *n < 1 || *n > kMostDevices || out.size() == kMostScales) {
      throw InputError({.where = "--scale",
                        .value = text,
                        .problem = "does not list numbers of devices",
                        .allowed = "up to " + std::to_string(kMostScales) +
                                   " whole numbers with commas: 64,128,256"});
    }
    out.push_back(*n);
  }
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

namespace {

/// The name of a cluster of one kind of devices with another number of them.
std::string resized_cluster(const std::string& text, std::int64_t devices) {
  const std::size_t colon = text.find(':');
  const std::size_t times = text.find('x');
  const bool counted = times != std::string::npos && times > 0 &&
                       number_in<std::int64_t>(text.substr(0, times)).has_value();
  const bool one_kind = text.find(',') == std::string::npos;
  if (one_kind && (colon != std::string::npos || counted)) {
    const std::string device =
        counted ? text.substr(times + 1) : text.substr(0, std::min(colon, text.size()));
    return std::to_string(devices) + "x" + device;
  }
  throw InputError({.where = "--scale",
                    .value = text,
                    .problem = "is a cluster whose size is settled",
                    .allowed = "--cluster h100-sxm:8 or 64xh100-sxm"});
}

}  // namespace

Cluster scaled_cluster(const Catalog& catalog, const std::string& text, std::int64_t devices) {
  return load_cluster(catalog, resized_cluster(text, devices), std::nullopt, "--scale");
}

}  // namespace placet
