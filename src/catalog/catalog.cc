#include "catalog/catalog.h"

#include <algorithm>
#include <cstdlib>

#include "catalog/reader.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

bool is_folder(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

// A name that could leave its folder is never looked up.
bool is_plain(std::string_view name) {
  return !name.empty() && name.front() != '.' &&
         name.find_first_of("/\\") == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

}  // namespace

Catalog find_catalog(const std::string& installed) {
  if (const char* named = std::getenv("PLACET_DATA"); named != nullptr && *named != '\0') {
    if (is_folder(named)) return {named};
    throw InputError({.where = "environment variable PLACET_DATA",
                      .value = named,
                      .problem = "is not a folder",
                      .allowed = "the folder of the catalogue"});
  }
  std::error_code error;
  const auto executable = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const auto beside = executable.parent_path().parent_path() / "share" / "placet" / "data";
    if (is_folder(beside)) return {beside};
  }
  if (is_folder(installed)) return {installed};
  if (is_folder(PLACET_DATA_DIR)) return {PLACET_DATA_DIR};
  throw InputError(
      {.where = "catalogue",
       .value = PLACET_DATA_DIR,
       .problem = "is not a folder",
       .allowed = "the folder of the catalogue in the environment variable PLACET_DATA"});
}

std::vector<std::string> names_in(const Catalog& catalog, std::string_view folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(catalog.root / folder, error)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::filesystem::path file_of(const Catalog& catalog, std::string_view folder,
                              std::string_view noun, const std::string& name,
                              const std::string& where) {
  std::error_code error;
  std::filesystem::path path = catalog.root / folder / (name + ".json");
  if (is_plain(name) && std::filesystem::is_regular_file(path, error)) return path;
  const std::vector<std::string> names = names_in(catalog, folder);
  const bool has_listing = noun == "device" || noun == "model" || noun == "bug";
  throw InputError({.where = where,
                    .value = name,
                    .problem = "is not a known " + std::string(noun),
                    .allowed = has_listing ? "a name that `placet " + std::string(noun) + "s` lists"
                                           : list_words(names),
                    .nearest = nearest(name, names)});
}

bool names_a_file(std::string_view word) {
  return word.find('/') != std::string_view::npos || word.ends_with(".json") ||
         word.ends_with(".toml");
}

}  // namespace placet
