// A user's own data folder, judged as a whole (docs/formats.md, section 15): what it adds to the
// catalogue, what it hides there, and what is wrong in it.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "units/error.h"

namespace placet {

/// A kind of file, and the folder of a catalogue that holds it.
struct DataKind {
  std::string_view word;    // "devices"
  std::string_view folder;  // "hardware/devices"
};

/// All kinds that an overlay may hold.
std::span<const DataKind> data_kinds();

/// The kind that a word names; throws InputError with the nearest word.
DataKind data_kind(const std::string& word, const std::string& where);

/// A file of an overlay, and the file that it hides; empty: none, it adds its name.
struct DataFile {
  std::string kind;
  std::string name;
  std::filesystem::path path;
  std::filesystem::path hides;
};

struct DataSheet {
  std::filesystem::path folder;
  std::vector<DataFile> files;       // by kind and name
  std::vector<InputFault> findings;  // of each file the first thing that is wrong
};

/// Reads every file of `folder` as strictly as who uses it, lying over `catalog`; and tells of what
/// nobody would read: folders of no kind, files without .json. Throws InputError if it is no
/// folder.
DataSheet check_data(Catalog catalog, const std::filesystem::path& folder);

/// The catalogue with a folder over it: the strongest, also where it was among the overlays
/// already.
Catalog with_overlay(Catalog catalog, const std::filesystem::path& folder);

}  // namespace placet
