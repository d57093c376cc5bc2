// Reads the configuration files of published models (Hugging Face `config.json`) into descriptions
// of what is trained (model/architecture.h).
//
// A family's facts that its files leave to code (names of tensors, biases, norms, defaults) stand
// in one table per group of families (families_*.cc). Nothing is guessed: a family that is not
// known, a key that may change shapes and is not known, a missing or impossible value is an
// InputError with the key path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "catalog/reader.h"
#include "model/architecture.h"

namespace placet {

/// Largest text of a configuration file that is read.
inline constexpr std::size_t kMostConfigBytes = 4U << 20;

/// The architecture that `config` describes. `where` names the file in messages. Nested
/// multimodal files: the text part, with a note. Throws InputError.
Architecture read_hf_config(const Json& config, const std::string& where);

/// The JSON of a configuration file's text: bounded in size and nesting. NaN and Infinity, which
/// some libraries write, read as 0 and null. A syntax error is an InputError.
Json parse_hf_json(std::string_view text, const std::string& where);

/// parse_hf_json, then read_hf_config.
Architecture parse_hf_config(std::string_view text, const std::string& where);

/// Every `model_type` that is understood, sorted.
std::vector<std::string> hf_families();

}  // namespace placet
