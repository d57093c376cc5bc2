// The project's own source files, as text, for the tests that judge how they are written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace placet::architecture {

struct SourceFile {
  std::string path;    // from the root of the repository: "src/units/error.h"
  std::string folder;  // below src/, tests/ or another top folder: "units"; empty without one
  std::vector<std::string> lines;
};

/// Every C++ file below the top folder given ("src"), sorted by path.
std::vector<SourceFile> cpp_files_below(std::string_view top);

}  // namespace placet::architecture
