// TOML: values by the reader of job files; lines by looking for the key below its heading.
#include <algorithm>
#include <cctype>
#include <map>
#include <sstream>
#include <string_view>

#include "catalog/reader.h"
#include "catalog/toml_document.h"
#include "interop/source_parts.h"
#include "units/trimmed.h"

namespace placet {
namespace {

constexpr std::string_view kBlanksOfLine = " \t\r";

// The name of a heading, "[parallelism]" or "[[runs]]"; empty: the line is none.
std::string_view heading_of(std::string_view line) {
  if (!line.starts_with('[')) return {};
  const std::size_t begin = std::min(line.find_first_not_of("[ \t"), line.size());
  const std::size_t end = line.find(']', begin);
  return end == std::string_view::npos ? std::string_view()
                                       : trimmed(line.substr(begin, end - begin), kBlanksOfLine);
}

// The key of "key = value"; empty: the line has none.
std::string_view key_of(std::string_view line) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return {};
  const std::string_view key = trimmed(line.substr(0, equals), kBlanksOfLine);
  const bool is_plain = std::ranges::all_of(key, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '"' ||
           c == '-';
  });
  return is_plain ? key : std::string_view();
}

// Line of each "heading.key" as it is written first.
std::map<std::string, std::size_t> lines_of(const std::string& text) {
  std::map<std::string, std::size_t> lines;
  std::string heading;
  std::istringstream stream(text);
  std::size_t number = 0;
  for (std::string whole; std::getline(stream, whole);) {
    ++number;
    const std::string_view line = trimmed(std::string_view(whole).substr(0, 1000), kBlanksOfLine);
    if (const std::string_view name = heading_of(line); !name.empty()) {
      heading = std::string(name) + ".";
      lines.emplace(std::string(name), number);
    } else if (const std::string_view key = key_of(line); !key.empty()) {
      lines.emplace(heading + std::string(key), number);
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
  const Json document = parse_toml(text, file);  // what is no TOML, or too long, ends here
  Walk walk{.lines = lines_of(text), .settings = {}};
  walk.take(document, "");
  // The reader sorts keys; people, and what is said twice, go by the order of the text.
  std::stable_sort(walk.settings.begin(), walk.settings.end(),
                   [](const Setting& a, const Setting& b) { return a.line < b.line; });
  return walk.settings;
}

}  // namespace placet
