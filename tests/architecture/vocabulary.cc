#include "architecture/vocabulary.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>

namespace placet::architecture {
namespace {

// Alternatives of one regular expression; [-_ ]? takes the spellings zero1, zero-1, zero_1, ZeRO 1.
std::string forbidden_pattern() {
  static constexpr std::array<std::string_view, 22> kWords = {
      "zero[-_ ]?(stage|dp)?[-_ ]?[1-3]",
      "zero[-_ ]?(infinity|offload|pp)",
      "zero\\+\\+",
      "fsdp[12]?",
      "hsdp",
      "ddp",
      "mics",
      "ulysses",
      "megatron([-_ ]?(lm|core))?",
      "deepspeed",
      "torchtitan",
      "nanotron",
      "picotron",
      "pytorch",
      "colossal[-_ ]?ai",
      "fairscale",
      "internevo",
      "maxtext",
      "nemo",
      "gspmd",
      "llm[-_ ]?foundry",
      "axonn",
  };
  std::string pattern = "(?:^|[^a-z])(";
  for (const std::string_view word : kWords) pattern.append(word).append("|");
  pattern.back() = ')';
  return pattern + "(?![a-z])";
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool cites_a_source(const std::string& line) {
  const std::size_t comment = line.find("//");
  if (comment == std::string::npos) return false;
  static constexpr std::array<std::string_view, 4> kMarks = {"arxiv:", "doi:", "https://",
                                                             "et al."};
  return std::any_of(kMarks.begin(), kMarks.end(), [&](std::string_view mark) {
    return line.find(mark, comment) != std::string::npos;
  });
}

}  // namespace

bool is_engine_folder(std::string_view folder) {
  static constexpr std::array<std::string_view, 15> kEngines = {
      "units", "model", "cluster", "placement", "schedule", "profile", "derive", "program",
      "lower", "check", "ranks",   "algebra",   "simulate", "search",  "execute"};
  return std::find(kEngines.begin(), kEngines.end(), folder) != kEngines.end();
}

std::vector<std::string> forbidden_words(const SourceFile& file) {
  static const std::regex kForbidden(forbidden_pattern(), std::regex::optimize);
  std::vector<std::string> found;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    const std::string line = lower_case(file.lines[i]);
    std::smatch match;
    if (!std::regex_search(line, match, kForbidden) || cites_a_source(line)) continue;
    found.push_back(file.path + ":" + std::to_string(i + 1) + ": '" + match[1].str() +
                    "' is a name for data files, not for engines");
  }
  return found;
}

}  // namespace placet::architecture
