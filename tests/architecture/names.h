// The types that a file defines for the whole program.
//
// Two types of one name make the linker take the members of one of them for both, and it says
// nothing.
#pragma once

#include <string>
#include <vector>

#include "architecture/repository.h"

namespace placet::architecture {

/// The types at the left edge of a file, with their namespaces: "placet::Shape", of a nested one
/// that is written by itself "placet::Shape::Part". Declarations without a body do not count, nor
/// does what is in an unnamed namespace.
std::vector<std::string> types_defined(const SourceFile& file);

}  // namespace placet::architecture
