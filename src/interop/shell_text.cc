#include "interop/shell_text.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "interop/shell_words.h"

namespace placet {
namespace {

std::vector<std::string> words_of_value(const Setting& setting) {
  if (!setting.words.empty()) return setting.words;
  std::vector<std::string> words;
  std::istringstream stream(setting.value);
  for (std::string word; stream >> word;) words.push_back(word);
  if (words.empty()) words.emplace_back();
  return words;
}

// Plain text, or a variable.
struct Piece {
  std::string text;
  bool is_variable = false;
};

// The variable at a dollar, and what follows it; none: something else stands there.
std::optional<Piece> variable_at(const std::string& word, std::size_t& at) {
  const bool is_braced = at + 1 < word.size() && word[at + 1] == '{';
  const std::size_t begin = at + (is_braced ? 2 : 1);
  std::size_t end = begin;
  while (end < word.size() && is_of_variable(word[end])) ++end;
  const bool is_name = end > begin && std::isdigit(static_cast<unsigned char>(word[begin])) == 0;
  if (!is_name || (is_braced && (end == word.size() || word[end] != '}'))) return std::nullopt;
  at = end + (is_braced ? 1 : 0);
  return Piece{.text = word.substr(begin, end - begin), .is_variable = true};
}

std::optional<std::vector<Piece>> pieces_of(const std::string& word) {
  std::vector<Piece> pieces;
  if (word.find('`') != std::string::npos) return std::nullopt;
  for (std::size_t at = 0; at < word.size();) {
    if (word[at] == '$') {
      auto variable = variable_at(word, at);
      if (!variable) return std::nullopt;
      pieces.push_back(*std::move(variable));
    } else {
      const std::size_t end = std::min(word.find('$', at), word.size());
      pieces.push_back({.text = word.substr(at, end - at)});
      at = end;
    }
  }
  return pieces;
}

// "${NAME:?}", with a mark before and behind it.
std::string variable_text(const std::string& name, const std::string& mark) {
  std::string text = mark;
  text.append("${").append(name).append(":?}").append(mark);
  return text;
}

bool begins_word(const std::string& text, std::size_t at) {
  return at == 0 || text[at - 1] == ' ' || text[at - 1] == '\t' || text[at - 1] == '\n';
}

}  // namespace

std::string quoted_word(const std::string& word) {
  static constexpr const char* kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_=+.,:/@%-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) {
    if (c == '\'') {
      text += "'\"'\"'";
    } else {
      text += c;
    }
  }
  return text + "'";
}

std::string quoted_words(const Setting& setting) {
  std::string text;
  for (const std::string& word : words_of_value(setting)) {
    text += (text.empty() ? "" : " ") + quoted_word(word);
  }
  return text;
}

std::optional<std::vector<std::string>> variables_in(const std::string& word) {
  const auto pieces = pieces_of(word);
  if (!pieces) return std::nullopt;
  std::vector<std::string> names;
  for (const Piece& piece : *pieces) {
    if (piece.is_variable) names.push_back(piece.text);
  }
  return names;
}

std::string quoted_around_variables(const Setting& setting) {
  const std::string mark = setting.words.empty() ? "" : "\"";  // words that are said stay one each
  std::string text;
  for (const std::string& word : words_of_value(setting)) {
    if (!text.empty()) text += ' ';
    const auto pieces = pieces_of(word);
    if (!pieces || pieces->empty()) text += quoted_word(word);
    for (const Piece& piece : pieces.value_or(std::vector<Piece>())) {
      text += piece.is_variable ? variable_text(piece.text, mark) : quoted_word(piece.text);
    }
  }
  return text;
}

bool is_inside_quotes(const std::string& script, std::size_t place) {
  char quote = 0;
  for (std::size_t at = 0; at < place; ++at) {
    const char c = script[at];
    if (c == '\\' && quote != '\'') {
      ++at;  // the next one is a plain character
    } else if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#' && begins_word(script, at)) {
      at = std::min(script.find('\n', at), script.size());
    }
  }
  return quote != 0;
}

}  // namespace placet
