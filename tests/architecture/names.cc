#include "architecture/names.h"

#include <algorithm>
#include <regex>

namespace placet::architecture {
namespace {

/// The namespaces that a line is in, by its reading so far.
class Namespaces {
 public:
  void read(const std::string& line) {
    static const std::regex kOpens("^(?:inline )?namespace ?([\\w:]*) \\{");
    std::smatch match;
    if (std::regex_search(line, match, kOpens)) names_.push_back(match[1].str());
    if (line.starts_with("}  // namespace") && !names_.empty()) names_.pop_back();
  }

  bool has_no_name() const {
    return std::any_of(names_.begin(), names_.end(),
                       [](const std::string& name) { return name.empty(); });
  }

  std::string prefix() const {
    std::string out;
    for (const std::string& name : names_) out += name + "::";
    return out;
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace

std::vector<std::string> types_defined(const SourceFile& file) {
  static const std::regex kType(
      "^(?:struct|class|union|enum class|enum) ([\\w:]*\\w)[^;]*(?:\\{.*)?$");
  std::vector<std::string> found;
  Namespaces namespaces;
  for (const std::string& line : file.lines) {
    namespaces.read(line);
    std::smatch match;
    if (namespaces.has_no_name() || !std::regex_match(line, match, kType)) continue;
    found.push_back(namespaces.prefix() + match[1].str());
  }
  return found;
}

}  // namespace placet::architecture
