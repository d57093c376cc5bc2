// What the parts of the grammar check share. Inside of this folder.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "program/program.h"
#include "program/wellformed.h"

namespace placet {

inline constexpr std::int64_t kMostElements = std::int64_t{1} << 56;  // of a tensor
inline constexpr std::int64_t kLargestDegree = std::int64_t{1} << 24;
inline constexpr std::int64_t kLargestExtent = std::int64_t{1} << 48;
inline constexpr std::int64_t kLargestOffset = std::int64_t{1} << 40;
inline constexpr std::int64_t kLargestBound = std::int64_t{1} << 32;  // of a loop
inline constexpr int kDeepestLoops = 16;                              // inside of each other

/// A step of a body, by its number in the order of the text.
struct StepPosition {
  bool in_class = false;  // otherwise in a procedure
  int body = 0;
  int step = -1;
};

/// A place in a program and what is asked there. Every check throws InputError.
class Grammar {
 public:
  Grammar(const Program& program, const GrammarRequest& request)
      : program_(program), request_(request) {}

  const Program& program() const { return program_; }
  const GrammarRequest& request() const { return request_; }
  /// Axes but the last.
  int mesh_axes() const { return static_cast<int>(program_.axes.size()) - 1; }

  /// From here on faults are reported there: "buffer 'w'". The place is put into words when it is
  /// needed: what it speaks of must outlive the stay.
  void go_to(std::function<std::string()> place);
  void go_to(const char* place);
  void go_to_step(const StepPosition& step);

  [[noreturn]] void refuse(std::string_view value, const std::string& problem,
                           const std::string& allowed = {}) const;
  /// The same unless something holds. Words that take time to put together are given as functions,
  /// which are called only then.
  template <class Value, class Problem, class Allowed = const char*>
  void require(bool holds, const Value& value, const Problem& problem,
               const Allowed& allowed = "") const {
    if (!holds) refuse(in_words(value), in_words(problem), in_words(allowed));
  }

  /// That a number names one of `count` things.
  void require_number(int number, std::size_t count, std::string_view what) const;
  /// That a name is not empty and can be printed.
  void require_name(std::string_view name, std::string_view what) const;
  /// That text can be printed.
  void require_text(std::string_view text, std::string_view what) const;
  /// Both, of all names, and that each stands once.
  template <class Named>
  void require_names(const std::vector<Named>& all, std::string_view what) const {
    std::vector<std::string_view> names;
    names.reserve(all.size());
    for (const Named& one : all) names.emplace_back(one.name);
    require_distinct(std::move(names), what);
  }
  void require_distinct(std::vector<std::string_view> names, std::string_view what) const;
  /// That levels are not empty and name axes once; `used` has those named so far.
  void require_division(const Division& division, std::vector<bool>& used) const;
  /// That the part of another device is asked for along one axis only, and is another one's.
  void require_shift(const Division& division, std::int64_t shift) const;

  /// Takes from what may be spent on comparing sizes; false when nothing is left.
  bool spend(std::int64_t amount) {
    left_ -= amount;
    return left_ >= 0;
  }

 private:
  const Program& program_;
  const GrammarRequest& request_;
  template <class Words>
  static std::string in_words(const Words& words) {
    if constexpr (std::is_invocable_v<Words>) {
      return std::string(words());
    } else {
      return std::string(words);
    }
  }

  std::function<std::string()> place_;
  StepPosition step_;
  int line_ = 0;                               // of the text; 0: not known
  std::int64_t left_ = std::int64_t{1} << 22;  // of comparisons of sizes
};

void check_kernels(Grammar& g);
void check_reference(Grammar& g);
void check_classes(Grammar& g);
void check_bodies(Grammar& g);
void check_instruction(Grammar& g, const Instruction& instruction);

/// "'text'" no longer than a line.
std::string cut_short(std::string_view text);

}  // namespace placet
