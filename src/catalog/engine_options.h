// Options of an engine's version: facts that a user lays over it by name. Inside of
// catalog/profile_catalog.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "catalog/engine_files.h"
#include "profile/profile.h"

namespace placet {

/// A version's file name without ending, and the words of options behind it.
struct EngineName {
  std::string stem;
  std::vector<std::string> options;
};

/// "name", "name@version", "name@version+option+option", or "name@version-option", which is the
/// same where no file has that name. Throws InputError that speaks of `where`.
EngineName engine_named(const Catalog& catalog, const std::string& text, const std::string& where);

/// Where the facts of an option stand: under the key `options` of a file, or in a file of its own.
struct OptionPlace {
  const EngineFile* file = nullptr;  // that has it under `options`; null: a file of its own
  std::string stem;                  // of that file
};

/// By word what may be laid over a version: what its own file offers, then what those offer that it
/// inherits from. Points into `version`.
std::map<std::string, OptionPlace> options_of(const Catalog& catalog, EngineFilesView version);

/// The words alone, for a version that is not read yet.
std::vector<std::string> option_words(const Catalog& catalog, const std::string& stem);

/// The facts of `options` laid over `profile`, the version without any, in this order. Throws
/// InputError that speaks of `where` for a word that is no option and for two that say different
/// things about one fact.
Profile with_options(const Catalog& catalog, EngineFilesView version, Profile profile,
                     const std::vector<std::string>& options, const std::string& where);

}  // namespace placet
