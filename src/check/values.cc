#include "check/values.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "check/quotients.h"
#include "units/error.h"
#include "units/hash.h"

namespace placet {
namespace {

Rational factor_at(const std::vector<Share::Run>& runs, std::int64_t micro_batch) {
  const auto found = std::ranges::find_if(
      runs, [&](const Share::Run& r) { return r.first <= micro_batch && micro_batch <= r.last; });
  return found == runs.end() ? Rational(0) : found->factor;
}

/// Factors by micro-batch added up: runs are cut where one begins or ends. A value's own
/// micro-batch (-1) is no neighbour of the first one.
std::vector<Share::Run> sum_of(const std::vector<Share::Run>& a, const std::vector<Share::Run>& b) {
  std::vector<std::int64_t> marks;
  for (const auto* runs : {&a, &b}) {
    for (const Share::Run& r : *runs) {
      marks.push_back(r.first);
      marks.push_back(r.last + 1);
    }
  }
  std::ranges::sort(marks);
  marks.erase(std::unique(marks.begin(), marks.end()), marks.end());
  std::vector<Share::Run> out;
  for (std::size_t i = 0; i + 1 < marks.size(); ++i) {
    const Rational factor = factor_at(a, marks[i]) + factor_at(b, marks[i]);
    if (factor == Rational(0)) continue;
    const bool goes_on = !out.empty() && out.back().last >= 0 && out.back().last + 1 == marks[i] &&
                         out.back().factor == factor;
    if (goes_on) {
      out.back().last = marks[i + 1] - 1;
    } else {
      out.push_back({marks[i], marks[i + 1] - 1, factor});
    }
  }
  return out;
}

/// Gives the value's own micro-batch its number.
void name_micro_batch(std::vector<Share::Run>& runs, std::int64_t micro_batch) {
  std::vector<Share::Run> own;
  for (const Share::Run& run : runs) {
    if (run.first < 0) own.push_back({micro_batch, micro_batch, run.factor});
  }
  if (own.empty()) return;
  std::erase_if(runs, [](const Share::Run& run) { return run.first < 0; });
  runs = sum_of(runs, own);
}

/// The order in which an item's shares stand.
bool comes_before(const Share& a, const Share& b) {
  return a.of != b.of ? a.of < b.of : a.open < b.open;
}

void add_share(std::vector<Share>& shares, const Share& share) {
  const auto [first, last] = std::ranges::equal_range(shares, share, comes_before);
  const auto same = std::find_if(
      first, last, [&](const Share& s) { return s.runs.empty() == share.runs.empty(); });
  if (same == last) {
    shares.insert(last, share);
    return;
  }
  if (same->runs.empty()) {
    same->factor = same->factor + share.factor;
    if (same->factor == Rational(0)) shares.erase(same);
    return;
  }
  ensure(same->factor == share.factor, "factors of sums over micro-batches stand in their runs");
  same->runs = sum_of(same->runs, share.runs);
  if (same->runs.empty()) shares.erase(same);
}

/// A division of a share's open sum: which one.
struct SplitPlace {
  std::size_t sum = 0;
  std::size_t split = 0;
};

template <class S>
auto& split_at(S& share, const SplitPlace& place) {
  return share.open[place.sum].cuts[place.split];
}

/// Calls `visit` with each open division that divides a share's sums, until it says true.
template <class Visit>
bool any_split(const Share& share, Visit visit) {
  for (SplitPlace p; p.sum < share.open.size(); ++p.sum) {
    for (p.split = 0; p.split < share.open[p.sum].cuts.size(); ++p.split) {
      if (split_at(share, p).open && visit(p)) return true;
    }
  }
  return false;
}

/// Whether an open sum is another one, whose division number `split` is moved so many devices on.
bool is_moved(const OpenSum& sum, const OpenSum& from, std::size_t split, std::int64_t shift) {
  if (sum.node != from.node || sum.dim != from.dim || sum.cuts.size() != from.cuts.size()) {
    return false;
  }
  for (std::size_t c = 0; c < sum.cuts.size(); ++c) {
    Split asked = from.cuts[c];
    if (c == split) asked.shift = shift;
    if (sum.cuts[c] != asked) return false;
  }
  return true;
}

/// Whether a share is another one but for its place at one division, which is that many further on.
bool is_moved(const Share& share, const Share& from, const SplitPlace& place, std::int64_t shift) {
  if (share.of != from.of || share.open.size() != from.open.size()) return false;
  for (std::size_t i = 0; i < share.open.size(); ++i) {
    const bool alike = i == place.sum ? is_moved(share.open[i], from.open[i], place.split, shift)
                                      : share.open[i] == from.open[i];
    if (!alike) return false;
  }
  return true;
}

/// The share that has the part of the device `shift` places further on at this division and is like
/// `one` else, whatever its factor; the end: there is none.
std::vector<Share>::const_iterator sibling(const std::vector<Share>& shares, const Share& one,
                                           const SplitPlace& place, std::int64_t shift) {
  const auto [first, last] = std::ranges::equal_range(shares, one.of, {}, &Share::of);
  const auto found =
      std::find_if(first, last, [&](const Share& s) { return is_moved(s, one, place, shift); });
  return found == last ? shares.end() : found;
}

/// The share with a division closed: over the parts of all devices along its axis.
Share closed_at(Share share, const SplitPlace& place) {
  Splits& cuts = share.open[place.sum].cuts;
  cuts[place.split].open = false;
  cuts[place.split].shift = 0;
  trim(cuts);
  std::erase_if(share.open, [](const OpenSum& o) { return is_whole(o.cuts); });
  return share;
}

/// Of shares with each device's part along an axis, all alike, one: their sum. False: there are
/// none.
bool close_parts(std::vector<Share>& shares, const Share& one, const SplitPlace& place,
                 const Regions& regions) {
  const std::int64_t n = regions.degree(split_at(one, place).axis);
  if (split_at(one, place).shift != 0 || static_cast<std::int64_t>(shares.size()) < n) return false;
  for (std::int64_t shift = 1; shift < n; ++shift) {
    const auto other = sibling(shares, one, place, shift);
    if (other == shares.end() || other->factor != one.factor || other->runs != one.runs) {
      return false;
    }
  }
  for (std::int64_t shift = 0; shift < n; ++shift) {
    shares.erase(sibling(shares, one, place, shift));
  }
  add_share(shares, closed_at(one, place));
  return true;
}

void close_all_parts(std::vector<Share>& shares, const Regions& regions) {
  const auto closes = [&](const Share& one) {
    const Share copy = one;
    return any_split(copy,
                     [&](const SplitPlace& p) { return close_parts(shares, copy, p, regions); });
  };
  while (shares.size() > 1 && std::ranges::any_of(shares, closes)) {
  }
}

/// By node, complete ones before those that are not.
bool stands_before(const Item& a, const Item& b) {
  return a.node != b.node ? a.node < b.node : a.complete() && !b.complete();
}

/// Adds it to those items that do not stand before it. True: it met one of its node.
bool put_item(std::vector<Item>& items, Item item) {
  const auto place = std::ranges::lower_bound(items, item, stands_before);
  if (place == items.end() || stands_before(item, *place)) {
    items.insert(place, std::move(item));
    return false;
  }
  if (place->odd) return true;
  if (item.complete()) {
    place->factor = place->factor + item.factor;
    if (place->factor == Rational(0)) items.erase(place);
    return true;
  }
  ensure(place->factor == Rational(1) && item.factor == Rational(1),
         "factors of incomplete items stand in their shares");
  for (const Share& s : item.shares) add_share(place->shares, s);
  if (place->shares.empty()) items.erase(place);
  return true;
}

bool add_item(Items& items, Item item) {
  if (items.empty() || stands_before(items.back(), item)) {
    items.push_back(std::move(item));
    return false;
  }
  bool met = false;
  const Item place = {.node = item.node, .shares = item.shares, .parts = {}};
  items.edit_from(place, stands_before,
                  [&](std::vector<Item>& end) { met = put_item(end, std::move(item)); });
  return met;
}

}  // namespace

void sort_shares(std::vector<Share>& shares) { std::ranges::sort(shares, comes_before); }

void Share::sum_over(std::vector<Run> over) {
  ensure(!over.empty(), "a sum over micro-batches is over some");
  for (Run& run : over) run.factor = run.factor * factor;
  runs = std::move(over);
  factor = Rational(1);
}

std::uint64_t mixed(std::uint64_t hash, const Rational& value) {
  hash = mixed(hash, static_cast<std::uint64_t>(value.numerator()));
  return mixed(hash, static_cast<std::uint64_t>(value.denominator()));
}

std::uint64_t hash_of(const Tensor& tensor) {
  std::uint64_t hash = mixed(tensor.items.size(), tensor.dims);
  for (const Splits& cuts : tensor.cuts) hash = mixed(hash, hash_of(cuts));
  return mixed(mixed(hash, tensor.scales), tensor.items.hash());
}

std::optional<Rational> scale_of(const Item& item) {
  if (item.complete()) return item.factor;
  const auto factor_of = [](const Share& s) {
    return s.runs.empty() ? s.factor : s.factor * s.runs.front().factor;
  };
  const Rational first = factor_of(item.shares.front());
  const bool alike =
      std::ranges::all_of(item.shares, [&](const Share& s) { return factor_of(s) == first; });
  if (!alike) return std::nullopt;
  return first;
}

bool is_one_sum_each(const std::vector<OpenSum>& sums) {
  std::vector<int> seen;
  for (const OpenSum& sum : sums) {
    for (const Split& split : sum.cuts) {
      if (!split.open) continue;
      if (std::ranges::find(seen, split.axis) != seen.end()) return false;
      seen.push_back(split.axis);
    }
  }
  return true;
}

bool has_parts_and_whole(const Tensor& tensor) {
  return std::ranges::adjacent_find(tensor.items, {}, &Item::node) != tensor.items.end();
}

void add_missing_axes(const Share& share, int micro_axis, std::vector<int>& axes) {
  for (const OpenSum& o : share.open) {
    for (const Split& c : o.cuts) {
      if (c.open) axes.push_back(c.axis);
    }
  }
  if (!share.runs.empty()) axes.push_back(micro_axis);
}

std::vector<int> missing_axes(const Tensor& tensor, int micro_axis) {
  std::vector<int> axes;
  any_share(tensor, [&](const Share& s) {
    add_missing_axes(s, micro_axis, axes);
    return false;
  });
  std::ranges::sort(axes);
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

bool is_complete(const Tensor& tensor) { return tensor.items.all_complete(); }

bool has_open_maximum(const Tensor& tensor) { return tensor.items.any_open_maximum(); }

namespace {

/// The factor of an item all of whose shares are closed and alike; none: it stays incomplete.
std::optional<Rational> common_factor(const Item& item) {
  if (item.shares.size() != item.parts.size()) return std::nullopt;
  for (std::size_t i = 0; i < item.shares.size(); ++i) {
    const Share& s = item.shares[i];
    const bool closed = s.open.empty() && s.runs.empty();
    if (!closed || s.of != item.parts[i] || s.factor != item.shares[0].factor) {
      return std::nullopt;
    }
  }
  return item.shares[0].factor;
}

void close_runs(Share& share, std::int64_t micro_batches) {
  if (share.runs.size() != 1) return;
  const Share::Run& run = share.runs[0];
  if (run.first != 0 || run.last != micro_batches - 1) return;
  share.factor = share.factor * run.factor;
  share.runs.clear();
  for (OpenSum& o : share.open) forget_micro_batches(o.cuts);
  std::erase_if(share.open, [](const OpenSum& o) { return is_whole(o.cuts); });
}

/// The same of one item that is not complete; false: nothing is left of it.
bool settle(Item& item, const Regions& regions) {
  std::vector<Share> shares = std::move(item.shares);
  item.shares.clear();
  for (Share& share : shares) {
    std::erase_if(share.open, [](const OpenSum& o) { return is_whole(o.cuts); });
    close_runs(share, regions.degree(regions.micro_axis()));
    add_share(item.shares, share);
  }
  if (item.combine == Combine::sum) close_all_parts(item.shares, regions);
  if (item.shares.empty()) {
    item.parts.clear();
    return item.odd;
  }
  if (const auto factor = common_factor(item)) {
    item.factor = *factor;
    item.shares.clear();
    item.parts.clear();
    item.combine = Combine::sum;
  }
  return true;
}

}  // namespace

bool shift_all(Tensor& tensor, int axis, std::int64_t by, const Regions& regions) {
  bool known = true;
  const auto shift = [&](Splits& cuts) { known = shift_all(cuts, axis, by, regions) && known; };
  std::ranges::for_each(tensor.cuts, shift);
  tensor.items.edit_incomplete([&](std::vector<Item>& items) {
    for (Item& item : items) {
      for (Share& s : item.shares) std::ranges::for_each(s.open, shift, &OpenSum::cuts);
      sort_shares(item.shares);
    }
  });
  return known;
}

namespace {

/// "the device itself", "the device 2 places further on".
std::string device_at(std::int64_t shift) {
  if (shift == 0) return "the device itself";
  return "the device " + std::to_string(shift) + (shift == 1 ? " place" : " places") +
         " further on";
}

/// What is wrong with the parts of one sum along one axis; empty: nothing, or it has none but the
/// device's own. `complete`: how often the whole sum is there beside its parts.
std::string wrong_parts(const Rational& complete, const std::vector<Share>& shares,
                        const Share& one, const SplitPlace& place, const Regions& regions) {
  const int axis = split_at(one, place).axis;
  bool passed_on = false;
  for (std::int64_t shift = 1; shift < regions.degree(axis) && !passed_on; ++shift) {
    passed_on = sibling(shares, one, place, shift) != shares.end();
  }
  if (!passed_on) return "";
  const Share all = closed_at(one, place);
  const auto whole = std::ranges::find_if(
      shares, [&](const Share& s) { return s.of == all.of && s.open == all.open; });
  const Rational counted = whole == shares.end() ? complete : complete + whole->factor;
  std::string text;
  for (std::int64_t shift = 0; shift < regions.degree(axis); ++shift) {
    const auto part = sibling(shares, one, place, shift);
    const bool there = part != shares.end();
    const Rational times = there ? counted + part->factor : counted;
    if (times == Rational(1)) continue;
    if (!text.empty()) text += ", ";
    text += "the part of " + device_at(shift) + " along " + regions.name_of(axis);
    text += times == Rational(0) ? " is missing" : " is counted " + to_string(times) + " times";
  }
  return text;
}

/// The same of an item; `complete`: how often it is there as a whole beside its shares. Of more
/// shares than can be told apart in words, nothing.
std::string wrong_parts(const Rational& complete, const Item& item, const Regions& regions) {
  constexpr std::size_t kMostTold = 64;
  std::string text;
  if (item.shares.size() > kMostTold) return text;
  for (const Share& one : item.shares) {
    const bool told = any_split(one, [&](const SplitPlace& p) {
      text = wrong_parts(complete, item.shares, one, p, regions);
      return !text.empty();
    });
    if (told) break;
  }
  return text;
}

}  // namespace

std::string wrong_parts(const Tensor& tensor, const Regions& regions) {
  for (const Item& item : tensor.items) {
    const auto whole = std::ranges::find_if(tensor.items, [&](const Item& other) {
      return other.complete() && other.node == item.node;
    });
    const Rational complete = whole == tensor.items.end() ? Rational(0) : whole->factor;
    std::string text = wrong_parts(complete, item, regions);
    if (!text.empty()) return text;
  }
  return {};
}

namespace {

/// The runs of all shares; none: they differ, or one is of a micro-batch without a number.
std::vector<Share::Run> common_runs(const Tensor& tensor) {
  std::vector<Share::Run> common;
  for (const Item& item : tensor.items) {
    for (const Share& s : item.shares) {
      if (s.runs.empty() || s.runs.front().first < 0) return {};
      if (!common.empty() && common != s.runs) return {};
      common = s.runs;
    }
  }
  return common;
}

/// The numbers below `end` that are in no run, as first and last ones.
std::vector<std::pair<std::int64_t, std::int64_t>> gaps_in(const std::vector<Share::Run>& runs,
                                                           std::int64_t end) {
  std::vector<std::pair<std::int64_t, std::int64_t>> gaps;
  std::int64_t next = 0;
  for (const Share::Run& run : runs) {
    if (next < run.first) gaps.emplace_back(next, run.first - 1);
    next = run.last + 1;
  }
  if (next < end) gaps.emplace_back(next, end - 1);
  return gaps;
}

}  // namespace

std::string missing_micro_batches(const Tensor& tensor, std::int64_t micro_batches) {
  constexpr std::size_t kMostTold = 4;
  const std::vector<Share::Run> runs = common_runs(tensor);
  if (runs.empty()) return "";
  const auto gaps = gaps_in(runs, micro_batches);
  if (gaps.empty() || gaps.size() > kMostTold) return "";
  const bool one = gaps.size() == 1 && gaps[0].first == gaps[0].second;
  std::string text = one ? "micro-batch " : "micro-batches ";
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    const auto [first, last] = gaps[i];
    if (i > 0) text += i + 1 == gaps.size() ? " and " : ", ";
    text += std::to_string(first);
    if (first != last) text += " to " + std::to_string(last);
  }
  return text + (one ? " is missing" : " are missing");
}

void settle(Tensor& tensor, const Regions& regions) {
  if (is_complete(tensor)) return;
  std::vector<Item> items;
  tensor.items.edit_incomplete([&](std::vector<Item>& unsettled) { items.swap(unsettled); });
  for (Item& item : items) {
    if (item.complete() || settle(item, regions)) add_item(tensor.items, std::move(item));
  }
}

Share scaled(Share share, const Rational& by) {
  if (share.runs.empty()) share.factor = share.factor * by;
  for (Share::Run& run : share.runs) run.factor = run.factor * by;
  return share;
}

Tensor scaled(Tensor tensor, const Rational& by) {
  if (by == Rational(1)) return tensor;
  tensor.items.edit_all([&](std::vector<Item>& items) {
    for (Item& item : items) {
      if (item.complete()) item.factor = item.factor * by;
      for (Share& s : item.shares) s = scaled(std::move(s), by);
    }
  });
  return tensor;
}

Rational common_factor(const Tensor& tensor) {
  if (tensor.items.empty()) return Rational(1);
  const Rational& first = tensor.items.back().factor;
  if (tensor.items.size() == 1) return first;
  if (first == Rational(0)) return Rational(1);
  return tensor.items.factors_alike() ? std::max(first, Rational(0) - first) : Rational(1);
}

std::vector<Rational> proportions_of(const Tensor& tensor) {
  Tensor whole;
  for (const Item& item : tensor.items) {
    const Rational scale = scale_of(item).value_or(Rational(1));
    whole.items.push_back({.factor = is_small(scale) ? scale : Rational(1)});
  }
  const Rational common = common_factor(whole);
  std::vector<Rational> out;
  out.reserve(whole.items.size());
  for (const Item& item : whole.items) out.push_back(item.factor / common);
  return out;
}

std::vector<std::vector<std::size_t>> incomplete_alike(const Tensor& tensor) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < tensor.items.size(); ++i) {
    const Item& item = tensor.items[i];
    if (item.complete()) continue;
    const auto alike = std::ranges::find_if(groups, [&](const std::vector<std::size_t>& group) {
      const Item& first = tensor.items[group.front()];
      return first.parts == item.parts && first.shares == item.shares;
    });
    (alike != groups.end() ? *alike : groups.emplace_back()).push_back(i);
  }
  return groups;
}

Tensor completed(const Tensor& tensor) {
  Tensor out{.dims = tensor.dims, .cuts = tensor.cuts, .items = {}};
  for (const Item& item : tensor.items) {
    add_item(out.items, {.node = item.node,
                         .factor = item.factor,
                         .shares = {},
                         .parts = {},
                         .odd = item.odd,
                         .vanishes = item.vanishes});
  }
  return out;
}

namespace {

bool extends(const Share& sum, const Share& more, std::int64_t micro_batch,
             std::int64_t micro_batches) {
  if (sum.of != more.of || sum.open != more.open || sum.factor != more.factor) return false;
  if (sum.runs.empty() || more.runs.size() != 1 || more.runs[0].last >= 0) return false;
  const Share::Run& last = sum.runs.back();
  const bool completes = last.first == 0 && micro_batch + 1 == micro_batches;
  return last.last + 1 == micro_batch && last.factor == more.runs[0].factor && !completes;
}

bool extends(const Item& sum, const Item& more, std::int64_t micro_batch,
             std::int64_t micro_batches) {
  if (sum.node != more.node || sum.complete() || sum.combine != Combine::sum) return false;
  if (sum.factor != more.factor || sum.parts != more.parts || sum.combine != more.combine) {
    return false;
  }
  return std::ranges::equal(sum.shares, more.shares, [&](const Share& a, const Share& b) {
    return extends(a, b, micro_batch, micro_batches);
  });
}

}  // namespace

bool extends(const Tensor& sum, const Tensor& more, std::int64_t micro_batch,
             std::int64_t micro_batches) {
  if (sum.scales != more.scales) return false;
  return std::ranges::equal(sum.items, more.items, [&](const Item& a, const Item& b) {
    return extends(a, b, micro_batch, micro_batches);
  });
}

void name_micro_batch(Tensor& tensor, std::int64_t micro_batch) {
  tensor.items.edit_incomplete([&](std::vector<Item>& items) {
    for (Item& item : items) {
      for (Share& share : item.shares) name_micro_batch(share.runs, micro_batch);
    }
  });
}

void extend(Tensor& sum, std::int64_t by) {
  sum.items.edit_incomplete([&](std::vector<Item>& items) {
    for (Item& item : items) {
      for (Share& s : item.shares) s.runs.back().last += by;
    }
  });
}

bool add_to(Tensor& a, const Tensor& b) {
  const auto meets = [&](const Item& item) { return b.items.has_node(item.node); };
  const bool is_short = a.items.size() < b.items.size();
  if (is_short && std::ranges::none_of(a.items, meets)) {
    Items sum = b.items;  // the beginning of the longer list stays what it is
    for (const Item& item : a.items) add_item(sum, item);
    a.items = std::move(sum);
    return false;
  }
  bool met = false;
  for (const Item& item : b.items) met = add_item(a.items, item) || met;
  return met;
}

}  // namespace placet
