#include "placement/grammar.h"

#include <algorithm>
#include <array>
#include <utility>

#include "placement/share_list.h"
#include "placement/source_text.h"
#include "placement/terms.h"
#include "units/nearest.h"

namespace placet {
namespace {

constexpr std::int64_t kLargestBlock = kLargestDegree;

/// The terms of one how and what they mean, in the order of the text.
struct ReadTerms {
  std::vector<Term> terms;
  std::vector<Meaning> meanings;
};

class PlacementParser {
 public:
  PlacementParser(std::string_view text, const Vocabulary& vocabulary)
      : text_(text), source_(text), vocabulary_(vocabulary) {}

  Placement parse() {
    if (source_.at_end()) {
      source_.fail(
          0, {.problem = "no axis is given", .allowed = "NAME=DEGREE:HOW, as dp=8:batch(R,S,R,R)"});
    }
    Placement placement;
    while (!source_.at_end()) {
      if (placement.axes.size() == kMostAxes) {
        source_.fail(source_.position(), {.problem = "too many axes",
                                          .allowed = "at most " + std::to_string(kMostAxes)});
      }
      placement.axes.push_back(axis(placement));
    }
    return placement;
  }

 private:
  AxisPlacement axis(const Placement& before) {
    AxisPlacement axis;
    axis.axis = axis_name(before);
    const std::size_t degree_at = source_.position();
    axis.degree = source_.whole("a degree", 1, kLargestDegree);
    check_product(before, axis.degree, degree_at);
    if (source_.take('[')) axis.shares = shares();
    source_.expect(':', axis.shares.empty() ? "':', then how the axis is used, or '[' and shares"
                                            : "':', then how the axis is used");
    const ReadTerms own = how(nullptr);
    Composed composed = compose(own.meanings);
    if (!composed.how) fail_without_cut(own);
    axis.how = *composed.how;
    check_tensor_options(own, axis.how);
    axis.schedule = std::move(composed.schedule);
    axis.attention = std::move(composed.attention);
    axis.method = std::move(composed.method);
    const std::vector<Override> written = classes(axis.how);
    for (const Override& implied : composed.overrides) {
      const bool again =
          std::ranges::find(written, implied.selector, &Override::selector) != written.end();
      if (!again) axis.overrides.push_back(implied);
    }
    axis.overrides.insert(axis.overrides.end(), written.begin(), written.end());
    return axis;
  }

  AxisName axis_name(const Placement& before) {
    const std::size_t at = source_.position();
    const std::string name(source_.word());
    const bool is_name = !name.empty() && name.size() <= AxisName::kLongest &&
                         ((name[0] >= 'a' && name[0] <= 'z') || (name[0] >= 'A' && name[0] <= 'Z'));
    if (!is_name) fail_axis_name(at, name);
    if (!source_.take('=')) {
      source_.fail(at, {.value = name,
                        .problem = "is followed by no degree",
                        .allowed = "NAME=DEGREE:HOW, or '+' before a further term"});
    }
    const AxisName axis(name);
    if (std::ranges::find(before.axes, axis, &AxisPlacement::axis) != before.axes.end()) {
      source_.fail(at, {.value = name,
                        .problem = "names two axes",
                        .allowed = "a name of its own for each axis",
                        .nearest = free_name(before, name)});
    }
    return axis;
  }

  [[noreturn]] void fail_axis_name(std::size_t at, const std::string& name) const {
    const std::string found = !name.empty() ? name : character_at(text_, at);
    source_.fail(at, {.value = found,
                      .problem = "is not the name of an axis",
                      .allowed = "a letter, then letters, digits, '_', '-' or '.', at most " +
                                 std::to_string(AxisName::kLongest) + " characters"});
  }

  static std::string free_name(const Placement& before, const std::string& name) {
    for (int i = 2;; ++i) {
      std::string other = name.substr(0, AxisName::kLongest - 3) + std::to_string(i);
      const auto same = [&](const AxisPlacement& axis) { return axis.axis.text() == other; };
      if (std::ranges::none_of(before.axes, same)) return other;
    }
  }

  void check_product(const Placement& before, std::int64_t degree, std::size_t at) const {
    std::int64_t product = degree;
    for (const AxisPlacement& axis : before.axes) {
      if (!__builtin_mul_overflow(product, axis.degree, &product)) continue;
      source_.fail(at, {.value = std::to_string(degree),
                        .problem = "makes the product of the degrees overflow",
                        .allowed = "a product below 2^63"});
    }
  }

  std::vector<std::int64_t> shares() {
    std::vector<std::int64_t> shares = read_shares(source_);
    source_.expect(']', "',' and a further share, or ']'");
    return shares;
  }

  /// The terms of an axis, or of one of its classes.
  ReadTerms how(const Selector* selector) {
    ReadTerms read;
    do {
      if (read.terms.size() == kMostTerms) {
        source_.fail(source_.position(), {.problem = "too many terms",
                                          .allowed = "at most " + std::to_string(kMostTerms)});
      }
      read.terms.push_back(term());
      Meaning meaning = meaning_of(read.terms.back(), vocabulary_, source_);
      if (selector != nullptr) meaning = class_meaning(read.terms.back(), meaning, *selector);
      read.meanings.push_back(std::move(meaning));
      if (const auto clash = clash_of_last(read.meanings)) fail_clash(read, *clash);
    } while (source_.take('+'));
    return read;
  }

  Meaning class_meaning(const Term& term, const Meaning& meaning, const Selector& selector) const {
    if (find_realisation(vocabulary_, term.word.text) != nullptr) {
      source_.fail(term.word.at, {.value = text_of(term),
                                  .problem = "is a realisation, which holds for a whole axis",
                                  .allowed = "realisations before the first ';'"});
    }
    if (meaning.sets.method) {
      source_.fail(term.word.at, {.value = text_of(term),
                                  .problem = "is a method, which holds for a whole axis",
                                  .allowed = "methods before the first ';'"});
    }
    Meaning scoped = for_class(meaning, selector);
    if (scoped != Meaning{}) return scoped;
    source_.fail(term.word.at, {.value = text_of(term),
                                .problem = "says nothing of " + spell(selector),
                                .allowed = "a term that places this class"});
  }

  Term term() {
    Term term;
    term.word.at = source_.position();
    term.word.text = std::string(source_.word());
    term.end = term.word.at + term.word.text.size();
    if (term.word.text.empty() && !source_.at_end()) fail_term();
    if (!source_.take('(')) return term;
    term.has_arguments = true;
    do {
      const std::size_t at = source_.position();
      term.arguments.push_back({std::string(source_.until(",)(+;:")), at});
    } while (source_.take(','));
    term.end = source_.position() + 1;
    source_.expect(')', "',' and a further argument, or ')'");
    return term;
  }

  [[noreturn]] void fail_term() {
    const std::size_t at = source_.position();
    source_.fail(at, {.value = character_at(text_, at),
                      .problem = "stands where a term is missing",
                      .allowed = "a strategy, a realisation, a cut such as batch(R,S,R,R), or an "
                                 "option"});
  }

  std::string text_of(const Term& term) const {
    return std::string(text_.substr(term.word.at, term.end - term.word.at));
  }

  [[noreturn]] void fail_clash(const ReadTerms& read, const Clash& clash) const {
    const Term& earlier = read.terms[clash.earlier];
    const Term& later = read.terms[clash.later];
    std::string without;  // the smallest change: the same how less the later term
    for (std::size_t i = 0; i < clash.later; ++i) {
      without += (i == 0 ? "" : "+") + text_of(read.terms[i]);
    }
    source_.fail(later.word.at,
                 {.value = text_of(later),
                  .problem = "sets " + clash.component + " to " + clash.later_value + ", but '" +
                             text_of(earlier) + "' sets it to " + clash.earlier_value,
                  .allowed = "one of the two terms",
                  .nearest = without.size() <= 60 ? without : text_of(earlier)});
  }

  [[noreturn]] void fail_without_cut(const ReadTerms& read) const {
    const std::string own = text_of(read.terms.front());
    source_.fail(read.terms.front().word.at,
                 {.value = own,
                  .problem = "leaves open what the axis cuts",
                  .allowed = "also a strategy, a realisation, or a cut such as batch(R,R,R,R)",
                  .nearest = "batch(R,R,R,R)+" + own});
  }

  void check_tensor_options(const ReadTerms& read, const How& how) const {
    if (how.cut == Cut::tensor) return;
    const auto it = std::ranges::find_if(read.terms, needs_tensor_cut);
    if (it == read.terms.end()) return;
    source_.fail(it->word.at, {.value = text_of(*it),
                               .problem = "needs a tensor cut, but the axis cuts the " +
                                          std::string(name_of(how.cut)),
                               .allowed = "this option on an axis with a tensor cut"});
  }

  std::vector<Override> classes(const How& axis) {
    std::vector<Override> overrides;
    for (std::size_t count = 0; source_.take(';'); ++count) {
      if (count == kMostClasses) {
        source_.fail(source_.position(), {.problem = "too many classes",
                                          .allowed = "at most " + std::to_string(kMostClasses)});
      }
      Override one{.selector = selector()};
      source_.expect(':', "':', then how the class is placed");
      const ReadTerms read = how(&one.selector);
      one.how = compose_class(read.meanings, axis);
      check_tensor_options(read, one.how);
      std::erase_if(overrides, [&](const Override& o) { return o.selector == one.selector; });
      overrides.push_back(one);
    }
    return overrides;
  }

  Selector selector() {
    const std::size_t at = source_.position();
    const std::string word(source_.word());
    if (word == "checkpoints") return Checkpoints{};
    if (word == "blocks") return block_range();
    std::vector<std::string> names;
    for (int c = 0; c < kTensorClassCount; ++c) {
      const auto tensor_class = static_cast<TensorClass>(c);
      if (name_of(tensor_class) == word) return tensor_class;
      names.emplace_back(name_of(tensor_class));
    }
    names.insert(names.end(), {"checkpoints", "blocks"});
    source_.fail(at, {.value = word,
                      .problem = word.empty() ? "a class is missing" : "is not a class of tensors",
                      .allowed = "experts, shared-experts, router, attention, ffn, norms, "
                                 "embedding, head, adapters, mtp, checkpoints or blocks INT-INT",
                      .nearest = nearest(word, names)});
  }

  Selector block_range() {
    BlockRange range;
    const std::size_t at = source_.position();
    range.first = source_.whole("the number of a block", 0, kLargestBlock);
    source_.expect('-', "'-' and the last block");
    range.last = source_.whole("the number of a block", 0, kLargestBlock);
    if (range.first <= range.last) return range;
    source_.fail(at, {.value = std::to_string(range.first) + "-" + std::to_string(range.last),
                      .problem = "runs backwards",
                      .allowed = "the first block, then the last",
                      .nearest = std::to_string(range.last) + "-" + std::to_string(range.first)});
  }

  std::string_view text_;
  SourceText source_;
  const Vocabulary& vocabulary_;
};

}  // namespace

Placement parse_placement(std::string_view text, const Vocabulary& vocabulary) {
  if (text.size() > kLongestPlacement) {
    throw InputError(
        {.where = "placement",
         .problem = "is longer than any placement: " + std::to_string(text.size()) + " characters",
         .allowed = "at most " + std::to_string(kLongestPlacement)});
  }
  return PlacementParser(text, vocabulary).parse();
}

}  // namespace placet
