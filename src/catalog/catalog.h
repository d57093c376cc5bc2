// Where the catalogue lies and which names it holds: one file per model, device, link, strategy,
// engine (docs/formats.md). Nothing is read before it is asked for.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// Programs that link an installed Placet are given its catalogue by the CMake package.
#ifndef PLACET_INSTALLED_DATA
#define PLACET_INSTALLED_DATA ""
#endif

namespace placet {

class CatalogMemory;

/// The data folder, and folders of the user's own that lie over it, the strongest first. Each holds
/// folders of the same names; a file hides the one of the same name below it. A value: readers take
/// it and open only the files that they need.
struct Catalog {
  std::filesystem::path root;
  std::vector<std::filesystem::path> overlays = {};
  /// What was read already; none: every call reads anew. Of these folders only: a catalogue with
  /// others gets another one.
  std::shared_ptr<CatalogMemory> memory = {};
};

/// The catalogue of this process: the folder named by the environment variable PLACET_DATA, else
/// ../share/placet/data beside the folder of the executable, else `installed`, else the folder
/// known from the build. Throws InputError if none of them exists, or PLACET_DATA names no folder.
Catalog find_catalog(const std::string& installed = PLACET_INSTALLED_DATA);

/// A file that a name stands for, and the layer that it lies in: a position in `overlays`, or their
/// number for the root.
struct CatalogFile {
  std::string name;
  std::filesystem::path path;
  std::size_t layer = 0;

  friend bool operator==(const CatalogFile&, const CatalogFile&) = default;
};

/// The files of a folder of the catalogue, in the order of their names; of those of one name the
/// one that hides the others.
std::vector<CatalogFile> files_in(const Catalog& catalog, std::string_view folder);

/// Names (file names without .json) in a folder of the catalogue, sorted; empty if it has none.
/// With a memory as they were when they were first asked for.
///   names_in(catalog, "optimizers") == {"adafactor", "adam", ...}
std::vector<std::string> names_in(const Catalog& catalog, std::string_view folder);

/// All files of one name, the strongest first. What an overlay has under the name counts also where
/// it cannot be read (a link to nowhere), so that this is told and not passed over.
std::vector<CatalogFile> layers_of(const Catalog& catalog, std::string_view folder,
                                   const std::string& name);

/// Whether there is such a file. A name that could leave the folder has none.
bool has_file(const Catalog& catalog, std::string_view folder, const std::string& name);

/// The file of that name that is read; without one, where the root would have it.
std::filesystem::path path_in(const Catalog& catalog, std::string_view folder,
                              const std::string& name);

/// The file that `file` hides: the next one of its name below its own layer. Of a file that lies
/// in no layer, the one of that name that is read. Empty: there is none.
std::filesystem::path hidden_by(const Catalog& catalog, std::string_view folder,
                                const std::filesystem::path& file);

/// The file of `name` in `folder`, or the file that `name` is the path of. Throws InputError that
/// speaks of `where` (a flag or key path) and of the nearest name if there is none. `noun` is what
/// the folder holds: "device".
std::filesystem::path file_of(const Catalog& catalog, std::string_view folder,
                              std::string_view noun, const std::string& name,
                              const std::string& where);

/// Whether a word of a flag names a file rather than a catalogue entry: it holds a '/' or ends in
/// .json or .toml.
bool names_a_file(std::string_view word);

/// What a file says about another: a name as it is, a path taken from the file's own folder.
///   reference_in("mine/c.json", "d.json") == "mine/d.json"
std::string reference_in(const std::filesystem::path& file, const std::string& text);

/// The name that the file of such a reference has: that of a path is its last part, without .json.
std::string name_of_reference(const std::string& reference);

}  // namespace placet
