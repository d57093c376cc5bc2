#include "catalog/file_text.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "units/error.h"

namespace placet {
namespace {

constexpr int kPatience = 500;  // milliseconds in which somebody must begin to write to a pipe

class File {
 public:
  // Without O_NONBLOCK the opening of a pipe waits for its writer, possibly for ever.
  explicit File(const std::filesystem::path& path)
      : number_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~File() {
    if (number_ >= 0) close(number_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return number_ >= 0; }

  bool is_pipe() const {
    struct stat status {};
    return fstat(number_, &status) == 0 && S_ISFIFO(status.st_mode);
  }

  /// Waits until there is something to read, at most so many milliseconds (-1: any time).
  bool wait(int milliseconds) const {
    pollfd wanted{.fd = number_, .events = POLLIN, .revents = 0};
    return poll(&wanted, 1, milliseconds) > 0;
  }

  /// The number of bytes read; 0 at the end; -1 if reading fails.
  ssize_t read_some(char* to, std::size_t most) const {
    for (;;) {
      const ssize_t count = read(number_, to, most);
      if (count >= 0) return count;
      if (errno == EAGAIN) wait(-1);
      if (errno != EAGAIN && errno != EINTR) return -1;
    }
  }

 private:
  int number_;
};

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& problem,
                       const std::string& allowed) {
  throw InputError({.where = path.string(), .problem = problem, .allowed = allowed});
}

// What the system has just refused. A folder can be opened like a file.
[[noreturn]] void fail_to_read(const std::filesystem::path& path, const std::string& allowed) {
  if (errno == EISDIR) fail(path, "is a folder", allowed);
  fail(path, std::string("the file cannot be read: ") + std::strerror(errno), allowed);
}

}  // namespace

std::string read_file_text(const std::filesystem::path& path, std::size_t most,
                           const std::string& what) {
  const File file(path);
  if (!file.is_open()) fail_to_read(path, what);
  // A string that grows doubles what it has, and more than the text is there at once.
  std::vector<std::string> parts;
  std::size_t size = 0;
  constexpr std::size_t kPart = std::size_t{1} << 15;
  const auto part = std::make_unique_for_overwrite<char[]>(kPart);
  ssize_t count = file.read_some(part.get(), kPart);
  if (count == 0 && file.is_pipe()) {
    if (!file.wait(kPatience)) fail(path, "nobody writes to this pipe", what);
    count = file.read_some(part.get(), kPart);
  }
  while (count > 0 && size <= most) {
    parts.emplace_back(part.get(), static_cast<std::size_t>(count));
    size += parts.back().size();
    count = file.read_some(part.get(), kPart);
  }
  if (count < 0) fail_to_read(path, what);
  if (size > most) {
    fail(path, "the file is too long", what + " of at most " + std::to_string(most) + " bytes");
  }
  std::string text;
  text.reserve(size);
  for (const std::string& own : parts) text += own;
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.starts_with(kMark)) text.erase(0, kMark.size());
  return text;
}

std::string read_file_front(const std::filesystem::path& path, std::size_t most) {
  const File file(path);
  std::string text(most, '\0');
  const ssize_t count = file.is_open() ? file.read_some(text.data(), most) : 0;
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

}  // namespace placet
