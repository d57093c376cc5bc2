// Strict reading of one JSON or TOML value: every key is asked for by name, and what is unknown,
// missing, of another type or implausible is an InputError with file and key path
// (docs/formats.md). For the readers of this folder; their own headers do not show it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "units/rational.h"

namespace placet {

using Json = nlohmann::ordered_json;

/// The value that a file holds. TOML by the ending .toml, JSON otherwise. Throws InputError if the
/// file cannot be read, its text is malformed (with line and column), or a key occurs twice.
Json read_document(const std::filesystem::path& path);

/// The same for text that is at hand; `where` names it in messages.
Json parse_json(std::string_view text, const std::string& where);

/// A document and the name under which messages speak of it; outlives the Readers made from it.
struct Document {
  std::string where;  // "data/engines/placet@1.json"
  Json value;
};

/// The document at `path`, named by the path as given.
Document open_document(const std::filesystem::path& path);

/// What stands in front of the key `end` of the document at `path`; all of it where that is long,
/// or there is no such key. A file of which little is asked is not read to its end. Throws
/// InputError as `read_document` does, of what it has read.
Document open_front(const std::filesystem::path& path, std::string_view end);

/// The least and the greatest number that is taken.
struct Range {
  double least = 0;
  double greatest = std::numeric_limits<double>::max();
};
struct WholeRange {
  std::int64_t least = 0;
  std::int64_t greatest = std::numeric_limits<std::int64_t>::max();
};

/// One value inside a document, with its place. Cheap to copy; the document must outlive it.
class Reader {
 public:
  explicit Reader(const Document& document);

  /// "data/x.json: memory[2].what": file, then key path.
  std::string where() const;

  /// The key path alone: "memory[2].what".
  std::string path() const;

  /// Throws unless this is an object whose keys are all among `keys`; a spelling that is close is
  /// named. Called once at the start of each object.
  void allow(std::span<const std::string> keys) const;
  void allow(std::initializer_list<std::string_view> keys) const;

  /// The value of a key; throws "is missing" without it.
  Reader at(std::string_view key) const;
  /// The value of a key that may be left out.
  std::optional<Reader> find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key).has_value(); }

  /// The value as a type; throws, with the value and what was allowed.
  std::string text() const;  // not empty
  bool flag() const;
  std::int64_t whole(WholeRange range) const;
  double number(Range range) const;
  std::vector<Reader> items() const;                            // of a list
  std::vector<std::pair<std::string, Reader>> members() const;  // of an object, in the file's order
  bool is_text() const { return value_->is_string(); }
  bool is_object() const { return value_->is_object(); }
  bool is_list() const { return value_->is_array(); }
  bool is_whole() const { return value_->is_number_integer(); }

  /// The value as compact JSON, for lists of facts.
  std::string print() const { return value_->dump(); }
  const Json& json() const { return *value_; }

  /// The one of `words` that the text is; its position. Throws with the list and the nearest one.
  std::size_t one_of(std::span<const std::string> words) const;

  /// Throws InputError about this value.
  [[noreturn]] void fail(const std::string& problem, const std::string& allowed) const;

 private:
  /// A step from a value to one in it. Texts are made of the steps only where a message or a fact
  /// speaks of its place.
  struct Step {
    std::shared_ptr<const Step> before;  // none: the value before is the document's
    const std::string* key = nullptr;    // none: an item of a list
    std::size_t item = 0;
  };

  Reader(const Json* value, const std::string* file, std::shared_ptr<const Step> step)
      : value_(value), file_(file), step_(std::move(step)) {}
  const Json::object_t& object() const { return value_->get_ref<const Json::object_t&>(); }
  Reader inside(const Json& value, const std::string* key, std::size_t item = 0) const;

  const Json* value_;
  const std::string* file_;
  std::shared_ptr<const Step> step_;
};

/// "a, b or c".
std::string list_words(std::span<const std::string> words);

}  // namespace placet
