#include "catalog/data_folder.h"

#include <algorithm>
#include <array>

#include "catalog/bug_catalog.h"
#include "catalog/choices_catalog.h"
#include "catalog/cluster_catalog.h"
#include "catalog/cluster_parts.h"
#include "catalog/defaults.h"
#include "catalog/family_files.h"
#include "catalog/memory.h"
#include "catalog/model_catalog.h"
#include "catalog/profile_catalog.h"
#include "catalog/reader.h"
#include "catalog/strategy_catalog.h"
#include "catalog/training_catalog.h"
#include "catalog/word_file.h"
#include "units/nearest.h"

namespace placet {
namespace {

namespace fs = std::filesystem;

constexpr std::array kKinds = {DataKind{"devices", "hardware/devices"},
                               DataKind{"links", "hardware/links"},
                               DataKind{"hosts", "hardware/hosts"},
                               DataKind{"clusters", "clusters"},
                               DataKind{"models", "models"},
                               DataKind{"families", "families"},
                               DataKind{"decoders", "decoders"},
                               DataKind{"strategies", "strategies"},
                               DataKind{"schedules", "schedules"},
                               DataKind{"attention", "attention"},
                               DataKind{"engines", "engines"},
                               DataKind{"libraries", "libraries"},
                               DataKind{"precisions", "precisions"},
                               DataKind{"formats", "formats"},
                               DataKind{"optimizers", "optimizers"},
                               DataKind{"words", "words"},
                               DataKind{"defaults", "defaults"},
                               DataKind{"search", "search"},
                               DataKind{"bugs", "bugs"},
                               DataKind{"dialects", "dialects"},
                               DataKind{"lint", "lint"}};

std::vector<std::string> kind_words() {
  std::vector<std::string> words;
  words.reserve(kKinds.size());
  for (const DataKind& kind : kKinds) words.emplace_back(kind.word);
  return words;
}

/// Folders that hold one file, which has this name.
std::string_view only_name_of(std::string_view kind) {
  if (kind == "defaults") return "job";
  return kind == "decoders" ? "ordinary" : "";
}

void read_word(const Catalog& catalog, const std::string& name, const std::string&) {
  refuse_unreadable(load_strategies(catalog).vocabulary, name);
}

using Read = void (*)(const Catalog& catalog, const std::string& name, const std::string& where);

/// How a file of a kind is read, with all that it speaks of.
struct KindReader {
  std::string_view kind;
  Read read;
};
constexpr std::array kReaders = {
    KindReader{"devices", [](const Catalog& c, const std::string& n,
                             const std::string& w) { load_group(c, n, 1, w); }},
    KindReader{"links", [](const Catalog& c, const std::string& n,
                           const std::string& w) { load_link(c, n, 1, w); }},
    KindReader{"hosts", [](const Catalog& c, const std::string& n,
                           const std::string& w) { load_host(c, n, w); }},
    KindReader{"clusters", [](const Catalog& c, const std::string& n,
                              const std::string&) { load_cluster_sheet(c, n); }},
    KindReader{"models", [](const Catalog& c, const std::string& n,
                            const std::string&) { load_model(c, n); }},
    KindReader{"families", [](const Catalog& c, const std::string& n,
                              const std::string&) { load_family_file(c, n); }},
    KindReader{"decoders", [](const Catalog& c, const std::string&,
                              const std::string&) { load_model(c, "decoder=7B"); }},
    KindReader{"engines", [](const Catalog& c, const std::string& n,
                             const std::string& w) { require_readable_engine(c, n, w); }},
    KindReader{"precisions", [](const Catalog& c, const std::string& n,
                                const std::string& w) { load_precision(c, n, {}, w); }},
    KindReader{"formats", [](const Catalog& c, const std::string& n,
                             const std::string& w) { load_format(c, n, w); }},
    KindReader{"optimizers", [](const Catalog& c, const std::string& n,
                                const std::string& w) { load_optimizer(c, n, w); }},
    KindReader{"words", [](const Catalog& c, const std::string& n,
                           const std::string&) { load_words(c, n); }},
    KindReader{"defaults",
               [](const Catalog& c, const std::string&, const std::string&) { load_defaults(c); }},
    KindReader{"search", [](const Catalog& c, const std::string& n,
                            const std::string&) { load_choices(c, load_strategies(c), n); }},
    KindReader{"bugs",
               [](const Catalog& c, const std::string& n, const std::string&) { load_bug(c, n); }},
    KindReader{"libraries", [](const Catalog& c, const std::string& n,
                               const std::string&) { require_readable_library(c, n); }},
    KindReader{"dialects", [](const Catalog& c, const std::string& n,
                              const std::string&) { open_document(path_in(c, "dialects", n)); }},
    KindReader{"lint", [](const Catalog& c, const std::string& n,
                          const std::string&) { open_document(path_in(c, "lint", n)); }},
    KindReader{"strategies", &read_word},
    KindReader{"schedules", &read_word},
    KindReader{"attention", &read_word}};

void read_strictly(const Catalog& catalog, std::string_view kind, const std::string& name) {
  const auto reader = std::ranges::find(kReaders, kind, &KindReader::kind);
  if (reader != kReaders.end()) reader->read(catalog, name, std::string(kind));
}

class FolderChecker {
 public:
  FolderChecker(const Catalog& catalog, const fs::path& folder) : catalog_(catalog) {
    sheet_.folder = folder;
  }

  DataSheet check() {
    look_for_strangers(sheet_.folder, "");
    for (const DataKind& kind : kKinds) check_kind(kind);
    return std::move(sheet_);
  }

 private:
  void add(const fs::path& path, const std::string& problem, const std::string& allowed,
           const std::string& nearest_word = {}) {
    sheet_.findings.push_back(
        {.where = path.string(), .problem = problem, .allowed = allowed, .nearest = nearest_word});
  }

  /// Folders of no kind, and files that lie beside the folders of kinds.
  void look_for_strangers(const fs::path& folder, const std::string& before) {
    std::error_code error;
    for (const fs::path& path : sorted(folder)) {
      const std::string name = before + path.filename().string();
      const bool is_kind = std::ranges::find(kKinds, name, &DataKind::folder) != kKinds.end();
      if (is_kind || path.filename().string().starts_with('.')) continue;
      if (fs::is_directory(path, error) && name == "hardware") {
        look_for_strangers(path, "hardware/");
      } else if (fs::is_directory(path, error)) {
        const std::vector<std::string> folders = folder_names();
        add(path, "is no folder of a kind", list_words(folders), nearest(name, folders));
      } else if (path.extension() == ".json") {
        add(path, "lies in no folder of a kind", list_words(folder_names()));
      }
    }
  }

  static std::vector<std::string> folder_names() {
    std::vector<std::string> names;
    names.reserve(kKinds.size());
    for (const DataKind& kind : kKinds) names.emplace_back(kind.folder);
    return names;
  }

  static std::vector<fs::path> sorted(const fs::path& folder) {
    std::vector<fs::path> paths;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) paths.push_back(entry.path());
    std::ranges::sort(paths);
    return paths;
  }

  void check_kind(const DataKind& kind) {
    for (const fs::path& path : sorted(sheet_.folder / kind.folder)) {
      if (path.extension() == ".json") {
        check_file(kind, path);
      } else if (!may_lie_beside(kind, path)) {
        add(path, "is read by nobody", "a file that ends in .json");
      }
    }
  }

  static bool may_lie_beside(const DataKind& kind, const fs::path& path) {
    std::error_code error;
    const std::string ending = path.extension().string();
    return path.filename().string().starts_with('.') || ending == ".md" || ending == ".txt" ||
           (kind.word == "bugs" && path.filename() == "programs") ||
           (kind.word == "schedules" && (ending == ".csv" || fs::is_directory(path, error)));
  }

  void check_file(const DataKind& kind, const fs::path& path) {
    const std::string name = path.stem().string();
    sheet_.files.push_back({.kind = std::string(kind.word),
                            .name = name,
                            .path = path,
                            .hides = hidden_by(catalog_, kind.folder, path)});
    const std::string_view only = only_name_of(kind.word);
    if (!only.empty() && name != only) {
      add(path, "is read by nobody", "the name " + std::string(only) + ".json");
      return;
    }
    try {
      read_strictly(catalog_, kind.word, name);
    } catch (const InputError& error) {
      InputFault fault = error.fault();
      // What names no file of its own speaks of the name, which this file has.
      if (fault.where.find('/') == std::string::npos) fault.where = path.string();
      sheet_.findings.push_back(std::move(fault));
    }
  }

  const Catalog& catalog_;
  DataSheet sheet_;
};

}  // namespace

std::span<const DataKind> data_kinds() { return kKinds; }

DataKind data_kind(const std::string& word, const std::string& where) {
  const auto found = std::ranges::find(kKinds, word, &DataKind::word);
  if (found != kKinds.end()) return *found;
  throw InputError({.where = where,
                    .value = word,
                    .problem = "is no kind of file",
                    .allowed = list_words(kind_words()),
                    .nearest = nearest(word, kind_words())});
}

Catalog with_overlay(Catalog catalog, const fs::path& folder) {
  std::error_code error;
  std::erase_if(catalog.overlays,
                [&](const fs::path& one) { return fs::equivalent(one, folder, error); });
  catalog.overlays.insert(catalog.overlays.begin(), folder);
  if (catalog.memory) catalog.memory = std::make_shared<CatalogMemory>();
  return catalog;
}

DataSheet check_data(Catalog catalog, const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    refuse("placet data check", folder.string(), "is not a folder",
           "a folder with folders such as hardware/devices, engines and strategies in it");
  }
  catalog = with_overlay(std::move(catalog), folder);
  return FolderChecker(catalog, folder).check();
}

}  // namespace placet
