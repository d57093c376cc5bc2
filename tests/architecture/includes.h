// Which folder of src/ may know which, and what is wrong with a file's includes.
//
// The compiler finds every header from the src/ root and so would let any arrow through; this table
// is the wall.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "architecture/repository.h"

namespace placet::architecture {

/// A folder of src/ with all that its files may include, beside the standard library and their own
/// folder.
struct Folder {
  std::string_view name;
  std::vector<std::string_view> knows;      // other folders, all listed before this one
  std::vector<std::string_view> libraries;  // beginnings of third-party headers: "nlohmann/"
};

/// All folders, in the order of the theory.
const std::vector<Folder>& folders();

/// What an include may not do: one sentence for each offending line, empty where all is well.
///   {"src/check/abstract.cc", "check", {"#include \"derive/memory.h\""}}
/// gives  src/check/abstract.cc:1: check may not include derive/memory.h
std::vector<std::string> wrong_includes(const SourceFile& file);

}  // namespace placet::architecture
