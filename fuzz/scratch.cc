#include <cstdlib>
#include <fstream>

#include "target.h"

namespace placet::fuzz {
namespace {

class Folder {
 public:
  Folder() {
    const bool shared = std::filesystem::is_directory("/dev/shm");
    const std::filesystem::path parent =
        shared ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path();
    std::string pattern = (parent / "placet-fuzz-XXXXXX").string();
    ensure(mkdtemp(pattern.data()) != nullptr, "a folder for scratch files can be made");
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

const std::filesystem::path& scratch() {
  static const Folder kFolder;
  return kFolder.path();
}

std::filesystem::path write_scratch(const std::string& name, std::string_view text) {
  std::filesystem::path path = scratch() / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(text.data(), static_cast<std::streamsize>(text.size()));
  return path;
}

}  // namespace placet::fuzz
