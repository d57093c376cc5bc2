#include "placement/strategy.h"

#include <algorithm>

#include "placement/grammar.h"
#include "units/error.h"

namespace placet {
namespace {

bool is_word(std::string_view text) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !text.empty() && plain(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return plain(c) || c == '-'; });
}

void check_names(std::vector<std::string> names) {
  for (const std::string& name : names) {
    if (!is_word(name)) {
      throw InputError({.where = "vocabulary",
                        .value = name,
                        .problem = "is not a word",
                        .allowed = "lower-case letters, digits and '-'"});
    }
    if (is_reserved_word(name)) {
      throw InputError({.where = "vocabulary",
                        .value = name,
                        .problem = "is a word of the placement grammar itself",
                        .allowed = "another name"});
    }
  }
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice == names.end()) return;
  throw InputError({.where = "vocabulary",
                    .value = *twice,
                    .problem = "names two things",
                    .allowed = "one meaning per word"});
}

template <class T>
const T* find_named(const std::vector<T>& list, std::string_view name) {
  const auto it = std::ranges::lower_bound(list, name, {}, &T::name);
  return it != list.end() && it->name == name ? &*it : nullptr;
}

std::string print_value(Cut cut) { return std::string(name_of(cut)); }
std::string print_value(Mode mode) { return std::string(symbol_of(mode)); }
std::string print_value(Keep keep) {
  switch (keep) {
    case Keep::none:
      return "freed after use";
    case Keep::backward:
      return "kept to backward";
    case Keep::step:
      return "kept over the step";
  }
  fail_internally("every keep has a name");
}
std::string print_value(const std::string& word) { return word; }
std::string print_value(std::int64_t number) { return std::to_string(number); }
std::string print_value(Medium medium) {
  switch (medium) {
    case Medium::device:
      return "device";
    case Medium::host:
      return "host";
    case Medium::nvme:
      return "nvme";
  }
  fail_internally("every medium has a name");
}
std::string print_value(const Offload& offload) {
  return to_string(offload.fraction) + " on " + print_value(offload.medium);
}
std::string print_value(IndexSet set) {
  std::string text;
  for (int i = 0; i < kIndexCount; ++i) {
    const Index index = static_cast<Index>(i);
    if (contains(set, index)) text += (text.empty() ? "" : " ") + std::string(name_of(index));
  }
  return text;
}
std::string print_value(const RealisationWord& word) {
  std::string text = word.word;
  for (std::size_t i = 0; i < word.arguments.size(); ++i) {
    text += (i == 0 ? "(" : ",") + std::to_string(word.arguments[i]);
  }
  return text + (word.arguments.empty() ? "" : ")");
}

/// Calls visit(name, component of a, component of b) for every component.
template <class A, class B, class Visit>
void for_each_component(A& a, B& b, Visit visit) {
  visit("cut", a.cut, b.cut);
  visit("parameters", a.modes[0], b.modes[0]);
  visit("optimizer", a.modes[1], b.modes[1]);
  visit("gradients", a.modes[2], b.modes[2]);
  visit("activations", a.modes[3], b.modes[3]);
  visit("gathered parameters", a.keep, b.keep);
  visit("prefetch", a.prefetch, b.prefetch);
  visit("offload of parameters", a.offload[0], b.offload[0]);
  visit("offload of optimizer", a.offload[1], b.offload[1]);
  visit("offload of gradients", a.offload[2], b.offload[2]);
  visit("offload of activations", a.offload[3], b.offload[3]);
  visit("update", a.update, b.update);
  visit("indices", a.tensor_indices, b.tensor_indices);
  visit("schedule", a.schedule, b.schedule);
  visit("attention", a.attention, b.attention);
  visit("method", a.method, b.method);
}

/// Fills what `into` leaves open.
void fill(PartialHow& into, const PartialHow& from) {
  for_each_component(into, from, [](const char*, auto& a, const auto& b) {
    if (!a) a = b;
  });
}

std::optional<Clash> clash_between(const PartialHow& a, const PartialHow& b) {
  std::optional<Clash> found;
  for_each_component(a, b, [&](const char* name, const auto& x, const auto& y) {
    if (found || !x || !y || *x == *y) return;
    found =
        Clash{.component = name, .earlier_value = print_value(*x), .later_value = print_value(*y)};
  });
  return found;
}

std::optional<Clash> clash_between(const Meaning& a, const Meaning& b) {
  if (auto clash = clash_between(a.sets, b.sets)) return clash;
  for (const ClassPart& x : a.classes) {
    for (const ClassPart& y : b.classes) {
      if (x.selector != y.selector) continue;
      auto clash = clash_between(x.sets, y.sets);
      if (!clash) continue;
      clash->component += " of " + spell(x.selector);
      return clash;
    }
  }
  return std::nullopt;
}

const ClassPart* part_for(const Meaning& meaning, const Selector& selector) {
  const auto it = std::ranges::find(meaning.classes, selector, &ClassPart::selector);
  return it != meaning.classes.end() ? &*it : nullptr;
}

bool is_data_cut(Cut cut) { return cut == Cut::batch || cut == Cut::sequence; }

struct Gathered {
  PartialHow sets;
  PartialHow suggests;
};

/// A full How of what was set and suggested; `axis` gives cut and modes where no cut is named.
How complete(const Gathered& parts, const How* axis) {
  PartialHow all = parts.sets;
  fill(all, parts.suggests);
  How how;
  if (all.cut) {
    how.cut = *all.cut;
    // The samples of a class are its axis's: a suggestion of one cut of them is as good as another.
    const bool suggested = axis != nullptr && !parts.sets.cut;
    if (suggested && is_data_cut(how.cut) && is_data_cut(axis->cut)) how.cut = axis->cut;
    how.modes = default_modes(how.cut);
  } else {
    ensure(axis != nullptr, "terms without a cut stand on an axis that has one");
    how.cut = axis->cut;
    how.modes = axis->modes;
    how.tensor_indices = axis->tensor_indices;
  }
  const std::array<Mode*, 4> modes = {&how.modes.parameters, &how.modes.optimizer,
                                      &how.modes.gradients, &how.modes.activations};
  for (std::size_t s = 0; s < modes.size(); ++s) {
    if (all.modes[s]) *modes[s] = *all.modes[s];
  }
  how.keep = all.keep.value_or(Keep::none);
  how.prefetch = all.prefetch;
  how.offload = all.offload;
  how.update = all.update;
  if (all.tensor_indices) how.tensor_indices = *all.tensor_indices;
  if (how.cut != Cut::tensor) how.tensor_indices = kTensorIndices;
  return how;
}

Gathered gather_class(std::span<const Meaning> terms, const Selector& selector) {
  Gathered parts;
  for (const Meaning& term : terms) {
    const ClassPart* part = part_for(term, selector);
    if (part == nullptr) continue;
    fill(parts.sets, part->sets);
    fill(parts.suggests, part->suggests);
  }
  return parts;
}

}  // namespace

const Strategy* find_strategy(const Vocabulary& vocabulary, std::string_view name) {
  return find_named(vocabulary.strategies, name);
}

const Realisation* find_realisation(const Vocabulary& vocabulary, std::string_view name) {
  return find_named(vocabulary.realisations, name);
}

void refuse_unreadable(const Vocabulary& vocabulary, std::string_view name) {
  const auto it = std::ranges::find(vocabulary.unreadable, name, &UnreadableWord::name);
  if (it != vocabulary.unreadable.end()) throw InputError(it->fault);
}

Vocabulary ordered(Vocabulary vocabulary) {
  std::ranges::sort(vocabulary.strategies, {}, &Strategy::name);
  std::ranges::sort(vocabulary.realisations, {}, &Realisation::name);
  std::vector<std::string> names;
  names.reserve(vocabulary.strategies.size() + vocabulary.realisations.size());
  for (const Strategy& strategy : vocabulary.strategies) names.push_back(strategy.name);
  for (const Realisation& realisation : vocabulary.realisations) names.push_back(realisation.name);
  check_names(std::move(names));
  return vocabulary;
}

std::optional<Clash> clash_of_last(std::span<const Meaning> terms) {
  for (std::size_t earlier = 0; earlier + 1 < terms.size(); ++earlier) {
    auto clash = clash_between(terms[earlier], terms.back());
    if (!clash) continue;
    clash->earlier = earlier;
    clash->later = terms.size() - 1;
    return clash;
  }
  return std::nullopt;
}

std::optional<Clash> clash_of(std::span<const Meaning> terms) {
  for (std::size_t count = 2; count <= terms.size(); ++count) {
    if (auto clash = clash_of_last(terms.first(count))) return clash;
  }
  return std::nullopt;
}

Composed compose(std::span<const Meaning> terms) {
  Gathered parts;
  std::vector<Selector> selectors;
  for (const Meaning& term : terms) {
    fill(parts.sets, term.sets);
    fill(parts.suggests, term.suggests);
    for (const ClassPart& part : term.classes) selectors.push_back(part.selector);
  }
  Composed out;
  out.schedule = parts.sets.schedule;
  out.attention = parts.sets.attention;
  out.method = parts.sets.method;
  if (!parts.sets.cut && !parts.suggests.cut) return out;
  out.how = complete(parts, nullptr);
  // A suggested realisation holds only on the cut that it carries out.
  if (!out.schedule && out.how->cut == Cut::layer) out.schedule = parts.suggests.schedule;
  if (!out.attention && out.how->cut == Cut::sequence) out.attention = parts.suggests.attention;
  std::ranges::sort(selectors);
  selectors.erase(std::unique(selectors.begin(), selectors.end()), selectors.end());
  for (const Selector& selector : selectors) {
    out.overrides.push_back({selector, complete(gather_class(terms, selector), &*out.how)});
  }
  return out;
}

Meaning for_class(const Meaning& term, const Selector& selector) {
  if (const ClassPart* part = part_for(term, selector)) return {part->sets, part->suggests, {}};
  return {term.sets, term.suggests, {}};
}

How compose_class(std::span<const Meaning> terms, const How& axis) {
  Gathered parts;
  for (const Meaning& term : terms) {
    fill(parts.sets, term.sets);
    fill(parts.suggests, term.suggests);
  }
  return complete(parts, &axis);
}

std::string spell(const Selector& selector) {
  if (const auto* tensor_class = std::get_if<TensorClass>(&selector)) {
    return std::string(name_of(*tensor_class));
  }
  if (const auto* range = std::get_if<BlockRange>(&selector)) {
    return "blocks " + std::to_string(range->first) + "-" + std::to_string(range->last);
  }
  return "checkpoints";
}

}  // namespace placet
