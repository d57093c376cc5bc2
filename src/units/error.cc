#include "units/error.h"

#include <string>
#include <string_view>
#include <utility>

#include "units/utf8.h"

namespace placet {
namespace {

std::string problem_of(const InputFault& fault) {
  if (!fault.problem.empty()) return fault.problem;
  if (fault.value.empty()) return "missing";
  return fault.nearest.empty() ? "is not valid" : "is not known";
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

std::string printable(const std::string& text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr std::size_t kMostShown = 600;
  constexpr std::size_t kShownAtEnds = 250;
  std::string shown;
  for (std::size_t i = 0; i < text.size();) {
    if (text.size() > kMostShown && i >= kShownAtEnds && i < text.size() - kShownAtEnds) {
      const std::size_t end = text.size() - kShownAtEnds;
      shown += " ... (" + std::to_string(end - i) + " bytes) ... ";
      i = end;
    }
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t length = utf8_length(std::string_view(text).substr(i));
    if (length > 0 && byte >= 0x20 && byte != 0x7f) {
      shown.append(text, i, length);
      i += length;
    } else {
      shown += {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
      ++i;
    }
  }
  return shown;
}

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
