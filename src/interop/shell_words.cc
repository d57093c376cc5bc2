#include "interop/shell_words.h"

#include <cctype>
#include <utility>

namespace placet {
namespace {

// Words of a line. A quote that is not closed on the line belongs to a list of options that goes on
// below, and is left out.
class LineWords {
 public:
  explicit LineWords(const std::string& line) : line_(line) {}

  std::vector<LineWord> all() {
    for (; next_ < line_.size() && !is_comment_; ++next_) take(line_[next_]);
    end_word();
    return std::move(words_);
  }

 private:
  void take(char c) {
    if (quote_ != 0) {
      take_quoted(c);
    } else if (c == '(' && word_.ends_with('$')) {
      take_substitution();
    } else if (c == '`') {
      take_old_substitution();
    } else if (c == '"' || c == '\'') {
      open_quote(c);
    } else if (c == '#' && word_.empty()) {
      is_comment_ = true;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == ';' || begins_list(c)) {
      end_word();
    } else if (is_of_word(c)) {
      word_ += c;
    }
  }

  // One that is not closed on the line is left out.
  void open_quote(char c) {
    const bool is_closed = line_.find(c, next_ + 1) != std::string::npos;
    is_open_ = is_open_ || !is_closed;
    if (!is_closed && begins_options()) end_word();
    if (!is_closed) return;
    quote_ = c;
    is_quoted_ = true;
  }

  // "NAME=(--option value" and "NAME+=(--option value": a list of options begins.
  bool begins_list(char c) const { return c == '(' && begins_options(); }

  // So does it in a quote that is not closed on the line: "NAME=\"--option value".
  bool begins_options() const {
    if (!word_.ends_with('=')) return false;
    const std::size_t first = line_.find_first_not_of(" \t\"'", next_ + 1);
    return first != std::string::npos && line_.compare(first, 2, "--") == 0;
  }

  // "$(...)" and "$((...))" are of one word, whatever blanks are in them. One that is not closed on
  // the line is read as other words are.
  void take_substitution() {
    std::size_t depth = 0;
    for (std::size_t end = next_; end < line_.size() && scanned_ < kMostScanned; ++end) {
      ++scanned_;
      if (line_[end] == '(') ++depth;
      if (line_[end] != ')' || --depth > 0) continue;
      word_ += line_.substr(next_, end + 1 - next_);
      next_ = end;
      return;
    }
    word_ += '(';
  }

  // "`...`" is "$(...)" in another spelling.
  void take_old_substitution() {
    const std::size_t end = line_.find('`', next_ + 1);
    if (end == std::string::npos) return;
    word_.append("$(").append(line_, next_ + 1, end - next_ - 1).append(")");
    next_ = end;
  }

  void take_quoted(char c) {
    if (c == quote_) {
      quote_ = 0;
    } else {
      word_ += c;
    }
  }

  // Brackets are of a list, but for those of a substitution that goes on below.
  bool is_of_word(char c) {
    has_dollar_ = has_dollar_ || c == '$';
    if (c == '(') return has_dollar_;
    if (c == ')') return has_dollar_ && word_.find('(') != std::string::npos;
    return c != '\\';
  }

  void end_word() {
    if (!word_.empty()) {
      words_.push_back({.text = word_, .is_quoted = is_quoted_, .is_open = is_open_});
      is_open_ = false;
    }
    word_.clear();
    has_dollar_ = false;
    is_quoted_ = false;
  }

  static constexpr std::size_t kMostScanned = std::size_t{4} << 20;

  const std::string& line_;
  std::size_t next_ = 0;
  std::size_t scanned_ = 0;  // for ends of substitutions
  char quote_ = 0;
  bool is_comment_ = false;
  bool has_dollar_ = false;
  bool is_quoted_ = false;
  bool is_open_ = false;
  std::string word_;
  std::vector<LineWord> words_;
};

}  // namespace

bool is_of_variable(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; }

std::vector<LineWord> words_of(const std::string& line) { return LineWords(line).all(); }

}  // namespace placet
