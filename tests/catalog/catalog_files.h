// Files of a catalogue that a test writes itself, gone when the test ends.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "catalog/catalog.h"
#include "units/error.h"

namespace placet {

/// The repository, wherever the tests run.
inline std::filesystem::path source_dir() { return PLACET_SOURCE_DIR; }

/// The catalogue of the repository.
inline Catalog repository_catalog() { return {PLACET_SOURCE_DIR "/data"}; }

/// A folder of its own for one test.
class TestFolder {
 public:
  TestFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "placet-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Writes a file and gives its whole path.
  std::string write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return file.string();
  }

  /// A copy of a folder of the repository's catalogue, so that a test can add to it.
  void copy(const std::string& folder) const {
    std::filesystem::create_directories((path_ / folder).parent_path());
    std::filesystem::copy(repository_catalog().root / folder, path_ / folder,
                          std::filesystem::copy_options::recursive);
  }

 private:
  std::filesystem::path path_;
};

/// The message of the InputError that `call` throws, without the folder's path; "no error" else.
template <class Call>
std::string message_of(const Call& call, const std::filesystem::path& folder = {}) {
  try {
    call();
  } catch (const InputError& error) {
    std::string text = error.what();
    const std::string prefix = folder.string() + "/";
    for (std::size_t at = text.find(prefix); !folder.empty() && at != std::string::npos;
         at = text.find(prefix)) {
      text.erase(at, prefix.size());
    }
    return text;
  }
  return "no error";
}

}  // namespace placet
