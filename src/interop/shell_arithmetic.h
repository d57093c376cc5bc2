// What a shell works out between "((" and "))": whole numbers, names of variables, brackets, the
// four operations and the remainder, comparisons, "&&", "||" and "!". No shell is asked.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace placet {

/// The number that a name stands for; none: it is not known.
using NumberOfName = std::function<std::optional<long long>(const std::string&)>;

/// The value of such a text, 1 and 0 for what holds and what does not: "2 * (8 - 3)" is 10, "N > 4"
/// is 1 where N is 8. None: it is no such text, holds an unknown name, divides by zero, or goes
/// beyond 10^15.
std::optional<long long> shell_number(const std::string& text, const NumberOfName& number_of);

/// The text with each "$((...))", "$[...]" and "$(expr ...)" that has a value replaced by it:
/// "tp$((2*4))" is "tp8".
std::string with_shell_numbers(std::string text, const NumberOfName& number_of);

}  // namespace placet
