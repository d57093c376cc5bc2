#include "cli/data_flag.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "catalog/memory.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr const char* kProjectFolder = "placet";

std::vector<std::string>& folders() {
  static std::vector<std::string> value;
  return value;
}

bool is_folder(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

/// Where the user's configuration lies; empty: the system does not say.
std::filesystem::path configuration_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value == nullptr ? "" : value);
  };
  // The specification of these folders takes whole paths alone.
  if (auto folder = variable("XDG_CONFIG_HOME"); folder.is_absolute()) return folder;
  const auto home = variable("HOME");
  return home.is_absolute() ? home / ".config" : std::filesystem::path();
}

}  // namespace

void add_data_flag(CLI::App& program) {
  program
      .add_option("--data", folders(),
                  "A folder of your own data over the catalogue; may be given again, later over "
                  "earlier")
      ->type_name("DIR")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

Catalog called_catalog() {
  Catalog catalog = find_catalog();
  for (const std::string& folder : folders()) {
    if (!is_folder(folder)) {
      refuse("--data", folder, "is not a folder",
             "a folder with folders such as hardware/devices, engines and strategies in it");
    }
    catalog.overlays.emplace(catalog.overlays.begin(), folder);
  }
  if (is_folder(kProjectFolder)) catalog.overlays.emplace_back(kProjectFolder);
  const auto configuration = configuration_folder();
  if (!configuration.empty() && is_folder(configuration / "placet")) {
    catalog.overlays.push_back(configuration / "placet");
  }
  catalog.memory = std::make_shared<CatalogMemory>();
  return catalog;
}

}  // namespace placet
