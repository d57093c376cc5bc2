// Results as JSON, the machine form of every report (docs/formats.md lists the keys). Bytes and
// counts are integers; the same value always prints the same bytes.
#pragma once

#include <string>
#include <vector>

#include "model/listing.h"
#include "report/catalogue.h"
#include "report/judged.h"

namespace placet {

/// Schema placet.derivation/1.
std::string derivation_json(const Judged& judged);

/// Schema placet.comparison/1: {"derivations": [...], "ratios": [...] to the first, "answer"}.
std::string comparison_json(const std::vector<Judged>& all);

/// Schema placet.model/1. FLOPs are of one token in a sequence of `sequence` tokens.
std::string model_json(const Model& model, std::int64_t sequence);

/// Schema placet.catalogue/1: {"kind", "entries": [{"name", "title", ...columns}]}.
std::string catalogue_json(const Catalogue& catalogue);

}  // namespace placet
