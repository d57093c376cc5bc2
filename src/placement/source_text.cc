#include "placement/source_text.h"

#include "units/trimmed.h"

#include <algorithm>
#include <utility>

namespace placet {
namespace {

// Not those of <cctype>: messages and parsing must not depend on the locale.
constexpr bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.' ||
         c == '-';
}

constexpr std::size_t kLongestValue = 40;
constexpr std::size_t kBeforeCaret = 60;
constexpr std::size_t kAfterCaret = 36;

/// Text fit for one line of a message: whitespace as spaces, other control characters as '?'.
std::string on_one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (is_space(c)) c = ' ';
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = '?';
  }
  return line;
}

std::string excerpt_of(std::string_view text, std::size_t position) {
  const std::size_t begin = position > kBeforeCaret ? position - kBeforeCaret : 0;
  const std::size_t end = std::min(text.size(), position + kAfterCaret);
  const std::string before = begin > 0 ? "..." : "";
  std::string excerpt = "  " + before + on_one_line(text.substr(begin, end - begin));
  excerpt += end < text.size() ? "..." : "";
  return excerpt + "\n  " + std::string(before.size() + position - begin, ' ') + "^";
}

}  // namespace

char SourceText::peek() {
  const std::size_t here = position();
  return here < text_.size() ? text_[here] : '\0';
}

std::size_t SourceText::position() {
  while (next_ < text_.size() && is_space(text_[next_])) ++next_;
  return next_;
}

bool SourceText::take(char wanted) {
  if (at_end() || text_[next_] != wanted) return false;
  ++next_;
  return true;
}

void SourceText::expect(char wanted, const std::string& allowed) {
  if (take(wanted)) return;
  const std::size_t here = position();
  const std::string found = character_at(text_, here);
  fail(here, {.value = found,
              .problem = found.empty() ? "the text ends" : "does not belong here",
              .allowed = allowed});
}

std::string_view SourceText::word() {
  const std::size_t begin = position();
  while (next_ < text_.size() && is_word_character(text_[next_])) ++next_;
  return text_.substr(begin, next_ - begin);
}

std::string_view SourceText::until(std::string_view stops) {
  const std::size_t begin = position();
  while (next_ < text_.size() && stops.find(text_[next_]) == std::string_view::npos) ++next_;
  return trimmed(text_.substr(begin, next_ - begin), kWhitespace);
}

std::int64_t SourceText::whole(const std::string& what, std::int64_t least, std::int64_t most) {
  const std::size_t begin = position();
  while (next_ < text_.size() && is_digit(text_[next_])) ++next_;
  const std::int64_t number = whole_in(text_.substr(begin, next_ - begin), most);
  if (number >= least) return number;
  const std::size_t end = next_ > begin ? next_ : std::min(begin + 1, text_.size());
  fail(begin,
       {.value = std::string(text_.substr(begin, end - begin)),
        .problem = end == begin ? "the text ends" : "is not " + what,
        .allowed = "a whole number from " + std::to_string(least) + " to " + std::to_string(most)});
}

void SourceText::fail(std::size_t position, InputFault fault) const {
  fault.where = "placement, character " + std::to_string(position + 1);
  if (fault.value.size() > kLongestValue)
    fault.value = fault.value.substr(0, kLongestValue) + "...";
  fault.value = on_one_line(fault.value);
  fault.excerpt = excerpt_of(text_, position);
  throw InputError(std::move(fault));
}

std::string character_at(std::string_view text, std::size_t place) {
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
  std::size_t end = std::min(place + 1, text.size());
  while (end < text.size() && end < place + 4 && continues(text[end])) ++end;
  return std::string(text.substr(std::min(place, text.size()), end - place));
}

std::int64_t whole_in(std::string_view word, std::int64_t most) {
  if (word.empty()) return -1;
  std::int64_t number = 0;
  for (char c : word) {
    if (!is_digit(c)) return -1;
    const std::int64_t digit = c - '0';
    if (number > (most - digit) / 10) return -1;
    number = number * 10 + digit;
  }
  return number;
}

}  // namespace placet
