// A JSON object read strictly: every value is asked for by name, type and range; what nobody asked
// for is judged at the end.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/reader.h"

namespace placet {

/// Spellings of one key, the usual one first. Where a file has several, they must agree.
using Keys = std::initializer_list<std::string_view>;

/// Largest values that a size may have. Real models stay far below; the bounds keep every product
/// of a tensor's dims below 2^63 and every list short.
inline constexpr std::int64_t kMostLayers = 100'000;
inline constexpr std::int64_t kMostHeads = 1 << 16;
inline constexpr std::int64_t kMostExperts = 1 << 16;
inline constexpr std::int64_t kMostWidth = 1 << 24;
inline constexpr std::int64_t kMostRows = std::int64_t{1} << 31;

/// One object of a configuration file. Does not own the JSON. `where` is the file, `path` the keys
/// that lead to the object ("text_config"), both for messages: "config.json: text_config.n_layer".
/// Every reader throws InputError with that place, the value, and what is allowed.
class ConfigObject {
 public:
  ConfigObject(const Json& object, std::string where, std::string path = "");

  /// Present and not null.
  bool has(std::string_view key) const;

  /// Present and null: the file says that there is none, which is more than saying nothing.
  bool is_null(std::string_view key) const;

  /// A whole number from 1 to `most`.
  std::int64_t size(Keys keys, std::int64_t most);
  std::int64_t size_or(Keys keys, std::int64_t fallback, std::int64_t most);
  /// The same, or 0.
  std::int64_t count_or(Keys keys, std::int64_t fallback, std::int64_t most);
  /// `fallback` where the key is absent; null is false, as the library takes it.
  bool flag_or(Keys keys, bool fallback);
  /// A number from `least` to `most`.
  double number_or(Keys keys, double fallback, double least, double most);
  /// The same where null says none: 0.
  double limit_or(std::string_view key, double fallback, double most);
  std::string text_or(Keys keys, std::string fallback);
  /// A list of whole numbers, of words, of objects; none where the key is absent or null.
  std::optional<std::vector<std::int64_t>> numbers(std::string_view key, std::int64_t most_entries);
  std::optional<std::vector<std::string>> words(std::string_view key, std::int64_t most_entries);
  /// The object under `key`; an InputError where it is missing.
  ConfigObject object(std::string_view key);
  std::vector<ConfigObject> objects(std::string_view key, std::int64_t most_entries);
  /// The value under a key that may have several types; null where absent.
  const Json& raw(std::string_view key);

  /// Marks keys as known, so that finish() does not judge them.
  void know(Keys keys);

  /// Judges the keys that were not asked for. Allowed: those that every reader knows to be about
  /// other things, null, false, and 0, and, with a note, what is empty or repeats a number under
  /// another name ("n_kv_heads" beside "num_key_value_heads"). Refused with InputError: those whose
  /// name says that they are a size or a count, or that they switch on weights (num_*, *_dim,
  /// *_rank, *_bias, ...), and lists with one entry for each of so many layers (0: not known). The
  /// rest is returned, sorted, for a note.
  std::vector<std::string> finish(std::int64_t layers = 0) const;

  /// What the file says is computed and no step program has, in words: "queries, keys and values
  /// are clipped (clip_qkv 8)".
  std::vector<std::string> left_out() const;

  /// Throws an InputError about a key, for rules between several values. `allowed` may be empty.
  [[noreturn]] void fail(std::string_view key, std::string problem, std::string allowed = "") const;
  /// fail(key) unless `number` is a multiple of `parts`.
  void require_multiple(std::string_view key, std::int64_t number, std::int64_t parts) const;

  const std::string& where() const { return where_; }
  std::string place_of(std::string_view key) const;

 private:
  /// Whether a key says what one that was asked for says, in other words and with the same number.
  bool repeats_known(std::string_view key, const Json& value) const;
  const Json* find(Keys keys);
  const Json& require(Keys keys, const std::string& allowed);
  std::int64_t whole(Keys keys, const Json& value, std::int64_t least, std::int64_t most) const;
  [[noreturn]] void fail_value(std::string_view key, const Json& value, std::string allowed) const;

  const Json* object_;
  std::string where_;
  std::string path_;
  std::set<std::string, std::less<>> known_;
};

/// A value as a message shows it: at most 60 characters of its JSON.
std::string shorten(const Json& value);

}  // namespace placet
