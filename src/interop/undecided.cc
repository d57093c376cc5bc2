#include "interop/undecided.h"

#include <algorithm>
#include <ranges>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
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

// What follows from words: one word more, where one of those is among them that a rule stands on or
// asks about, and all whose condition does not hold as things are.
struct Consequence {
  std::string_view gives;
  std::vector<std::string_view> premises;
  std::vector<std::string_view> lacking;  // a part of the premises
};

void add_premises(const std::vector<std::string>& words, Consequence& consequence) {
  consequence.premises.insert(consequence.premises.end(), words.begin(), words.end());
}

// The words in the braces of a text.
void add_premises_of(std::string_view text, Consequence& consequence) {
  for (std::size_t at = text.find('{'); at != text.npos; at = text.find('{', at + 1)) {
    const std::size_t end = text.find('}', at);
    if (end == text.npos) return;
    consequence.premises.push_back(text.substr(at + 1, end - at - 1));
  }
}

void add_conditions(const std::vector<WordCondition>& when, const Words& words,
                    Consequence& consequence) {
  for (const WordCondition& condition : when) {
    consequence.premises.push_back(condition.word);
    if (!holds(std::span(&condition, 1), words)) consequence.lacking.push_back(condition.word);
  }
}

bool follows(const Consequence& consequence, const std::set<std::string_view>& words) {
  return std::ranges::all_of(consequence.lacking,
                             [&](std::string_view lack) { return words.contains(lack); });
}

// All that follows from words by the dialects that are read.
class Consequences {
 public:
  explicit Consequences(const Imported& imported) : imported_(imported) {
    for (const LedgerLine& line : imported.ledger) {
      if (!line.said.empty() && line.fate == Fate::understood) said_.insert(line.word);
    }
    for (const auto& [file, dialect] : imported.read_by) add(*dialect);
  }

  // A word and all that follows from it.
  std::set<std::string_view> of(std::string_view word) const {
    std::set<std::string_view> words = {word};
    std::vector<std::string_view> fresh = {word};
    while (!fresh.empty()) {
      const auto rules = by_premise_.find(fresh.back());
      fresh.pop_back();
      if (rules == by_premise_.end()) continue;
      for (const std::size_t rule : rules->second) {
        const std::string_view more = consequences_[rule].gives;
        if (follows(consequences_[rule], words) && words.insert(more).second) fresh.push_back(more);
      }
    }
    return words;
  }

  // Those of them that are words of the job, and not given.
  std::vector<std::string> job_words_of(std::string_view word) const {
    std::vector<std::string> words;
    for (const std::string_view follower : of(word)) {
      const std::string name(follower);
      if (is_job_word(name) && !imported_.given.contains(name)) words.push_back(name);
    }
    return words;
  }

 private:
  // What is given follows from nothing.
  void add(Consequence consequence) {
    if (imported_.given.contains(std::string(consequence.gives))) return;
    for (const std::string_view premise : consequence.premises) {
      by_premise_[premise].push_back(consequences_.size());
    }
    consequences_.push_back(std::move(consequence));
  }

  void add(const Dialect& dialect) {
    for (const DerivedWord& derived : dialect.derived) {
      // A line that says the word itself stands in place of rules that derive it.
      if (derived.replaces || !said_.contains(derived.word)) add(derived);
    }
    for (const DialectAxis& axis : dialect.axes) {
      // The terms of an axis of one device change nothing.
      const auto degree = imported_.words.find(axis.degree);
      if (degree != imported_.words.end() && degree->second == "1") continue;
      add({.gives = "placement", .premises = {axis.degree}});
      for (const auto* all : {&axis.terms, &axis.shares}) {
        for (const AxisTerms& terms : *all) add(terms);
      }
    }
    for (const DescribedModel& model : dialect.models) add(model);
  }

  void add(const DerivedWord& derived) {
    Consequence consequence{.gives = derived.word};
    for (const auto* part : {&derived.product, &derived.plus, &derived.over, &derived.minus}) {
      add_premises(*part, consequence);
    }
    add_premises_of(derived.text, consequence);
    add_conditions(derived.when, imported_.words, consequence);
    add(std::move(consequence));
  }

  void add(const AxisTerms& terms) {
    Consequence consequence{.gives = "placement"};
    add_premises_of(terms.terms, consequence);
    add_conditions(terms.when, imported_.words, consequence);
    add(std::move(consequence));
  }

  void add(const DescribedModel& model) {
    Consequence consequence{.gives = "model"};
    add_premises(model.asks, consequence);
    for (const auto& [key, value] : model.config) add_premises_of(value, consequence);
    add_conditions(model.when, imported_.words, consequence);
    add(std::move(consequence));
  }

  const Imported& imported_;
  std::set<std::string_view> said_;
  std::vector<Consequence> consequences_;
  std::unordered_map<std::string_view, std::vector<std::size_t>> by_premise_;
};

bool is_asked_for(const Imported& imported, const std::string& flag) {
  return std::ranges::any_of(imported.missing, [&](const MissingFact& fact) {
    return fact.flag.find(flag) != std::string::npos;
  });
}

// What to ask for in place of a word, of which these words of the job follow: the one that follows
// from it and from nothing else, or itself. Empty: nothing. A model that is described by what is
// undecided may be named.
std::string asked_in_place_of(const std::string& word, const std::vector<std::string>& words,
                              const Imported& imported) {
  const bool asks = std::ranges::any_of(words, [&](const std::string& follower) {
    return follower != "model" || imported.job.contains(follower);
  });
  if (!asks) return "";
  static const std::set<std::string> kOfManyWords = {"engine", "model", "placement"};
  return words.size() == 1 && !kOfManyWords.contains(words.front()) ? words.front() : word;
}

// " (adamw, lion, sgd)": what the sources' dialects let a word be, where that is a short list.
std::string choices_of(const std::string& word, const Imported& imported) {
  constexpr std::size_t kMost = 12;
  std::set<std::string> choices;
  for (const auto& [file, dialect] : imported.read_by) {
    for (const auto& [path, meaning] : dialect->keys) {
      if (meaning.word != word) continue;
      for (const auto& [spelling, said] : meaning.values) choices.insert(said);
    }
  }
  choices.erase(std::string(kUnsaid));
  if (choices.size() < 2 || choices.size() > kMost || choices.contains("=")) return "";
  std::string text;
  for (const std::string& choice : choices) text += (text.empty() ? " (" : ", ") + choice;
  return text + ")";
}

// `why`: why the word is not known.
void ask_for_word(const std::string& asked, const std::string& why, const std::string& places,
                  Imported& imported) {
  const bool is_asked =
      is_asked_for(imported, "--" + asked + " ") || is_asked_for(imported, "--set " + asked + "=");
  if (is_asked) return;
  const bool is_undecided = imported.undecided.contains(asked);
  imported.missing.push_back({.what = "'" + asked + "', " + why + " (" + places + ")",
                              .flag = "--set " + asked + "=VALUE" +
                                      (is_undecided ? " (" + asked + "=unsaid: none of them)"
                                                    : choices_of(asked, imported))});
}

// Asks for what a job needs of these words; each with the places that speak of it.
void ask_for_words(const std::map<std::string, std::string>& words, const std::string& why,
                   const Consequences& consequences, Imported& imported) {
  std::map<std::string, std::string> asked;
  std::set<std::string> untold;
  for (const auto& [word, places] : words) {
    const std::vector<std::string> followers = consequences.job_words_of(word);
    untold.insert(followers.begin(), followers.end());
    std::string& all = asked[asked_in_place_of(word, followers, imported)];
    if (!all.empty()) all += ", ";
    all += places;
  }
  asked.erase("");
  for (const auto& [word, places] : asked) ask_for_word(word, why, places, imported);
  for (const std::string& word : untold) imported.job.erase(word);
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
  const auto unread = unread_words(imported);
  if (imported.undecided.empty() && unread.empty()) return;
  const Consequences consequences(imported);
  ask_for_words(imported.undecided, "left to branches that are not decided", consequences,
                imported);
  ask_for_words(unread, "whose value is not understood", consequences, imported);
}

std::set<std::string> words_of_undecided(const Imported& imported) {
  std::set<std::string> words;
  if (imported.undecided.empty()) return words;
  const Consequences consequences(imported);
  for (const auto& [word, places] : imported.undecided) {
    const std::set<std::string_view> followers = consequences.of(word);
    words.insert(followers.begin(), followers.end());
  }
  return words;
}

}  // namespace placet
