// Text of JSON into values. RapidJSON tells the words one by one; the tree is put together here.
#ifdef __SSE2__
#define RAPIDJSON_SSE2  // sixteen bytes of a string or of white space at a time
#endif
#include <rapidjson/reader.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/file_text.h"
#include "catalog/reader.h"
#include "units/error.h"
#include "units/utf8.h"

namespace placet {
namespace {

constexpr int kDeepest = 64;
/// Of one object. Objects keep the order of their keys and look each up in a list, so that time
/// grows with the square of their number: 200,000 keys took minutes.
/// A published list of quantised layers has 22,422 keys, each with an object
/// (nvidia/MiniMax-M3-NVFP4, config.json).
constexpr std::size_t kMostKeysOfObject = 25'000;
constexpr std::size_t kMostObjects = 25'000;
constexpr std::size_t kLongestShown = 60;

// "line 3, column 14" of a byte that is counted from 0.
std::string position_of(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n');
  const std::size_t column =
      start == std::string_view::npos ? before.size() + 1 : before.size() - start;
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// What the parser expected where it stopped.
std::string expected_of(rapidjson::ParseErrorCode code) {
  constexpr std::string_view kEscapes = R"(one of the escapes \" \\ \/ \b \f \n \r \t \uXXXX)";
  static constexpr std::array<std::pair<rapidjson::ParseErrorCode, std::string_view>, 12>
      kExpected = {
          {{rapidjson::kParseErrorDocumentEmpty, "a value"},
           {rapidjson::kParseErrorValueInvalid, "a value"},
           {rapidjson::kParseErrorDocumentRootNotSingular, "nothing behind the value"},
           {rapidjson::kParseErrorObjectMissName, "a key in quotation marks"},
           {rapidjson::kParseErrorObjectMissColon, "':' behind a key"},
           {rapidjson::kParseErrorObjectMissCommaOrCurlyBracket, "',' or '}'"},
           {rapidjson::kParseErrorArrayMissCommaOrSquareBracket, "',' or ']'"},
           {rapidjson::kParseErrorStringMissQuotationMark, "a quotation mark that ends the string"},
           {rapidjson::kParseErrorStringEscapeInvalid, kEscapes},
           {rapidjson::kParseErrorStringUnicodeEscapeInvalidHex, kEscapes},
           {rapidjson::kParseErrorStringUnicodeSurrogateInvalid, kEscapes},
           {rapidjson::kParseErrorStringInvalidEncoding,
            "a string in UTF-8 without control characters"}}};
  const auto known =
      std::ranges::find(kExpected, code, [](const auto& each) { return each.first; });
  return std::string(known == kExpected.end() ? "digits of a number" : known->second);
}

/// Puts the tree together, from the leaves to the root: what belongs to an object or a list that is
/// still open waits behind all that came before it.
class TreeOfText {
 public:
  /// With `end`: up to this key of the root. `strings_are_text`: no string has to be looked at.
  TreeOfText(std::string where, bool strings_are_text, std::string_view end = {})
      : where_(std::move(where)), end_(end), strings_are_text_(strings_are_text) {}

  /// The tree, once the whole text has been seen.
  Json take() { return std::move(waiting_.front()); }

  /// Whether the key was met at which it was to end; the root is there as if it ended here.
  bool has_met_end() const { return has_met_end_; }

  // What the library calls for each word, in its spelling.
  // NOLINTBEGIN(readability-identifier-naming)
  using Ch = char;
  using Size = rapidjson::SizeType;
  bool Null() { return put(nullptr); }
  bool Bool(bool value) { return put(value); }
  bool Int(int value) { return put(value); }
  bool Uint(unsigned value) { return put(value); }
  bool Int64(std::int64_t value) { return put(value); }
  bool Uint64(std::uint64_t value) { return put(value); }
  bool Double(double value) { return put(value); }
  // All numbers: the library's own are not exact, or not safe (kParseFullPrecisionFlag of 1.1.0
  // reads behind its digits).
  bool RawNumber(const Ch* text, Size size, bool /*copy*/) {
    const std::string_view number(text, size);
    if (number.find_first_of(".eE") != std::string_view::npos) return put_real(number);
    return number.starts_with('-') ? put_whole<std::int64_t>(number)
                                   : put_whole<std::uint64_t>(number);
  }
  bool String(const Ch* text, Size size, bool /*copy*/) { return put(whole_text({text, size})); }

  bool StartObject() {
    if (++objects_ > kMostObjects) {
      throw InputError({.where = where_,
                        .problem = "the text has too many objects",
                        .allowed = "at most " + std::to_string(kMostObjects)});
    }
    return open();
  }
  bool Key(const Ch* text, Size size, bool /*copy*/) {
    const std::string_view key(text, size);
    if (!end_.empty() && key == end_ && open_.size() == 1) {
      EndObject(0);
      has_met_end_ = true;
      return false;
    }
    keys_.push_back(whole_text(key));
    if (keys_.size() - open_.back().keys <= kMostKeysOfObject) return true;
    throw InputError({.where = where_,
                      .problem = "an object has too many keys",
                      .allowed = "at most " + std::to_string(kMostKeysOfObject)});
  }
  bool EndObject(Size /*count*/) {
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

  bool StartArray() { return open(); }
  bool EndArray(Size /*count*/) {
    const Open last = close();
    const auto first = waiting_.begin() + static_cast<std::ptrdiff_t>(last.values);
    Json::array_t list(std::make_move_iterator(first), std::make_move_iterator(waiting_.end()));
    waiting_.resize(last.values);
    return put(std::move(list));
  }
  // NOLINTEND(readability-identifier-naming)

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

  // A whole number; one that no 64 bits hold is a real one.
  template <class Whole>
  bool put_whole(std::string_view number) {
    Whole value = 0;
    const auto read = std::from_chars(number.data(), number.data() + number.size(), value);
    return read.ec == std::errc() ? put(value) : put_real(number);
  }

  bool put_real(std::string_view number) {
    double value = 0;
    const auto read = std::from_chars(number.data(), number.data() + number.size(), value);
    // What is too small for a double is read as the nearest one, which may be 0.
    if (read.ec != std::errc()) value = std::strtod(std::string(number).c_str(), nullptr);
    if (std::isfinite(value)) return put(value);
    throw InputError({.where = where_,
                      .value = std::string(number.substr(0, kLongestShown)),
                      .problem = "is beyond what JSON readers handle"});
  }

  // Escapes may be halves of a pair of surrogates, which are no text.
  std::string whole_text(std::string_view text) const {
    if (strings_are_text_ || utf8_prefix(text) == text.size()) return std::string(text);
    throw InputError({.where = where_,
                      .value = valid_utf8(text.substr(0, kLongestShown)),
                      .problem = "is no text",
                      .allowed = "UTF-8, and escapes of whole characters"});
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
    const auto first = keys_.begin() + static_cast<std::ptrdiff_t>(object.keys);
    constexpr std::ptrdiff_t kFew = 16;
    if (keys_.end() - first <= kFew) {
      for (auto key = first; key != keys_.end(); ++key) {
        if (std::find(first, key, *key) != key) refuse_twice(*key);
      }
      return;
    }
    std::vector<std::string_view> names(first, keys_.end());
    std::ranges::sort(names);
    const auto twice = std::ranges::adjacent_find(names);
    if (twice != names.end()) refuse_twice(std::string(*twice));
  }

  [[noreturn]] void refuse_twice(const std::string& key) const {
    throw InputError({.where = where_, .value = key, .problem = "is a key given twice"});
  }

  std::string where_;
  std::string_view end_;
  bool strings_are_text_ = false;
  bool has_met_end_ = false;
  std::vector<std::string> keys_;
  std::vector<Json> waiting_;
  std::vector<Open> open_;
  std::size_t objects_ = 0;
};

// Reads the text to its end, or to where the tree or the parser stops. The parser calls itself for
// what nests; how deep that may be the tree says.
rapidjson::ParseResult read_into(TreeOfText& tree, std::string_view text) {
  constexpr unsigned kFlags = rapidjson::kParseInsituFlag | rapidjson::kParseNumbersAsStringsFlag;
  constexpr std::size_t kReadAtOnce = 16;  // bytes, the last ones up to behind the end
  std::string words;
  words.reserve(text.size() + kReadAtOnce);
  words.append(text).append(kReadAtOnce, '\0');
  // The parser takes the escapes out of strings where they stand.
  rapidjson::InsituStringStream stream(words.data());
  const rapidjson::ParseResult result = rapidjson::Reader().Parse<kFlags>(stream, tree);
  // The parser takes a byte 0 for the end.
  if (result.IsError() || stream.Tell() == text.size()) return result;
  return {rapidjson::kParseErrorDocumentRootNotSingular, stream.Tell()};
}

[[noreturn]] void fail(std::string_view text, rapidjson::ParseResult result, std::string where) {
  where += ": " + position_of(text, result.Offset());
  if (result.Code() == rapidjson::kParseErrorNumberTooBig) {
    throw InputError({.where = where, .problem = "a number is beyond what JSON readers handle"});
  }
  // Control characters in strings are told as escapes, which begin with a backslash.
  const bool is_control = result.Code() == rapidjson::kParseErrorStringEscapeInvalid &&
                          text.substr(result.Offset(), 1) != "\\";
  throw InputError({.where = where,
                    .problem = "this is not JSON",
                    .allowed = expected_of(is_control ? rapidjson::kParseErrorStringInvalidEncoding
                                                      : result.Code())});
}

}  // namespace

Json parse_json(std::string_view text, const std::string& where) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (const std::size_t valid = utf8_prefix(text); valid < text.size()) {
    fail(text, {rapidjson::kParseErrorStringInvalidEncoding, valid}, where);
  }
  // Only escapes put into a string what was no text before.
  TreeOfText tree(where, text.find("\\u") == text.npos);
  const rapidjson::ParseResult result = read_into(tree, text);
  if (result.IsError()) fail(text, result, where);
  return tree.take();
}

Document open_front(const std::filesystem::path& path, std::string_view end) {
  constexpr std::size_t kFront = std::size_t{1} << 13;  // heads of dialects have up to 5 KB
  TreeOfText tree(path.string(), false, end);
  read_into(tree, read_file_front(path, kFront));
  // An error may be no more than the text's being cut.
  if (!tree.has_met_end()) return open_document(path);
  return {.where = path.string(), .value = tree.take()};
}

}  // namespace placet
