#include "interop/stage_text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <vector>

namespace placet {
namespace {

constexpr std::size_t kMostLetters = 10'000;

// "*3" behind a letter or a group; 1 where there is none. None: no number from 1.
std::optional<std::size_t> times_at(const std::string& text, std::size_t& at) {
  if (at >= text.size() || text[at] != '*') return 1;
  std::size_t times = 0;
  const auto [end, fault] = std::from_chars(text.data() + at + 1, text.data() + text.size(), times);
  if (fault != std::errc() || times == 0 || times > kMostLetters) return std::nullopt;
  at = static_cast<std::size_t>(end - text.data());
  return times;
}

// The text without groups and counts. Groups do not hold groups.
std::optional<std::string> played_out(const std::string& text) {
  std::string letters;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    std::string part(1, text[at++]);
    if (part == "(") {
      const std::size_t end = text.find(')', at);
      if (end == std::string::npos) return std::nullopt;
      part = text.substr(at, end - at);
      at = end + 1;
    } else if (part == ",") {
      continue;
    } else if (part != "|" && std::isalpha(static_cast<unsigned char>(text[begin])) == 0) {
      return std::nullopt;
    }
    const auto times = times_at(text, at);
    if (!times || letters.size() + *times * part.size() > kMostLetters) return std::nullopt;
    for (std::size_t i = 0; i < *times; ++i) letters += part;
  }
  return letters;
}

}  // namespace

std::optional<std::string> blocks_of_stages(const std::string& text) {
  const auto letters = played_out(text);
  if (!letters) return std::nullopt;
  std::string blocks;
  for (std::size_t begin = 0; begin <= letters->size();) {
    const std::size_t end = std::min(letters->find('|', begin), letters->size());
    const auto count = std::count(letters->begin() + static_cast<std::ptrdiff_t>(begin),
                                  letters->begin() + static_cast<std::ptrdiff_t>(end), 't');
    if (count == 0) return std::nullopt;
    blocks += (blocks.empty() ? "" : ",") + std::to_string(count);
    begin = end + 1;
  }
  return blocks;
}

std::string stages_of_blocks(const std::string& blocks) {
  std::string text = "Et*";
  for (const char c : blocks) text += c == ',' ? std::string("|t*") : std::string(1, c);
  return text + "L";
}

}  // namespace placet
