#include "interop/shell_ends.h"

#include <algorithm>

namespace placet {
namespace {

// A command may go over several lines; what is looked at are their first words and their ends.
class CommandEnds {
 public:
  explicit CommandEnds(const std::vector<OptionList>& lists) : lists_(lists) {}

  void take(const std::string& line, std::size_t number) {
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (is_in_list(number)) return forget();
    if (first == std::string::npos) return go_on(false);
    if (line[first] == '#') {
      if (is_joined_ && is_command_) end_ = number;
      return go_on(false);
    }
    if (end_ != 0 && line.compare(first, 2, "--") == 0) {
      found.emplace(number, end_);
      go_on(false);
    } else {
      take_command(line, first, number);
    }
  }

  std::map<std::size_t, std::size_t> found;

 private:
  void forget() {
    end_ = 0;
    go_on(false);
  }

  // Lists stand in the order of their lines.
  bool is_in_list(std::size_t number) {
    while (list_ < lists_.size() && lists_[list_].last < number) ++list_;
    return list_ < lists_.size() && lists_[list_].first <= number &&
           lists_[list_].first < lists_[list_].last;
  }

  void go_on(bool is_joined) { is_joined_ = is_joined; }

  void take_command(const std::string& line, std::size_t first, std::size_t number) {
    end_ = 0;
    if (!is_joined_ || !is_command_) is_command_ = begins_command(line, first);
    const std::size_t back = line.rfind('\\');
    if (back == std::string::npos) return go_on(false);
    const bool is_last = line.find_first_not_of('\r', back + 1) == std::string::npos;
    const bool stops = is_last ? has_comment(line) : stops_behind(line, back + 1);
    if (stops && is_command_) end_ = number;
    go_on(is_last && !stops);
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
    const std::size_t mark = line.find(" #");
    if (mark == std::string::npos) return false;
    const auto quotes = [&](char quote) {
      return std::count(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(mark), quote) % 2;
    };
    return quotes('"') == 0 && quotes('\'') == 0;
  }

  // Not an option, an assignment, or what opens or closes a list.
  static bool begins_command(const std::string& line, std::size_t first) {
    const std::size_t end = std::min(line.find_first_of(" \t", first), line.size());
    return line.find_first_of("-=()[]", first) > end || line.compare(first, 2, "./") == 0;
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
