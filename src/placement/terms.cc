#include "placement/terms.h"

#include <algorithm>
#include <array>

#include "placement/grammar.h"
#include "units/nearest.h"
#include "units/trimmed.h"

namespace placet {
namespace {

constexpr std::int64_t kLargestArgument = kLargestDegree;
constexpr std::int64_t kLargestFractionPart = 999'999'999'999'999'999;

// The closed list of options, in the order of printing.
constexpr std::string_view kKeep = "keep";
constexpr std::string_view kKeepStep = "keep-step";
constexpr std::string_view kSp = "sp";
constexpr std::string_view kPrefetch = "prefetch";
constexpr std::string_view kOffload = "offload";
constexpr std::string_view kUpdate = "update";
constexpr std::array kOptions = {kKeep, kKeepStep, kSp, kPrefetch, kOffload, kUpdate};

constexpr std::array kCuts = {Cut::batch, Cut::tensor, Cut::sequence, Cut::layer, Cut::expert};
constexpr std::array kModes = {Mode::replicated, Mode::sharded, Mode::sharded_gather,
                               Mode::materialized, Mode::offloaded};
constexpr std::string_view kModeList = "R, S, S*, M or O";

// What a tensor cut may divide: every index that can be cut and is not another cut's business.
constexpr std::array kCuttable = {Index::hidden, Index::head,  Index::kv_head,
                                  Index::ffn,    Index::vocab, Index::state};

std::size_t position_of(State state) { return static_cast<std::size_t>(state); }

std::vector<std::string> all_words(const Vocabulary& vocabulary) {
  std::vector<std::string> words;
  words.reserve(vocabulary.strategies.size() + vocabulary.realisations.size() + kCuts.size() +
                kOptions.size());
  for (const Strategy& strategy : vocabulary.strategies) words.push_back(strategy.name);
  for (const Realisation& realisation : vocabulary.realisations) words.push_back(realisation.name);
  for (Cut cut : kCuts) words.emplace_back(name_of(cut));
  for (std::string_view option : kOptions) words.emplace_back(option);
  return words;
}

std::optional<Cut> cut_named(std::string_view word) {
  const auto it = std::ranges::find(kCuts, word, [](Cut cut) { return name_of(cut); });
  return it != kCuts.end() ? std::optional(*it) : std::nullopt;
}

std::optional<State> state_named(std::string_view word) {
  const auto it = std::ranges::find(kStates, word, [](State state) { return name_of(state); });
  return it != kStates.end() ? std::optional(*it) : std::nullopt;
}

/// The words for all members of a closed list.
template <class List, class Spell>
std::vector<std::string> spelled(const List& list, Spell spell) {
  std::vector<std::string> words;
  words.reserve(list.size());
  for (const auto& member : list) words.emplace_back(spell(member));
  return words;
}

/// Reads one term; what it has to know is always the same three things.
class TermReader {
 public:
  TermReader(const Term& term, const Vocabulary& vocabulary, const SourceText& source)
      : term_(term), vocabulary_(vocabulary), source_(source) {}

  Meaning read() const {
    const std::string& word = term_.word.text;
    if (const auto cut = cut_named(word)) return raw_cut(*cut);
    if (is_reserved_word(word)) return option();
    if (const Strategy* strategy = find_strategy(vocabulary_, word)) {
      allow_arguments(0, 0);
      return strategy->meaning;
    }
    if (const Realisation* found = find_realisation(vocabulary_, word)) return realisation(*found);
    refuse_unreadable(vocabulary_, word);
    source_.fail(
        term_.word.at,
        {.value = word,
         .problem = word.empty() ? "a term is missing" : "is not a known term",
         .allowed = "a strategy, a realisation, a cut such as batch(R,S,R,R), or an option",
         .nearest = nearest(word, all_words(vocabulary_))});
  }

 private:
  void allow_arguments(std::size_t least, std::size_t most) const {
    const std::size_t given = term_.arguments.size();
    if (given >= least && given <= most && (term_.has_arguments == (given > 0))) return;
    std::string allowed = least == most ? std::to_string(least)
                                        : std::to_string(least) + " to " + std::to_string(most);
    allowed = most == 0 ? "the word alone" : allowed + " in parentheses";
    source_.fail(term_.word.at, {.value = term_.word.text,
                                 .problem = "has " + std::to_string(given) + " arguments",
                                 .allowed = allowed,
                                 .nearest = most == 0 ? term_.word.text : ""});
  }

  [[noreturn]] void fail_at(const Spelling& argument, std::string allowed,
                            std::string nearest_spelling = "") const {
    source_.fail(argument.at, {.value = argument.text,
                               .problem = argument.text.empty() ? "an argument is missing"
                                                                : "does not fit " + term_.word.text,
                               .allowed = std::move(allowed),
                               .nearest = std::move(nearest_spelling)});
  }

  std::int64_t whole(const Spelling& argument, const Realisation::Range& range) const {
    const std::int64_t number = whole_in(argument.text, kLargestArgument);
    if (number >= range.least && number <= range.most) return number;
    const std::string of = range.what.empty() ? "" : " of " + range.what;
    fail_at(argument, "a whole number" + of + " from " + std::to_string(range.least) + " to " +
                          std::to_string(range.most));
  }

  static Realisation::Range at_least(std::int64_t least) {
    return {.what = {}, .least = least, .most = kLargestArgument};
  }

  Mode mode(const Spelling& argument) const {
    const auto it = std::ranges::find(kModes, argument.text, symbol_of);
    if (it != kModes.end()) return *it;
    fail_at(argument, std::string(kModeList),
            nearest(argument.text, spelled(kModes, [](Mode m) { return symbol_of(m); })));
  }

  Index index(const Spelling& argument) const {
    const auto it = std::ranges::find(kCuttable, argument.text, [](Index i) { return name_of(i); });
    if (it != kCuttable.end()) return *it;
    fail_at(argument, "an index: hidden, head, kv_head, ffn, vocab or state",
            nearest(argument.text, spelled(kCuttable, [](Index i) { return name_of(i); })));
  }

  Meaning raw_cut(Cut cut) const {
    const std::size_t most = cut == Cut::tensor ? 4 + kCuttable.size() : 4;
    if (term_.arguments.size() < 4 || term_.arguments.size() > most) {
      source_.fail(term_.word.at,
                   {.value = term_.word.text,
                    .problem = "has " + std::to_string(term_.arguments.size()) + " modes",
                    .allowed = "modes of parameters, optimizer, gradients and activations",
                    .nearest = print_cut(cut, default_modes(cut))});
    }
    Meaning meaning;
    meaning.sets.cut = cut;
    for (std::size_t s = 0; s < 4; ++s) meaning.sets.modes[s] = mode(term_.arguments[s]);
    if (cut == Cut::tensor) meaning.sets.tensor_indices = kTensorIndices;
    if (term_.arguments.size() > 4) meaning.sets.tensor_indices = IndexSet{0};
    for (std::size_t i = 4; i < term_.arguments.size(); ++i) {
      *meaning.sets.tensor_indices |= bit_of(index(term_.arguments[i]));
    }
    return meaning;
  }

  Meaning realisation(const Realisation& found) const {
    allow_arguments(found.least_arguments, found.most_arguments);
    RealisationWord word{.word = found.name};
    for (std::size_t i = 0; i < term_.arguments.size(); ++i) {
      const Realisation::Range range = i < found.ranges.size() ? found.ranges[i] : at_least(0);
      word.arguments.push_back(whole(term_.arguments[i], range));
    }
    Meaning meaning = found.meaning;
    const bool orders_work = found.kind == Realisation::Kind::schedule;
    (orders_work ? meaning.sets.schedule : meaning.sets.attention) = std::move(word);
    return meaning;
  }

  Rational fraction(const Spelling& written, std::string_view text) const {
    const std::string allowed = "a fraction above 0 and at most 1, as 0.5 or 1/2";
    const std::size_t slash = text.find('/');
    const std::size_t point = text.find('.');
    std::int64_t numerator = -1;
    std::int64_t denominator = 1;
    if (slash != std::string_view::npos) {
      numerator = whole_in(text.substr(0, slash), kLargestFractionPart);
      denominator = whole_in(text.substr(slash + 1), kLargestFractionPart);
    } else if (point != std::string_view::npos && text.size() - point <= 10) {
      std::string digits(text);
      digits.erase(point, 1);
      numerator = whole_in(digits, kLargestFractionPart);
      for (std::size_t i = point + 1; i < text.size(); ++i) denominator *= 10;
    } else {
      numerator = whole_in(text, 1);
    }
    if (numerator < 1 || denominator < 1 || numerator > denominator) fail_at(written, allowed);
    return {numerator, denominator};
  }

  Meaning offload() const {
    allow_arguments(1, 2);
    const Spelling& first = term_.arguments[0];
    const std::size_t equals = first.text.find('=');
    const std::string_view name =
        trimmed(std::string_view(first.text).substr(0, equals), kWhitespace);
    const auto state = state_named(name);
    if (!state) {
      fail_at(first, "parameters, optimizer, gradients or activations",
              nearest(name, spelled(kStates, [](State s) { return name_of(s); })));
    }
    Offload offload;
    if (equals != std::string::npos) {
      offload.fraction =
          fraction(first, trimmed(std::string_view(first.text).substr(equals + 1), kWhitespace));
    }
    if (term_.arguments.size() == 2) {
      if (term_.arguments[1].text != "nvme") fail_at(term_.arguments[1], "nvme", "nvme");
      offload.medium = Medium::nvme;
    }
    Meaning meaning;
    meaning.sets.offload[position_of(*state)] = offload;
    return meaning;
  }

  Meaning update() const {
    allow_arguments(1, 1);
    const std::string& medium = term_.arguments[0].text;
    if (medium != "host" && medium != "device") {
      fail_at(term_.arguments[0], "host or device",
              nearest(medium, std::array<std::string, 2>{"host", "device"}));
    }
    Meaning meaning;
    meaning.sets.update = medium == "host" ? Medium::host : Medium::device;
    return meaning;
  }

  Meaning option() const {
    const std::string& word = term_.word.text;
    if (word == kOffload) return offload();
    if (word == kUpdate) return update();
    Meaning meaning;
    if (word == kPrefetch) {
      allow_arguments(1, 1);
      meaning.sets.prefetch = whole(term_.arguments[0], at_least(0));
      return meaning;
    }
    allow_arguments(0, 0);
    if (word == kKeep) meaning.sets.keep = Keep::backward;
    if (word == kKeepStep) meaning.sets.keep = Keep::step;
    if (word == kSp) meaning.sets.modes[position_of(State::activations)] = Mode::sharded_gather;
    return meaning;
  }

  const Term& term_;
  const Vocabulary& vocabulary_;
  const SourceText& source_;
};

std::string print_fraction(const Rational& fraction) {
  std::int64_t scale = 1;
  for (std::size_t digits = 1; digits <= 9; ++digits) {
    scale *= 10;
    if (scale % fraction.denominator() != 0) continue;
    std::string text = std::to_string(fraction.numerator() * (scale / fraction.denominator()));
    text.insert(0, text.size() < digits ? digits - text.size() : 0, '0');
    return "0." + text;
  }
  return to_string(fraction);
}

/// Whether the step from one how to the other is what the option sp says.
bool gains_sp(const How& have, const How& want) {
  return have.modes.activations != Mode::sharded_gather &&
         want.modes.activations == Mode::sharded_gather && want.cut == Cut::tensor;
}

std::string print_offload(State state, const Offload& offload) {
  std::string text = std::string(kOffload) + "(" + std::string(name_of(state));
  if (offload.fraction != Rational(1)) text += "=" + print_fraction(offload.fraction);
  if (offload.medium == Medium::nvme) text += ",nvme";
  return text + ")";
}

}  // namespace

Meaning meaning_of(const Term& term, const Vocabulary& vocabulary, const SourceText& source) {
  return TermReader(term, vocabulary, source).read();
}

bool needs_tensor_cut(const Term& term) { return term.word.text == kSp; }

bool is_reserved_word(std::string_view word) {
  return cut_named(word).has_value() || std::ranges::find(kOptions, word) != kOptions.end();
}

std::vector<PrintedTerm> options_between(const How& have, const How& want) {
  std::vector<PrintedTerm> options;
  const auto add = [&](std::string text) -> PartialHow& {
    return options.emplace_back(PrintedTerm{.text = std::move(text)}).meaning.sets;
  };
  if (have.keep == Keep::none && want.keep != Keep::none) {
    add(std::string(want.keep == Keep::step ? kKeepStep : kKeep)).keep = want.keep;
  }
  if (gains_sp(have, want)) {
    add(std::string(kSp)).modes[position_of(State::activations)] = Mode::sharded_gather;
  }
  if (!have.prefetch && want.prefetch) {
    add(std::string(kPrefetch) + "(" + std::to_string(*want.prefetch) + ")").prefetch =
        want.prefetch;
  }
  for (State state : kStates) {
    const std::size_t s = position_of(state);
    if (have.offload[s] || !want.offload[s]) continue;
    add(print_offload(state, *want.offload[s])).offload[s] = want.offload[s];
  }
  if (!have.update && want.update) {
    add(std::string(kUpdate) + (*want.update == Medium::host ? "(host)" : "(device)")).update =
        want.update;
  }
  return options;
}

PrintedTerm print_realisation(const RealisationWord& word, const Vocabulary& vocabulary) {
  const Realisation* found = find_realisation(vocabulary, word.word);
  ensure(found != nullptr, "a placement names only realisations of its vocabulary");
  PrintedTerm term{.text = word.word, .meaning = found->meaning};
  for (std::size_t i = 0; i < word.arguments.size(); ++i) {
    term.text += (i == 0 ? "(" : ",") + std::to_string(word.arguments[i]);
  }
  if (!word.arguments.empty()) term.text += ")";
  const bool orders_work = found->kind == Realisation::Kind::schedule;
  (orders_work ? term.meaning.sets.schedule : term.meaning.sets.attention) = word;
  return term;
}

PrintedTerm print_raw(const How& how) {
  PrintedTerm term{print_cut(how.cut, how.modes, how.tensor_indices), {}, true};
  term.meaning.sets.cut = how.cut;
  for (State state : kStates) term.meaning.sets.modes[position_of(state)] = how.modes[state];
  if (how.cut == Cut::tensor) term.meaning.sets.tensor_indices = how.tensor_indices;
  return term;
}

std::string print_cut(Cut cut, const Modes& modes, IndexSet indices) {
  std::string text(name_of(cut));
  for (State state : kStates) {
    text += (state == State::parameters ? "(" : ",") + std::string(symbol_of(modes[state]));
  }
  if (cut == Cut::tensor && indices != kTensorIndices) {
    for (Index index : kCuttable) {
      if (contains(indices, index)) text += "," + std::string(name_of(index));
    }
  }
  return text + ")";
}

}  // namespace placet
