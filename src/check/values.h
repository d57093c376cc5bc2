// What a buffer holds, in terms of the reference (docs/theory.md §6.5). Inside of check/.
//
// A node is an expression over whole tensors: a leaf (a parameter, an input), a product, a sum, a
// function. Equal expressions are one node, whoever wrote them down: the reference or the program.
// A tensor of a device is a sum of nodes, each with a factor, restricted to a part of its dims and,
// where a sum is not complete, to a part of what is summed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "check/region.h"
#include "units/rational.h"

namespace placet {

using NodeId = int;

/// An operand of a node: its dims under the numbers that they have in the node.
struct NodeOperand {
  NodeId node = 0;
  std::vector<int> dims;

  friend auto operator<=>(const NodeOperand&, const NodeOperand&) = default;
};

struct Node {
  enum class Kind : std::uint8_t {
    leaf,      // named by `text`
    product,   // of operands, summed over dims that the result has not
    sum,       // of operands with factors
    function,  // named by `text`
    odd        // what the reference never makes; `text` says why
  };
  Kind kind = Kind::leaf;
  std::string text;
  /// Of a function that draws random numbers: what for. Of an odd one: which parts are missing.
  std::string draw;
  std::vector<NodeOperand> operands;
  std::vector<Rational> factors;  // of a sum
  std::vector<int> result;        // dims of the result, by number
  /// Of a function: dims that it reduces, dims it needs whole, dims whose positions it depends on,
  /// with -1 between these lists. Of a leaf: which one it is.
  std::vector<int> seen;
  Combine combine = Combine::sum;
  std::vector<int> dims;  // logical dims of the result

  friend bool operator==(const Node&, const Node&) = default;
};

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
  std::vector<Share> shares;  // empty: complete
  /// The nodes whose shares make it complete, in order: the node itself, or the summands of an
  /// incomplete operand that it is linear in.
  std::vector<NodeId> parts;
  Combine combine = Combine::sum;
  /// Made of what cannot be right: nodes of that kind are equal without being the same value, so
  /// that they never cancel.
  bool odd = false;

  bool complete() const { return shares.empty(); }
  friend bool operator==(const Item&, const Item&) = default;
};

/// A tensor of a device: its logical dims with their cuts, and what it is a sum of. All items have
/// the same dims.
struct Tensor {
  std::vector<int> dims;
  std::vector<Splits> cuts;
  std::vector<Item> items;  // by node; empty: zero

  friend bool operator==(const Tensor&, const Tensor&) = default;
};

std::uint64_t hash_of(const Tensor& tensor);

/// All nodes of one check, each once.
class Nodes {
 public:
  NodeId add(Node node);
  /// The node, if it was added; -1: it was not.
  NodeId find(const Node& node) const;
  /// Leaves are told apart by numbers, as names of parameters may be equal.
  NodeId leaf(const std::string& name, const std::vector<int>& which, const std::vector<int>& dims);
  const Node& at(NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  /// Whether it is an odd one, or made of one.
  bool is_odd(NodeId id) const { return odd_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return nodes_.size(); }

  /// The node that a complete tensor is: its single item, or the sum of its items.
  NodeId node_of(const Tensor& tensor);
  /// A node as a complete summand.
  Item item_of(NodeId id) const;

  /// What people call a node.
  void name(NodeId id, const std::string& text);
  std::string name_of(NodeId id) const;

  /// Notes that a product is zero where its sum over one of its dims, by number, is whole.
  void note_zero(NodeId product, int dim);
  /// Such dims of a node.
  const std::vector<int>& zero_dims(NodeId id) const;
  bool has_zeros() const { return !zeros_.empty(); }

 private:
  NodeId find(const Node& node, std::uint64_t hash) const;
  NodeId find_sum(const Tensor& tensor, std::uint64_t hash) const;

  std::vector<Node> nodes_;
  std::vector<bool> odd_;
  std::unordered_multimap<std::uint64_t, NodeId> known_;  // by hash
  std::unordered_multimap<std::uint64_t, NodeId> sums_;   // by hash of the tensor that they were
  std::unordered_map<NodeId, std::string> names_;
  std::unordered_map<NodeId, std::vector<int>> zeros_;
};

/// Dims under numbers in the order in which they are named.
class DimNumbers {
 public:
  std::vector<int> of(const std::vector<int>& dims);
  int of(int dim);
  /// Dims with their numbers, in the order of these.
  const std::vector<std::pair<int, int>>& all() const { return all_; }

 private:
  std::vector<std::pair<int, int>> all_;
};

/// The node of a product of factors, whose dims have any names, with the result's logical dims.
Node product_node(std::vector<NodeOperand> factors, const std::vector<int>& result,
                  const std::vector<int>& dims, DimNumbers& numbers);

/// The factor that all of an item has, of incomplete ones that of their shares; none: they differ.
std::optional<Rational> scale_of(const Item& item);

/// Adds the axes along which parts of a share are missing; `micro_axis` where those of other
/// micro-batches are.
void add_missing_axes(const Share& share, int micro_axis, std::vector<int>& axes);

bool is_complete(const Tensor& tensor);

/// Whether some share of what is not complete is one of these.
template <class Which>
bool any_share(const Tensor& tensor, Which which) {
  return std::ranges::any_of(
      tensor.items, [&](const Item& item) { return std::ranges::any_of(item.shares, which); });
}

/// Whether some item is a maximum of which parts are missing: it takes part in no sum.
bool has_open_maximum(const Tensor& tensor);

/// Turns items whose shares are complete into complete ones. Shares that differ in one thing only,
/// of which device along an axis a sum has its part, are the sum over all parts once there is one
/// for every device.
void settle(Tensor& tensor, const Regions& regions);

/// Every part that is named by a device along an axis, of the device `by` places further on
/// instead. False: a part is one of which that cannot be said.
bool shift_all(Tensor& tensor, int axis, std::int64_t by, const Regions& regions);

/// Which parts of a sum that is added up part by part are missing or there more than once, in
/// words, of the first such sum. Empty: none is added up so, or not along one axis alone.
/// Case: parts 0 and 2 places further on of 3: "the part of the device 1 place further on along cp
/// is missing".
std::string wrong_parts(const Tensor& tensor, const Regions& regions);

/// The same with every number of the value multiplied.
Share scaled(Share share, const Rational& by);
Tensor scaled(Tensor tensor, const Rational& by);

/// The complete tensor that an incomplete one is a part of.
Tensor completed(const Tensor& tensor);

/// Whether adding `more` of one micro-batch only makes the last runs of all shares one longer, and
/// completes nothing: the sum is over micro-batches up to this one, and all else is equal.
bool extends(const Tensor& sum, const Tensor& more, std::int64_t micro_batch,
             std::int64_t micro_batches);

/// Gives what is of the value's own micro-batch the number of that one, added to what is of it
/// already.
void name_micro_batch(Tensor& tensor, std::int64_t micro_batch);

/// Makes the last runs of all shares so much longer. Each has some.
void extend(Tensor& sum, std::int64_t by);

/// a += b where both have the same dims and cuts: items of a node are one; shares that differ in
/// their micro-batches only are one.
void add_to(Tensor& a, const Tensor& b);

}  // namespace placet
