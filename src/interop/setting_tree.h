// Nested objects and lists, event by event, as settings with dotted paths. For the readers of YAML
// and JSON.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "interop/source.h"

namespace placet {

/// What a reader comes upon, and on which line.
struct TreeEvent {
  enum class Kind { object, list, end_object, end_list, value };
  Kind kind = Kind::value;
  std::string value;  // of a key or a value
  std::size_t line = 0;
};

/// Settings of a tree, in the order of the text. An object under a key "<<" is laid under the
/// object that holds it: keys that this has itself win (YAML's merge key). Throws InputError with
/// file and line for what is nested too deep, has too many settings, or too long keys.
class SettingTree {
 public:
  explicit SettingTree(std::string file) : file_(std::move(file)) {}

  void take(const TreeEvent& event);

  std::vector<Setting> settings() &&;

 private:
  // An object or a list that is open, and what is known of the next value in it.
  struct Level {
    bool is_list = false;
    bool is_merged = false;  // stands under "<<"
    std::string path;
    std::size_t line = 0;
    std::string key;  // of the value that comes next, in an object
    bool has_key = false;
    std::size_t items = 0;  // so far
    std::string plain;      // "a, b": values of a list of plain values
  };

  std::string next_path() const;
  void open(bool is_list, std::size_t line);
  void close();
  void scalar(const std::string& value, std::size_t line);
  void done();
  void add(const std::string& path, const std::string& value, std::size_t line);

  std::string file_;
  std::vector<Level> levels_;
  std::vector<Setting> settings_;
  std::vector<bool> merged_;  // by setting
  std::size_t merges_ = 0;    // that are open
  std::size_t paths_ = 0;     // bytes so far
};

}  // namespace placet
