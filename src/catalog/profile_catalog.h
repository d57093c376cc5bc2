// Engine profiles by name: data/engines/NAME@VERSION.json, schema placet.engine/1
// (docs/formats.md). A profile is a list of facts, each with its source; one may inherit another
// and override a few.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "profile/job.h"
#include "profile/profile.h"

namespace placet {

/// The profile `text` names: "megatron@2025", or "megatron" for its newest version (numbers inside
/// versions are compared as numbers: 2.10 is newer than 2.9), or with options of a version laid
/// over it: "megatron@2026+overlap+bf16-reduce", and numbers set: "+bucket=5e7". One option may
/// also be written behind a dash:
/// "megatron@2026-overlap". A word that names a file is read as one. Facts that hold for some jobs
/// only (`given`) are left out. Throws InputError that speaks of `where` (unknown name) or of the
/// file and key path.
Profile load_profile(const Catalog& catalog, const std::string& text, const std::string& where);

/// The same with the facts that hold for the job's model, precision and devices; its placement and
/// batch are not looked at, nor is its profile.
Profile load_profile(const Catalog& catalog, const std::string& text, const Job& job,
                     const std::string& where);

/// An option of a version, as `+NAME` behind it.
struct EngineOption {
  std::string name;
  std::string title;
  std::filesystem::path file;  // that has it under `options`; empty: a file of its own
  friend bool operator==(const EngineOption&, const EngineOption&) = default;
};

/// Facts of a version that hold for some jobs: for which, in the file's words.
struct EngineCase {
  std::string what;
  std::string when;  // {"products":["mxfp8"],"has_experts":true}
  friend bool operator==(const EngineCase&, const EngineCase&) = default;
};

/// A number of a version that a user may set, as `+NAME=VALUE` behind it.
struct EngineSize {
  std::string name;
  std::string title;
  std::int64_t standard = 0;  // without being set
  friend bool operator==(const EngineSize&, const EngineSize&) = default;
};

struct EngineVariants {
  std::vector<EngineOption> options;  // by name
  std::vector<EngineSize> sizes;      // by name
  std::vector<EngineCase> cases;      // in the order in which they are laid over each other
};

/// What may be chosen beside a version of profile_names(), those of the versions it inherits from
/// included, and what follows from the job.
EngineVariants engine_variants(const Catalog& catalog, const std::string& name);

/// Reads everything that a file of an engine says, options and cases that no job has asked for
/// included. Throws InputError.
void require_readable_engine(const Catalog& catalog, const std::string& name,
                             const std::string& where);

/// All names with versions, sorted by name, newest version last.
std::vector<std::string> profile_names(const Catalog& catalog);

/// The same, each followed by itself with each of the options of its own file.
std::vector<std::string> profile_names_with_options(const Catalog& catalog);

/// What a profile of profile_names_with_options() is in a sentence; empty if its file does not say.
std::string profile_title(const Catalog& catalog, const std::string& name);

/// The amount that a text such as "2 * micro_batch * hidden", "1/2 * owned" or "600 MiB" spells.
/// Throws InputError that speaks of `where`.
Amount parse_amount(const std::string& text, const std::string& where);

/// Names of the internals of an operator kind, in order (see Operator in model/model.h).
std::vector<std::string> internals_of(OpKind kind);

/// The same of a library of options (data/libraries), each read over the plain theory.
void require_readable_library(const Catalog& catalog, const std::string& name);

}  // namespace placet
