#include "program/known_functions.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace placet {
namespace {

constexpr std::size_t kAny = 16;

/// How many of each a call has.
struct Form {
  std::string_view name;
  std::size_t least_operands = 0;
  std::size_t most_operands = kAny;
  std::size_t least_positions = 0;
  bool chooses = false;  // along one whole dim
};

constexpr std::array<Form, 12> kForms = {{
    {.name = "inv", .least_operands = 1, .most_operands = 1},
    {.name = "ratio", .least_operands = 2, .most_operands = 2},
    {.name = "id", .least_operands = 1, .most_operands = 1},
    {.name = "exp", .least_operands = 1, .most_operands = 1},
    {.name = "exp_dot", .least_operands = 2, .most_operands = 3, .least_positions = 2},
    {.name = "exp_seen", .least_operands = 1, .most_operands = 1, .least_positions = 2},
    {.name = "exp_shift", .least_operands = 2, .most_operands = 2},
    {.name = "orthogonal", .least_operands = 1, .most_operands = 1},
    {.name = "onehot", .least_operands = 1, .most_operands = 1, .least_positions = 1},
    {.name = "position", .most_operands = 0, .least_positions = 2},
    {.name = "chosen", .least_operands = 1, .chooses = true},
    {.name = "route", .least_operands = 1, .chooses = true},
}};

std::string counted(std::size_t count, const std::string& what) {
  return "needs " + (count == 1 ? "one " + what : std::to_string(count) + " " + what + "s");
}

/// "orthogonal.2(d[a b c]; whole a b c)": the first two dims are the rows of a matrix.
std::string misuse_of_matrix(const Statement& statement) {
  const std::int64_t rows = function_name(statement.function).number;
  const auto is_given = [&](int d) {
    return std::ranges::find(statement.result.dims, d) != statement.result.dims.end();
  };
  const bool all = std::ranges::all_of(statement.whole, is_given) && statement.reduced.empty() &&
                   statement.positions.empty();
  if (rows > 0 && rows <= std::ssize(statement.whole) && all) return {};
  return "sees a matrix whole and gives all of it, its first dims, as many as its name says, the "
         "rows (orthogonal.1(d[a b]; whole a b))";
}

}  // namespace

FunctionName function_name(std::string_view name) {
  FunctionName out;
  const std::size_t mark = name.find('\'');
  if (mark != std::string_view::npos) {
    const std::string_view digits = name.substr(mark + 1);
    std::from_chars(digits.data(), digits.data() + digits.size(), out.derivative);
    name = name.substr(0, mark);
  }
  const std::size_t point = name.find('.');
  if (point != std::string_view::npos) {
    const std::string_view digits = name.substr(point + 1);
    std::from_chars(digits.data(), digits.data() + digits.size(), out.number);
    name = name.substr(0, point);
  }
  out.stem = name;
  return out;
}

std::string misuse_of(const Statement& statement) {
  // "chosen.2" chooses two; derivatives ("ratio'0") are any functions.
  const std::string_view name = statement.function;
  const auto* form = std::ranges::find(kForms, name.substr(0, name.find('.')), &Form::name);
  if (form == kForms.end() || name.find('\'') != std::string_view::npos) return {};
  const std::size_t operands = statement.operands.size();
  if (operands < form->least_operands) return counted(form->least_operands, "operand");
  if (operands > form->most_operands) {
    return form->most_operands == 0 ? "has no operands" : counted(form->most_operands, "operand");
  }
  if (statement.positions.size() < form->least_positions) {
    return counted(form->least_positions, "position") + " (\"; at\")";
  }
  if (form->chooses && statement.whole.size() != 1) return "chooses along one dim (\"; whole\")";
  return form->name == "orthogonal" ? misuse_of_matrix(statement) : std::string();
}

}  // namespace placet
