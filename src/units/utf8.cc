#include "units/utf8.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace placet {
namespace {

/// The forms of a UTF-8 sequence of several bytes by its first byte (RFC 3629, section 4), in the
/// order of the first bytes. The bounds of the second byte keep out overlong forms, surrogates and
/// what lies beyond U+10FFFF; further bytes are 80 to BF.
struct Utf8Form {
  unsigned least_first = 0;
  unsigned most_first = 0;
  std::size_t length = 0;
  unsigned least_second = 0x80;
  unsigned most_second = 0xBF;
};
constexpr std::array kUtf8Forms = {Utf8Form{0xC2, 0xDF, 2}, Utf8Form{0xE0, 0xE0, 3, 0xA0, 0xBF},
                                   Utf8Form{0xE1, 0xEC, 3}, Utf8Form{0xED, 0xED, 3, 0x80, 0x9F},
                                   Utf8Form{0xEE, 0xEF, 3}, Utf8Form{0xF0, 0xF0, 4, 0x90, 0xBF},
                                   Utf8Form{0xF1, 0xF3, 4}, Utf8Form{0xF4, 0xF4, 4, 0x80, 0x8F}};

bool is_ascii(char byte) { return static_cast<unsigned char>(byte) < 0x80; }

// Whether eight bytes follow that are all ASCII, as most text is.
bool is_ascii_word(std::string_view text) {
  std::uint64_t word = 0;
  if (text.size() < sizeof word) return false;
  std::memcpy(&word, text.data(), sizeof word);
  return (word & 0x8080808080808080) == 0;
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  if (is_ascii(text.front())) return 1;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto form = std::ranges::find_if(
      kUtf8Forms, [&](const Utf8Form& one) { return byte(0) <= one.most_first; });
  if (form == kUtf8Forms.end() || byte(0) < form->least_first) return 0;
  if (text.size() < form->length) return 0;
  for (std::size_t i = 1; i < form->length; ++i) {
    const unsigned least = i == 1 ? form->least_second : 0x80;
    const unsigned most = i == 1 ? form->most_second : 0xBF;
    if (byte(i) < least || byte(i) > most) return 0;
  }
  return form->length;
}

std::size_t utf8_prefix(std::string_view text) {
  std::size_t valid = 0;
  while (valid < text.size()) {
    if (is_ascii_word(text.substr(valid))) {
      valid += sizeof(std::uint64_t);
      continue;
    }
    const std::size_t length = utf8_length(text.substr(valid));
    if (length == 0) break;
    valid += length;
  }
  return valid;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    out += length == 0 ? "\xEF\xBF\xBD" : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace placet
