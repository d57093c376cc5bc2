// What the readers of the parts of a program share. Inside of this folder.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "program/program.h"
#include "program/tokens.h"
#include "program/wellformed.h"

namespace placet {

/// Names of things of one sort, numbered as they are declared.
class NameTable {
 public:
  /// `what` stands in messages: "a buffer".
  explicit NameTable(std::string what) : what_(std::move(what)) {}

  /// Reads a name that is new here and gives its number.
  int declare(Tokens& in);
  /// The same for a name that was read last.
  int add(const Tokens& in, std::string name);
  /// Reads a name that is here and gives its number.
  int expect(Tokens& in) const;
  /// The number of a name, or -1.
  int find(std::string_view name) const;
  const std::string& name(int number) const { return names_[static_cast<std::size_t>(number)]; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::string what_;
  std::vector<std::string> names_;
  std::map<std::string, int, std::less<>> numbers_;
};

/// A program as far as it is read.
struct ProgramReader {
  ProgramReader(std::string_view text, const std::string& where) : in(text, where) {}

  Tokens in;
  Program program;
  ProgramLines lines;
  NameTable axes{"an axis"}, dims{"a dim"}, kernels{"a kernel"}, families{"a buffer"},
      procedures{"a procedure"}, inputs{"an input of the reference"},
      numbers{"a number of the step"}, kinds{"a kind"}, classes{"a class"};
  std::vector<NameTable> values;  // of each kind
  /// What ranges have been opened up to, which a short text could make long.
  std::int64_t expanded = 0;

  /// Counts one more such thing, and refuses too many.
  void count_expanded(std::int64_t more = 1);
};

inline constexpr std::size_t kMostDims = 64;                        // of a tensor
inline constexpr std::int64_t kMostNumber = std::int64_t{1} << 31;  // of steps and indices

/// The largest number of things that ranges of a text may stand for.
inline constexpr std::int64_t kMostExpanded = std::int64_t{1} << 18;

/// A whole number within limits.
std::int64_t read_number(Tokens& in, std::string_view what, std::int64_t least, std::int64_t most);
/// One of some words, by its number.
template <class Of>
int read_choice(Tokens& in, std::string_view what, int count, Of name) {
  const std::string word = in.expect_word(what);
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    names.emplace_back(name(i));
    if (names.back() == word) return i;
  }
  std::string allowed;
  for (const std::string& n : names) allowed += (allowed.empty() ? "" : ", ") + n;
  in.refuse_unknown(word, allowed, names);
}

/// "dp" or "(dp tp)".
AxisList read_level(ProgramReader& r);
/// Any number of levels, each behind a stroke.
Division read_division(ProgramReader& r);
/// "+1" behind a division: how many places further on. 0: nothing stands there.
std::int64_t read_shift(ProgramReader& r);
/// "u", "j-1", "3".
IndexTerm read_term(Tokens& in);
/// "4" or "(0 2 5..9)".
std::vector<std::int64_t> read_coordinates(ProgramReader& r);

/// "{ ... }" of the reference.
void read_reference(ProgramReader& r);
/// Statements up to the closing brace. `lines` gets the line of each step, in the order of reading.
std::vector<Step> read_body(ProgramReader& r, StepPhase phase, int depth, std::vector<int>& lines);
/// One statement; `phase` changes where it says so.
void read_step(ProgramReader& r, std::vector<Step>& body, StepPhase& phase, int depth,
               std::vector<int>& lines);
/// A buffer with its indices.
BufferRef read_buffer(ProgramReader& r);
/// "class NAME at ... { ... }" from behind the word "class".
void read_class(ProgramReader& r);

}  // namespace placet
