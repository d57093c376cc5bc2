#include "interop/shell_branches.h"

#include <algorithm>
#include <utility>

#include "interop/dialect.h"
#include "interop/shell_arithmetic.h"
#include "units/trimmed.h"

namespace placet {
namespace {

// The first word of a statement, and what follows it.
std::pair<std::string, std::string> parted(const std::string& statement) {
  const std::size_t end = std::min(statement.find_first_of(kWhitespace), statement.size());
  return {statement.substr(0, end), std::string(trimmed(statement.substr(end), kWhitespace))};
}

// Words without their quotes. An empty pair of quotes is a word.
std::vector<std::string> plain_words(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  char quote = 0;
  const auto end_word = [&] {
    if (inside) words.push_back(word);
    word.clear();
    inside = false;
  };
  for (const char c : text) {
    if (quote != 0 ? c == quote : c == '"' || c == '\'') {
      quote = quote != 0 ? 0 : c;
      inside = true;
    } else if (quote == 0 && kWhitespace.find(c) != std::string_view::npos) {
      end_word();
    } else {
      word += c;
      inside = true;
    }
  }
  end_word();
  return words;
}

bool is_plain(const std::string& value) {
  return value.find_first_of("$`*?[\\") == std::string::npos;
}

Runs said(bool holds) { return holds ? Runs::yes : Runs::no; }

Runs numbers_compare(const std::string& left, const std::string& op, const std::string& right) {
  const auto a = whole_number(left);
  const auto b = whole_number(right);
  if (!a || !b) return Runs::maybe;
  if (op == "-eq") return said(*a == *b);
  if (op == "-ne") return said(*a != *b);
  if (op == "-gt") return said(*a > *b);
  if (op == "-ge") return said(*a >= *b);
  if (op == "-lt") return said(*a < *b);
  return op == "-le" ? said(*a <= *b) : Runs::maybe;
}

// One comparison: its words are plain.
Runs compares(const std::vector<std::string>& words) {
  if (!std::ranges::all_of(words, is_plain)) return Runs::maybe;
  if (words.size() == 2 && words[0] == "-z") return said(words[1].empty());
  if (words.size() == 2 && words[0] == "-n") return said(!words[1].empty());
  if (words.size() != 3) return Runs::maybe;
  if (words[1] == "=" || words[1] == "==") return said(words[0] == words[2]);
  if (words[1] == "!=") return said(words[0] != words[2]);
  return numbers_compare(words[0], words[1], words[2]);
}

bool is_bracket(const std::string& word) {
  return word == "[" || word == "[[" || word == "]" || word == "]]" || word == "test";
}

// Where the test in front of "&&" or "||" ends; none: the statement is no test.
std::size_t end_of_test(const std::string& statement) {
  if (statement.starts_with("((")) {
    const std::size_t end = statement.find(")) ");
    return end == std::string::npos ? end : end + 2;
  }
  if (statement.starts_with("test ")) {
    return std::min(statement.find(" && "), statement.find(" || "));
  }
  if (!statement.starts_with("[")) return std::string::npos;
  const std::string close = statement.starts_with("[[") ? "]]" : "]";
  const std::size_t end = statement.find(" " + close + " ");
  return end == std::string::npos ? end : end + 1 + close.size();
}

// "(( N > 0 ))": whether the number inside is not zero.
Runs number_holds(const std::string& test, const ResolveWord& resolve) {
  const auto number_of = [&](const std::string& name) { return whole_number(resolve("$" + name)); };
  std::string inside;  // names with and without their '$' are one
  for (const std::string& word : plain_words(test.substr(2, test.size() - 4))) {
    inside += resolve(word) + ' ';
  }
  const auto number = shell_number(inside, number_of);
  return number ? said(*number != 0) : Runs::maybe;
}

// Whether a pattern of a choice is that of its word; none: the word is not known.
Runs pattern_matches(const std::string& pattern, const std::optional<std::string>& word) {
  if (pattern == "*") return Runs::yes;
  if (!word || !is_plain(pattern)) return Runs::maybe;
  return said(pattern == *word);
}

// "7B|8B", "(7B".
Runs patterns_match(std::string patterns, const std::optional<std::string>& word) {
  if (patterns.starts_with('(')) patterns.erase(0, 1);
  Runs matches = Runs::no;
  for (std::size_t at = 0; at <= patterns.size();) {
    const std::size_t end = std::min(patterns.find('|', at), patterns.size());
    const std::vector<std::string> words = plain_words(patterns.substr(at, end - at));
    const std::string pattern = words.size() == 1 ? words.front() : std::string("?");
    matches = std::max(matches, pattern_matches(pattern, word));
    at = end + 1;
  }
  return matches;
}

// "$SIZE in 7B) HIDDEN=4096": what stands behind "in".
std::string behind_word_in(const std::string& choice) {
  const std::size_t in = (choice + " ").find(" in ");
  return choice.substr(std::min(in + 4, choice.size()));
}

// The quote that is open behind a character. One that nothing closes on the line is of a list that
// goes on below.
char quote_behind(const std::string& line, std::size_t at, char quote) {
  const char c = line[at];
  if (quote != 0) return c == quote ? '\0' : quote;
  const bool opens = (c == '"' || c == '\'') && line.find(c, at + 1) != std::string::npos;
  return opens ? c : '\0';
}

bool begins_comment(const std::string& line, std::size_t at) {
  return line[at] == '#' && (at == 0 || kWhitespace.find(line[at - 1]) != std::string_view::npos);
}

// Where a sign stands outside of quotes; none: nowhere.
std::size_t place_of_sign(const std::string& text, const std::string& sign, std::size_t from) {
  char quote = 0;
  for (std::size_t i = from; i < text.size(); ++i) {
    quote = quote_behind(text, i, quote);
    if (quote == 0 && text.compare(i, sign.size(), sign) == 0) return i;
  }
  return std::string::npos;
}

// "TEST && A || B" as "TEST && A" and "TEST || B"; others as they are. A group, "{ ... }", is one
// by its end.
std::vector<std::string> with_alternatives(const std::vector<std::string>& statements) {
  std::vector<std::string> parted;
  for (const std::string& whole : statements) {
    const std::string statement(trimmed(whole, kWhitespace));
    const std::size_t test = end_of_test(statement);
    const bool is_and = test != std::string::npos && statement.compare(test, 4, " && ") == 0;
    const std::size_t other = is_and ? place_of_sign(statement, " || ", test) : std::string::npos;
    if (other == std::string::npos) {
      parted.push_back(whole);
    } else {
      parted.push_back(statement.substr(0, other));
      parted.push_back(statement.substr(0, test) + statement.substr(other));
    }
  }
  return parted;
}

bool begins_function(const std::string& statement) {
  const bool opens = statement.ends_with("{");
  return opens && (statement.starts_with("function ") || statement.find("()") != std::string::npos);
}

}  // namespace

Runs test_holds(const std::string& test, const ResolveWord& resolve) {
  if (test.starts_with("((") && test.ends_with("))")) return number_holds(test, resolve);
  // A command by itself: what it does is known of two.
  const std::string command = resolve(test);
  if (command == "true" || command == "false") return said(command == "true");
  Runs all = Runs::yes;
  bool is_and = true;
  std::vector<std::string> term;
  const auto join = [&] {
    const Runs own = compares(term);
    all = is_and ? std::min(all, own) : std::max(all, own);
    term.clear();
  };
  for (const std::string& word : plain_words(test)) {
    if (is_bracket(word)) continue;
    if (word == "&&" || word == "||") {
      join();
      is_and = word == "&&";
    } else {
      term.push_back(resolve(word));
    }
  }
  join();
  return all;
}

std::vector<std::string> statements_of(const std::string& line) {
  std::vector<std::string> statements(1);
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    quote = quote_behind(line, i, quote);
    if (quote == 0 && begins_comment(line, i)) break;
    if (quote != 0 || line[i] != ';') {
      statements.back() += line[i];
    } else if (line.compare(i, 2, ";;") == 0) {
      statements.insert(statements.end(), {";;", ""});
      ++i;
    } else {
      statements.emplace_back();
    }
  }
  return with_alternatives(statements);
}

std::string ShellBranches::take(std::string statement, const ResolveWord& resolve) {
  test_ = Runs::yes;
  if (statement == ";;") {
    end_branch();
    return {};
  }
  statement = std::string(trimmed(statement, kWhitespace));
  while (take_front(statement, resolve)) {
  }
  if (begins_function(statement)) {
    push({});
    return {};
  }
  take_test(statement, resolve);
  return statement;
}

// Takes a keyword in front, and what belongs to it; whether there was one.
bool ShellBranches::take_front(std::string& statement, const ResolveWord& resolve) {
  if (statement.empty()) return false;
  if (!levels_.empty() && levels_.back().expects_pattern && take_pattern(statement)) return true;
  const auto [keyword, rest] = parted(statement);
  if (keyword == "else") next_branch(Runs::yes);
  if (keyword == "then" || keyword == "do" || keyword == "else") {
    statement = rest;
    return true;
  }
  if (keyword == "}" && !levels_.empty() && levels_.back().kind == Kind::group) {
    statement = behind_group(rest);
    return false;
  }
  if (!take_keyword(keyword, rest, resolve)) return false;
  statement = keyword == "case" ? std::string(trimmed(behind_word_in(rest), kWhitespace)) : "";
  return true;
}

bool ShellBranches::take_keyword(const std::string& keyword, const std::string& rest,
                                 const ResolveWord& resolve) {
  if (keyword == "if") {
    const Runs condition = test_holds(rest, resolve);
    open_block({.kind = Kind::condition, .runs = condition, .before = condition});
  } else if (keyword == "elif") {
    next_branch(test_holds(rest, resolve));
  } else if (keyword == "fi") {
    leave(Kind::condition);
  } else if (keyword == "case" && (rest + " ").find(" in ") != std::string::npos) {
    const std::vector<std::string> words = plain_words(rest);
    Level level{.kind = Kind::choice, .runs = Runs::no, .word = {}, .expects_pattern = true};
    const std::string word = words.empty() ? std::string("$") : resolve(words.front());
    if (is_plain(word)) level.word = word;
    open_block(std::move(level));
  } else if (keyword == "esac") {
    leave(Kind::choice);
  } else if (keyword == "for" || keyword == "while" || keyword == "until") {
    push({});
  } else if (keyword == "done" || keyword == "}") {
    leave(Kind::other);
  } else {
    return false;
  }
  return true;
}

// "7B|8B) HIDDEN=4096": the branch of a choice; what is behind the bracket stays.
bool ShellBranches::take_pattern(std::string& statement) {
  const std::size_t close = statement.find(')');
  const bool is_other = statement.starts_with("esac") || statement.starts_with('#');
  if (close == std::string::npos || is_other) return false;
  levels_.back().expects_pattern = false;
  const Runs matches = patterns_match(statement.substr(0, close), levels_.back().word);
  statement = std::string(trimmed(statement.substr(close + 1), kWhitespace));
  next_branch(matches);
  return true;
}

// "[ $FSDP = 1 ] && ARGS=...": the test, and what it is in front of.
void ShellBranches::take_test(std::string& statement, const ResolveWord& resolve) {
  const std::size_t end = end_of_test(statement);
  if (end == std::string::npos) return;
  const auto [sign, rest] = parted(std::string(trimmed(statement.substr(end), kWhitespace)));
  if (sign != "&&" && sign != "||") return;
  const Runs holds = test_holds(statement.substr(0, end), resolve);
  const bool is_and = sign == "&&";
  set_test(holds == Runs::maybe ? holds : said((holds == Runs::yes) == is_and));
  statement = rest;
  open_group(statement);
}

void ShellBranches::set_test(Runs test) {
  test_ = test;
  if (test_ != Runs::maybe) return;
  test_block_ = blocks_.size();
  blocks_.push_back({.branches = {0}, .has_last = false});
}

// "{ A" behind a test: A and what follows up to "}" stands behind it.
void ShellBranches::open_group(std::string& statement) {
  if (statement != "{" && !statement.starts_with("{ ")) return;
  push({.kind = Kind::group,
        .runs = test_,
        .word = {},
        .expects_pattern = false,
        .place = {.block = test_block_, .branch = 0}});
  test_ = Runs::yes;
  statement = std::string(trimmed(statement.substr(1), kWhitespace));
}

// Leaves a group; of "} || B" it is B, which runs where the group does not.
std::string ShellBranches::behind_group(const std::string& rest) {
  const Runs runs = levels_.back().runs;
  levels_.pop_back();
  if (!rest.starts_with("|| ")) return {};
  set_test(runs == Runs::maybe ? runs : said(runs == Runs::no));
  std::string statement(trimmed(rest.substr(3), kWhitespace));
  open_group(statement);
  return statement;
}

void ShellBranches::next_branch(Runs condition) {
  if (levels_.empty()) return;
  Level& level = levels_.back();
  if (level.kind == Kind::other || level.kind == Kind::group) return;
  level.runs = level.before == Runs::yes  ? Runs::no
               : level.before == Runs::no ? condition
                                          : std::min(condition, Runs::maybe);
  level.before = std::max(level.before, condition);
  ++level.place.branch;
  note_branch(level);
}

void ShellBranches::open_block(Level level) {
  level.place = {.block = blocks_.size(), .branch = 0};
  blocks_.emplace_back();
  note_branch(level);
  push(std::move(level));
}

// Deeper ones are as if they were not there: no script has so many.
void ShellBranches::push(Level level) {
  constexpr std::size_t kMostLevels = 500;
  if (levels_.size() < kMostLevels) {
    levels_.push_back(std::move(level));
  } else {
    ++too_deep_;
  }
}

void ShellBranches::note_branch(const Level& level) {
  BranchBlock& block = blocks_[level.place.block];
  if (level.runs != Runs::no) block.branches.push_back(level.place.branch);
  block.has_last = level.before == Runs::yes;
}

void ShellBranches::end_branch() {
  if (levels_.empty() || levels_.back().kind != Kind::choice) return;
  levels_.back().expects_pattern = true;
}

void ShellBranches::leave(Kind kind) {
  if (too_deep_ > 0) {
    --too_deep_;
  } else if (!levels_.empty() && levels_.back().kind == kind) {
    levels_.pop_back();
  }
}

// Of deeper ones the outermost.
constexpr std::size_t kMostPlaces = 64;

std::vector<BranchPlace> ShellBranches::places() const {
  std::vector<BranchPlace> places;
  for (const Level& level : levels_) {
    const bool is_open = level.kind != Kind::other && level.runs == Runs::maybe;
    if (is_open) places.push_back(level.place);
    if (places.size() == kMostPlaces) return places;
  }
  if (test_ == Runs::maybe) places.push_back({.block = test_block_, .branch = 0});
  return places;
}

Runs ShellBranches::runs() const {
  Runs runs = test_;
  for (const Level& level : levels_) runs = std::min(runs, level.runs);
  return runs;
}

}  // namespace placet
