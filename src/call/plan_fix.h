// The axes of --fix as people name them: by other letters, by what they do, or by a strategy.
#pragma once

#include <string>

#include "catalog/catalog.h"
#include "placement/strategy.h"
#include "search/plan_space.h"

namespace placet {

/// The items of `fix` with the axes that plans have, in the words of read_constraints:
///   TP=8      tp=8         tp8     tp=8
///   tensor=8  tp=8         (data/words/axes.json: what an axis of this name does, and which does)
///   fsdp=8    dp=8:fsdp    (a strategy: the axis that may have it, and no other one there)
/// An item that names none of these is left as it is, for its reader to refuse.
std::string meant_fix(const Catalog& catalog, const Choices& choices, const Vocabulary& vocabulary,
                      const std::string& fix);

}  // namespace placet
