// Results as self-contained pages: inline style and drawings, nothing is fetched, every text that
// comes from a file or a flag is escaped.
#pragma once

#include <string>
#include <vector>

#include "model/model.h"
#include "report/catalogue.h"
#include "report/judged.h"

namespace placet {

std::string derivation_html(const Judged& judged);
/// REQUIRES: at least one.
std::string comparison_html(const std::vector<Judged>& all);
std::string model_html(const Model& model, std::int64_t sequence);
std::string catalogue_html(const Catalogue& catalogue);

}  // namespace placet
