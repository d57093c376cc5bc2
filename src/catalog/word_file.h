// Words that people write, as data: data/words/KIND.json (docs/formats.md, section 13). Second
// names for what the catalogue holds, and what words mean that no other file explains.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"

namespace placet {

/// A second name. `note` is told to the user where the two are not the same thing; empty: they are.
struct Alias {
  std::string word;
  std::string means;
  std::string note;

  friend bool operator==(const Alias&, const Alias&) = default;
};

/// A beginning or an ending that may be dropped from a name; `note` as above.
struct Affix {
  std::string text;
  std::string note;

  friend bool operator==(const Affix&, const Affix&) = default;
};

/// What a word means.
struct WordEntry {
  std::string word;
  std::vector<std::string> also;  // other spellings of it
  std::string title;
  std::string meaning;
  std::vector<std::string> picture;  // lines, where a picture of two devices helps
  std::string source;

  friend bool operator==(const WordEntry&, const WordEntry&) = default;
};

struct WordFile {
  std::string kind;  // "device": what its words are
  std::vector<Affix> beginnings;
  std::vector<Affix> endings;
  std::vector<Alias> aliases;
  std::vector<Alias> answers;  // words that are not taken; `means` says what to write instead
  std::vector<WordEntry> entries;

  friend bool operator==(const WordFile&, const WordFile&) = default;
};

/// The file data/words/`name`.json; without one, a value without words. Where overlays have one
/// too, the lines of all, those of the strongest first. Throws InputError for what is wrong in it.
WordFile load_words(const Catalog& catalog, std::string_view name);

/// The same, not copied.
std::shared_ptr<const WordFile> shared_words(const Catalog& catalog, std::string_view name);

/// The letters A to Z as small ones.
std::string lower_case(std::string_view word);

/// The spelling by which words are compared: lower case, without blanks, dashes and underscores but
/// for those between two digits, which become one dash.
///   squeezed("RTX_4090") == "rtx4090"     squeezed("Llama 2-7B") == "llama2-7b"
std::string squeezed(std::string_view word);

/// A name of the catalogue that a word stands for, and what is to be said of that.
struct MeantName {
  std::string name;  // empty: none
  std::string note;

  friend bool operator==(const MeantName&, const MeantName&) = default;
};

/// The one of `names` that `word` stands for: itself; spelled otherwise (squeezed); by an alias; or
/// one of these with a beginning or endings of the file dropped. The least change wins.
MeantName meant_name(const WordFile& words, const std::vector<std::string>& names,
                     std::string_view word);

}  // namespace placet
