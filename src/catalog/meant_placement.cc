// The words of a placement as people write them (meant.h). The grammar stays strict: this pass only
// spells its text anew, and leaves alone what it does not understand.
#include <algorithm>

#include "catalog/meant.h"
#include "catalog/word_file.h"
#include "placement/grammar.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit_of_degree(char c) { return c >= '0' && c <= '9'; }
bool is_of_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit_of_degree(c) || c == '_' ||
         c == '-' || c == '.';
}

class PlacementWriter {
 public:
  PlacementWriter(const Catalog& catalog, const Vocabulary& vocabulary, std::string_view text)
      : catalog_(catalog), vocabulary_(vocabulary), text_(text) {}

  /// The text in the words of the grammar; none where its form is another one.
  std::optional<std::string> write() {
    int axes = 0;
    for (; skip(","); ++axes) {
      if (!axis()) return std::nullopt;
    }
    if (!unknown_.empty() && axes > 1) refuse_unknown();
    return out_.empty() || !unknown_.empty() ? std::nullopt : std::optional(out_);
  }

  std::vector<std::string> take_notes() { return std::move(notes_); }

 private:
  /// Skips blanks and `more`; false at the end.
  bool skip(std::string_view more = {}) {
    while (next_ < text_.size() &&
           (is_blank(text_[next_]) || more.find(text_[next_]) != std::string_view::npos)) {
      ++next_;
    }
    return next_ < text_.size();
  }

  bool take(char wanted) {
    if (!skip() || text_[next_] != wanted) return false;
    ++next_;
    return true;
  }

  template <class Is>
  std::string run_of(Is is) {
    const std::size_t begin = next_;
    while (next_ < text_.size() && is(text_[next_])) ++next_;
    return std::string(text_.substr(begin, next_ - begin));
  }

  /// From an opening bracket to its closing one, both taken along; none if there is none.
  std::optional<std::string> bracket(char open, char close) {
    if (!skip() || text_[next_] != open) return std::string();
    const std::size_t begin = next_;
    int depth = 0;
    for (; next_ < text_.size(); ++next_) {
      if (text_[next_] == open) ++depth;
      if (text_[next_] == close && --depth == 0) {
        ++next_;
        return std::string(text_.substr(begin, next_ - begin));
      }
    }
    return std::nullopt;
  }

  bool axis() {
    std::string name = run_of(is_of_word);
    std::string degree;
    if (take('=')) {
      skip();
      degree = run_of(is_digit_of_degree);
    } else if (const std::size_t digits = name.find_first_of("0123456789");
               digits > 0 && digits != std::string::npos &&
               name.find_first_not_of("0123456789", digits) == std::string::npos) {
      degree = name.substr(digits);  // "tp8"
      name.resize(digits);
    }
    const auto shares = bracket('[', ']');
    if (name.empty() || degree.empty() || !shares) return false;
    if (!out_.empty()) out_ += ' ';
    if (take(':')) {
      out_ += name + "=" + degree + *shares + ":";
      return how();
    }
    const std::string words = bare_how(name);
    if (words.empty() && unknown_.empty()) unknown_ = name;
    out_ += lower_case(name) + "=" + degree + *shares + ":" + words;
    return true;
  }

  /// Beside axes that are understood, the one that is not is told by its name.
  [[noreturn]] void refuse_unknown() {
    std::vector<std::string> names;
    for (const Alias& alias : words("axes").aliases) names.push_back(alias.word);
    for (const Strategy& one : vocabulary_.strategies) names.push_back(one.name);
    throw InputError({.where = "placement",
                      .value = unknown_,
                      .problem = "is an axis whose name does not say how it is used",
                      .allowed = "':' and its use behind the degree (" + unknown_ +
                                 "=2:tp), or a name that says it, such as dp, tp, pp or fsdp",
                      .nearest = nearest(unknown_, names)});
  }

  /// What an axis without how means by its name; empty: nothing.
  std::string bare_how(const std::string& name) {
    const std::string lower = lower_case(name);
    for (const Alias& alias : words("axes").aliases) {
      if (alias.word != lower) continue;
      if (!alias.note.empty()) {
        std::string note = "--placement: ";
        note.append(lower).append(" without its use is taken as ").append(lower);
        note.append(":").append(alias.means).append(" (").append(alias.note).append(")");
        add_note(note);
      }
      return alias.means;
    }
    return term_meant(name, true);
  }

  bool how() {
    do {
      if (!term()) return false;
    } while (take('+'));
    while (take(';')) {
      skip();
      const std::size_t colon = text_.find(':', next_);
      if (colon == std::string_view::npos) return false;
      out_ += ";" + std::string(text_.substr(next_, colon - next_)) + ":";
      next_ = colon + 1;
      do {
        if (!term()) return false;
      } while (take('+'));
    }
    return true;
  }

  bool term() {
    skip();
    const std::string word = run_of(is_of_word);
    const auto arguments = bracket('(', ')');
    if (word.empty() || !arguments) return false;
    const std::string meant = term_meant(word, false);
    if (out_.back() != ':') out_ += '+';
    out_ += (meant.empty() ? word : meant) + *arguments;
    return true;
  }

  /// The word of the grammar that a word stands for; empty: none.
  std::string term_meant(const std::string& word, bool strategies_only) {
    std::vector<std::string> names;
    names.reserve(vocabulary_.strategies.size() + vocabulary_.realisations.size());
    for (const Strategy& one : vocabulary_.strategies) names.push_back(one.name);
    for (const Realisation& one : vocabulary_.realisations) names.push_back(one.name);
    for (const UnreadableWord& one : vocabulary_.unreadable) names.push_back(one.name);
    if (!strategies_only && is_reserved_word(lower_case(word))) return lower_case(word);
    const MeantName meant = meant_name(words("strategies"), names, word);
    if (!meant.note.empty()) {
      add_note("--placement: '" + word + "' is taken as " + meant.name + " (" + meant.note + ")");
    }
    return meant.name;
  }

  const WordFile& words(const char* name) {
    std::optional<WordFile>& file = std::string_view(name) == "axes" ? axes_ : strategies_;
    if (!file) file = load_words(catalog_, name);
    return *file;
  }

  void add_note(std::string note) {
    if (std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(std::move(note));
  }

  const Catalog& catalog_;
  const Vocabulary& vocabulary_;
  std::string_view text_;
  std::size_t next_ = 0;
  std::string out_;
  std::string unknown_;  // the first axis that does not say how it is used, by no known name
  std::vector<std::string> notes_;
  std::optional<WordFile> axes_, strategies_;
};

bool is_taken(std::string_view text, const Vocabulary& vocabulary) {
  try {
    parse_placement(text, vocabulary);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace

Meant meant_placement(const Catalog& catalog, const Vocabulary& vocabulary,
                      const std::string& text) {
  if (text.size() > kLongestPlacement || is_taken(text, vocabulary)) return {text, {}};
  PlacementWriter writer(catalog, vocabulary, text);
  std::optional<std::string> written = writer.write();
  // What the grammar refuses either way is refused as it was written.
  if (!written || !is_taken(*written, vocabulary)) return {text, {}};
  return {*std::move(written), writer.take_notes()};
}

}  // namespace placet
