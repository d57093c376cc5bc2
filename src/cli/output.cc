#include "cli/output.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string_view>
#include <utility>

#include "units/error.h"

namespace placet {
namespace {

// What --color and --width asked for.
struct OutputFlags {
  std::string colour = "auto";
  int width = 0;
};
OutputFlags& flags() {
  static OutputFlags value;
  return value;
}

constexpr int kLeastWidth = 40;
constexpr int kMostWidth = 1000;
constexpr int kPipeWidth = 100;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value = variable(name);
    if (value.empty()) continue;
    std::transform(value.begin(), value.end(), value.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

int output_width(bool terminal) {
  if (flags().width > 0) return flags().width;
  const int columns = std::atoi(variable("COLUMNS").c_str());
  if (columns >= kLeastWidth && columns <= kMostWidth) return columns;
  winsize size{};
  if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return std::clamp(static_cast<int>(size.ws_col), kLeastWidth, kMostWidth);
  }
  return terminal ? 80 : kPipeWidth;
}

}  // namespace

void add_output_flags(CLI::App& program) {
  program.add_option("--color", flags().colour, "When to use colour: auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN");
  program.add_option("--width", flags().width, "Columns of the output, 40 to 1000")
      ->check(CLI::Range(kLeastWidth, kMostWidth))
      ->type_name("N");
}

TextStyle output_style() {
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  const bool always = flags().colour == "always";
  const bool wanted = variable("NO_COLOR").empty() && variable("TERM") != "dumb";
  TextStyle style;
  style.colour = always || (flags().colour == "auto" && terminal && wanted);
  style.unicode = always || (terminal && locale_is_utf8());
  style.width = output_width(terminal);
  return style;
}

void print(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return;
  if (errno == EPIPE) return;
  throw InputError({.where = "standard output",
                    .problem = std::string("cannot be written: ") + std::strerror(errno)});
}

void print_warning(const std::string& text) { std::cerr << "placet: " << text << std::endl; }

namespace {

[[noreturn]] void fail_to_write(const std::string& path, const std::string& flag, int reason) {
  throw InputError({.where = flag,
                    .value = path,
                    .problem = std::string("cannot be written: ") + std::strerror(reason)});
}

/// All of the text, or the error number of what went wrong.
int write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

/// Pipes, terminals and devices have no whole to put in place of another.
void write_through(const std::string& path, std::string_view text, const std::string& flag) {
  const int file = open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (file < 0) fail_to_write(path, flag, errno);
  const int failed = write_all(file, text);
  const int closed = close(file) == 0 ? 0 : errno;
  if (failed != 0 || closed != 0) fail_to_write(path, flag, failed != 0 ? failed : closed);
}

/// The mode of a file that is there, or the one that a new file gets.
mode_t mode_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0) return status.st_mode & 07777;
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

/// A new file beside the one to be written; goes unless it was put in its place.
class TemporaryFile {
 public:
  /// `said`: the path as it was given, for messages.
  TemporaryFile(const std::filesystem::path& beside, std::string said, std::string flag)
      : target_(beside.string()), said_(std::move(said)), flag_(std::move(flag)) {
    path_ = (beside.parent_path() / ".placet-XXXXXX").string();
    file_ = mkstemp(path_.data());
    if (file_ < 0) failed_ = errno;
  }
  ~TemporaryFile() {
    if (file_ >= 0) close(file_);
    if (failed_ == 0 && !path_.empty()) unlink(path_.c_str());
  }
  /// Why there is no such file; 0: there is.
  int failed() const { return failed_; }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write_and_rename(std::string_view text) {
    int failed = write_all(file_, text);
    if (failed == 0 && fchmod(file_, mode_of(target_)) != 0) failed = errno;
    // Some file systems have nothing to be waited for.
    if (failed == 0 && fsync(file_) != 0 && errno != EINVAL) failed = errno;
    const int file = std::exchange(file_, -1);
    if (close(file) != 0 && failed == 0) failed = errno;
    if (failed == 0 && rename(path_.c_str(), target_.c_str()) != 0) failed = errno;
    if (failed != 0) fail_to_write(said_, flag_, failed);
    path_.clear();
  }

 private:
  std::string target_, said_, flag_, path_;
  int file_ = -1;
  int failed_ = 0;
};

}  // namespace

void write_file(const std::string& path, const std::string& text, const std::string& flag) {
  struct stat status {};
  const bool exists = stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) fail_to_write(path, flag, EISDIR);
  if (exists && !S_ISREG(status.st_mode)) return write_through(path, text, flag);
  // What a link points to is written, not the link; a file that may not be written stays.
  if (exists && access(path.c_str(), W_OK) != 0) fail_to_write(path, flag, errno);
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  TemporaryFile whole(error ? std::filesystem::path(path) : target, path, flag);
  if (whole.failed() == 0) return whole.write_and_rename(text);
  // Where the folder takes no new file, one that is there and may be written is written in place.
  if (!exists) fail_to_write(path, flag, whole.failed());
  write_through(path, text, flag);
}

}  // namespace placet
