#include "architecture/repository.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace placet::architecture {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool is_cpp(const fs::path& path) { return path.extension() == ".h" || path.extension() == ".cc"; }

// "src/units/error.h" lies in "units", "src/stray.h" in "".
std::string folder_of(const fs::path& path) {
  const auto second = std::next(path.begin());
  return std::next(second) == path.end() ? "" : second->string();
}

}  // namespace

std::vector<SourceFile> cpp_files_below(std::string_view top) {
  const fs::path root = PLACET_SOURCE_DIR;
  std::vector<SourceFile> files;
  if (!fs::exists(root / top)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
    if (!entry.is_regular_file() || !is_cpp(entry.path())) continue;
    const fs::path path = fs::relative(entry.path(), root);
    files.push_back({path.generic_string(), folder_of(path), lines_of(entry.path())});
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

}  // namespace placet::architecture
