// Printing: of all ways to write an axis, the one of fewest terms (grammar.h). The search is small:
// a strategy can only take part if everything it sets is so in the placement, which leaves a
// handful.
#include <algorithm>
#include <tuple>
#include <utility>

#include "placement/grammar.h"
#include "placement/terms.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr std::size_t kMostStrategies = 3;  // in one how; more never saved a term so far

constexpr std::size_t kRawTerms = 4;  // a raw cut counts once for each mode that it spells

/// One way to write something.
struct Writing {
  std::size_t terms = 0;
  std::size_t foreign = 0;  // words that also speak of classes for which they do not hold here
  std::string text;
};

std::size_t count_terms(const std::vector<PrintedTerm>& terms) {
  const auto raw = static_cast<std::size_t>(std::ranges::count_if(terms, &PrintedTerm::is_raw));
  return terms.size() + raw * (kRawTerms - 1);
}

bool is_better(const Writing& a, const Writing& b) {
  return std::tuple(a.terms, a.foreign, a.text.size(), a.text) <
         std::tuple(b.terms, b.foreign, b.text.size(), b.text);
}

void keep_better(std::optional<Writing>& best, Writing candidate) {
  if (!best || is_better(candidate, *best)) best = std::move(candidate);
}

template <class T>
bool agrees(const std::optional<T>& set, const T& wanted) {
  return !set || *set == wanted;
}

/// Whether nothing that a word sets is otherwise in `how`.
bool agrees(const PartialHow& sets, const How& how) {
  bool all = agrees(sets.cut, how.cut) && agrees(sets.keep, how.keep) &&
             agrees(sets.tensor_indices, how.tensor_indices) &&
             (!sets.prefetch || sets.prefetch == how.prefetch) &&
             (!sets.update || sets.update == how.update);
  for (State state : kStates) {
    const auto s = static_cast<std::size_t>(state);
    all = all && agrees(sets.modes[s], how.modes[state]) &&
          (!sets.offload[s] || sets.offload[s] == how.offload[s]);
  }
  return all;
}

/// Whether a strategy can be part of an axis: what it sets is so, and each class it speaks of is
/// one that the axis treats apart.
bool may_take_part(const Strategy& strategy, const AxisPlacement& axis) {
  const PartialHow& sets = strategy.meaning.sets;
  if (!strategy.prints_as.empty() || !agrees(sets, axis.how)) return false;
  if (sets.schedule && sets.schedule != axis.schedule) return false;
  if (sets.attention && sets.attention != axis.attention) return false;
  if (sets.method && sets.method != axis.method) return false;
  return std::ranges::all_of(strategy.meaning.classes, [&](const ClassPart& part) {
    return std::ranges::find(axis.overrides, part.selector, &Override::selector) !=
           axis.overrides.end();
  });
}

std::vector<Meaning> meanings_of(const std::vector<PrintedTerm>& terms) {
  std::vector<Meaning> meanings;
  meanings.reserve(terms.size());
  for (const PrintedTerm& term : terms) meanings.push_back(term.meaning);
  return meanings;
}

std::string join(const std::vector<PrintedTerm>& terms) {
  std::string text;
  for (const PrintedTerm& term : terms) text += (text.empty() ? "" : "+") + term.text;
  return text;
}

/// Calls visit(list) for every list of at most `most` of `choices`, in their order.
template <class Visit>
void for_each_choice(const std::vector<PrintedTerm>& choices, std::size_t most,
                     std::vector<PrintedTerm>& chosen, std::size_t next, const Visit& visit) {
  visit(chosen);
  if (most == 0) return;
  for (std::size_t i = next; i < choices.size(); ++i) {
    chosen.push_back(choices[i]);
    for_each_choice(choices, most - 1, chosen, i + 1, visit);
    chosen.pop_back();
  }
}

/// Strategies that may be part, then the raw cut.
std::vector<PrintedTerm> with_raw(std::vector<PrintedTerm> strategies, const How& how) {
  strategies.push_back(print_raw(how));
  return strategies;
}

// --- one class

/// How many of the words have a meaning for classes other than this one.
std::size_t count_foreign(const std::vector<PrintedTerm>& terms, const Selector& selector) {
  return static_cast<std::size_t>(std::ranges::count_if(terms, [&](const PrintedTerm& term) {
    return std::ranges::any_of(term.meaning.classes,
                               [&](const ClassPart& part) { return part.selector != selector; });
  }));
}

std::optional<Writing> write_class(const std::vector<PrintedTerm>& heads, const Selector& selector,
                                   const How& how, const How& axis) {
  std::vector<Meaning> meanings = meanings_of(heads);
  for (Meaning& meaning : meanings) meaning = for_class(meaning, selector);
  std::vector<PrintedTerm> terms = heads;
  for (PrintedTerm& option : options_between(compose_class(meanings, axis), how)) {
    meanings.push_back(option.meaning);
    terms.push_back(std::move(option));
  }
  if (terms.empty() || clash_of(meanings) || compose_class(meanings, axis) != how) {
    return std::nullopt;
  }
  return Writing{count_terms(terms), count_foreign(terms, selector), join(terms)};
}

Writing print_class(const Override& one, const How& axis, const Vocabulary& vocabulary) {
  std::vector<PrintedTerm> choices;
  for (const Strategy& strategy : vocabulary.strategies) {
    // A method holds for a whole axis: the parser takes no such word for a class.
    if (!strategy.prints_as.empty() || strategy.meaning.sets.method) continue;
    const Meaning scoped = for_class(strategy.meaning, one.selector);
    if (scoped != Meaning{} && agrees(scoped.sets, one.how)) {
      choices.push_back({.text = strategy.name, .meaning = strategy.meaning});
    }
  }
  std::optional<Writing> best;
  std::vector<PrintedTerm> chosen;
  for_each_choice(with_raw(std::move(choices), one.how), 2, chosen, 0,
                  [&](const std::vector<PrintedTerm>& heads) {
                    auto writing = write_class(heads, one.selector, one.how, axis);
                    if (writing) keep_better(best, std::move(*writing));
                  });
  ensure(best.has_value(), "a raw cut and options can spell every class");
  return {best->terms, best->foreign, spell(one.selector) + ":" + best->text};
}

// --- one axis

/// The overrides of the axis that the words imply must be its first ones, save those of classes
/// that are written out; the rest is written out. Gives how many are implied.
std::optional<std::size_t> implied_overrides(const std::vector<Override>& implied,
                                             const std::vector<Override>& wanted) {
  // Of the implied classes those are dropped that the text names again: try every split.
  for (std::size_t taken = std::min(implied.size(), wanted.size()) + 1; taken-- > 0;) {
    const auto rest = std::span(wanted).subspan(taken);
    std::vector<Override> left;
    for (const Override& one : implied) {
      const bool again = std::ranges::find(rest, one.selector, &Override::selector) != rest.end();
      if (!again) left.push_back(one);
    }
    if (std::ranges::equal(left, std::span(wanted).first(taken))) return taken;
  }
  return std::nullopt;
}

/// How many of the words speak of a class that the text writes out itself.
std::size_t count_overruled(const std::vector<PrintedTerm>& terms,
                            std::span<const Override> written) {
  return static_cast<std::size_t>(std::ranges::count_if(terms, [&](const PrintedTerm& term) {
    return std::ranges::any_of(term.meaning.classes, [&](const ClassPart& part) {
      return std::ranges::find(written, part.selector, &Override::selector) != written.end();
    });
  }));
}

class AxisPrinter {
 public:
  AxisPrinter(const AxisPlacement& axis, const Vocabulary& vocabulary) : axis_(axis) {
    for (const Override& one : axis.overrides) {
      classes_.push_back(print_class(one, axis.how, vocabulary));
    }
    for (const auto& word : {axis.schedule, axis.attention}) {
      if (word) realisations_.push_back(print_realisation(*word, vocabulary));
    }
    std::vector<PrintedTerm> strategies;
    for (const Strategy& strategy : vocabulary.strategies) {
      if (may_take_part(strategy, axis)) {
        strategies.push_back({.text = strategy.name, .meaning = strategy.meaning});
      }
    }
    heads_ = with_raw(std::move(strategies), axis.how);
  }

  std::string print() const {
    std::optional<Writing> best;
    std::vector<PrintedTerm> words;
    for_each_choice(realisations_, realisations_.size(), words, 0,
                    [&](const std::vector<PrintedTerm>& realisations) {
                      std::vector<PrintedTerm> chosen = realisations;
                      for_each_choice(heads_, kMostStrategies, chosen, 0,
                                      [&](const std::vector<PrintedTerm>& heads) {
                                        auto writing = write(heads);
                                        if (writing) keep_better(best, std::move(*writing));
                                      });
                    });
    ensure(best.has_value(), "a raw cut, realisations and options can spell every axis");
    return best->text;
  }

 private:
  std::optional<Writing> write(const std::vector<PrintedTerm>& heads) const {
    std::vector<Meaning> meanings = meanings_of(heads);
    const Composed bare = compose(meanings);
    if (!bare.how) return std::nullopt;
    std::vector<PrintedTerm> terms = heads;
    for (PrintedTerm& option : options_between(*bare.how, axis_.how)) {
      meanings.push_back(option.meaning);
      terms.push_back(std::move(option));
    }
    if (clash_of(meanings)) return std::nullopt;
    const Composed composed = compose(meanings);
    if (composed.how != axis_.how || composed.schedule != axis_.schedule ||
        composed.attention != axis_.attention || composed.method != axis_.method) {
      return std::nullopt;
    }
    const auto implied = implied_overrides(composed.overrides, axis_.overrides);
    if (!implied) return std::nullopt;
    const auto written = std::span(axis_.overrides).subspan(*implied);
    Writing writing{.terms = count_terms(terms),
                    .foreign = count_overruled(terms, written),
                    .text = join(terms)};
    for (std::size_t i = *implied; i < classes_.size(); ++i) {
      writing.terms += classes_[i].terms;
      writing.text += ";" + classes_[i].text;
    }
    return writing;
  }

  const AxisPlacement& axis_;
  std::vector<Writing> classes_;  // of every override, were it written out
  std::vector<PrintedTerm> realisations_;
  std::vector<PrintedTerm> heads_;  // strategies that may take part, then the raw cut
};

}  // namespace

std::string print_axis(const AxisPlacement& axis, const Vocabulary& vocabulary) {
  std::string text(axis.axis.text());
  text += "=" + std::to_string(axis.degree);
  for (std::size_t i = 0; i < axis.shares.size(); ++i) {
    text += (i == 0 ? "[" : ",") + std::to_string(axis.shares[i]);
  }
  text += axis.shares.empty() ? ":" : "]:";
  return text + AxisPrinter(axis, vocabulary).print();
}

std::string print_placement(const Placement& placement, const Vocabulary& vocabulary) {
  std::string text;
  for (const AxisPlacement& axis : placement.axes) {
    text += (text.empty() ? "" : " ") + print_axis(axis, vocabulary);
  }
  return text;
}

}  // namespace placet
