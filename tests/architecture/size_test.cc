// Limits that no formatter keeps: the length of files, lines, and the guard of headers.
#include <gtest/gtest.h>

#include <algorithm>

#include "architecture/repository.h"

namespace placet::architecture {
namespace {

constexpr std::size_t kMostLines = 600;    // aim under 300
constexpr std::size_t kMostColumns = 100;  // comments too, which the formatter leaves alone

std::vector<SourceFile> all_files() {
  std::vector<SourceFile> files;
  for (const char* top : {"src", "tests", "benchmarks"}) {
    for (SourceFile& file : cpp_files_below(top)) files.push_back(std::move(file));
  }
  return files;
}

// Characters, not bytes: those that only continue one (binary 10xxxxxx in UTF-8) do not count.
std::size_t columns(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

TEST(SizeTest, FilesAreShortEnoughToRead) {
  for (const SourceFile& file : all_files()) {
    EXPECT_LE(file.lines.size(), kMostLines) << file.path;
  }
}

TEST(SizeTest, LinesFitTheScreen) {
  for (const SourceFile& file : all_files()) {
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      EXPECT_LE(columns(file.lines[i]), kMostColumns) << file.path << ":" << i + 1;
    }
  }
}

TEST(SizeTest, HeadersGuardThemselves) {
  for (const SourceFile& file : all_files()) {
    if (!file.path.ends_with(".h")) continue;
    EXPECT_NE(std::find(file.lines.begin(), file.lines.end(), "#pragma once"), file.lines.end())
        << file.path;
  }
}

}  // namespace
}  // namespace placet::architecture
