// A program without procedures and loops.
#pragma once

#include "program/program.h"

namespace placet::testing {

/// The same instructions in the same order, one by one: calls and loops are opened up.
Program opened(const Program& program);

}  // namespace placet::testing
