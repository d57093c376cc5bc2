// The files that an engine's version is made of, and their names. Inside of
// catalog/profile_catalog.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/reader.h"

namespace placet {

inline constexpr const char* kEngines = "engines";
inline constexpr const char* kLibraries = "libraries";

/// One file of an engine, read, its heading and keys checked.
struct EngineFile {
  std::filesystem::path path;
  Document document;
  std::vector<std::string> inherited;  // options of the file before it that it starts with
  std::vector<EngineFile> libraries;   // of options that other engines have, too
  std::string stem() const { return path.stem().string(); }
};

/// A version: the file that inherits from none first, the version's own last.
using EngineFiles = std::vector<EngineFile>;
using EngineFilesView = std::span<const EngineFile>;

/// The file at `path` and all that it inherits from. Throws InputError that speaks of file and key
/// path, for circles too.
EngineFiles read_engine(const Catalog& catalog, const std::filesystem::path& path);

/// A library of options by its name, its heading and keys checked.
EngineFile read_library(const Catalog& catalog, const std::string& name);

/// The files of options, one for each library, that an engine's file lists under `libraries`.
std::vector<EngineFile> read_libraries(const Catalog& catalog, const Document& engine);

/// The name of the file, without ending, that "name" (its newest version) or "name@version" speaks
/// of. Throws InputError that speaks of `where`.
std::string engine_stem(const Catalog& catalog, const std::string& text, const std::string& where);

/// The words behind each '+' from the one at `plus` on; none if that is npos.
std::vector<std::string> words_behind(const std::string& text, std::size_t plus);

/// File names of engines without ending: by name, the newest version last.
std::vector<std::string> engine_stems(const Catalog& catalog);

/// Words of options that files of their own hold, "1-far" beside "1", with these files' names, for
/// one version's stem.
std::vector<std::pair<std::string, std::string>> options_in_files(const Catalog& catalog,
                                                                  const std::string& stem);

}  // namespace placet
