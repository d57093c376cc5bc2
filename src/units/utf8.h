// Characters of text in UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace placet {

/// Bytes of the UTF-8 sequence at the start of the text (RFC 3629, section 4); 0: there is none, as
/// the text is empty, or begins with overlong forms, surrogates or what lies beyond U+10FFFF.
std::size_t utf8_length(std::string_view text);

/// Bytes of the longest beginning of the text that consists of such sequences.
std::size_t utf8_prefix(std::string_view text);

/// The text with U+FFFD for each byte that belongs to no such sequence.
std::string valid_utf8(std::string_view text);

}  // namespace placet
