// The same program under other names, for tests that names are no evidence.
#pragma once

#include "program/program.h"

namespace placet::testing {

/// Without labels and reasons; buffers, procedures and classes renamed; classes and the axes of the
/// mesh in the opposite order, which permutes the ranks; all phases forward.
Program disguised(Program program);

}  // namespace placet::testing
