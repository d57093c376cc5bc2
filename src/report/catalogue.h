// A list of catalogue entries: strategies, schedules, models, clusters, devices or engines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/explanation.h"
#include "report/style.h"

namespace placet {

/// One entry: its name, what it is in a sentence, and cells under the catalogue's columns.
struct CatalogueRow {
  std::string name;
  std::string title;
  std::vector<std::string> cells;  // as many as there are columns
  /// By column the whole number behind a cell, in plain units (bytes, FLOP/s); none: the text is
  /// all there is. May be shorter than `cells`.
  std::vector<std::optional<std::int64_t>> figures = {};
  std::vector<std::string> sources;
};

struct Catalogue {
  std::string kind;                  // "devices"
  std::vector<std::string> columns;  // keys, as in JSON: "memory_gib"
  std::vector<CatalogueRow> rows;
  std::string hint;                // one sentence below the list
  std::vector<Explanation> pages;  // of an entry that was asked for by name, below the hint
};

/// The list as a table, one line per entry. Columns that have no room beside the titles are left
/// out, the last one first; then titles are cut at the width.
std::string catalogue_text(const Catalogue& catalogue, const TextStyle& style);

}  // namespace placet
