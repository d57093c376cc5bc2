#include "interop/shell_arithmetic.h"

#include <array>
#include <cctype>
#include <map>
#include <string_view>
#include <utility>

#include "interop/dialect.h"
#include "interop/shell_words.h"

namespace placet {
namespace {

constexpr long long kMostReached = 1'000'000'000'000'000;
constexpr int kMostNested = 64;  // brackets and signs inside each other

// Operators, the loosest first; in a row the longer spelling first.
using Operators = std::array<std::string_view, 4>;
constexpr std::array<Operators, 6> kLevels = {{{"||", "", "", ""},
                                               {"&&", "", "", ""},
                                               {"==", "!=", "", ""},
                                               {"<=", ">=", "<", ">"},
                                               {"+", "-", "", ""},
                                               {"*", "/", "%", ""}}};

std::optional<long long> bounded(long long value) {
  if (value > kMostReached || value < -kMostReached) return std::nullopt;
  return value;
}

std::optional<long long> times_within(long long a, long long b) {
  long long value = 0;
  if (__builtin_mul_overflow(a, b, &value)) return std::nullopt;
  return bounded(value);
}

// Whether a relation holds; none: the sign is of none.
std::optional<bool> related(std::string_view sign, long long a, long long b) {
  using Relation = bool (*)(long long, long long);
  static const std::map<std::string_view, Relation> kRelations = {
      {"||", [](long long x, long long y) { return x != 0 || y != 0; }},
      {"&&", [](long long x, long long y) { return x != 0 && y != 0; }},
      {"==", [](long long x, long long y) { return x == y; }},
      {"!=", [](long long x, long long y) { return x != y; }},
      {"<=", [](long long x, long long y) { return x <= y; }},
      {">=", [](long long x, long long y) { return x >= y; }},
      {"<", [](long long x, long long y) { return x < y; }},
      {">", [](long long x, long long y) { return x > y; }}};
  const auto found = kRelations.find(sign);
  if (found == kRelations.end()) return std::nullopt;
  return found->second(a, b);
}

std::optional<long long> applied(std::string_view sign, long long a, long long b) {
  if ((sign == "/" || sign == "%") && b == 0) return std::nullopt;
  if (const auto truth = related(sign, a, b)) return *truth ? 1 : 0;
  if (sign == "+") return bounded(a + b);
  if (sign == "-") return bounded(a - b);
  if (sign == "*") return times_within(a, b);
  return sign == "/" ? a / b : a % b;
}

class Expression {
 public:
  Expression(const std::string& text, const NumberOfName& number_of)
      : text_(text), number_of_(number_of) {}

  std::optional<long long> value() {
    const auto all = level(0);
    return next() == '\0' ? all : std::nullopt;
  }

 private:
  char next() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  // The operator of a level that stands here; empty: none. "**", "<<" and their like are others.
  std::string_view taken(const Operators& operators) {
    next();
    for (const std::string_view sign : operators) {
      if (sign.empty() || text_.compare(at_, sign.size(), sign) != 0) continue;
      const char behind = at_ + sign.size() < text_.size() ? text_[at_ + sign.size()] : '\0';
      if (behind == '=' || behind == sign.back()) continue;
      at_ += sign.size();
      return sign;
    }
    return {};
  }

  std::optional<long long> level(std::size_t which) {
    if (which == kLevels.size()) return single();
    std::optional<long long> value = level(which + 1);
    while (value) {
      const std::string_view sign = taken(kLevels.at(which));
      if (sign.empty()) break;
      const auto right = level(which + 1);
      value = right ? applied(sign, *value, *right) : std::nullopt;
    }
    return value;
  }

  std::optional<long long> single() {
    if (++depth_ > kMostNested) return std::nullopt;
    const auto value = unnested();
    --depth_;
    return value;
  }

  std::optional<long long> unnested() {
    const char c = next();
    if (c == '(') return bracket();
    if (c == '!' || c == '-' || c == '+') {
      ++at_;
      const auto value = single();
      if (!value || c == '+') return value;
      return c == '!' ? (*value == 0 ? 1 : 0) : -*value;
    }
    return name_or_number();
  }

  std::optional<long long> bracket() {
    ++at_;
    const auto value = level(0);
    if (next() != ')') return std::nullopt;
    ++at_;
    return value;
  }

  std::optional<long long> name_or_number() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_of_variable(text_[at_])) ++at_;
    const std::string word = text_.substr(begin, at_ - begin);
    if (word.empty()) return std::nullopt;
    const bool is_number = std::isdigit(static_cast<unsigned char>(word.front())) != 0;
    const bool is_octal = word.size() > 1 && word.front() == '0';
    if (is_number && is_octal) return std::nullopt;
    const auto value = is_number ? whole_number(word) : number_of_(word);
    return value ? bounded(*value) : std::nullopt;
  }

  const std::string& text_;
  const NumberOfName& number_of_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

// A number to be worked out: "$((...))", "$[...]" or "$(expr ...)".
struct NumberText {
  std::size_t begin = 0;  // of the text inside
  std::size_t size = 0;
  std::size_t end = 0;  // behind all of it
};

// Behind the bracket that closes the one at a place; none: nothing closes it.
std::size_t behind_bracket(const std::string& text, std::size_t open) {
  const char begins = text[open];
  const char ends = begins == '(' ? ')' : ']';
  std::size_t depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    if (text[at] == begins) ++depth;
    if (text[at] == ends && --depth == 0) return at + 1;
  }
  return std::string::npos;
}

// The number at a '$', which may have no end; none: there is no such text.
std::optional<NumberText> number_text_at(const std::string& text, std::size_t dollar) {
  static constexpr std::array<std::pair<std::string_view, std::size_t>, 3> kForms = {
      {{"$((", 2}, {"$[", 1}, {"$(expr ", 1}}};  // with the number of brackets at the end
  for (const auto& [opener, brackets] : kForms) {
    if (text.compare(dollar, opener.size(), opener) != 0) continue;
    const std::size_t begin = dollar + opener.size();
    const std::size_t end = behind_bracket(text, dollar + 1);
    if (end == std::string::npos) return NumberText{.begin = begin, .size = 0, .end = end};
    if (begin + brackets > end || text[end - brackets] != text[end - 1]) return std::nullopt;
    return NumberText{.begin = begin, .size = end - brackets - begin, .end = end};
  }
  return std::nullopt;
}

}  // namespace

std::optional<long long> shell_number(const std::string& text, const NumberOfName& number_of) {
  return Expression(text, number_of).value();
}

std::string with_shell_numbers(std::string text, const NumberOfName& number_of) {
  for (std::size_t at = text.find('$'); at != std::string::npos; at = text.find('$', at)) {
    const auto found = number_text_at(text, at);
    if (found && found->end == std::string::npos) return text;
    std::string inside = found ? text.substr(found->begin, found->size) : "";
    std::erase(inside, '\\');  // of "expr 2 \* 8": the shell leaves the star alone
    const auto value = found ? shell_number(inside, number_of) : std::nullopt;
    if (value) text.replace(at, found->end - at, std::to_string(*value));
    if (!value) ++at;
  }
  return text;
}

}  // namespace placet
