// From the sizes in a row to the transformer that was trained.
#pragma once

#include "model/architecture.h"
#include "validate/run_facts.h"

namespace placet {

/// A decoder of equal blocks (but for leading dense ones before experts), attention then MLP. What
/// a table's columns do not say follows the two common layouts: with a gated MLP, RMS norms and no
/// biases (arXiv 2302.13971, section 2.2); otherwise layer norms and biases everywhere, and one
/// fused tensor for queries, keys and values (GPT-2, Radford et al. 2019, section 2.3). Throws
/// InputError that speaks of `where` for a word that is not known.
Architecture architecture_of(const RunShape& shape, const std::string& where);

}  // namespace placet
