// Reads the configuration files of published models (Hugging Face `config.json`) into descriptions
// of what is trained (model/architecture.h).
//
// A family's facts that its files leave to code (names of tensors, biases, norms, defaults) stand
// in data/families/MODEL_TYPE.json, and in families_*.cc where a file could not say them. Nothing
// is guessed: a family that is not known, a key that may change shapes and is not known, a missing
// or impossible value is an InputError with the key path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/reader.h"
#include "model/architecture.h"

namespace placet {

/// Largest text of a configuration file that is read.
inline constexpr std::size_t kMostConfigBytes = 4U << 20;

/// The architecture that `config` describes. `where` names the file in messages. Nested
/// multimodal files: the text part, with a note. Keys named in `ignored` are taken as not there,
/// with a note. Throws InputError, also for such a key that the file does not have.
Architecture read_hf_config(const Json& config, const std::string& where, const Catalog& catalog,
                            const std::vector<std::string>& ignored = {});
/// With the families of this process's catalogue.
Architecture read_hf_config(const Json& config, const std::string& where);

/// The JSON of a configuration file's text: bounded in size and nesting. NaN and Infinity, which
/// some libraries write, read as 0 and null. A syntax error is an InputError.
Json parse_hf_json(std::string_view text, const std::string& where);

/// parse_hf_json, then read_hf_config.
Architecture parse_hf_config(std::string_view text, const std::string& where);

/// Every `model_type` that is understood, sorted.
std::vector<std::string> hf_families(const Catalog& catalog);
std::vector<std::string> hf_families();

}  // namespace placet
