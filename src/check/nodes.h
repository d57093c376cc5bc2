// Expressions over whole tensors, each once (docs/theory.md §6.5). Inside of check/.
//
// A node is a leaf (a parameter, an input), a product, a sum, a function. Equal expressions are one
// node, whoever wrote them down: the reference or the program.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "check/numbers_by_hash.h"
#include "check/values.h"
#include "units/rational.h"

namespace placet {

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
    sum,       // of terms
    function,  // named by `text`
    odd        // what the reference never makes; `text` says why
  };
  Kind kind = Kind::leaf;
  std::string text;
  /// Of a function that draws random numbers: what for. Of an odd one: which parts are missing.
  std::string draw;
  std::vector<NodeOperand> operands;  // but for those of a sum
  Items terms;                        // of a sum: complete ones, which have all its dims
  std::vector<int> result;            // dims of the result, by number
  /// Of a function: dims that it reduces, dims it needs whole, dims whose positions it depends on,
  /// with -1 between these lists. Of a leaf: which one it is.
  std::vector<int> seen;
  Combine combine = Combine::sum;
  std::vector<int> dims;  // logical dims of the result

  friend bool operator==(const Node&, const Node&) = default;
};

/// Calls `visit` with each node that one is made of.
template <class Visit>
void for_each_operand(const Node& node, Visit visit) {
  for (const NodeOperand& o : node.operands) visit(o.node);
  for (const Item& term : node.terms) visit(term.node);
}

/// Those, in order.
std::vector<NodeId> operands_of(const Node& node);

/// Who makes a node: in the reference no dims stand in another order than its own.
enum class NodeMaker : std::uint8_t { reference, program };

/// Whether it is kept what people call a node: only findings are told by names.
enum class Names : std::uint8_t { kept, left_out };

/// A node times inverses of single numbers (check/scales.h), these in order.
struct ScaledNode {
  NodeId node = 0;
  std::vector<NodeId> by;
};

/// All nodes of one check, each once.
class Nodes {
 public:
  explicit Nodes(Names names = Names::kept) : keeps_names_(names == Names::kept) {}

  NodeId add(Node node);
  /// The node, if it was added; -1: it was not.
  NodeId find(const Node& node) const;
  /// Leaves are told apart by numbers, as names of parameters may be equal.
  NodeId leaf(const std::string& name, const std::vector<int>& which, const std::vector<int>& dims);
  const Node& at(NodeId id) const { return *nodes_[static_cast<std::size_t>(id)]; }
  /// Whether it is an odd one, or made of one.
  bool is_odd(NodeId id) const { return odd_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return nodes_.size(); }
  /// Whether a node may be no number: it is odd, or divides, or is made of such; nodes before
  /// `foreign_from`, which the reference makes too, are numbers.
  bool may_divide_by_zero(NodeId id, NodeId foreign_from) const;

  /// The node that a complete tensor is: its single item, or the sum of its items, times its
  /// scales.
  NodeId node_of(const Tensor& tensor);
  /// The same without the scales.
  NodeId bare_node_of(const Tensor& tensor);
  /// Notes that the reference multiplies by it.
  void note_factor(NodeId id) { factors_.insert(id); }
  /// How often each summand of an incomplete value takes part in what names its products: once, or
  /// in proportion where the reference multiplies by that sum and not by the other one.
  std::vector<Rational> proportions_in_name(const Tensor& value) const;
  /// The node of what an incomplete value is a part of, its summands as often as that, over its
  /// scales.
  NodeId node_of(const Tensor& value, const std::vector<Rational>& proportions);
  /// What of an incomplete factor a part is. To its name belongs the factor through which it came,
  /// of several: in u(a) v(a) a part of a through u gives another value than one through v. So do
  /// the summands that take the part in their own way, of several.
  NodeId part_of(const Tensor& partial, const NodeOperand& through, const Tensor& summands,
                 NodeId part);
  /// A node as a complete summand.
  Item item_of(NodeId id) const;

  /// What people call a node, where that is kept.
  bool keeps_names() const { return keeps_names_; }
  void name(NodeId id, const std::string& text);
  std::string name_of(NodeId id) const;

  /// Lets a list of items have its beginning in common with other ones.
  void share_beginning(Items& items) { beginnings_.share(items); }

  /// Notes that a node which only the program makes is another one with its dims in another order:
  /// dim d of that stands at the place `dims[d]` of the node's.
  void note_turn(NodeId id, NodeOperand of) { turns_.emplace(id, std::move(of)); }
  const NodeOperand* turn_of(NodeId id) const {
    const auto found = turns_.empty() ? turns_.end() : turns_.find(id);
    return found == turns_.end() ? nullptr : &found->second;
  }

  /// Notes that a product is a node times scales.
  void note_scaled(NodeId id, ScaledNode of) { scaled_.emplace(id, std::move(of)); }
  const ScaledNode* scaled_of(NodeId id) const {
    const auto found = scaled_.empty() ? scaled_.end() : scaled_.find(id);
    return found == scaled_.end() ? nullptr : &found->second;
  }
  /// The node without its scales.
  NodeId unscaled(NodeId id) const {
    const ScaledNode* of = scaled_of(id);
    return of == nullptr ? id : of->node;
  }

  /// Notes that a product is zero where its sum over one of its dims, by number, is whole.
  void note_zero(NodeId product, int dim);
  /// Such dims of a node, or of what it is a multiple of.
  const std::vector<int>& zero_dims(NodeId id) const;
  bool has_zeros() const { return !zeros_.empty(); }

 private:
  std::string name_of_part(const Node& node) const;
  NodeId find(const Node& node, std::uint64_t hash) const;

  std::vector<std::shared_ptr<const Node>> nodes_;  // copies of all share them
  std::vector<bool> odd_;
  NumbersByHash known_;
  bool keeps_names_ = true;
  Beginnings beginnings_;
  std::unordered_map<NodeId, std::string> names_;
  std::unordered_map<NodeId, std::vector<int>> zeros_;
  std::unordered_map<NodeId, NodeOperand> turns_;
  std::unordered_map<NodeId, ScaledNode> scaled_;
  std::unordered_set<NodeId> factors_;  // of products of the reference
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

}  // namespace placet
