// Text of JSON into values. The library's lexer gives the words one by one, and the tree is put
// together here: its own parser looks each key of an object up among those before it, and passes
// over one that was given before.
#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "catalog/file_text.h"
#include "catalog/reader.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr int kDeepest = 64;
/// Of one object. Objects keep the order of their keys and look each up in a list, so that time
/// grows with the square of their number: 200,000 keys took minutes.
/// A published list of quantised layers has 22,422 keys, each with an object
/// (nvidia/MiniMax-M3-NVFP4, config.json).
constexpr std::size_t kMostKeysOfObject = 25'000;
constexpr std::size_t kMostObjects = 25'000;

// "line 3, column 14" of a byte that is counted from 1.
std::string position_of(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(text.size(), byte > 0 ? byte - 1 : 0));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n');
  const std::size_t column =
      start == std::string_view::npos ? before.size() + 1 : before.size() - start;
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// The part of the parser's message that says what it expected.
std::string reason_of(const nlohmann::json::parse_error& error) {
  const std::string what = error.what();
  const std::size_t at = what.rfind("; expected ");
  return at == std::string::npos ? std::string()
                                 : what.substr(at + std::string("; expected ").size());
}

/// Puts the tree together, from the leaves to the root: what belongs to an object or a list that is
/// still open waits behind all that came before it.
class TreeOfText {
 public:
  /// With `end`: up to this key of the root.
  TreeOfText(std::string_view text, std::string where, std::string_view end = {})
      : text_(text), where_(std::move(where)), end_(end) {}

  /// The tree, once the whole text has been seen.
  Json take() { return std::move(waiting_.front()); }

  /// Whether the key was met at which it was to end; the root is there as if it ended here.
  bool has_met_end() const { return has_met_end_; }

  // What the library calls for each word.
  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(std::int64_t value) { return put(value); }
  bool number_unsigned(std::uint64_t value) { return put(value); }
  bool number_float(double value, const std::string& /*text*/) { return put(value); }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(Json::binary_t& value) { return put(std::move(value)); }  // no text has any

  bool start_object(std::size_t /*count*/) {
    if (++objects_ > kMostObjects) {
      throw InputError({.where = where_,
                        .problem = "the text has too many objects",
                        .allowed = "at most " + std::to_string(kMostObjects)});
    }
    return open();
  }
  bool key(std::string& key) {
    if (!end_.empty() && key == end_ && open_.size() == 1) {
      end_object();
      has_met_end_ = true;
      return false;
    }
    keys_.push_back(std::move(key));
    if (keys_.size() - open_.back().keys <= kMostKeysOfObject) return true;
    throw InputError({.where = where_,
                      .problem = "an object has too many keys",
                      .allowed = "at most " + std::to_string(kMostKeysOfObject)});
  }
  bool end_object() {
    const Open last = close();
    refuse_twice(last);
    Json::object_t object;
    object.reserve(keys_.size() - last.keys);
    for (std::size_t i = 0; last.keys + i < keys_.size(); ++i) {
      object.emplace_back(std::move(keys_[last.keys + i]), std::move(waiting_[last.values + i]));
    }
    keys_.resize(last.keys);
    waiting_.resize(last.values);
    return put(std::move(object));
  }

  bool start_array(std::size_t /*count*/) { return open(); }
  bool end_array() {
    const Open last = close();
    const auto first = waiting_.begin() + static_cast<std::ptrdiff_t>(last.values);
    Json::array_t list(std::make_move_iterator(first), std::make_move_iterator(waiting_.end()));
    waiting_.resize(last.values);
    return put(std::move(list));
  }

  template <class Error>
  bool parse_error(std::size_t /*byte*/, const std::string& /*word*/, const Error& error) {
    if constexpr (std::is_same_v<Error, nlohmann::json::parse_error>) {
      throw InputError({.where = where_ + ": " + position_of(text_, error.byte),
                        .problem = "this is not JSON",
                        .allowed = reason_of(error)});
    }
    throw InputError({.where = where_, .problem = "a number is beyond what JSON readers handle"});
  }

 private:
  /// Where the keys and the values of an object or a list begin that is not closed.
  struct Open {
    std::size_t keys = 0;
    std::size_t values = 0;
  };

  template <class Value>
  bool put(Value&& value) {
    refuse_depth();
    waiting_.emplace_back(std::forward<Value>(value));
    return true;
  }

  bool open() {
    refuse_depth();
    open_.push_back({.keys = keys_.size(), .values = waiting_.size()});
    return true;
  }

  Open close() {
    const Open last = open_.back();
    open_.pop_back();
    return last;
  }

  void refuse_depth() const {
    if (open_.size() <= kDeepest) return;
    throw InputError({.where = where_,
                      .problem = "nests too deep",
                      .allowed = "at most " + std::to_string(kDeepest) + " levels"});
  }

  void refuse_twice(const Open& object) const {
    std::vector<std::string_view> names(keys_.begin() + static_cast<std::ptrdiff_t>(object.keys),
                                        keys_.end());
    std::ranges::sort(names);
    const auto twice = std::ranges::adjacent_find(names);
    if (twice == names.end()) return;
    throw InputError(
        {.where = where_, .value = std::string(*twice), .problem = "is a key given twice"});
  }

  std::string_view text_;
  std::string where_;
  std::string_view end_;
  bool has_met_end_ = false;
  std::vector<std::string> keys_;
  std::vector<Json> waiting_;
  std::vector<Open> open_;
  std::size_t objects_ = 0;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& where) {
  TreeOfText tree(text, where);
  if (!Json::sax_parse(text, &tree)) throw std::logic_error("a text was left before its end");
  return tree.take();
}

Document open_front(const std::filesystem::path& path, std::string_view end) {
  constexpr std::size_t kFront = std::size_t{1} << 13;  // heads of dialects have up to 5 KB
  const std::string text = read_file_front(path, kFront);
  TreeOfText tree(text, path.string(), end);
  try {
    Json::sax_parse(text, &tree);
  } catch (const InputError&) {
    return open_document(path);  // which knows better: this may be no more than a part of the text
  }
  if (!tree.has_met_end()) return open_document(path);
  return {.where = path.string(), .value = tree.take()};
}

}  // namespace placet
