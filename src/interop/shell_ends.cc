#include "interop/shell_ends.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace placet {
namespace {

// A command may go over several lines; what is looked at are their first words and their ends.
class CommandEnds {
 public:
  explicit CommandEnds(const std::vector<OptionList>& lists) : lists_(lists) {}

  void take(const std::string& line, std::size_t number) {
    const std::size_t first = line.find_first_not_of(" \t\r");
    const bool was_joined = std::exchange(is_joined_, false);
    if (is_in_list(number)) {
      end_ = 0;
    } else if (first == std::string::npos) {
      return;
    } else if (line[first] == '#') {
      if (was_joined && is_command_) end_ = number;
    } else if (end_ != 0 && line.compare(first, 2, "--") == 0) {
      found.emplace(number, end_);
    } else {
      if (!was_joined || !is_command_) is_command_ = begins_command(line, first);
      take_command(line, number);
    }
  }

  std::map<std::size_t, std::size_t> found;

 private:
  // Lists stand in the order of their lines.
  bool is_in_list(std::size_t number) {
    while (list_ < lists_.size() && lists_[list_].last < number) ++list_;
    return list_ < lists_.size() && lists_[list_].first <= number &&
           lists_[list_].first < lists_[list_].last;
  }

  void take_command(const std::string& line, std::size_t number) {
    end_ = 0;
    const std::size_t back = line.rfind('\\');
    if (back == std::string::npos) return;
    const bool is_last = line.find_first_not_of('\r', back + 1) == std::string::npos;
    const bool stops = is_last ? has_comment(line) : stops_behind(line, back + 1);
    if (stops && is_command_) end_ = number;
    is_joined_ = is_last && !stops;
  }

  // "\\ ", "\\ # why" and "\\ // why".
  static bool stops_behind(const std::string& line, std::size_t begin) {
    const std::size_t after = line.find_first_not_of(" \t\r", begin);
    const bool is_end =
        after == std::string::npos || line[after] == '#' || line.compare(after, 2, "//") == 0;
    return is_end && (line[begin] == ' ' || line[begin] == '\t');
  }

  // A backslash in a comment joins nothing.
  static bool has_comment(const std::string& line) {
    char quote = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '\\' && quote != '\'') {
        ++i;  // the next one is a plain character
      } else if (quote != 0) {
        if (line[i] == quote) quote = 0;
      } else if (line[i] == '"' || line[i] == '\'') {
        quote = line[i];
      } else if (line[i] == '#' && i > 0 && (line[i - 1] == ' ' || line[i - 1] == '\t')) {
        return i < 2 || line[i - 2] != '\\';
      }
    }
    return false;
  }

  // Not an option, a list, or what opens or closes one. What stands in front, "SEED=1 run.py", is
  // for the command.
  static bool begins_command(const std::string& line, std::size_t first) {
    while (first < line.size()) {
      const std::size_t end = std::min(line.find_first_of(" \t", first), line.size());
      const std::string_view word = std::string_view(line).substr(first, end - first);
      if (word.find_first_of("=()[]") == std::string_view::npos)
        return word[0] != '-' && word != "\\";
      const bool is_value = word.find('=') != std::string_view::npos &&
                            word.find_first_of("()[]'\"") == std::string_view::npos;
      if (!is_value) return false;
      first = line.find_first_not_of(" \t\r", end);
    }
    return false;
  }

  const std::vector<OptionList>& lists_;
  std::size_t list_ = 0;     // the first that ends at the line at hand or below
  bool is_joined_ = false;   // the line above ends in a backslash
  bool is_command_ = false;  // which begins with a program
  std::size_t end_ = 0;      // the line that ended a command, while options follow
};

}  // namespace

std::map<std::size_t, std::size_t> cut_off_lines(const std::vector<std::string>& lines,
                                                 const std::vector<OptionList>& lists) {
  CommandEnds ends(lists);
  for (std::size_t i = 0; i < lines.size(); ++i) ends.take(lines[i], i + 1);
  return std::move(ends.found);
}

}  // namespace placet
