// --straggler STAGE=FACTOR: a stage that computes slower than it should.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/timeline.h"

namespace placet {

/// "2=1.3" or "stage 2=1.3", each stage once. Throws InputError: a stage that there is none of, a
/// factor outside 0.01 to 100.
std::vector<Straggler> read_stragglers(const std::vector<std::string>& words, std::size_t stages);

}  // namespace placet
