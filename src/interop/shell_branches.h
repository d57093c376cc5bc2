// Which statements of a launch script run, as far as conditions are of plain values: if, case, and
// tests in front of "&&". Loops and functions may run or not. No shell is asked.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interop/source.h"

namespace placet {

/// Whether a statement runs.
enum class Runs { no, maybe, yes };

/// A word with the values of its variables, where these are known.
using ResolveWord = std::function<std::string(const std::string&)>;

/// Whether a test holds: "[ $TP -gt 1 ]", "[[ $SIZE == 7B && $FSDP = 1 ]]", "(( N > 0 ))", "test -z
/// $X". One of files, patterns or unknown variables may hold.
Runs test_holds(const std::string& test, const ResolveWord& resolve);

/// The statements of a line, parted by ';' outside of quotes. "TEST && A || B" is two: the test in
/// front of A, and in front of B.
std::vector<std::string> statements_of(const std::string& line);

class ShellBranches {
 public:
  /// Takes the next statement; what is left of it for others to read: all behind its keywords.
  std::string take(std::string statement, const ResolveWord& resolve);

  /// Whether that runs.
  Runs runs() const;

  /// The branches around it that may be taken or not, outermost first.
  std::vector<BranchPlace> places() const;

  /// All blocks so far.
  const std::vector<BranchBlock>& blocks() const { return blocks_; }

  /// Whether it stands in a branch.
  bool is_inside() const { return !levels_.empty(); }

 private:
  enum class Kind { condition, choice, group, other };

  struct Level {
    Kind kind = Kind::other;
    Runs runs = Runs::maybe;          // the branch at hand
    Runs before = Runs::no;           // whether an earlier branch was taken
    std::optional<std::string> word;  // of a choice, where it is known
    bool expects_pattern = false;
    BranchPlace place = {};  // but of loops and functions
  };

  bool take_front(std::string& statement, const ResolveWord& resolve);
  bool take_keyword(const std::string& keyword, const std::string& rest,
                    const ResolveWord& resolve);
  bool take_pattern(std::string& statement);
  void take_test(std::string& statement, const ResolveWord& resolve);
  void open_group(std::string& statement);
  std::string behind_group(const std::string& rest);
  void set_test(Runs test);
  void next_branch(Runs condition);
  void end_branch();
  void leave(Kind kind);
  void open_block(Level level);
  void push(Level level);
  void note_branch(const Level& level);

  std::vector<Level> levels_;
  std::size_t too_deep_ = 0;  // levels that are not kept
  std::vector<BranchBlock> blocks_;
  Runs test_ = Runs::yes;       // in front of the statement at hand
  std::size_t test_block_ = 0;  // where that is not decided
};

}  // namespace placet
