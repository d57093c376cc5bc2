#include "cli/net_program.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "units/error.h"

namespace placet {
namespace {

constexpr const char* kNetProgram = "placet-net";
constexpr const char* kMark = "PLACET_IN_NET_PROGRAM";  // set for the process that goes on

/// The words of this call, as the system keeps them: each with a zero behind it. Empty: unknown.
std::string words_of_call() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string words(std::istreambuf_iterator<char>(file), {});
  return words.ends_with('\0') ? words : std::string();
}

std::vector<char*> pointers_to(std::string& words) {
  std::vector<char*> pointers;
  for (std::size_t at = 0; at < words.size(); at = words.find('\0', at) + 1) {
    pointers.push_back(words.data() + at);
  }
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

void go_on_in_net_program() {
  if (std::getenv(kMark) != nullptr) {
    unsetenv(kMark);  // of this process alone
    return;
  }
  std::error_code error;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", error);
  std::string words = words_of_call();
  if (error || words.empty()) return;
  const auto program = own.parent_path() / kNetProgram;
  setenv(kMark, "1", 1);
  execv(program.c_str(), pointers_to(words).data());
  const int reason = errno;
  unsetenv(kMark);
  if (reason == ENOENT) return;
  throw InputError({.where = program.string(),
                    .problem = std::string("cannot be run: ") + std::strerror(reason),
                    .allowed = "the program that is installed together with placet"});
}

}  // namespace placet
