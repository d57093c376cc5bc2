// The summands of a value (docs/theory.md §6.5), in lists that share their beginnings. Inside of
// check/.
//
// A residual stream is a sum of two more values with every block, and each of these sums is held
// somewhere. Items stand by node, and what a block adds is made after what others added before it:
// nearly always the new list is the old one with an item behind it. So all but the last items of a
// list stand in blocks that never change, each of which knows the block before it, and lists that
// begin alike have those blocks in common. What is asked most of a list is known of each block for
// all of the list up to there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "check/region.h"
#include "program/program.h"
#include "units/rational.h"

namespace placet {

/// An expression over whole tensors (check/nodes.h).
using NodeId = int;

/// A sum that is complete only over some parts: cuts of the dims it runs over.
struct OpenSum {
  NodeId node = 0;  // where the sum stands
  int dim = 0;      // its number there; below 0: a row of elements (`Rows`)
  Splits cuts;

  friend auto operator<=>(const OpenSum&, const OpenSum&) = default;
};

/// A share of an incomplete value: sums that are still open, and the factor with which each
/// micro-batch takes part; a value of one micro-batch has a single entry for "its own".
struct Share {
  NodeId of = 0;  // the node that is incomplete: the value's own, or one it is made of linearly
  std::vector<OpenSum> open;
  /// Factor by micro-batch: {first, last, factor}, disjoint and in order. Empty: no micro-batch
  /// axis takes part in the sum.
  struct Run {
    std::int64_t first = 0;
    std::int64_t last = 0;
    Rational factor;
    friend auto operator<=>(const Run& a, const Run& b) = default;
  };
  std::vector<Run> runs;
  Rational factor{1};  // of one with runs: 1, as theirs tell all of it

  /// Makes its sum one over micro-batches: the factor goes into the runs.
  void sum_over(std::vector<Run> over);
  friend bool operator==(const Share&, const Share&) = default;
};

/// One summand of a value.
struct Item {
  NodeId node = 0;
  Rational factor{1};
  std::vector<Share> shares;  // in the order of `sort_shares`; empty: complete
  /// The nodes whose shares make it complete, in order: the node itself, or the summands of an
  /// incomplete operand that it is linear in.
  std::vector<NodeId> parts;
  Combine combine = Combine::sum;  // of a complete one: sum
  /// Made of what cannot be right: nodes of that kind are equal without being the same value, so
  /// that they never cancel.
  bool odd = false;
  /// Whether the node is zero where some of its sums are whole (`Nodes::zero_dims`).
  bool vanishes = false;

  bool complete() const { return shares.empty(); }
  friend bool operator==(const Item&, const Item&) = default;
};

class Beginnings;

/// A list of items. Lists are equal if their items are.
///
/// Invariants: every block has `kBlock` items; behind them stand at least one and at most `kBlock`
/// more, unless the list is empty. So equal lists are divided into blocks alike.
class Items {
  struct Known;
  struct Block;

 public:
  static constexpr std::size_t kBlock = 8;

  Items() = default;
  Items(std::initializer_list<Item> items) : own_(items) { seal(); }
  explicit Items(std::vector<Item> items) : own_(std::move(items)) { seal(); }

  std::size_t size() const;
  bool empty() const { return own_.empty(); }
  const Item& operator[](std::size_t i) const;
  const Item& front() const { return (*this)[0]; }
  const Item& back() const { return own_.back(); }

  class Iterator {
   public:
    // Names that the standard asks for.
    // NOLINTBEGIN(readability-identifier-naming)
    using iterator_category = std::forward_iterator_tag;
    using value_type = Item;
    using difference_type = std::ptrdiff_t;
    using pointer = const Item*;
    using reference = const Item&;
    // NOLINTEND(readability-identifier-naming)
    Iterator() = default;
    Iterator(const Items& list, std::size_t index) : list_(&list), index_(index) { find(); }
    const Item& operator*() const { return *item_; }
    const Item* operator->() const { return item_; }
    Iterator& operator++();
    Iterator operator++(int);
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.index_ == b.index_; }

   private:
    void find();

    const Items* list_ = nullptr;
    std::size_t index_ = 0;
    const Item* item_ = nullptr;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }
  /// The first item that may be incomplete: all before it are complete.
  Iterator first_in_doubt() const { return {*this, begins_complete()}; }

  void push_back(Item item);
  /// Calls `edit` with the items from the first one on that `before` does not say of, given one of
  /// an ordered list, that it stands before `item`; perhaps with some before these. What `edit`
  /// makes of that list stands in its place.
  template <class Before, class Edit>
  void edit_from(const Item& item, Before before, Edit edit) {
    open_while([&](const std::vector<Item>& block) { return !before(block.back(), item); });
    edit(own_);
    seal();
  }
  /// The same with all items that are not complete, and perhaps others.
  template <class Edit>
  void edit_incomplete(Edit edit) {
    while_incomplete();
    edit(own_);
    seal();
  }
  /// The same with all items.
  template <class Edit>
  void edit_all(Edit edit) {
    open_while([](const std::vector<Item>&) { return true; });
    edit(own_);
    seal();
  }

  /// What is known without looking at all of them.
  bool all_complete() const;
  bool any_odd() const;
  bool any_vanishes() const;
  bool any_open_maximum() const;
  /// Whether all factors are the first one, but for the sign; yes of no items.
  bool factors_alike() const;
  /// Whether an item of an ordered list has the node.
  bool has_node(NodeId node) const;
  /// Of all that an item is.
  std::uint64_t hash() const;
  /// Of nodes and factors alone.
  std::uint64_t hash_of_terms() const;

  friend bool operator==(const Items& a, const Items& b);

 private:
  friend class Beginnings;
  template <class Which>
  void open_while(Which which) {
    std::vector<std::shared_ptr<Block>> opened;
    while (before_ && which(items_of(*before_))) {
      opened.push_back(before_);
      before_ = previous_of(*before_);
    }
    put_back(opened);
  }
  static bool are_equal(const Block* a, const Block* b);
  static const std::vector<Item>& items_of(const Block& block);
  static const std::shared_ptr<Block>& previous_of(const Block& block);
  void while_incomplete();
  void put_back(const std::vector<std::shared_ptr<Block>>& opened);
  void seal();
  std::size_t sealed() const;
  std::size_t begins_complete() const;

  std::shared_ptr<Block> before_;
  std::vector<Item> own_;
};

/// The beginnings of long lists, each once, whoever made them: lists that went on from these are
/// compared in the time that their ends take.
class Beginnings {
 public:
  /// Makes the list begin with the blocks that are known, where these are equal to its own.
  void share(Items& items);

 private:
  std::unordered_multimap<std::uint64_t, std::shared_ptr<Items::Block>> known_;  // by hash
};

}  // namespace placet
