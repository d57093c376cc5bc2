// Words, numbers and signs of the text form, with the place of each (docs/formats.md, "Step
// program"). Inside of the readers of this folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace placet {

/// Reads text from front to back. Blanks, line ends and what follows a # are skipped. A word is
/// letters, digits and any of _ . ' - that begin with a letter or _; an integer may have a sign;
/// text stands in double quotes; all else are signs of one character, but for -> and .. and ...
class Tokens {
 public:
  /// `where` names the text in messages: a file.
  Tokens(std::string_view text, std::string where);

  enum class Kind : std::uint8_t { end, word, integer, text, sign };
  Kind kind() const { return kind_; }
  /// The token as written; of text, without its quotes.
  std::string_view token() const { return token_; }
  bool is(std::string_view token) const { return kind_ != Kind::text && token_ == token; }

  /// Goes on to the next token.
  void next();
  /// Whether the token is this one; then goes on.
  bool take(std::string_view token);
  /// Takes this token or refuses what stands there instead.
  void expect(std::string_view token);
  std::string expect_word(std::string_view what);
  std::string expect_text(std::string_view what);
  std::int64_t expect_integer(std::string_view what);

  /// Throws InputError at the current token.
  [[noreturn]] void refuse(const std::string& problem, const std::string& allowed = {},
                           const std::string& nearest = {}) const;
  int line() const { return line_; }

 private:
  void skip_blanks();
  void read_word();
  void read_text();

  std::string_view text_;
  std::string where_;
  std::size_t position_ = 0;
  std::string_view token_;
  Kind kind_ = Kind::end;
  int line_ = 1;
};

}  // namespace placet
