#include "program/tokens.h"

#include <charconv>

#include "units/error.h"

namespace placet {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_character(char c) { return is_letter(c) || is_digit(c) || c == '\'' || c == '-'; }

}  // namespace

Tokens::Tokens(std::string_view text, std::string where) : text_(text), where_(std::move(where)) {
  next();
}

void Tokens::skip_blanks() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '\n') {
      ++line_;
    } else if (c == '#') {
      while (position_ + 1 < text_.size() && text_[position_ + 1] != '\n') ++position_;
    } else if (c != ' ' && c != '\t' && c != '\r') {
      return;
    }
    ++position_;
  }
}

void Tokens::read_word() {
  const std::size_t begin = position_;
  const auto goes_on = [&](std::size_t i) {
    if (i >= text_.size()) return false;
    if (is_word_character(text_[i])) {
      return text_[i] != '-' || (i + 1 < text_.size() && text_[i + 1] != '>');
    }
    // A point joins two parts of a name; two of them are a sign.
    return text_[i] == '.' && i + 1 < text_.size() && is_word_character(text_[i + 1]) &&
           text_[i + 1] != '-';
  };
  while (goes_on(position_)) ++position_;
  token_ = text_.substr(begin, position_ - begin);
  kind_ = Kind::word;
}

void Tokens::read_text() {
  const std::size_t begin = ++position_;
  while (position_ < text_.size() && text_[position_] != '"' && text_[position_] != '\n') {
    ++position_;
  }
  token_ = text_.substr(begin, position_ - begin);
  kind_ = Kind::text;
  if (position_ >= text_.size() || text_[position_] != '"') refuse("text has no closing quote");
  ++position_;
}

void Tokens::next() {
  skip_blanks();
  const std::size_t begin = position_;
  if (position_ >= text_.size()) {
    token_ = {};
    kind_ = Kind::end;
    return;
  }
  const char c = text_[position_];
  if (is_letter(c)) return read_word();
  if (c == '"') return read_text();
  const bool signed_number =
      c == '-' && position_ + 1 < text_.size() && is_digit(text_[position_ + 1]);
  if (is_digit(c) || signed_number) {
    ++position_;
    while (position_ < text_.size() && is_digit(text_[position_])) ++position_;
    kind_ = Kind::integer;
  } else {
    kind_ = Kind::sign;
    const std::string_view rest = text_.substr(position_);
    position_ += rest.starts_with("...")                            ? 3U
                 : rest.starts_with("..") || rest.starts_with("->") ? 2U
                                                                    : 1U;
  }
  token_ = text_.substr(begin, position_ - begin);
}

bool Tokens::take(std::string_view token) {
  if (!is(token)) return false;
  next();
  return true;
}

void Tokens::expect(std::string_view token) {
  if (!take(token)) refuse("something else is expected", "'" + std::string(token) + "'");
}

std::string Tokens::expect_word(std::string_view what) {
  if (kind_ != Kind::word) refuse("a name is expected", std::string(what));
  std::string word(token_);
  next();
  return word;
}

std::string Tokens::expect_text(std::string_view what) {
  if (kind_ != Kind::text) refuse("text in quotes is expected", std::string(what));
  std::string text(token_);
  next();
  return text;
}

std::int64_t Tokens::expect_integer(std::string_view what) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(token_.data(), token_.data() + token_.size(), value);
  if (kind_ != Kind::integer || error != std::errc() || end != token_.data() + token_.size()) {
    refuse("a whole number of at most 63 bits is expected", std::string(what));
  }
  next();
  return value;
}

void Tokens::refuse(const std::string& problem, const std::string& allowed,
                    const std::string& nearest) const {
  constexpr std::size_t kLongest = 60;
  std::string value(token_.substr(0, kLongest));
  if (kind_ == Kind::end) value = "the end";
  throw InputError({.where = where_ + ", line " + std::to_string(line_),
                    .value = value,
                    .problem = problem,
                    .allowed = allowed,
                    .nearest = nearest});
}

}  // namespace placet
