#include "cli/net_program.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

namespace placet {
namespace {

constexpr const char* kNetProgram = "placet-net";

/// The words of this call, as the system keeps them: each with a zero behind it.
std::string words_of_call() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
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
  std::error_code error;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error || own.filename() == kNetProgram) return;
  std::string words = words_of_call();
  execv((own.parent_path() / kNetProgram).c_str(), pointers_to(words).data());
  // No such program, mostly: this build has none.
}

}  // namespace placet
