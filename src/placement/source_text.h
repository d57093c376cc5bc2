// A cursor over the text of a placement, and the one place where its messages get their position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "units/error.h"

namespace placet {

/// The text must outlive the cursor. Every reader skips whitespace first.
class SourceText {
 public:
  explicit SourceText(std::string_view text) : text_(text) {}

  /// The next character that is not whitespace; '\0' at the end.
  char peek();
  /// Where that character is, counted from 0.
  std::size_t position();
  bool at_end() { return position() == text_.size(); }

  /// Takes the next character if it is `wanted`.
  bool take(char wanted);
  /// Takes it or fails with what was allowed.
  void expect(char wanted, const std::string& allowed);

  /// The longest run of letters, digits, '_', '.' and '-'; empty if there is none.
  std::string_view word();
  /// The text up to the next of `stops` (or the end), without whitespace around it.
  std::string_view until(std::string_view stops);
  /// A whole number from `least` to `most`; `what` names it in messages: "a degree".
  std::int64_t whole(const std::string& what, std::int64_t least, std::int64_t most);

  /// Throws InputError: `fault` with its place filled in. Long values are cut short.
  [[noreturn]] void fail(std::size_t position, InputFault fault) const;

 private:
  std::string_view text_;
  std::size_t next_ = 0;
};

/// The character at a place as it is written: all bytes of one that is not ASCII; empty at the end.
std::string character_at(std::string_view text, std::size_t place);

/// The text of `word` as a whole number; -1 if it is none or beyond `most`.
std::int64_t whole_in(std::string_view word, std::int64_t most);

}  // namespace placet
