#include "interop/undecided.h"

#include <algorithm>
#include <functional>
#include <ranges>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "interop/import_parts.h"

namespace placet {
namespace {

// Where each way of saying a word stands; empty: in no branch.
using Places = std::vector<std::vector<BranchPlace>>;

// What is left of the places in one branch, behind it; of those that are not in its block, all.
Places places_in(const Places& places, BranchPlace branch) {
  Places inside;
  for (std::vector<BranchPlace> place : places) {
    const auto found = std::ranges::find(place, branch.block, &BranchPlace::block);
    if (found != place.end() && found->branch != branch.branch) continue;
    if (found != place.end()) place.erase(found);
    inside.push_back(std::move(place));
  }
  return inside;
}

// Whether one of the places is come upon whatever branches are taken. What takes too many steps to
// tell is not certain.
class Certainty {
 public:
  explicit Certainty(const std::vector<BranchBlock>& blocks) : blocks_(blocks) {}

  bool of(const Places& places) {
    const auto in_none = [](const std::vector<BranchPlace>& place) { return place.empty(); };
    if (std::ranges::any_of(places, in_none)) return true;
    if (places.empty() || steps_++ == kMostSteps) return false;
    const std::size_t block = places.front().front().block;
    if (!blocks_[block].has_last) return of(places_in(places, {block, kNoBranch}));
    return std::ranges::all_of(blocks_[block].branches, [&](std::size_t branch) {
      return of(places_in(places, {block, branch}));
    });
  }

 private:
  static constexpr std::size_t kMostSteps = 500;

  const std::vector<BranchBlock>& blocks_;
  std::size_t steps_ = 0;
};

// What one line says of its word; none: it says nothing of it.
std::optional<std::string> said_on(const LedgerLine& line) {
  if (line.word.empty() || line.fate == Fate::no_effect) return std::nullopt;
  if (!line.said.empty()) return line.said;
  // What is open in a branch leaves what is said outside of it.
  if (line.fate == Fate::unresolved && !line.setting.branches.empty()) return std::nullopt;
  return "?";
}

// The lines that may have the last word, and whether they say one thing, whatever is taken.
struct LastWord {
  std::vector<LedgerLine*> lines;
  std::set<std::string> values;
  bool is_certain = false;

  bool is_decided() const { return is_certain && values.size() == 1; }
};

LastWord last_word_of(const std::vector<LedgerLine*>& lines,
                      const std::vector<BranchBlock>& blocks) {
  constexpr std::size_t kMostLines = 64;
  LastWord last;
  Places places;
  for (auto line = lines.rbegin(); line != lines.rend() && !last.is_certain; ++line) {
    if (places.size() == kMostLines) break;
    const auto said = said_on(**line);
    if (!said) continue;
    last.lines.push_back(*line);
    last.values.insert(*said);
    places.push_back((*line)->setting.branches);
    last.is_certain = Certainty(blocks).of(places);
  }
  return last;
}

// "fp16 at f:3, bf16 at f:5".
std::string places_of(const LastWord& last) {
  constexpr std::size_t kMostNamed = 6;
  std::string text;
  std::size_t named = 0;
  for (const LedgerLine* line : std::views::reverse(last.lines)) {
    if (++named > kMostNamed) return text + ", ...";
    const std::string& value = line->setting.value;
    text += (text.empty() ? "" : ", ") + line->setting.path;
    text += (value == "true" ? "" : " " + value) + " at " + line->file + ":" +
            std::to_string(line->setting.line);
  }
  return text;
}

void take_back(const std::string& word, const LastWord& last, Imported& imported) {
  imported.undecided[word] = places_of(last);
  imported.unclear.insert(word);
  for (const char* with : {"", "-count", "-twice"}) imported.words.erase(word + with);
  imported.words[word + "-unread"] = "true";
  for (LedgerLine* line : last.lines) {
    line->fate = Fate::unresolved;
    line->what = line->setting.branches.empty() ? "'" + word +
                                                      "': a branch that is not decided "
                                                      "says it too"
                                                : "'" + word + "': in a branch that is not decided";
  }
}

// Words that follow from one another; a part of a text is looked up as it stands.
using WordSet = std::set<std::string, std::less<>>;

// Whether a text has one of the words in its braces.
bool names_one(std::string_view text, const WordSet& words) {
  for (std::size_t at = text.find('{'); at != text.npos; at = text.find('{', at + 1)) {
    const std::size_t end = text.find('}', at);
    if (end == text.npos) return false;
    if (words.contains(text.substr(at + 1, end - at - 1))) return true;
  }
  return false;
}

// Whether a list has one of the words.
bool has_one(const std::vector<std::string>& list, const WordSet& words) {
  return std::ranges::any_of(list, [&](const std::string& word) { return words.contains(word); });
}

// Words, and what is known of all others.
struct Followers {
  WordSet words;
  const Imported& imported;

  // Whether a rule that stands on one of the words or asks for one may hold: all else that it asks
  // for does.
  bool are_asked_by(const std::vector<WordCondition>& when, bool stands_on_one) const {
    const auto is_one = [&](const WordCondition& c) { return words.contains(c.word); };
    const auto may_hold = [&](const WordCondition& c) {
      return is_one(c) || holds(std::span(&c, 1), imported.words);
    };
    return (stands_on_one || std::ranges::any_of(when, is_one)) &&
           std::ranges::all_of(when, may_hold);
  }

  // Whether it is new. What is given follows from nothing.
  bool add(const std::string& word) {
    return !imported.given.contains(word) && words.insert(word).second;
  }

  // Whether a line says the word itself, in place of rules that derive it.
  bool is_said(const std::string& word) const {
    return std::ranges::any_of(imported.ledger, [&](const LedgerLine& line) {
      return line.word == word && !line.said.empty() && line.fate == Fate::understood;
    });
  }

  // Whether an axis has one device, so that its terms change nothing.
  bool is_one(const std::string& degree) const {
    const auto found = imported.words.find(degree);
    return found != imported.words.end() && found->second == "1";
  }
};

// Whether a derived word stands on one of the words, but for conditions.
bool stands_on_one(const DerivedWord& derived, const WordSet& words) {
  return names_one(derived.text, words) || has_one(derived.product, words) ||
         has_one(derived.plus, words) || has_one(derived.over, words) ||
         has_one(derived.minus, words);
}

bool are_asked_by(const DialectAxis& axis, const Followers& followers) {
  const auto is_asked = [&](const AxisTerms& terms) {
    return followers.are_asked_by(terms.when, names_one(terms.terms, followers.words));
  };
  return std::ranges::any_of(axis.terms, is_asked) || std::ranges::any_of(axis.shares, is_asked) ||
         followers.words.contains(axis.degree);
}

bool are_asked_by(const DescribedModel& model, const Followers& followers) {
  const bool stands_on_one =
      has_one(model.asks, followers.words) || std::ranges::any_of(model.config, [&](auto& entry) {
        return names_one(entry.second, followers.words);
      });
  return followers.are_asked_by(model.when, stands_on_one);
}

// Whether a rule gave a word that was not there before.
bool add_derived(const Dialect& dialect, Followers& followers) {
  bool grows = false;
  for (const DerivedWord& derived : dialect.derived) {
    if (followers.words.contains(derived.word)) continue;
    const bool stands = stands_on_one(derived, followers.words);
    if (!followers.are_asked_by(derived.when, stands)) continue;
    if (!derived.replaces && followers.is_said(derived.word)) continue;
    grows = followers.add(derived.word) || grows;
  }
  return grows;
}

void add_followers(const Dialect& dialect, Followers& followers) {
  while (add_derived(dialect, followers)) {
  }
  for (const DialectAxis& axis : dialect.axes) {
    const bool is_asked = !followers.is_one(axis.degree) && are_asked_by(axis, followers);
    if (is_asked) followers.add("placement");
  }
  for (const DescribedModel& model : dialect.models) {
    if (are_asked_by(model, followers)) followers.add("model");
  }
}

WordSet followers_of(const std::string& word, const Imported& imported) {
  Followers followers{.words = {word}, .imported = imported};
  for (const auto& [file, dialect] : imported.read_by) add_followers(*dialect, followers);
  return followers.words;
}

// The words of the job that are not told without this one.
std::vector<std::string> job_words_of(const std::string& word, const Imported& imported) {
  std::vector<std::string> words;
  for (const std::string& follower : followers_of(word, imported)) {
    if (is_job_word(follower) && !imported.given.contains(follower)) words.push_back(follower);
  }
  return words;
}

bool is_asked_for(const Imported& imported, const std::string& flag) {
  return std::ranges::any_of(imported.missing, [&](const MissingFact& fact) {
    return fact.flag.find(flag) != std::string::npos;
  });
}

// What to ask for in place of a word: the one word of the job that follows from it and from nothing
// else, or itself. Empty: nothing. A model that is described by what is undecided may be named.
std::string asked_in_place_of(const std::string& word, const Imported& imported) {
  const std::vector<std::string> words = job_words_of(word, imported);
  const bool asks = std::ranges::any_of(words, [&](const std::string& follower) {
    return follower != "model" || imported.job.contains(follower);
  });
  if (!asks) return "";
  static const std::set<std::string> kOfManyWords = {"engine", "model", "placement"};
  return words.size() == 1 && !kOfManyWords.contains(words.front()) ? words.front() : word;
}

// `why`: why the word is not known.
void ask_for_word(const std::string& asked, const std::string& why, const std::string& places,
                  Imported& imported) {
  const bool is_asked =
      is_asked_for(imported, "--" + asked + " ") || is_asked_for(imported, "--set " + asked + "=");
  if (is_asked) return;
  const bool is_undecided = imported.undecided.contains(asked);
  imported.missing.push_back(
      {.what = "'" + asked + "', " + why + " (" + places + ")",
       .flag = "--set " + asked + "=VALUE" +
               (is_undecided ? " (" + asked + "=unsaid: none of them)" : "")});
}

// Asks for what a job needs of these words; each with the places that speak of it.
void ask_for_words(const std::map<std::string, std::string>& words, const std::string& why,
                   Imported& imported) {
  std::map<std::string, std::string> asked;
  for (const auto& [word, places] : words) {
    std::string& all = asked[asked_in_place_of(word, imported)];
    if (!all.empty()) all += ", ";
    all += places;
  }
  asked.erase("");
  for (const auto& [word, places] : asked) ask_for_word(word, why, places, imported);
  for (const auto& [word, places] : words) {
    for (const std::string& follower : job_words_of(word, imported)) imported.job.erase(follower);
  }
}

// Words whose value is not understood, and where it is said. What the engine fills in
// itself ("auto") is asked for where it is needed.
std::map<std::string, std::string> unread_words(const Imported& imported) {
  std::map<std::string, std::string> unread;
  for (const LedgerLine& line : imported.ledger) {
    const bool is_read = !line.said.empty() || line.setting.value == "auto" ||
                         imported.words.contains(line.word) ||
                         imported.undecided.contains(line.word);
    if (is_read || !imported.unclear.contains(line.word)) continue;
    std::string& places = unread[line.word];
    if (!places.empty()) places += ", ";
    places.append(line.setting.path).append(" ").append(line.setting.value);
    places.append(" at ").append(line.file).append(":");
    places += std::to_string(line.setting.line);
  }
  return unread;
}

}  // namespace

bool exclude_each_other(const Setting& one, const Setting& other) {
  return std::ranges::any_of(one.branches, [&](BranchPlace place) {
    const auto found = std::ranges::find(other.branches, place.block, &BranchPlace::block);
    return found != other.branches.end() && found->branch != place.branch;
  });
}

void mark_undecided(const Source& source, std::size_t begin, const Words& before,
                    Imported& imported) {
  if (source.blocks.empty()) return;
  std::map<std::string, std::vector<LedgerLine*>> lines_by_word;
  for (std::size_t i = begin; i < imported.ledger.size(); ++i) {
    LedgerLine& line = imported.ledger[i];
    if (!line.word.empty()) lines_by_word[line.word].push_back(&line);
  }
  for (const auto& [word, lines] : lines_by_word) {
    LastWord last = last_word_of(lines, source.blocks);
    if (const auto said = before.find(word); said != before.end() && !last.is_certain) {
      last.values.insert(said->second);
      last.is_certain = true;
    }
    if (!last.lines.empty() && !last.is_decided()) take_back(word, last, imported);
  }
}

void ask_for_undecided(Imported& imported) {
  std::erase_if(imported.undecided,
                [&](const auto& entry) { return imported.words.contains(entry.first); });
  ask_for_words(imported.undecided, "left to branches that are not decided", imported);
  ask_for_words(unread_words(imported), "whose value is not understood", imported);
}

std::set<std::string> words_of_undecided(const Imported& imported) {
  std::set<std::string> words;
  for (const auto& [word, places] : imported.undecided) {
    const WordSet followers = followers_of(word, imported);
    words.insert(followers.begin(), followers.end());
  }
  return words;
}

}  // namespace placet
