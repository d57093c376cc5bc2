// Where the catalogue lies and which names it holds: one file per model, device, link, strategy,
// engine (docs/formats.md). Nothing is read before it is asked for.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

// Programs that link an installed Placet are given its catalogue by the CMake package.
#ifndef PLACET_INSTALLED_DATA
#define PLACET_INSTALLED_DATA ""
#endif

namespace placet {

/// The data folder. A value: readers take it and open only the files that they need.
struct Catalog {
  std::filesystem::path root;
};

/// The catalogue of this process: the folder named by the environment variable PLACET_DATA, else
/// ../share/placet/data beside the folder of the executable, else `installed`, else the folder
/// known from the build. Throws InputError if none of them exists, or PLACET_DATA names no folder.
Catalog find_catalog(const std::string& installed = PLACET_INSTALLED_DATA);

/// Names (file names without .json) in a folder of the catalogue, sorted; empty if it has none.
///   names_in(catalog, "optimizers") == {"adafactor", "adam", ...}
std::vector<std::string> names_in(const Catalog& catalog, std::string_view folder);

/// The file of `name` in `folder`. Throws InputError that speaks of `where` (a flag or key path)
/// and of the nearest name if there is none. `noun` is what the folder holds: "device".
std::filesystem::path file_of(const Catalog& catalog, std::string_view folder,
                              std::string_view noun, const std::string& name,
                              const std::string& where);

/// Whether a word of a flag names a file rather than a catalogue entry: it holds a '/' or ends in
/// .json or .toml.
bool names_a_file(std::string_view word);

}  // namespace placet
