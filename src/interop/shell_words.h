// The words of a line of a launch script, by quotes and blanks alone.
#pragma once

#include <string>
#include <vector>

namespace placet {

/// Whether a character may stand in the name of a variable.
bool is_of_variable(char c);

struct LineWord {
  std::string text;
  bool is_quoted = false;  // quotes keep what a variable in it stands for in one word
  bool is_open = false;    // a quote begins in it that is closed below
};

/// A quote that is not closed on the line belongs to a list of options that goes on below, and is
/// left out; so are the brackets of a list. What is put in the place of a command, "$(...)" and
/// "`...`", is one word.
std::vector<LineWord> words_of(const std::string& line);

}  // namespace placet
