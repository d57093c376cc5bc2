#include "interop/shell_lists.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <utility>

#include "units/trimmed.h"

namespace placet {
namespace {

constexpr std::size_t kMostLinesOfList = 1000;

bool is_of_name(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; }

using Names = std::set<std::string, std::less<>>;

// All that could be a name; of a comment nothing.
void add_names(std::string_view text, Names& names) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_of_name(text[end])) ++end;
    if (end > at) names.emplace(text.substr(at, end - at));
    at = std::max(end, at + 1);
  }
}

// Whether a '#' begins a comment there, outside of quotes.
bool begins_note(std::string_view line, std::size_t at) {
  return line[at] == '#' && (at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t');
}

// Where a value ends that begins with a quote or a bracket, over as many lines as it takes.
class ValueEnd {
 public:
  // What is behind the value on this line; none: it goes on.
  std::optional<std::string_view> behind(std::string_view line) {
    std::size_t at = 0;
    while (at < line.size() && !ends(line, at)) at += line[at] == '\\' && quote_ != '\'' ? 2U : 1U;
    at = std::min(at, line.size());
    const bool is_inside = quote_ != 0 || depth_ > 0;
    return is_inside ? std::nullopt : std::optional(line.substr(at));
  }

 private:
  // Whether nothing more of the line is of the value; takes the character otherwise.
  bool ends(std::string_view line, std::size_t at) {
    const char c = line[at];
    if (quote_ != 0) {
      if (c == quote_) quote_ = 0;
      return false;
    }
    const bool is_blank = c == ' ' || c == '\t' || c == ';';
    if (begins_note(line, at) || (depth_ == 0 && (is_blank || c == ')'))) return true;
    if (c == '"' || c == '\'') quote_ = c;
    if (c == '(') ++depth_;
    if (c == ')') --depth_;
    return false;
  }

  char quote_ = 0;
  std::size_t depth_ = 0;
};

// What a command names, or the value of a variable.
struct Mentions {
  Names names;
  bool has_options = false;
  bool has_script = false;
  Names first;  // in the first word of a command
};

bool has_option(std::string_view text) {
  for (std::size_t at = text.find("--"); at < text.size(); at = text.find("--", at + 1)) {
    const std::string_view rest = text.substr(at + 2);
    if (!rest.empty() && std::isalpha(static_cast<unsigned char>(rest.front())) != 0) return true;
  }
  return false;
}

void add_mentions(std::string_view text, Mentions& words) {
  add_names(text, words.names);
  words.has_options = words.has_options || has_option(text);
  words.has_script = words.has_script || text.find(".py") != std::string_view::npos;
}

struct Assignment {
  OptionList list;
  Mentions value;
};

// "NAME=" or "NAME+=" at the beginning of a line, and where the value begins; one for other
// programs ("export NAME=") is none.
std::optional<std::pair<std::string, std::size_t>> assigned_at(std::string_view line) {
  std::size_t at = std::min(line.find_first_not_of(" \t"), line.size());
  for (const std::string_view word : {"local ", "readonly ", "declare -a "}) {
    if (line.substr(at).starts_with(word)) at += word.size();
  }
  std::size_t end = at;
  while (end < line.size() && is_of_name(line[end])) ++end;
  const std::string name(line.substr(at, end - at));
  if (line.substr(end).starts_with('+')) ++end;
  if (name.empty() || !line.substr(end).starts_with('=')) return std::nullopt;
  return std::pair(name, end + 1);
}

class Script {
 public:
  Script(const std::vector<std::string>& lines, const std::set<std::size_t>& passed_over)
      : lines_(lines), passed_over_(passed_over) {}

  std::vector<OptionList> unused() {
    for (std::size_t i = 0; i < lines_.size();) {
      const std::size_t taken = take_assignment(i);
      if (taken == 0) take_other(i);
      i += std::max<std::size_t>(taken, 1);
    }
    use_what_is_in_used();
    std::vector<OptionList> lists;
    if (is_indirect_ || is_torn_ || !gives_options()) return lists;
    for (const Assignment& one : assignments_) {
      const bool is_used = used_.contains(one.list.name);
      if (one.value.has_options && !is_used) lists.push_back(one.list);
    }
    return lists;
  }

 private:
  // How many lines an assignment takes that begins there; 0: there is none, or it is not alone.
  std::size_t take_assignment(std::size_t first) {
    const auto assigned = assigned_at(lines_[first]);
    if (!assigned) return 0;
    const auto& [name, begin] = *assigned;
    ValueEnd end;
    Assignment one{.list = {.name = name, .first = first + 1, .last = 0}, .value = {}};
    for (std::size_t i = first; i < lines_.size() && i < first + kMostLinesOfList; ++i) {
      const std::string_view line = std::string_view(lines_[i]).substr(i == first ? begin : 0);
      if (i > first && trimmed(line, kWhitespace).starts_with('#')) continue;
      const auto behind = end.behind(line);
      add_mentions(line.substr(0, line.size() - behind.value_or("").size()), one.value);
      if (!behind) continue;
      const std::string_view rest = trimmed(*behind, kWhitespace);
      if (!rest.empty() && !rest.starts_with('#') && rest != ";") return 0;
      one.list.last = i + 1;
      if (!passed_over_.contains(first + 1)) assignments_.push_back(std::move(one));
      return i + 1 - first;
    }
    is_torn_ = true;
    return 0;
  }

  void take_other(std::size_t i) {
    const std::string_view line = trimmed(lines_[i], kWhitespace);
    if (line.starts_with('#') || passed_over_.contains(i + 1)) return;
    for (const std::string_view sign : {"${!", "declare -n", "local -n"}) {
      is_indirect_ = is_indirect_ || line.find(sign) != std::string_view::npos;
    }
    if (!goes_on_) {
      commands_.emplace_back();
      add_names(line.substr(0, line.find_first_of(kWhitespace)), commands_.back().first);
    }
    goes_on_ = line.ends_with('\\');
    add_mentions(line, commands_.back());
    // What is sourced sees what was said before.
    if (!line.starts_with("source ") && !line.starts_with(". ")) return;
    for (const Assignment& one : assignments_) used_.insert(one.list.name);
  }

  // All that commands name, and what is in it. A variable that holds a command, a script with what
  // it is given, is there to be run, by whatever means.
  void use_what_is_in_used() {
    for (const Mentions& command : commands_) {
      used_.insert(command.names.begin(), command.names.end());
    }
    std::vector<const Assignment*> rest;
    for (const Assignment& one : assignments_) {
      rest.push_back(&one);
      if (!is_command(one.value)) continue;
      commands_.push_back(one.value);
      used_.insert(one.list.name);
    }
    for (bool grows = true; grows;) {
      const auto used = std::ranges::partition(
          rest, [&](const Assignment* one) { return !used_.contains(one->list.name); });
      grows = !used.empty();
      for (const Assignment* one : used) {
        used_.insert(one->value.names.begin(), one->value.names.end());
      }
      rest.erase(used.begin(), used.end());
    }
  }

  bool is_command(const Mentions& value) const { return value.has_script && gets_options(value); }

  bool gets_options(const Mentions& words) const {
    return words.has_options || std::ranges::any_of(assignments_, [&](const Assignment& one) {
             return one.value.has_options && words.names.contains(one.list.name);
           });
  }

  bool is_one_a_script(const Names& names) const {
    return std::ranges::any_of(assignments_, [&](const Assignment& one) {
      return one.value.has_script && !one.value.has_options && names.contains(one.list.name);
    });
  }

  // Whether a script is there that gets options: what it does not get is not used. One that nobody
  // starts has lost the beginning of its command, and what that got.
  bool gives_options() const {
    bool gives = false;
    for (const Mentions& command : commands_) {
      const bool has_script = command.has_script || is_one_a_script(command.names);
      if (!has_script || !gets_options(command)) continue;
      if (is_one_a_script(command.first)) return false;
      gives = true;
    }
    return gives;
  }

  const std::vector<std::string>& lines_;
  const std::set<std::size_t>& passed_over_;
  std::vector<Assignment> assignments_;
  std::vector<Mentions> commands_;
  Names used_;
  bool goes_on_ = false;
  bool is_indirect_ = false;
  bool is_torn_ = false;  // a value has no end
};

}  // namespace

std::vector<OptionList> unused_lists(const std::vector<std::string>& lines,
                                     const std::set<std::size_t>& passed_over) {
  return Script(lines, passed_over).unused();
}

}  // namespace placet
