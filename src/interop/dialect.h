// How an engine's configuration is read, as data: data/dialects/NAME.json (docs/formats.md,
// section 15). A dialect says what each key means; what follows from several keys together is said
// by conditions over words.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "interop/source.h"

namespace placet {

/// A condition over one word. An operand that is the name of a word stands for its value.
struct WordCondition {
  std::string word;
  std::optional<bool> known;
  std::vector<std::string> is;  // one of these
  std::optional<std::string> is_not, above, below, not_multiple_of;
  std::optional<std::string> has;     // a list, joined by commas, that holds this
  std::vector<std::string> contains;  // one of these is a part of it, whatever the case
};

/// What a value of a key is: it is brought to one spelling before it is compared.
enum class ValueKind {
  text,
  whole,
  flag,
  file,    // a further source
  names,   // a list of plain names: "a,b"
  stages,  // blocks of pipeline stages (stage_text.h): "3,2,1"; WORD-count is how many there are
  zeros,   // how many zeros stand in front of the ones (stage_text.h): "3"; WORD-count: all of them
  devices  // how many devices a list names: "0,1" and "host:0@other:0" both 2
};

/// What a key of a source means.
struct KeyMeaning {
  std::string word;                           // of the job or of the rules below; empty: none
  std::map<std::string, std::string> values;  // spellings of the engine, and what they say here
  std::string effect;  // of what has no word: "none", "kept", or the figure it could change
  std::vector<std::string> assumed;  // values with which the engine's profile reckons anyway
  bool each = false;                 // the value is a list, and `values` speak of its items
  ValueKind kind = ValueKind::text;
  std::string default_value;   // as the engine takes it where nothing is said
  std::string default_source;  // of that
  std::string since, until;    // versions of the engine that have the key
};

/// What a value says that is taken as it is, beside others that are not.
inline constexpr const char* kItself = "=";

/// What a value says that leaves a word as it is where nothing is said.
inline constexpr const char* kUnsaid = "unsaid";

/// A fact that is asked for where the sources leave it open.
struct NeededFact {
  std::vector<WordCondition> when;
  std::string what, flag;  // with {words} in them
};

/// A word that follows from others: a product, more a sum, over a product, less a sum, or a text
/// with {words} in it. What is below 0 is not known.
struct DerivedWord {
  std::string word;
  std::vector<WordCondition> when;
  std::vector<std::string> product, plus, over, minus;
  std::string text;
  std::string of_model, size;  // a size of the model that a word names
  bool replaces = false;       // what a source says
  bool rounds_down = false;    // what does not divide evenly; else it is not known
  bool is_decimal = false;     // "0.25" where it does not divide evenly
  bool beside = false;         // holds where another dialect leads, too
};

/// An axis of the placement: its degree is a word, its terms are the first that apply.
struct AxisTerms {
  std::vector<WordCondition> when;
  std::string terms;
};
struct DialectAxis {
  std::string name;
  std::string degree;
  std::vector<AxisTerms> terms;
  std::vector<AxisTerms> shares;  // "5,6x10,5"; none that applies: even ones
};

/// A word that was understood, and that the job cannot say all the same where the conditions hold.
struct BeyondJob {
  std::vector<WordCondition> when;
  std::string word;
  std::string effect;  // the figure it could change
};

/// A model that the sources describe by its sizes: a configuration as models are published with
/// them, key by key, with {words}. A key with a word that is not known is left out.
struct DescribedModel {
  std::vector<WordCondition> when;
  std::vector<std::string> asks;  // words without which there is no such model
  std::vector<std::pair<std::string, std::string>> config;
};

/// What the engine does about a key that it does not know.
struct UnknownKeys {
  std::string under;     // the beginning of the key's path; empty: any
  std::string severity;  // error: it refuses them; warning: it passes over them
  std::string what;      // as a sentence of the message
};

/// Words that a source and one of other dialects, without version, must say alike.
struct MustAgree {
  std::vector<std::string> with, words;
  std::vector<WordCondition> when;
  std::string what;  // what is done where they do not, as a sentence of the message
};

/// A dialect: an engine's configuration in a range of versions. One that is like another has the
/// keys, derived words, needs and axes of that too, behind its own.
struct Dialect {
  std::string name;  // "torchtitan@2025.08"
  std::string title;
  SourceForm form = SourceForm::toml;
  std::vector<std::string> marks;          // keys by which a source is known; more of them win
  std::vector<std::string> told_by;        // see DialectHead
  std::map<std::string, KeyMeaning> keys;  // by path; a path that ends in '*' is a beginning
  std::vector<std::string> beginnings;     // of the keys those, without '*', the longest first
  std::vector<DerivedWord> derived;
  std::vector<NeededFact> needs;
  std::vector<BeyondJob> beyond;
  std::vector<DescribedModel> models;  // the first that applies, where none is named
  std::vector<UnknownKeys> unknown;    // the longest beginning that fits holds
  std::vector<MustAgree> must_agree;
  std::vector<DialectAxis> axes;  // outermost first; none: it goes with a dialect that has some
  std::vector<std::string>
      gives_way_to;                    // dialects, without version, that lead where both are read
  std::vector<std::string> yields_to;  // dialects, without version, whose words win over its own
};

/// The meaning of a key in a dialect; none where it is not known. The longest path that fits wins.
const KeyMeaning* meaning_of(const Dialect& dialect, const std::string& path);

/// Whether a word is one that the dialect reads: of a key, derived, of a condition or a degree.
bool speaks_of(const Dialect& dialect, const std::string& word);

/// The dialect named; without a version the newest. Throws InputError that speaks of `where`, or of
/// the file and key path.
Dialect load_dialect(const Catalog& catalog, const std::string& name, const std::string& where);

/// A dialect that is read once in a process.
using SharedDialect = std::shared_ptr<const Dialect>;
SharedDialect shared_dialect(const Catalog& catalog, const std::string& name,
                             const std::string& where);

/// What tells the dialect of a source, without all else of its file.
struct DialectHead {
  std::string name;
  SourceForm form = SourceForm::toml;
  std::vector<std::string> marks;
  std::vector<std::string> told_by;  // one must be there ("a & b": both); none: any will do
};

/// Of all dialects of the catalogue, by name.
std::shared_ptr<const std::vector<DialectHead>> dialect_heads(const Catalog& catalog);

/// The name of the dialect whose marks fit a source best, of equals the later; without a mark, in
/// TOML, YAML and JSON, the one that knows more than half of its keys, as they are written or
/// nearly so. Empty if there is none.
std::string guess_dialect(const Catalog& catalog, const std::vector<DialectHead>& heads,
                          const Source& source);

/// Words and what they say.
using Words = std::map<std::string, std::string>;

/// Whether all conditions hold. One about a word that is not known does not, unless it asks for
/// that.
bool holds(std::span<const WordCondition> conditions, const Words& words);

/// A text with each {word} replaced; none where a word is not known.
std::optional<std::string> filled(const std::string& text, const Words& words);

/// The whole number that a text spells, if it spells one.
std::optional<long long> whole_number(const std::string& text);

/// A value in the one spelling of its kind: "12.0" and "1_2" are "12", "True" is "true". What is
/// none of the kind stays as it is.
std::string plain_spelling(const std::string& value, ValueKind kind);

}  // namespace placet
