// Words, numbers and signs of the text form, with the place of each (docs/formats.md, "Step
// program"). Inside of the readers of this folder.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace placet {

/// Reads text from front to back. Blanks, line ends and what follows a # are skipped. A word is
/// letters, digits and any of _ . ' - that begin with a letter or _; an integer may have a sign;
/// text stands in double quotes, in which a backslash takes the next character as it is; all else
/// are signs of one character, but for -> and .. and ... A name is a word, or any text in quotes.
class Tokens {
 public:
  /// `where` names the text in messages: a file.
  Tokens(std::string_view text, std::string where);

  enum class Kind : std::uint8_t { end, word, integer, text, sign };
  Kind kind() const { return kind_; }
  /// The token as written; of text, without its quotes but with its backslashes.
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
  bool at_name() const { return kind_ == Kind::word || kind_ == Kind::text; }
  std::string expect_name(std::string_view what);
  /// Whether this token is the word and begins a phrase of its own: what follows is none of [ = , +
  /// : that make it a name. So names need not avoid the words of the grammar.
  bool is_keyword(std::string_view word) const;
  /// The same, and goes on past it.
  bool take_keyword(std::string_view word);
  /// The character that the next token begins with; 0 at the end.
  char next_begins() const;

  /// Throws InputError at the current token.
  [[noreturn]] void refuse(const std::string& problem, const std::string& allowed = {},
                           const std::string& nearest = {}) const;
  /// The same for the name that was read last.
  [[noreturn]] void refuse_name(std::string_view name, const std::string& problem,
                                const std::string& allowed = {}) const;
  /// The same for a name that was read last and is none of the known ones.
  [[noreturn]] void refuse_unknown(std::string_view name, const std::string& allowed,
                                   std::span<const std::string> known) const;
  int line() const { return line_; }

 private:
  static std::size_t after_blanks(std::string_view text, std::size_t position);
  void read_word();
  void read_text();

  std::string_view text_;
  std::string where_;
  std::size_t position_ = 0;
  std::string_view token_;
  Kind kind_ = Kind::end;
  int line_ = 1;
  int line_before_ = 1;  // of the token before
};

/// The name as text that reads back to it: a word as it is, all else in quotes.
std::string spelled(std::string_view name);

/// In quotes, backslashes before quotes and backslashes.
std::string quoted(std::string_view text);

}  // namespace placet
