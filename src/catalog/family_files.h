// Families of decoders as files: data/families/MODEL_TYPE.json (docs/formats.md). A file says where
// a family differs from the most common layout, or from the family that it is like.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/decoder.h"
#include "catalog/reader.h"

namespace placet {

/// What a family's file says. Its facts hold views of `texts`.
struct FamilyFile {
  DecoderFacts facts;
  std::vector<std::string> without_meaning;         // keys that change no shape
  std::vector<std::pair<std::string, Json>> fixed;  // keys that must have this value, if they occur
  std::deque<std::string> texts;
};

/// The file of a model_type; none if the catalogue has none. Throws InputError for a file that
/// cannot be read: an unknown key, a wrong type, a family that is like itself.
std::optional<FamilyFile> load_family_file(const Catalog& catalog, const std::string& model_type);

/// The architecture of a configuration of that family.
Architecture read_with_family_file(ConfigObject& config, const FamilyFile& family);

}  // namespace placet
