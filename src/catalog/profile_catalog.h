// Engine profiles by name: data/engines/NAME@VERSION.json, schema placet.engine/1
// (docs/formats.md). A profile is a list of facts, each with its source; one may inherit another
// and override a few.
#pragma once

#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "profile/profile.h"

namespace placet {

/// The profile `text` names: "megatron@2025", or "megatron" for its newest version (numbers inside
/// versions are compared as numbers: 2.10 is newer than 2.9; a variant such as 2.10-late is chosen
/// by its whole name only), or with the facts of variants laid over it: "megatron@2026+overlap" is
/// that of 2026-overlap, "megatron@2026+overlap+bf16-reduce" has both. A word that names a file is
/// read as one. Throws InputError that speaks of `where` (unknown name) or of the file and key
/// path.
Profile load_profile(const Catalog& catalog, const std::string& text, const std::string& where);

/// All names with versions, sorted by name, newest version last.
std::vector<std::string> profile_names(const Catalog& catalog);

/// What a profile of profile_names() is in a sentence; empty if its file does not say.
std::string profile_title(const Catalog& catalog, const std::string& name);

/// The amount that a text such as "2 * micro_batch * hidden", "1/2 * owned" or "600 MiB" spells.
/// Throws InputError that speaks of `where`.
Amount parse_amount(const std::string& text, const std::string& where);

/// Names of the internals of an operator kind, in order (see Operator in model/model.h).
std::vector<std::string> internals_of(OpKind kind);

}  // namespace placet
