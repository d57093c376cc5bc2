// TOML: values by the reader of job files; lines by looking for the key below its heading.
#include <algorithm>
#include <map>
#include <regex>
#include <sstream>

#include "catalog/reader.h"
#include "catalog/toml_document.h"
#include "interop/source_parts.h"

namespace placet {
namespace {

// Line of each "heading.key" as it is written first.
std::map<std::string, std::size_t> lines_of(const std::string& text) {
  static const std::regex kHeading(R"(\s*\[+\s*([^\]]+?)\s*\]+.*)");
  static const std::regex kKey(R"re(\s*([A-Za-z0-9_."-]+)\s*=.*)re");
  std::map<std::string, std::size_t> lines;
  std::string heading;
  std::istringstream stream(text);
  std::size_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.size() > 1000) line.resize(1000);  // a key stands at the beginning
    std::smatch match;
    if (std::regex_match(line, match, kHeading)) {
      heading = match[1].str() + ".";
      lines.emplace(match[1].str(), number);
    } else if (std::regex_match(line, match, kKey)) {
      lines.emplace(heading + match[1].str(), number);
    }
  }
  return lines;
}

std::string plain_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

bool holds_objects(const Json& list) {
  for (const Json& item : list) {
    if (item.is_structured()) return true;
  }
  return false;
}

std::string list_text(const Json& list) {
  std::string text;
  for (const Json& item : list) text += (text.empty() ? "" : ", ") + plain_text(item);
  return "[" + text + "]";
}

struct Walk {
  std::map<std::string, std::size_t> lines;
  std::vector<Setting> settings;

  // The line of a path, or of the nearest object around it.
  std::size_t line_of(std::string path) const {
    while (!path.empty()) {
      if (const auto found = lines.find(path); found != lines.end()) return found->second;
      const std::size_t end = path.find_last_of(".[");
      path.resize(end == std::string::npos ? 0 : end);
    }
    return 1;
  }

  void take(const Json& value, const std::string& path) {
    if (value.is_object() && !value.empty()) {
      for (const auto& [key, inner] : value.items()) {
        std::string name = path;
        if (!name.empty()) name += '.';
        name += key;
        take(inner, name);
      }
    } else if (value.is_array() && holds_objects(value)) {
      std::size_t index = 0;
      for (const Json& item : value) {
        std::string inner = path;
        inner.append("[").append(std::to_string(index++)).append("]");
        take(item, inner);
      }
    } else if (!path.empty()) {
      settings.push_back({.path = path,
                          .value = value.is_array() ? list_text(value) : plain_text(value),
                          .line = line_of(path)});
    }
  }
};

}  // namespace

std::vector<Setting> toml_settings(const std::string& text, const std::string& file) {
  Walk walk{.lines = lines_of(text), .settings = {}};
  walk.take(parse_toml(text, file), "");
  // The reader sorts keys; people, and what is said twice, go by the order of the text.
  std::stable_sort(walk.settings.begin(), walk.settings.end(),
                   [](const Setting& a, const Setting& b) { return a.line < b.line; });
  return walk.settings;
}

}  // namespace placet
