#include "cli/torch_command.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr std::string_view kTorchFlag = "--torch";

/// Run by Python, with the words of the call behind it.
constexpr const char* kEntry = R"python(
import sys
try:
    from placet.torch.__main__ import main
except ImportError as missing:
    print(
        f"placet: {sys.argv[1]}: {sys.executable} cannot import the package placet ({missing}); "
        "install it (pip install ./python in a checkout), or name another Python in PLACET_PYTHON",
        file=sys.stderr,
    )
    sys.exit(2)
sys.exit(main(sys.argv[1:]))
)python";

std::vector<std::string> words_of(int argc, const char* const* argv) {
  return {argv + 1, argv + argc};
}

/// The words for Python; empty: it is no such call.
std::vector<std::string> torch_call(std::vector<std::string> words) {
  if (words.empty()) return {};
  const bool asks_help = words.size() == 1 || words[1] == "-h" || words[1] == "--help";
  if (words.front() == "audit") return asks_help ? std::vector<std::string>() : words;
  if (words.front() != "check") return {};
  const auto end = std::ranges::find(words, "--");  // what stands behind it is the script's
  const auto flag = std::find_if(words.begin(), end, [](const std::string& word) {
    return word == kTorchFlag || word.starts_with(std::string(kTorchFlag) + "=");
  });
  if (flag == end) return {};
  if (*flag == kTorchFlag) {
    words.erase(flag);
  } else {
    flag->erase(0, kTorchFlag.size() + 1);
  }
  return words;
}

}  // namespace

void hand_over_to_python(int argc, const char* const* argv) {
  std::vector<std::string> words = torch_call(words_of(argc, argv));
  if (words.empty()) return;
  const char* named = std::getenv("PLACET_PYTHON");
  std::string python = named != nullptr && *named != '\0' ? named : "python3";
  std::string command = "-c";
  std::string entry = kEntry;
  std::vector<char*> arguments = {python.data(), command.data(), entry.data()};
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(python.c_str(), arguments.data());
  throw InputError({.where = words.front(),
                    .value = python,
                    .problem = "cannot be started, and this call needs Python",
                    .allowed = "Python 3.10 or newer with the package placet (pip install ./python "
                               "in a checkout); PLACET_PYTHON names it"});
}

void add_audit_command(CLI::App& program, Action& /*action*/) {
  CLI::App* command = program.add_subcommand(
      "audit", "What a run sent and held, beside what is derived for its job (needs Python)");
  command->footer(
      "\nTakes RUN, a file that a run left (a record of placet.torch.Recorder, a Chrome trace, a\n"
      "Flight Recorder dump, ...), and the flags of a job as `placet derive` has them.\n"
      "`python3 -m placet.torch audit --help` lists all flags.\n"
      "\nExample:\n"
      "  placet audit record.json --model config.json --cluster 2xh100-sxm --placement dp=2:fsdp "
      "\\\n"
      "      --seq 2048 --global-batch 4 --engine pytorch\n");
}

}  // namespace placet
