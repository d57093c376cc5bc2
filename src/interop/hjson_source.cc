// JSON, and what HJSON allows beside it: comments, keys and texts without quotes, commas that are
// left out or stand last, texts in ''' over several lines, an outermost object without braces.
// Engines read their files so. No library of Debian 12 reads HJSON, and none keeps lines.
#include <cctype>
#include <string_view>

#include "interop/setting_tree.h"
#include "interop/source_parts.h"

namespace placet {
namespace {

using Kind = TreeEvent::Kind;

// Where a text ends without quotes: at the end of its line, or where a value of JSON does.
constexpr std::string_view kPunctuators = "{}[],:";

class HjsonReader {
 public:
  /// `is_cut`: a part of a text, which may end anywhere.
  HjsonReader(std::string_view text, const std::string& file, bool is_cut)
      : text_(text), file_(file), tree_(file), is_cut_(is_cut) {}

  std::vector<Setting> settings() {
    skip();
    if (at_end()) return {};
    const bool has_braces = peek() == '{';
    if (peek() == '[') fail("is a list", "an object of settings");
    if (has_braces) {
      value();
    } else {
      tree_.take({Kind::object, "", line_});
      members('\0');
      tree_.take({Kind::end_object, "", line_});
    }
    skip();
    if (!at_end()) fail("goes on after its end", "one object");
    return std::move(tree_).settings();
  }

 private:
  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  char next() {
    const char c = text_[at_++];
    if (c == '\n') ++line_;
    return c;
  }

  [[noreturn]] void fail(const std::string& problem, const std::string& allowed) const {
    fail_at_line(file_, line_, problem, allowed);
  }

  void skip_line() {
    while (!at_end() && peek() != '\n') next();
  }

  void skip_block() {
    const std::size_t begin = line_;
    for (at_ += 2; peek() != '*' || peek(1) != '/'; next()) {
      if (at_end()) fail_at_line(file_, begin, "has a comment that does not end", "'*/'");
    }
    at_ += 2;
  }

  // Blanks and comments.
  void skip() {
    while (!at_end()) {
      if (std::isspace(static_cast<unsigned char>(peek())) != 0) {
        next();
      } else if (peek() == '#' || (peek() == '/' && peek(1) == '/')) {
        skip_line();
      } else if (peek() == '/' && peek(1) == '*') {
        skip_block();
      } else {
        return;
      }
    }
  }

  void value() {
    const std::size_t line = line_;
    switch (peek()) {
      case '{':
        next();
        tree_.take({Kind::object, "", line});
        members('}');
        tree_.take({Kind::end_object, "", line_});
        return;
      case '[':
        next();
        tree_.take({Kind::list, "", line});
        items();
        tree_.take({Kind::end_list, "", line_});
        return;
      case '"':
      case '\'':
        tree_.take({Kind::value, quoted(), line});
        return;
      default:
        tree_.take({Kind::value, unquoted(), line});
    }
  }

  // `end`: the bracket that closes the object, or none where it is the text's own.
  void members(char end) {
    for (skip(); !at_end(); skip()) {
      if (peek() == '}') {
        if (end != '\0') next();
        return;
      }
      if (peek() == ',') {
        next();
      } else {
        member();
      }
    }
    if (end != '\0' && !is_cut_) fail("ends inside an object", "'}'");
  }

  void member() {
    key();
    skip();
    if (at_end() && is_cut_) return tree_.take({Kind::value, "", line_});
    if (peek() != ':') fail("has a key without a value", "':' and a value");
    next();
    skip();
    value();
  }

  void items() {
    for (skip();; skip()) {
      if (at_end() && is_cut_) return;
      if (at_end()) fail("ends inside a list", "']'");
      if (peek() == ']') {
        next();
        return;
      }
      if (peek() == ',') {
        next();
        continue;
      }
      value();
    }
  }

  void key() {
    const std::size_t line = line_;
    std::string name;
    if (peek() == '"' || peek() == '\'') {
      name = quoted();
    } else {
      while (!at_end() && std::isspace(static_cast<unsigned char>(peek())) == 0 &&
             kPunctuators.find(peek()) == std::string_view::npos) {
        name += next();
      }
      if (name.empty()) fail("has no key where one is due", "a key, ':' and a value");
    }
    tree_.take({Kind::value, name, line});
  }

  std::string quoted() {
    const char quote = next();
    if (quote == '\'' && peek() == '\'' && peek(1) == '\'') return block();
    const std::size_t line = line_;
    std::string value;
    while (peek() != quote) {
      if (at_end() || peek() == '\n') {
        fail_at_line(file_, line, "has a text that does not end on its line", "a closing quote");
      }
      const char c = next();
      value += c == '\\' && !at_end() ? escaped(next()) : std::string(1, c);
    }
    next();
    return value;
  }

  static std::string escaped(char c) {
    switch (c) {
      case 'n':
        return "\n";
      case 't':
        return "\t";
      case 'r':
        return "\r";
      case 'u':
        return "\\u";  // as it is written: no setting of an engine needs one
      default:
        return std::string(1, c);
    }
  }

  std::string block() {
    const std::size_t line = line_;
    std::string value;
    for (at_ += 2; text_.compare(at_, 3, "'''") != 0;) {
      if (at_end()) fail_at_line(file_, line, "has a text that does not end", "\"'''\"");
      value += next();
    }
    at_ += 3;
    return value;
  }

  // A number, true, false or null ends at a comma or bracket; any other text at the end of its
  // line.
  std::string unquoted() {
    if (at_end() && is_cut_) return {};
    if (at_end() || kPunctuators.find(peek()) != std::string_view::npos) {
      fail("has no value", "a value");
    }
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view line = text_.substr(at_, end - at_);
    std::string_view word = line.substr(0, line.find_first_of(",]} \t\r#"));
    const bool is_word = word == "true" || word == "false" || word == "null" || is_number(word);
    if (!is_word) word = line;
    at_ += word.size();
    while (!word.empty() &&
           (word.back() == ',' || std::isspace(static_cast<unsigned char>(word.back())) != 0)) {
      word.remove_suffix(1);
    }
    return std::string(word);
  }

  static bool is_number(std::string_view word) {
    return !word.empty() && word.find_first_not_of("0123456789.eE+-") == std::string_view::npos &&
           word.find_first_of("0123456789") != std::string_view::npos;
  }

  std::string_view text_;
  const std::string& file_;
  SettingTree tree_;
  bool is_cut_ = false;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

}  // namespace

std::vector<Setting> json_settings(const std::string& text, const std::string& file) {
  return HjsonReader(text, file, file.ends_with(".fragment")).settings();
}

}  // namespace placet
