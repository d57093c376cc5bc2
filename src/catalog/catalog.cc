#include "catalog/catalog.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "catalog/memory.h"
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

const std::filesystem::path& folder_of_layer(const Catalog& catalog, std::size_t layer) {
  return layer < catalog.overlays.size() ? catalog.overlays[layer] : catalog.root;
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

std::vector<CatalogFile> files_in(const Catalog& catalog, std::string_view folder) {
  std::vector<CatalogFile> files;
  for (std::size_t layer = 0; layer <= catalog.overlays.size(); ++layer) {
    std::error_code error;
    const auto path = folder_of_layer(catalog, layer) / folder;
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      // A path is slow to take apart, and folders hold hundreds of files.
      constexpr std::string_view kEnding = ".json";
      const std::string& whole = entry.path().native();
      const std::string_view file = std::string_view(whole).substr(whole.rfind('/') + 1);
      if (!file.ends_with(kEnding) || file == kEnding) continue;
      files.push_back(
          {std::string(file.substr(0, file.size() - kEnding.size())), entry.path(), layer});
    }
  }
  std::ranges::stable_sort(files, {}, &CatalogFile::name);
  const auto hidden = std::ranges::unique(files, {}, &CatalogFile::name);
  files.erase(hidden.begin(), hidden.end());
  return files;
}

std::vector<std::string> names_in(const Catalog& catalog, std::string_view folder) {
  return remembered<std::vector<std::string>>(catalog, "names " + std::string(folder), [&] {
    std::vector<std::string> names;
    for (CatalogFile& file : files_in(catalog, folder)) names.push_back(std::move(file.name));
    return names;
  });
}

std::vector<CatalogFile> layers_of(const Catalog& catalog, std::string_view folder,
                                   const std::string& name) {
  std::vector<CatalogFile> files;
  if (!is_plain(name)) return files;
  for (std::size_t layer = 0; layer <= catalog.overlays.size(); ++layer) {
    std::error_code error;
    std::filesystem::path path = folder_of_layer(catalog, layer) / folder / (name + ".json");
    const bool is_root = layer == catalog.overlays.size();
    const bool there = is_root
                           ? std::filesystem::is_regular_file(path, error)
                           : std::filesystem::exists(std::filesystem::symlink_status(path, error));
    if (there) files.push_back({name, std::move(path), layer});
  }
  return files;
}

bool has_file(const Catalog& catalog, std::string_view folder, const std::string& name) {
  return !layers_of(catalog, folder, name).empty();
}

std::filesystem::path path_in(const Catalog& catalog, std::string_view folder,
                              const std::string& name) {
  const std::vector<CatalogFile> files = layers_of(catalog, folder, name);
  return files.empty() ? catalog.root / folder / (name + ".json") : files.front().path;
}

std::filesystem::path hidden_by(const Catalog& catalog, std::string_view folder,
                                const std::filesystem::path& file) {
  const std::vector<CatalogFile> files = layers_of(catalog, folder, file.stem().string());
  const auto own = std::ranges::find_if(files, [&](const CatalogFile& one) {
    return one.path.lexically_normal() == file.lexically_normal();
  });
  const auto below = own == files.end() ? files.begin() : own + 1;
  return below == files.end() ? std::filesystem::path() : below->path;
}

std::filesystem::path file_of(const Catalog& catalog, std::string_view folder,
                              std::string_view noun, const std::string& name,
                              const std::string& where) {
  if (names_a_file(name)) return name;
  const std::vector<CatalogFile> files = layers_of(catalog, folder, name);
  if (!files.empty()) return files.front().path;
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

std::string reference_in(const std::filesystem::path& file, const std::string& text) {
  if (!names_a_file(text)) return text;
  const std::filesystem::path path = (file.parent_path() / text).lexically_normal();
  // A path of one part would be taken for a name again.
  return path.has_parent_path() ? path.string() : "./" + path.string();
}

std::string name_of_reference(const std::string& reference) {
  return names_a_file(reference) ? std::filesystem::path(reference).stem().string() : reference;
}

}  // namespace placet
