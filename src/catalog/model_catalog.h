// Models by the words people use for them: a catalogue name, a configuration file, a folder that
// holds one, or a bare number of parameters (docs/formats.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "model/architecture.h"
#include "model/model.h"

namespace placet {

/// One file of data/models (schema placet.model-file/1).
struct ModelSheet {
  std::string name;
  std::string title;   // "Llama 3.1 70B"
  std::string source;  // of the configuration
  std::string date;    // on which the source was read
  Architecture architecture;
  /// What is known of the number of parameters from outside, for comparison with our own count.
  /// `total` counts every stored tensor once, prediction modules apart (`prediction`).
  struct Published {
    std::optional<std::int64_t> total;
    std::optional<std::int64_t> prediction;
    std::string total_source;
    /// Printed figures in billions, digits as printed: "70.6". Empty: none.
    std::string total_billion;
    std::string active_billion;
    std::string billion_source;
    std::string remark;  // why a figure and our count may differ

    friend bool operator==(const Published&, const Published&) = default;
  };
  Published published;

  friend bool operator==(const ModelSheet&, const ModelSheet&) = default;
};

/// Names of all models of the catalogue, sorted.
std::vector<std::string> model_names(const Catalog& catalog);

/// The sheet of a catalogue name. Throws InputError for a name that is not there (with the nearest)
/// and for anything wrong in the file.
ModelSheet load_model_sheet(const Catalog& catalog, const std::string& name,
                            const std::vector<std::string>& ignored = {});

/// Whether a word is the text of a configuration itself, as other programs give it.
bool is_configuration(std::string_view word);

/// The model that `word` means, in this order: the JSON of a configuration ("{...}"); a bare count
/// ("70B", "params=70e9,units=80"); an ordinary decoder of a size ("decoder=70B",
/// catalog/ordinary_decoder.h); a file (config.json, or one of the catalogue's form) or a folder
/// that holds config.json, if the word has a '/' or ends in .json, or is a folder; else a catalogue
/// name. Throws InputError. Keys of its configuration that are in `ignored` are taken as not there.
Model load_model(const Catalog& catalog, const std::string& word,
                 const std::vector<std::string>& ignored = {});

/// A bare count: "70B" (K, M, B, T), "params=70e9" or "params=70e9,units=80", digits with a point
/// and an exponent allowed as long as the number is whole. None if the word is not of that form;
/// InputError if it is but names no whole number from 1 to 10^18. Without units: one unit.
std::optional<Model> parse_bare_model(std::string_view word);

/// "70B", "70e9" or "70000000000"; none if the text is no whole number from 0 to 10^18.
std::optional<std::int64_t> parse_count(std::string_view text);

}  // namespace placet
