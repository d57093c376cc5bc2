#include "catalog/engine_setting.h"

#include <algorithm>
#include <string_view>

#include "catalog/words.h"

namespace placet {
namespace {

/// Whether the list at `key`, if there is one, has the word.
bool lists(const Reader& when, std::string_view key, const std::string& word) {
  const auto list = when.find(key);
  if (!list) return true;
  const std::vector<Reader> items = list->items();
  if (items.empty()) list->fail("names none", "a list of words");
  return std::ranges::any_of(items, [&](const Reader& item) { return item.text() == word; });
}

/// Whether the flag at `key`, if there is one, is `actual`.
bool says(const Reader& when, std::string_view key, bool actual) {
  const auto flag = when.find(key);
  return !flag || flag->flag() == actual;
}

bool names_all(const Reader& when, const std::vector<std::string>& devices) {
  if (!when.has("devices")) return true;
  return !devices.empty() && std::ranges::all_of(devices, [&](const std::string& device) {
    return lists(when, "devices", device);
  });
}

}  // namespace

EngineSetting setting_of(const Job& job) {
  const ModelFigures& figures = job.model.figures;
  EngineSetting setting{.model = job.model.name,
                        .family = job.model.family,
                        .has_experts = figures.experts > 0,
                        .shares_keys = figures.kv_heads < figures.heads,
                        .products = job.precision.products ? job.precision.products->name : "",
                        .compute = job.precision.compute};
  if (!job.cluster) return setting;
  for (const DeviceGroup& group : job.cluster->groups) {
    setting.devices.push_back(group.device.name);
  }
  return setting;
}

bool holds(const Reader& when, const EngineSetting& setting) {
  when.allow({"models", "families", "has_experts", "shares_keys", "products", "narrow_products",
              "compute", "devices"});
  if (when.json().empty()) when.fail("says nothing", "at least one condition");
  // All are read, so that a wrong one is found whatever the others say.
  const std::vector<bool> parts = {
      lists(when, "models", setting.model),
      lists(when, "families", setting.family),
      says(when, "has_experts", setting.has_experts),
      says(when, "shares_keys", setting.shares_keys),
      lists(when, "products", setting.products),
      says(when, "narrow_products", !setting.products.empty()),
      !when.has("compute") || read_dtype(when.at("compute")) == setting.compute,
      names_all(when, setting.devices)};
  return std::ranges::all_of(parts, [](bool part) { return part; });
}

}  // namespace placet
