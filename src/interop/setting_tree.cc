#include "interop/setting_tree.h"

#include <set>

#include "interop/source_parts.h"

namespace placet {
namespace {

constexpr std::size_t kDeepest = 64;
constexpr std::size_t kMostOfText = 100000;
constexpr std::size_t kLongestPath = 2048;                   // bytes
constexpr std::size_t kMostOfPaths = std::size_t{16} << 20;  // bytes of all paths together
constexpr const char* kMerge = "<<";

}  // namespace

void SettingTree::take(const TreeEvent& event) {
  switch (event.kind) {
    case TreeEvent::Kind::object:
    case TreeEvent::Kind::list:
      open(event.kind == TreeEvent::Kind::list, event.line);
      break;
    case TreeEvent::Kind::end_object:
    case TreeEvent::Kind::end_list:
      close();
      break;
    case TreeEvent::Kind::value:
      scalar(event.value, event.line);
      break;
  }
}

std::vector<Setting> SettingTree::settings() && {
  std::set<std::string> own;
  for (std::size_t i = 0; i < settings_.size(); ++i) {
    if (!merged_[i]) own.insert(settings_[i].path);
  }
  std::vector<Setting> kept;
  kept.reserve(settings_.size());
  for (std::size_t i = 0; i < settings_.size(); ++i) {
    if (!merged_[i] || !own.contains(settings_[i].path)) kept.push_back(std::move(settings_[i]));
  }
  return kept;
}

std::string SettingTree::next_path() const {
  if (levels_.empty()) return "";
  const Level& level = levels_.back();
  if (level.is_list && level.is_merged) return level.path;
  if (level.has_key && level.key == kMerge) return level.path;
  if (level.is_list) return level.path + "[" + std::to_string(level.items) + "]";
  return level.path.empty() ? level.key : level.path + "." + level.key;
}

void SettingTree::open(bool is_list, std::size_t line) {
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
  const bool is_merged =
      !levels_.empty() && ((levels_.back().is_list && levels_.back().is_merged) ||
                           (levels_.back().has_key && levels_.back().key == kMerge));
  if (is_merged) ++merges_;
  levels_.push_back({.is_list = is_list,
                     .is_merged = is_merged,
                     .path = next_path(),
                     .line = line,
                     .key = {},
                     .has_key = false,
                     .items = 0,
                     .plain = {}});
}

void SettingTree::close() {
  const Level level = std::move(levels_.back());
  levels_.pop_back();
  if (level.is_merged) {
    --merges_;
  } else if (level.is_list && (!level.plain.empty() || level.items == 0)) {
    add(level.path, "[" + level.plain + "]", level.line);
  } else if (!level.is_list && level.items == 0) {
    add(level.path, "{}", level.line);
  }
  done();
}

void SettingTree::scalar(const std::string& value, std::size_t line) {
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
void SettingTree::done() {
  if (levels_.empty()) return;
  levels_.back().has_key = false;
  ++levels_.back().items;
}

void SettingTree::add(const std::string& path, const std::string& value, std::size_t line) {
  if (settings_.size() >= kMostOfText) {
    fail_at_line(file_, line, "holds too many settings", std::to_string(kMostOfText));
  }
  paths_ += path.size();
  if (path.size() > kLongestPath || paths_ > kMostOfPaths) {
    fail_at_line(file_, line, "has keys that are too long",
                 std::to_string(kLongestPath) + " bytes from the outermost key on");
  }
  if (path.empty()) return;
  settings_.push_back({.path = path, .value = value, .line = line});
  merged_.push_back(merges_ > 0);
}

}  // namespace placet
