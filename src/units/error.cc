#include "units/error.h"

#include <string>
#include <string_view>
#include <utility>

namespace placet {
namespace {

std::string problem_of(const InputFault& fault) {
  if (!fault.problem.empty()) return fault.problem;
  if (fault.value.empty()) return "missing";
  return fault.nearest.empty() ? "is not valid" : "is not known";
}

// The text with control characters spelled out: a name in a file must not move the cursor of the
// terminal that shows the message.
std::string printable(const std::string& text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      shown += c;
    } else {
      shown += {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
    }
  }
  return shown;
}

std::string locate(std::string_view assumption, const std::source_location& location) {
  std::string text = "internal error: expected that ";
  text += assumption;
  text += " (";
  text += location.file_name();
  text += ":" + std::to_string(location.line());
  text += ", in ";
  text += location.function_name();
  text += ")";
  return text;
}

}  // namespace

std::string describe(const InputFault& fault) {
  std::string text = printable(fault.where);
  if (!text.empty()) text += ": ";
  if (!fault.value.empty()) text += "'" + printable(fault.value) + "' ";
  text += problem_of(fault);
  if (!fault.allowed.empty()) text += "; expected " + fault.allowed;
  if (!fault.nearest.empty()) text += "; did you mean '" + fault.nearest + "'?";
  if (!fault.excerpt.empty()) text += "\n" + fault.excerpt;
  return text;
}

InputError::InputError(InputFault fault)
    : std::runtime_error(describe(fault)), fault_(std::move(fault)) {}

void refuse(const std::string& where, const std::string& value, const std::string& problem,
            const std::string& allowed) {
  throw InputError({.where = where,
                    .value = value,
                    .problem = problem,
                    .allowed = allowed,
                    .nearest = {},
                    .excerpt = {}});
}

InternalError::InternalError(std::string_view assumption, std::source_location location)
    : std::logic_error(locate(assumption, location)) {}

void fail_internally(std::string_view assumption, std::source_location location) {
  throw InternalError(assumption, location);
}

}  // namespace placet
