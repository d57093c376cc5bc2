#include "program/tokens.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <utility>
#include <vector>

#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_character(char c) { return is_letter(c) || is_digit(c) || c == '\'' || c == '-'; }

// Longer names, and more of them, are not compared: a message must not take long.
constexpr std::size_t kLongestCompared = 64;
constexpr std::size_t kMostCompared = 4096;

std::string nearest_of(std::string_view name, std::span<const std::string> known) {
  if (name.size() > kLongestCompared) return {};
  std::vector<std::string> candidates;
  for (const std::string& candidate : known) {
    if (candidates.size() >= kMostCompared) break;
    if (candidate.size() <= kLongestCompared) candidates.push_back(candidate);
  }
  return nearest(name, candidates);
}

std::string shortened(std::string_view text) {
  if (text.size() <= kLongestCompared) return std::string(text);
  return std::string(text.substr(0, kLongestCompared - 3)) + "...";
}

}  // namespace

Tokens::Tokens(std::string_view text, std::string where) : text_(text), where_(std::move(where)) {
  next();
}

std::size_t Tokens::after_blanks(std::string_view text, std::size_t position) {
  for (; position < text.size(); ++position) {
    const char c = text[position];
    if (c == '#') {
      while (position + 1 < text.size() && text[position + 1] != '\n') ++position;
    } else if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
      break;
    }
  }
  return position;
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
    const bool two =
        text_[position_] == '\\' && position_ + 1 < text_.size() && text_[position_ + 1] != '\n';
    position_ += two ? 2U : 1U;
  }
  token_ = text_.substr(begin, position_ - begin);
  kind_ = Kind::text;
  if (position_ >= text_.size() || text_[position_] != '"')
    refuse("is text without a closing quote");
  ++position_;
}

void Tokens::next() {
  line_before_ = line_;
  const std::size_t begin = after_blanks(text_, position_);
  line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(position_),
                                       text_.begin() + static_cast<std::ptrdiff_t>(begin), '\n'));
  position_ = begin;
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
    std::size_t length = 1;
    if (rest.starts_with("..") || rest.starts_with("->")) length = 2;
    if (rest.starts_with("...")) length = 3;
    position_ += length;
  }
  token_ = text_.substr(begin, position_ - begin);
}

bool Tokens::take(std::string_view token) {
  if (!is(token)) return false;
  next();
  return true;
}

void Tokens::expect(std::string_view token) {
  if (take(token)) return;
  const std::vector<std::string> known{std::string(token)};
  const bool word = kind_ == Kind::word && is_letter(token.front());
  refuse("is not expected here", "'" + known.front() + "'",
         word ? nearest_of(token_, known) : std::string());
}

std::string Tokens::expect_word(std::string_view what) {
  if (kind_ != Kind::word) refuse("is no name", std::string(what));
  std::string word(token_);
  next();
  return word;
}

std::string Tokens::expect_text(std::string_view what) {
  if (kind_ != Kind::text) refuse("is no text in quotes", std::string(what));
  std::string text;
  for (std::size_t i = 0; i < token_.size(); ++i) {
    if (token_[i] == '\\') ++i;
    text += token_[i];
  }
  next();
  return text;
}

std::string Tokens::expect_name(std::string_view what) {
  return kind_ == Kind::text ? expect_text(what) : expect_word(what);
}

char Tokens::next_begins() const {
  const std::size_t i = after_blanks(text_, position_);
  return i < text_.size() ? text_[i] : '\0';
}

bool Tokens::is_keyword(std::string_view word) const {
  return kind_ == Kind::word && token_ == word &&
         std::string_view("[=,+:").find(next_begins()) == std::string_view::npos;
}

bool Tokens::take_keyword(std::string_view word) {
  if (!is_keyword(word)) return false;
  next();
  return true;
}

std::int64_t Tokens::expect_integer(std::string_view what) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(token_.data(), token_.data() + token_.size(), value);
  if (kind_ != Kind::integer || error != std::errc() || end != token_.data() + token_.size()) {
    refuse("is no whole number of at most 63 bits", std::string(what));
  }
  next();
  return value;
}

void Tokens::refuse(const std::string& problem, const std::string& allowed,
                    const std::string& nearest) const {
  std::string value = shortened(token_);
  if (kind_ == Kind::end) value = "the end";
  throw InputError({.where = where_ + ", line " + std::to_string(line_),
                    .value = value,
                    .problem = problem,
                    .allowed = allowed,
                    .nearest = nearest});
}

void Tokens::refuse_name(std::string_view name, const std::string& problem,
                         const std::string& allowed) const {
  throw InputError({.where = where_ + ", line " + std::to_string(line_before_),
                    .value = shortened(name),
                    .problem = problem,
                    .allowed = allowed});
}

void Tokens::refuse_unknown(std::string_view name, const std::string& allowed,
                            std::span<const std::string> known) const {
  throw InputError({.where = where_ + ", line " + std::to_string(line_before_),
                    .value = shortened(name),
                    .problem = "is not known",
                    .allowed = allowed,
                    .nearest = nearest_of(name, known)});
}

std::string spelled(std::string_view name) {
  const bool plain = !name.empty() && is_letter(name.front());
  if (!plain) return quoted(name);
  const std::string text = std::string(name) + " ";
  return Tokens(text, {}).token() == name ? std::string(name) : quoted(name);
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace placet
