#include "cli/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>

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

void write_file(const std::string& path, const std::string& text, const std::string& flag) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (out) return;
  throw InputError({.where = flag, .value = path, .problem = "cannot be written"});
}

}  // namespace placet
