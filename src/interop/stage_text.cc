#include "interop/stage_text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>
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

bool is_letter(char c) { return c == '|' || std::isalpha(static_cast<unsigned char>(c)) != 0; }

// The text with each group "(...)*3" written out. Groups hold counts of letters, "(t*8|)*2", and no
// groups.
std::optional<std::string> without_groups(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::string part(1, text[at++]);
    std::size_t times = 1;
    if (part == "(") {
      const std::size_t end = text.find_first_of("()", at);
      if (end == std::string::npos || text[end] == '(') return std::nullopt;
      part = text.substr(at, end - at);
      at = end + 1;
      const auto said = times_at(text, at);
      if (!said) return std::nullopt;
      times = *said;
    }
    if (out.size() + times * part.size() > kMostLetters) return std::nullopt;
    for (std::size_t i = 0; i < times; ++i) out += part;
  }
  return out;
}

// The text without groups and counts: a letter for each layer, and the bars between stages.
std::optional<std::string> played_out(const std::string& text) {
  const auto plain = without_groups(text);
  if (!plain) return std::nullopt;
  std::string letters;
  for (std::size_t at = 0; at < plain->size();) {
    const char letter = (*plain)[at++];
    if (letter == ',') continue;
    if (!is_letter(letter)) return std::nullopt;
    const auto times = times_at(*plain, at);
    if (!times || letters.size() + *times > kMostLetters) return std::nullopt;
    letters.append(*times, letter);
  }
  return letters;
}

// The blocks of one stage. One without blocks holds another layer; modules that predict further
// tokens ('m') stand in the last stage, where a placement has them. None: it is another.
std::optional<std::size_t> blocks_in_stage(const std::string& stage, bool is_last) {
  const bool is_other = stage.empty() || (!is_last && stage.find('m') != std::string::npos);
  if (is_other) return std::nullopt;
  return static_cast<std::size_t>(std::ranges::count(stage, 't'));
}

}  // namespace

std::optional<std::string> blocks_of_stages(const std::string& text) {
  const auto letters = played_out(text);
  if (!letters) return std::nullopt;
  std::string blocks;
  for (std::size_t begin = 0; begin <= letters->size();) {
    const std::size_t end = std::min(letters->find('|', begin), letters->size());
    const auto count = blocks_in_stage(letters->substr(begin, end - begin), end == letters->size());
    if (!count) return std::nullopt;
    blocks += (blocks.empty() ? "" : ",") + std::to_string(*count);
    begin = end + 1;
  }
  return blocks;
}

namespace {

bool is_between_items(char c) {
  return std::string_view(" []()+,'\"").find(c) != std::string_view::npos;
}

// How often the item in front of `at` is said: "[0]*3" thrice. None: no whole number of times.
std::optional<std::size_t> times_of_item(const std::string& text, std::size_t& at) {
  const bool is_alone = at >= 2 && text[at - 2] == '[';  // "[0]*3", but not "[0,1]*3"
  if (is_alone && at < text.size() && text[at] == ']') ++at;
  const auto times = times_at(text, at);
  if (text.compare(at, 2, "]*") == 0) return std::nullopt;
  const bool goes_on = at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
  return goes_on ? std::nullopt : times;
}

struct Repeated {
  char digit = '0';
  std::size_t times = 0;
};

// The zeros and ones of a list or of a sum of lists; none: it is something else.
std::optional<std::vector<Repeated>> repeated_digits(const std::string& text) {
  std::vector<Repeated> items;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at++];
    if (is_between_items(c)) continue;
    if (c != '0' && c != '1') return std::nullopt;
    const auto times = times_of_item(text, at);
    if (!times) return std::nullopt;
    items.push_back({.digit = c, .times = *times});
  }
  return items;
}

}  // namespace

std::optional<std::string> zeros_in_front(const std::string& text) {
  const auto items = repeated_digits(text);
  if (!items) return std::nullopt;
  const auto ones = std::ranges::find(*items, '1', &Repeated::digit);
  const auto later = std::find_if(ones, items->end(), [](Repeated r) { return r.digit == '0'; });
  if (ones == items->end() || later != items->end()) return std::nullopt;
  std::size_t zeros = 0;
  for (auto item = items->begin(); item != ones; ++item) {
    zeros += item->times;
    if (zeros > kMostLetters) return std::nullopt;
  }
  return std::to_string(zeros);
}

std::optional<std::string> length_of_digits(const std::string& text) {
  if (text.find('[') == std::string::npos) return std::nullopt;
  const auto items = repeated_digits(text);
  if (!items) return std::nullopt;
  std::size_t length = 0;
  for (const Repeated& item : *items) {
    length += item.times;
    if (length > kMostLetters) return std::nullopt;
  }
  return std::to_string(length);
}

std::string stages_of_blocks(const std::string& blocks) {
  std::string text = "E";
  for (std::size_t begin = 0; begin <= blocks.size();) {
    const std::size_t end = std::min(blocks.find(',', begin), blocks.size());
    const std::string count = blocks.substr(begin, end - begin);
    if (begin > 0) text += '|';
    if (count != "0") text += "t*" + count;
    begin = end + 1;
  }
  return text + "L";
}

}  // namespace placet
