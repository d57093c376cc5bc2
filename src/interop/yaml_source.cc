// YAML, and JSON as the part of YAML that it is, by the events of libyaml: nothing is built that a
// text could make explode. Aliases are refused, since no plain setting needs one.
#include <yaml.h>

#include <memory>

#include "interop/source_parts.h"

namespace placet {
namespace {

constexpr std::size_t kDeepest = 64;
constexpr std::size_t kMostOfText = 100000;
constexpr std::size_t kLongestPath = 2048;                   // bytes
constexpr std::size_t kMostOfPaths = std::size_t{16} << 20;  // bytes of all paths together

// An object or a list that is open, and what is known of the next value in it.
struct Level {
  bool is_list = false;
  std::string path;
  std::size_t line = 0;
  std::string key;  // of the value that comes next, in an object
  bool has_key = false;
  std::size_t items = 0;  // so far
  std::string plain;      // "a, b": values of a list of plain values
};

class Events {
 public:
  Events(const std::string& text, const std::string& file) : file_(file) {
    if (yaml_parser_initialize(&parser_) == 0) fail_at_line(file, 1, "cannot be read", "");
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  ~Events() { yaml_parser_delete(&parser_); }

  std::vector<Setting> settings() {
    for (bool more = true; more;) {
      yaml_event_t event;
      if (yaml_parser_parse(&parser_, &event) == 0) {
        const std::string problem = parser_.problem == nullptr ? "" : parser_.problem;
        fail_at_line(file_, parser_.problem_mark.line + 1, "is malformed: " + problem,
                     "YAML or JSON");
      }
      const std::unique_ptr<yaml_event_t, void (*)(yaml_event_t*)> owner(&event,
                                                                         &yaml_event_delete);
      more = event.type != YAML_STREAM_END_EVENT;
      take(event);
    }
    return std::move(settings_);
  }

 private:
  void take(const yaml_event_t& event) {
    const std::size_t line = event.start_mark.line + 1;
    switch (event.type) {
      case YAML_ALIAS_EVENT:
        fail_at_line(file_, line, "holds an alias", "values that are written out");
      case YAML_MAPPING_START_EVENT:
      case YAML_SEQUENCE_START_EVENT:
        open(event.type == YAML_SEQUENCE_START_EVENT, line);
        break;
      case YAML_MAPPING_END_EVENT:
      case YAML_SEQUENCE_END_EVENT:
        close();
        break;
      case YAML_SCALAR_EVENT:
        scalar(std::string(reinterpret_cast<const char*>(event.data.scalar.value),
                           event.data.scalar.length),
               line);
        break;
      case YAML_NO_EVENT:
      case YAML_STREAM_START_EVENT:
      case YAML_STREAM_END_EVENT:
      case YAML_DOCUMENT_START_EVENT:
      case YAML_DOCUMENT_END_EVENT:
        break;
    }
  }

  std::string next_path() const {
    if (levels_.empty()) return "";
    const Level& level = levels_.back();
    if (level.is_list) return level.path + "[" + std::to_string(level.items) + "]";
    return level.path.empty() ? level.key : level.path + "." + level.key;
  }

  void open(bool is_list, std::size_t line) {
    if (levels_.size() >= kDeepest) {
      fail_at_line(file_, line, "is nested too deep", std::to_string(kDeepest) + " levels");
    }
    if (!levels_.empty() && !levels_.back().is_list && !levels_.back().has_key) {
      fail_at_line(file_, line, "has a list or an object for a key", "keys that are plain words");
    }
    if (next_path().size() > kLongestPath) {
      fail_at_line(file_, line, "has keys that are too long",
                   std::to_string(kLongestPath) + " bytes from the outermost key on");
    }
    levels_.push_back({.is_list = is_list,
                       .path = next_path(),
                       .line = line,
                       .key = {},
                       .has_key = false,
                       .items = 0,
                       .plain = {}});
  }

  void close() {
    const Level level = std::move(levels_.back());
    levels_.pop_back();
    if (level.is_list && (!level.plain.empty() || level.items == 0)) {
      add(level.path, "[" + level.plain + "]", level.line);
    } else if (!level.is_list && level.items == 0) {
      add(level.path, "{}", level.line);
    }
    done();
  }

  void scalar(const std::string& value, std::size_t line) {
    if (levels_.empty()) {
      if (!value.empty()) fail_at_line(file_, line, "holds no keys", "an object of settings");
      return;
    }
    Level& level = levels_.back();
    if (level.is_list) {
      level.plain += (level.plain.empty() ? "" : ", ") + value;
      ++level.items;
      return;
    }
    if (!level.has_key) {
      level.key = value;
      level.has_key = true;
      return;
    }
    add(next_path(), value, line);
    done();
  }

  // A value of the level that is open now is complete.
  void done() {
    if (levels_.empty()) return;
    levels_.back().has_key = false;
    ++levels_.back().items;
  }

  void add(const std::string& path, const std::string& value, std::size_t line) {
    if (settings_.size() >= kMostOfText) {
      fail_at_line(file_, line, "holds too many settings", std::to_string(kMostOfText));
    }
    paths_ += path.size();
    if (path.size() > kLongestPath || paths_ > kMostOfPaths) {
      fail_at_line(file_, line, "has keys that are too long",
                   std::to_string(kLongestPath) + " bytes from the outermost key on");
    }
    if (!path.empty()) settings_.push_back({.path = path, .value = value, .line = line});
  }

  const std::string& file_;
  yaml_parser_t parser_{};
  std::vector<Level> levels_;
  std::vector<Setting> settings_;
  std::size_t paths_ = 0;  // bytes so far
};

}  // namespace

std::vector<Setting> yaml_settings(const std::string& text, const std::string& file) {
  return Events(text, file).settings();
}

}  // namespace placet
