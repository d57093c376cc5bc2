// What the parts of the grammar check share. Inside of this folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "program/program.h"
#include "program/wellformed.h"

namespace placet {

/// A place in a program and what is asked there. Every check throws InputError.
class Grammar {
 public:
  Grammar(const Program& program, const GrammarRequest& request)
      : program_(program), request_(request) {}

  const Program& program() const { return program_; }
  const GrammarRequest& request() const { return request_; }
  /// Axes but the last.
  int mesh_axes() const { return static_cast<int>(program_.axes.size()) - 1; }

  /// From here on faults are reported there: "buffer 'w'", or a line of the text.
  void go_to(std::string place);
  /// The same for a step of a body, by its number in the order of the text.
  void go_to_step(bool in_class, int body, int step);

  [[noreturn]] void refuse(std::string_view value, const std::string& problem,
                           const std::string& allowed = {}) const;
  void require(bool holds, std::string_view value, const std::string& problem,
               const std::string& allowed = {}) const {
    if (!holds) refuse(value, problem, allowed);
  }

  /// That a number names one of `count` things.
  void require_number(int number, std::size_t count, const std::string& what) const;
  /// That a name is not empty and can be printed.
  void require_name(std::string_view name, const std::string& what) const;
  /// That text can be printed.
  void require_text(std::string_view text, const std::string& what) const;
  /// Both, of all names, and that each stands once.
  template <class Named>
  void require_names(const std::vector<Named>& all, const std::string& what) const {
    std::vector<std::string_view> names;
    names.reserve(all.size());
    for (const Named& one : all) names.emplace_back(one.name);
    require_distinct(std::move(names), what);
  }
  void require_distinct(std::vector<std::string_view> names, const std::string& what) const;
  /// That levels are not empty and name axes once; `used` has those named so far.
  void require_division(const Division& division, std::vector<bool>& used) const;

  /// Takes from what may be spent on comparing sizes; false when nothing is left.
  bool spend(std::int64_t amount) {
    left_ -= amount;
    return left_ >= 0;
  }

 private:
  const Program& program_;
  const GrammarRequest& request_;
  std::string place_;
  std::int64_t left_ = std::int64_t{1} << 22;  // of comparisons of sizes
};

void check_kernels(Grammar& g);
void check_reference(Grammar& g);
void check_bodies(Grammar& g);
void check_instruction(Grammar& g, const Instruction& instruction);

/// "'text'" no longer than a line.
std::string cut_short(std::string_view text);

}  // namespace placet
