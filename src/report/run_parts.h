// Words of runs that text and page share. Inside of report/run.
#pragma once

#include <string>

#include "execute/run.h"

namespace placet {

/// "Equal to the bit", "Stuck".
std::string heading_of(const RealRun& run);
/// What the run found, as one sentence.
std::string sentence_of(const RealRun& run);
/// "[3 4]".
std::string index_of(const Difference& difference);

}  // namespace placet
