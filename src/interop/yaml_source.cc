// YAML by the events of libyaml. What an anchor names is kept as events, and an alias plays them
// again; how many are played is bounded, so that no text can make them explode.
#include <yaml.h>

#include <map>
#include <memory>

#include "interop/setting_tree.h"
#include "interop/source_parts.h"

namespace placet {
namespace {

constexpr std::size_t kMostPlayed = 100000;    // events that aliases play
constexpr std::size_t kMostRecorded = 400000;  // events that anchors keep

using Kind = TreeEvent::Kind;

// Events between an anchor and the end of what it names.
struct Recording {
  std::string anchor;
  std::vector<TreeEvent> events;
  int depth = 0;
};

std::string text_of(const yaml_char_t* text) {
  return text == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(text));
}

class Events {
 public:
  Events(const std::string& text, const std::string& file) : file_(file), tree_(file) {
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
        fail_at_line(file_, parser_.problem_mark.line + 1, "is malformed: " + problem, "YAML");
      }
      const std::unique_ptr<yaml_event_t, void (*)(yaml_event_t*)> owner(&event,
                                                                         &yaml_event_delete);
      more = event.type != YAML_STREAM_END_EVENT;
      take(event);
    }
    return std::move(tree_).settings();
  }

 private:
  void take(const yaml_event_t& event) {
    const std::size_t line = event.start_mark.line + 1;
    switch (event.type) {
      case YAML_ALIAS_EVENT:
        play(text_of(event.data.alias.anchor), line);
        break;
      case YAML_MAPPING_START_EVENT:
        take({Kind::object, "", line}, text_of(event.data.mapping_start.anchor));
        break;
      case YAML_SEQUENCE_START_EVENT:
        take({Kind::list, "", line}, text_of(event.data.sequence_start.anchor));
        break;
      case YAML_MAPPING_END_EVENT:
        take({Kind::end_object, "", line}, "");
        break;
      case YAML_SEQUENCE_END_EVENT:
        take({Kind::end_list, "", line}, "");
        break;
      case YAML_SCALAR_EVENT:
        take({Kind::value,
              std::string(reinterpret_cast<const char*>(event.data.scalar.value),
                          event.data.scalar.length),
              line},
             text_of(event.data.scalar.anchor));
        break;
      case YAML_NO_EVENT:
      case YAML_STREAM_START_EVENT:
      case YAML_STREAM_END_EVENT:
      case YAML_DOCUMENT_START_EVENT:
      case YAML_DOCUMENT_END_EVENT:
        break;
    }
  }

  void take(const TreeEvent& event, const std::string& anchor) {
    if (!anchor.empty()) open_.push_back({.anchor = anchor, .events = {}});
    record(event);
    tree_.take(event);
  }

  void record(const TreeEvent& event) {
    const bool opens = event.kind == Kind::object || event.kind == Kind::list;
    const bool closes = event.kind == Kind::end_object || event.kind == Kind::end_list;
    for (Recording& recording : open_) {
      if (++recorded_ > kMostRecorded) {
        fail_at_line(file_, event.line, "has anchors that name too much",
                     std::to_string(kMostRecorded) + " keys and values");
      }
      recording.events.push_back(event);
      if (opens) ++recording.depth;
      if (closes) --recording.depth;
    }
    while (!open_.empty() && open_.back().depth == 0) {
      anchors_[open_.back().anchor] = std::move(open_.back().events);
      open_.pop_back();
    }
  }

  // What an anchor names, once more, on the line of the alias.
  void play(const std::string& anchor, std::size_t line) {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      fail_at_line(file_, line, "has an alias of nothing: '*" + anchor + "'",
                   "the name of an anchor above, '&" + anchor + "'");
    }
    const std::vector<TreeEvent> events = found->second;
    played_ += events.size();
    if (played_ > kMostPlayed) {
      fail_at_line(file_, line, "has aliases that stand for too much",
                   std::to_string(kMostPlayed) + " keys and values");
    }
    for (TreeEvent event : events) {
      event.line = line;
      record(event);
      tree_.take(event);
    }
  }

  const std::string& file_;
  yaml_parser_t parser_{};
  SettingTree tree_;
  std::map<std::string, std::vector<TreeEvent>> anchors_;
  std::vector<Recording> open_;
  std::size_t recorded_ = 0, played_ = 0;
};

}  // namespace

std::vector<Setting> yaml_settings(const std::string& text, const std::string& file) {
  return Events(text, file).settings();
}

}  // namespace placet
