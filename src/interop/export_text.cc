// Settings as text, in the forms in which they are read.
#include <nlohmann/json.hpp>

#include "catalog/reader.h"
#include "interop/export_parts.h"

namespace placet {
namespace {

bool is_number(const std::string& value) {
  const Json read = Json::parse(value, nullptr, /*allow_exceptions=*/false);
  return read.is_number();
}

Json value_of(const std::string& value) {
  if (value == "true" || value == "false") return value == "true";
  if (is_number(value)) return Json::parse(value);
  if (value.starts_with('[')) {
    Json list = Json::parse(value, nullptr, /*allow_exceptions=*/false);
    if (list.is_array()) return list;
  }
  return value;
}

// "a.b.c" of a tree of objects.
void put(const std::string& path, Json value, Json& tree) {
  const std::size_t dot = path.find('.');
  if (dot == std::string::npos) {
    tree[path] = std::move(value);
  } else {
    put(path.substr(dot + 1), std::move(value), tree[path.substr(0, dot)]);
  }
}

Json tree_of(const std::vector<Setting>& settings) {
  Json tree = Json::object();
  for (const Setting& setting : settings) put(setting.path, value_of(setting.value), tree);
  return tree;
}

// A text of JSON is one of YAML and TOML too.
void add_yaml(const Json& tree, const std::string& indent, std::string& text) {
  for (const auto& [key, value] : tree.items()) {
    text += indent + key + ":";
    if (value.is_object()) {
      text += "\n";
      add_yaml(value, indent + "  ", text);
    } else {
      text += " " + value.dump() + "\n";
    }
  }
}

void add_toml(const Json& tree, const std::string& table, std::string& text) {
  for (const auto& [key, value] : tree.items()) {
    if (!value.is_object()) text += key + " = " + value.dump() + "\n";
  }
  for (const auto& [key, value] : tree.items()) {
    if (!value.is_object()) continue;
    std::string path = table;
    if (!path.empty()) path += '.';
    path += key;
    text += (text.empty() ? "[" : "\n[") + path + "]\n";
    add_toml(value, path, text);
  }
}

}  // namespace

std::string configuration_text(SourceForm form, const std::vector<Setting>& settings) {
  std::string text;
  switch (form) {
    case SourceForm::toml:
      add_toml(tree_of(settings), "", text);
      return text;
    case SourceForm::yaml:
      add_yaml(tree_of(settings), "", text);
      return text;
    case SourceForm::json:
      return tree_of(settings).dump(2) + "\n";
    case SourceForm::arguments:
      break;
  }
  return arguments_text(settings);
}

std::string arguments_text(const std::vector<Setting>& settings,
                           std::string (*words)(const Setting&)) {
  std::string text;
  for (const Setting& setting : settings) {
    text += text.empty() ? "" : " \\\n";
    text += "    " + setting.path;
    if (setting.value == "true") continue;
    text += " " + words(setting);
  }
  return text;
}

}  // namespace placet
