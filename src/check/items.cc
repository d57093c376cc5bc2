#include "check/items.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "check/values.h"
#include "units/hash.h"

namespace placet {
namespace {

std::uint64_t hash_of(const Share& share) {
  std::uint64_t hash = mixed(static_cast<std::uint64_t>(share.of), share.factor);
  for (const OpenSum& o : share.open) hash = mixed(hash, hash_of(o.cuts));
  for (const Share::Run& r : share.runs) {
    hash = mixed(hash, static_cast<std::uint64_t>(r.first));
    hash = mixed(mixed(hash, static_cast<std::uint64_t>(r.last)), r.factor);
  }
  return hash;
}

}  // namespace

/// What is known of a list up to some place.
struct Items::Known {
  std::size_t count = 0;
  std::uint64_t hash = 0;
  std::uint64_t hash_of_terms = 0;
  Rational first{1};  // factor
  bool all_complete = true;
  bool any_odd = false;
  bool any_vanishes = false;
  bool any_open_maximum = false;
  bool factors_alike = true;

  void add(const Item& item) {
    if (count == 0) first = item.factor;
    factors_alike = factors_alike && is_alike(item.factor);
    ++count;
    hash_of_terms = mixed(mixed(hash_of_terms, static_cast<std::uint64_t>(item.node)), item.factor);
    hash = mixed(mixed(hash, static_cast<std::uint64_t>(item.node)), item.factor);
    for (const Share& s : item.shares) hash = mixed(hash, hash_of(s));
    all_complete = all_complete && item.complete();
    any_odd = any_odd || item.odd;
    any_vanishes = any_vanishes || item.vanishes;
    any_open_maximum = any_open_maximum || (!item.complete() && item.combine != Combine::sum);
  }
  bool is_alike(const Rational& factor) const {
    return factor == first || factor == Rational(0) - first;
  }
};

struct Items::Block {
  std::shared_ptr<Block> before;
  std::vector<Item> items;
  Known known;  // of the list that ends with it

  Block(std::shared_ptr<Block> previous, std::vector<Item> own)
      : before(std::move(previous)), items(std::move(own)) {
    if (before) known = before->known;
    for (const Item& item : items) known.add(item);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  /// One block after the other: a destructor inside of another for each would take a stack as deep
  /// as the list is long.
  ~Block() {
    while (before && before.use_count() == 1) before = std::exchange(before->before, nullptr);
  }
};

const std::vector<Item>& Items::items_of(const Block& block) { return block.items; }
const std::shared_ptr<Items::Block>& Items::previous_of(const Block& block) { return block.before; }

std::size_t Items::sealed() const { return before_ ? before_->known.count : 0; }
std::size_t Items::size() const { return sealed() + own_.size(); }

std::size_t Items::begins_complete() const {
  const Block* block = before_.get();
  while (block != nullptr && !block->known.all_complete) block = block->before.get();
  return block == nullptr ? 0 : block->known.count;
}

const Item& Items::operator[](std::size_t i) const {
  if (i >= sealed()) return own_[i - sealed()];
  const Block* block = before_.get();
  while (block->known.count - kBlock > i) block = block->before.get();
  return block->items[i % kBlock];
}

void Items::Iterator::find() { item_ = index_ < list_->size() ? &(*list_)[index_] : nullptr; }

Items::Iterator& Items::Iterator::operator++() {
  ++index_;
  ++item_;
  if (index_ % kBlock == 0 && index_ <= list_->sealed()) find();
  return *this;
}

Items::Iterator Items::Iterator::operator++(int) {
  Iterator old = *this;
  ++*this;
  return old;
}

void Items::push_back(Item item) {
  own_.push_back(std::move(item));
  seal();
}

void Items::while_incomplete() {
  std::vector<std::shared_ptr<Block>> opened;
  while (before_ && !before_->known.all_complete) {
    opened.push_back(before_);
    before_ = previous_of(*before_);
  }
  put_back(opened);
}

/// Blocks, the last one first, in front of the own items.
void Items::put_back(const std::vector<std::shared_ptr<Block>>& opened) {
  if (opened.empty()) return;
  std::vector<Item> all;
  all.reserve(opened.size() * kBlock + own_.size());
  for (const std::shared_ptr<Block>& block : std::views::reverse(opened)) {
    all.insert(all.end(), block->items.begin(), block->items.end());
  }
  all.insert(all.end(), std::make_move_iterator(own_.begin()), std::make_move_iterator(own_.end()));
  own_ = std::move(all);
}

/// Brings about the invariants.
void Items::seal() {
  if (own_.empty() && before_) {
    own_ = before_->items;
    before_ = previous_of(*before_);
  }
  auto next = own_.begin();
  while (own_.end() - next > static_cast<std::ptrdiff_t>(kBlock)) {
    const auto end = next + kBlock;
    before_ = std::make_shared<Block>(
        std::move(before_),
        std::vector<Item>(std::make_move_iterator(next), std::make_move_iterator(end)));
    next = end;
  }
  own_.erase(own_.begin(), next);
}

bool Items::all_complete() const {
  return (!before_ || before_->known.all_complete) &&
         std::ranges::all_of(own_, [](const Item& item) { return item.complete(); });
}

bool Items::any_odd() const {
  return (before_ && before_->known.any_odd) || std::ranges::any_of(own_, &Item::odd);
}

bool Items::any_vanishes() const {
  return (before_ && before_->known.any_vanishes) || std::ranges::any_of(own_, &Item::vanishes);
}

bool Items::any_open_maximum() const {
  return (before_ && before_->known.any_open_maximum) ||
         std::ranges::any_of(own_, [](const Item& item) {
           return !item.complete() && item.combine != Combine::sum;
         });
}

bool Items::factors_alike() const {
  if (own_.empty()) return true;
  Known known;
  if (before_) known = before_->known;
  if (known.count == 0) known.first = own_.front().factor;
  return known.factors_alike &&
         std::ranges::all_of(own_, [&](const Item& item) { return known.is_alike(item.factor); });
}

bool Items::has_node(NodeId node) const {
  const auto has = [&](const std::vector<Item>& items) {
    return std::ranges::find(items, node, &Item::node) != items.end();
  };
  if (has(own_)) return true;
  for (const Block* block = before_.get(); block != nullptr; block = block->before.get()) {
    if (block->items.back().node < node) return false;
    if (has(block->items)) return true;
  }
  return false;
}

std::uint64_t Items::hash() const {
  Known known;
  if (before_) known = before_->known;
  for (const Item& item : own_) known.add(item);
  return known.hash;
}

std::uint64_t Items::hash_of_terms() const {
  std::uint64_t hash = before_ ? before_->known.hash_of_terms : 0;
  for (const Item& item : own_) {
    hash = mixed(mixed(hash, static_cast<std::uint64_t>(item.node)), item.factor);
  }
  return hash;
}

/// Whether two lists of blocks are equal, of lists that are as long.
bool Items::are_equal(const Block* a, const Block* b) {
  while (a != b) {
    if (a->known.hash != b->known.hash || a->items != b->items) return false;
    a = a->before.get();
    b = b->before.get();
  }
  return true;
}

bool operator==(const Items& a, const Items& b) {
  return a.sealed() == b.sealed() && a.own_ == b.own_ &&
         Items::are_equal(a.before_.get(), b.before_.get());
}

void Beginnings::share(Items& items) {
  if (!items.before_) return;
  const std::uint64_t hash = items.before_->known.hash;
  const auto [first, last] = known_.equal_range(hash);
  for (auto k = first; k != last; ++k) {
    if (k->second->known.count != items.sealed()) continue;
    if (!Items::are_equal(k->second.get(), items.before_.get())) continue;
    items.before_ = k->second;
    return;
  }
  known_.emplace(hash, items.before_);
}

}  // namespace placet
