#include "interop/shell_lists.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "interop/shell_words.h"
#include "units/trimmed.h"

namespace placet {
namespace {

// Launch scripts have hundreds of lines. Of longer texts nothing is told, so that none takes long.
constexpr std::size_t kMostScriptLines = 5000;
constexpr std::size_t kMostScriptBytes = std::size_t{1} << 20;

using Names = std::vector<std::string_view>;

// All that could be a name.
void add_names(std::string_view text, Names& names) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_of_variable(text[end])) ++end;
    if (end > at) names.push_back(text.substr(at, end - at));
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
  while (end < line.size() && is_of_variable(line[end])) ++end;
  const std::string name(line.substr(at, end - at));
  if (line.substr(end).starts_with('+')) ++end;
  if (name.empty() || !line.substr(end).starts_with('=')) return std::nullopt;
  return std::pair(name, end + 1);
}

// Whether names are put together in a line, so that what it uses cannot be told: "${!NAME}",
// references, what a shell reads twice, and variables that are exported as they come.
bool is_indirect(std::string_view line) {
  for (const std::string_view sign :
       {"${!", "declare -n", "local -n", "typeset -n", "set -a", "set -o allexport", "printf -v"}) {
    if (line.find(sign) != std::string_view::npos) return true;
  }
  const std::size_t eval = line.find("eval ");
  if (eval == std::string_view::npos) return false;
  return line.find_first_of("\\`=", eval) != std::string_view::npos ||
         line.find("$(", eval) != std::string_view::npos;
}

// Whether another script is read there, "source a.sh" and ". a.sh", at whatever place of the line.
bool sources(std::string_view line) {
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = std::min(line.find_first_not_of(" \t", at), line.size());
    at = std::min(line.find_first_of(" \t", begin), line.size());
    const std::string_view word = line.substr(begin, at - begin);
    if (word == "source" || word == ".") return true;
  }
  return false;
}

class Script {
 public:
  Script(const std::vector<std::string>& lines, const std::set<std::size_t>& passed_over)
      : lines_(lines), passed_over_(passed_over) {
    std::size_t bytes = 0;
    for (const std::string& line : lines) bytes += line.size();
    if (lines.size() > kMostScriptLines || bytes > kMostScriptBytes) return;
    is_known_ = true;
    for (std::size_t i = 0; i < lines_.size() && is_known_;) {
      const std::size_t taken = take_assignment(i);
      if (taken == 0) take_other(i);
      i += std::max<std::size_t>(taken, 1);
    }
  }

  std::vector<OptionList> lists() const {
    std::vector<OptionList> lists;
    for (const Assignment& one : assignments_) {
      if (one.value.has_options) lists.push_back(one.list);
    }
    return lists;
  }

  std::vector<OptionList> unused() {
    if (!is_known_) return {};
    note_kinds();
    use_what_is_in_used();
    std::vector<OptionList> lists;
    if (!gives_options()) return lists;
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
    for (std::size_t i = first; i < lines_.size(); ++i) {
      const std::string_view line = std::string_view(lines_[i]).substr(i == first ? begin : 0);
      if (i > first && trimmed(line, kWhitespace).starts_with('#')) continue;
      is_known_ = is_known_ && !is_indirect(line);
      const auto behind = end.behind(line);
      add_mentions(line.substr(0, line.size() - behind.value_or("").size()), one.value);
      if (!behind) continue;
      const std::string_view rest = trimmed(*behind, kWhitespace);
      if (!rest.empty() && !rest.starts_with('#') && rest != ";") return 0;
      one.list.last = i + 1;
      if (!passed_over_.contains(first + 1)) assignments_.push_back(std::move(one));
      return i + 1 - first;
    }
    is_known_ = false;  // the text is cut off in a value
    return 0;
  }

  void take_other(std::size_t i) {
    const std::string_view line = trimmed(lines_[i], kWhitespace);
    if (line.starts_with('#') || passed_over_.contains(i + 1)) return;
    if (is_indirect(line)) is_known_ = false;
    if (!goes_on_) {
      commands_.emplace_back();
      add_names(line.substr(0, line.find_first_of(kWhitespace)), commands_.back().first);
    }
    goes_on_ = line.ends_with('\\');
    add_mentions(line, commands_.back());
    // What is sourced sees what was said before.
    if (sources(line)) seen_ = assignments_.size();
  }

  void note_kinds() {
    for (const Assignment& one : assignments_) {
      if (one.value.has_options) lists_.insert(one.list.name);
      if (one.value.has_script && !one.value.has_options) scripts_.insert(one.list.name);
    }
  }

  // All that commands name, and what is in it. A variable that holds a command, a script with what
  // it is given, is there to be run, by whatever means.
  void use_what_is_in_used() {
    std::map<std::string_view, std::vector<const Assignment*>> by_name;
    Names fresh;
    for (std::size_t i = 0; i < assignments_.size(); ++i) {
      const Assignment& one = assignments_[i];
      by_name[one.list.name].push_back(&one);
      const bool is_command = one.value.has_script && gets_options(one.value);
      if (is_command) commands_.push_back(one.value);
      if (is_command || i < seen_) fresh.emplace_back(one.list.name);
    }
    for (const Mentions& command : commands_) {
      fresh.insert(fresh.end(), command.names.begin(), command.names.end());
    }
    while (!fresh.empty()) {
      const std::string_view name = fresh.back();
      fresh.pop_back();
      const auto found = by_name.find(name);
      if (found == by_name.end() || !used_.insert(name).second) continue;
      for (const Assignment* one : found->second) {
        fresh.insert(fresh.end(), one->value.names.begin(), one->value.names.end());
      }
    }
  }

  static bool has_one(const Names& names, const std::set<std::string_view>& known) {
    return std::ranges::any_of(names, [&](std::string_view name) { return known.contains(name); });
  }

  bool gets_options(const Mentions& words) const {
    return words.has_options || has_one(words.names, lists_);
  }

  // Whether a script is there that gets options: what it does not get is not used. One that nobody
  // starts has lost the beginning of its command, and what that got.
  bool gives_options() const {
    bool gives = false;
    for (const Mentions& command : commands_) {
      const bool has_script = command.has_script || has_one(command.names, scripts_);
      if (!has_script || !gets_options(command)) continue;
      if (has_one(command.first, scripts_)) return false;
      gives = true;
    }
    return gives;
  }

  const std::vector<std::string>& lines_;
  const std::set<std::size_t>& passed_over_;
  std::vector<Assignment> assignments_;
  std::vector<Mentions> commands_;
  std::set<std::string_view> lists_;    // variables with options
  std::set<std::string_view> scripts_;  // and with a script alone
  std::set<std::string_view> used_;     // variables
  std::size_t seen_ = 0;                // so many assignments another script may have seen
  bool goes_on_ = false;
  bool is_known_ = false;  // what is used can be told
};

}  // namespace

std::vector<OptionList> option_lists(const std::vector<std::string>& lines) {
  const std::set<std::size_t> none;
  return Script(lines, none).lists();
}

std::vector<OptionList> unused_lists(const std::vector<std::string>& lines,
                                     const std::set<std::size_t>& passed_over) {
  return Script(lines, passed_over).unused();
}

}  // namespace placet
