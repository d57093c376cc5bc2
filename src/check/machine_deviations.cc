// Where contents that meet in a collective of several classes began to differ: what its findings
// point at.
#include <algorithm>
#include <optional>
#include <utility>

#include "check/machine.h"
#include "units/at.h"

namespace placet {
namespace {

/// How many values two contents have in common.
std::size_t common_values(const Content& a, const Content& b) {
  std::size_t common = 0;
  for (std::size_t p = 0; p < std::min(a.pieces.size(), b.pieces.size()); ++p) {
    for (const Item& item : a.pieces[p].items) {
      const auto& others = b.pieces[p].items;
      if (std::ranges::find(others, item.node, &Item::node) != others.end()) ++common;
    }
  }
  return common;
}

/// Of two that differ and are most alike else, the one that is there more often, and the other.
std::pair<const Content*, const Content*> usual_and_odd(const std::vector<Content>& contents) {
  std::pair<const Content*, const Content*> best;
  std::size_t most = 0;
  for (std::size_t k = 0; k < contents.size(); ++k) {
    for (std::size_t j = 0; j < k; ++j) {
      if (contents[j] == contents[k]) continue;
      const std::size_t common = common_values(contents[j], contents[k]);
      if (best.first != nullptr && common <= most) continue;
      most = common;
      best = {&contents[j], &contents[k]};
    }
  }
  if (best.first == nullptr) return best;
  if (std::ranges::count(contents, *best.second) > std::ranges::count(contents, *best.first)) {
    std::swap(best.first, best.second);
  }
  return best;
}

std::size_t at_place(const Content& one, const std::vector<Content>& contents) {
  return static_cast<std::size_t>(&one - contents.data());
}

}  // namespace

/// Of two scales of one value that of which less was seen: not 1, or given later.
const Origin* Machine::odd_scale(const Item& a, const Item& b) const {
  const std::optional<Rational> one = scale_of(a);
  const std::optional<Rational> other = scale_of(b);
  if (!one || !other || a.node != b.node || *one == *other) return nullptr;
  if (*other == Rational(1)) return scaled_at(a.node, *one);
  if (*one == Rational(1)) return scaled_at(b.node, *other);
  const auto& known = scales_.at(a.node);
  const auto place = [&](const Rational& factor) {
    return std::ranges::find(known, factor, &Scaled::factor);
  };
  return place(*one) < place(*other) ? scaled_at(b.node, *other) : scaled_at(a.node, *one);
}

const Origin* Machine::odd_scale(const Content& a, const Content& b) const {
  for (std::size_t p = 0; p < std::min(a.pieces.size(), b.pieces.size()); ++p) {
    for (const Item& mine : a.pieces[p].items) {
      const auto theirs = std::ranges::find(b.pieces[p].items, mine.node, &Item::node);
      if (theirs == b.pieces[p].items.end()) continue;
      if (const Origin* origin = odd_scale(mine, *theirs)) return origin;
    }
  }
  return nullptr;
}

/// Where something in it began to be what the reference does not make; null: nothing is.
const Origin* Machine::root_of(const Content& content) const {
  for (const Tensor& t : content.pieces) {
    for (const Item& item : t.items) {
      if (const Origin* origin = root_of(item.node)) return origin;
    }
  }
  return nullptr;
}

/// Where no two contents are equal: where one of them began to be what the reference does not make,
/// or has another scale than another one.
const Origin* Machine::odd_one(const std::vector<Content>& contents) const {
  for (const Content& content : contents) {
    if (const Origin* origin = root_of(content)) return origin;
  }
  for (std::size_t k = 1; k < contents.size(); ++k) {
    for (std::size_t j = 0; j < k; ++j) {
      if (const Origin* origin = odd_scale(contents[j], contents[k])) return origin;
    }
  }
  return nullptr;
}

/// Where an item that a device has and most others have not, or with another factor, came from;
/// null: they have it, or that is not known.
const Origin* Machine::deviation(const Item& item, const Items& usual) const {
  if (std::ranges::find(usual, item) != usual.end()) return nullptr;
  const bool same = std::ranges::find(usual, item.node, &Item::node) != usual.end();
  const std::optional<Rational> factor = same ? scale_of(item) : std::nullopt;
  return factor ? scaled_at(item.node, *factor) : root_of(item.node);
}

/// Where the content of one device became another than that of most.
const Origin* Machine::deviation(const std::vector<Content>& contents) const {
  const auto [usual, odd] = usual_and_odd(contents);
  if (odd == nullptr) return nullptr;
  if (met_.size() == contents.size()) {
    const auto number_of = [&](const Content& c) { return met_[at_place(c, contents)]; };
    if (const Origin* origin = parting(number_of(*usual), number_of(*odd))) return origin;
  }
  for (std::size_t p = 0; p < odd->pieces.size() && p < usual->pieces.size(); ++p) {
    for (const Item& item : odd->pieces[p].items) {
      if (const Origin* origin = deviation(item, usual->pieces[p].items)) return origin;
    }
  }
  return odd_one(contents);
}

/// Where a device got its content that has less in it than those of others; null: all have as much.
const Origin* Machine::writer_of_least(const std::vector<int>& members, std::size_t input,
                                       const std::vector<Content>& contents) {
  const auto size_of = [](const Content& content) {
    std::size_t items = 0;
    for (const Tensor& t : content.pieces) items += t.items.size();
    return items;
  };
  const auto [least, most] = std::ranges::minmax_element(contents, {}, size_of);
  if (size_of(*least) == size_of(*most)) return nullptr;
  return writer_read_by(members[static_cast<std::size_t>(least - contents.begin())], input);
}

/// What last wrote the input that a class stands before; null: nothing did.
const Origin* Machine::writer_read_by(int c, std::size_t input) const {
  const Runner& runner = runners_[at(c)];
  const Slot* slot = runner.slots.find(runner.instruction->inputs[input], runner.arguments);
  return slot == nullptr || slot->writer.instruction == nullptr ? nullptr : &slot->writer;
}

/// The first content that lacks micro-batches which another has; none: all lack the same.
std::optional<Machine::Lacking> Machine::lacks_micro_batches(
    const std::vector<Content>& contents) const {
  std::vector<std::string> lacks;
  for (const Content& content : contents) {
    std::string& text = lacks.emplace_back();
    for (const Tensor& t : content.pieces) {
      if (text.empty()) text = missing_micro_batches(t, regions_.degree(regions_.micro_axis()));
    }
  }
  const auto some = std::ranges::find_if(lacks, [](const std::string& l) { return !l.empty(); });
  if (some == lacks.end() || std::ranges::count(lacks, *some) == std::ssize(lacks)) return {};
  return Lacking{.member = static_cast<std::size_t>(some - lacks.begin()), .text = *some};
}

/// Findings about these contents, which cannot be right, point at the instruction.
void Machine::blame(const std::vector<Content>& contents, const Origin* origin) {
  if (origin == nullptr) return;
  const Origin cause = *origin;
  for (const Content& content : contents) {
    for (const Tensor& t : content.pieces) {
      for (const Item& item : t.items) origins_.try_emplace(item.node, cause);
    }
  }
}

}  // namespace placet
