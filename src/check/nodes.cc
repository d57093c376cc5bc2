#include "check/nodes.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "check/scales.h"
#include "units/error.h"
#include "units/hash.h"

namespace placet {
namespace {

std::uint64_t hash_of(const Node& node) {
  std::uint64_t hash = static_cast<std::uint64_t>(node.kind);
  hash = mixed(hash, std::hash<std::string>()(node.text));
  hash = mixed(hash, std::hash<std::string>()(node.draw));
  for (const NodeOperand& o : node.operands) {
    hash = mixed(mixed(hash, static_cast<std::uint64_t>(o.node)), o.dims);
  }
  hash = mixed(hash, node.terms.hash_of_terms());
  return mixed(mixed(hash, node.result), node.seen);
}

}  // namespace

std::vector<NodeId> operands_of(const Node& node) {
  std::vector<NodeId> out;
  out.reserve(node.operands.size() + node.terms.size());
  for_each_operand(node, [&](NodeId id) { out.push_back(id); });
  return out;
}

NodeId Nodes::find(const Node& node, std::uint64_t hash) const {
  return known_.find(hash, [&](NodeId id) { return at(id) == node; });
}

NodeId Nodes::find(const Node& node) const { return find(node, hash_of(node)); }

NodeId Nodes::add(Node node) {
  const std::uint64_t hash = hash_of(node);
  if (const NodeId known = find(node, hash); known >= 0) return known;
  const auto id = static_cast<NodeId>(nodes_.size());
  const bool odd =
      node.kind == Node::Kind::odd || node.terms.any_odd() ||
      std::ranges::any_of(node.operands, [&](const NodeOperand& o) { return is_odd(o.node); });
  odd_.push_back(odd);
  nodes_.push_back(std::make_shared<const Node>(std::move(node)));
  known_.add(hash, id);
  return id;
}

bool Nodes::may_divide_by_zero(NodeId id, NodeId foreign_from) const {
  std::vector<NodeId> open{id};
  std::unordered_set<NodeId> seen;
  while (!open.empty()) {
    const NodeId one = open.back();
    open.pop_back();
    if (one < foreign_from || !seen.insert(one).second) continue;
    const Node& node = at(one);
    const bool divides =
        node.kind == Node::Kind::function && (node.text == "inv" || node.text == "ratio");
    if (is_odd(one) || divides) return true;
    for_each_operand(node, [&](NodeId of) { open.push_back(of); });
  }
  return false;
}

void Nodes::note_zero(NodeId product, int dim) {
  std::vector<int>& dims = zeros_[product];
  if (std::ranges::find(dims, dim) == dims.end()) dims.push_back(dim);
}

const std::vector<int>& Nodes::zero_dims(NodeId id) const {
  static const std::vector<int> kNone;
  const auto found = zeros_.find(unscaled(id));
  return found == zeros_.end() ? kNone : found->second;
}

std::vector<int> DimNumbers::of(const std::vector<int>& dims) {
  std::vector<int> list(dims.size());
  std::ranges::transform(dims, list.begin(), [&](int d) { return of(d); });
  return list;
}

int DimNumbers::of(int dim) {
  const auto known = std::ranges::find(all_, dim, &std::pair<int, int>::first);
  if (known != all_.end()) return known->second;
  return all_.emplace_back(dim, static_cast<int>(all_.size())).second;
}

Node product_node(std::vector<NodeOperand> factors, const std::vector<int>& result,
                  const std::vector<int>& dims, DimNumbers& numbers) {
  std::ranges::sort(factors);
  Node node{.kind = Node::Kind::product, .text = {}, .dims = dims};
  node.operands.reserve(factors.size());
  for (NodeOperand& f : factors) node.operands.push_back({f.node, numbers.of(f.dims)});
  node.result = numbers.of(result);
  return node;
}

NodeId Nodes::leaf(const std::string& name, const std::vector<int>& which,
                   const std::vector<int>& dims) {
  return add({.kind = Node::Kind::leaf,
              .text = name,
              .operands = {},
              .terms = {},
              .result = {},
              .seen = which,
              .dims = dims});
}

namespace {

Node sum_node(const Tensor& tensor) {
  Node node{.kind = Node::Kind::sum, .text = {}, .dims = tensor.dims};
  node.terms = tensor.items;
  node.result.resize(tensor.dims.size());
  std::iota(node.result.begin(), node.result.end(), 0);
  return node;
}

}  // namespace

NodeId Nodes::node_of(const Tensor& tensor) {
  return scaled(*this, bare_node_of(tensor), tensor.scales);
}

NodeId Nodes::bare_node_of(const Tensor& tensor) {
  ensure(is_complete(tensor), "only complete values are nodes");
  if (tensor.items.size() == 1 && tensor.items[0].factor == Rational(1)) {
    return tensor.items[0].node;
  }
  return add(sum_node(tensor));
}

namespace {

Tensor in_proportion(const Tensor& value, const std::vector<Rational>& proportions) {
  Tensor whole = completed(value);
  whole.items.edit_all([&](std::vector<Item>& items) {
    for (std::size_t i = 0; i < items.size(); ++i) items[i].factor = proportions[i];
  });
  return whole;
}

}  // namespace

std::vector<Rational> Nodes::proportions_in_name(const Tensor& value) const {
  std::vector<Rational> once(value.items.size(), Rational(1));
  if (once.size() < 2 || has_parts_and_whole(value)) return once;
  const auto is_factor = [&](const std::vector<Rational>& proportions) {
    return factors_.contains(find(sum_node(in_proportion(value, proportions))));
  };
  std::vector<Rational> proportions = proportions_of(value);
  return proportions == once || is_factor(once) || !is_factor(proportions) ? once : proportions;
}

NodeId Nodes::node_of(const Tensor& value, const std::vector<Rational>& proportions) {
  return bare_node_of(in_proportion(value, proportions));
}

NodeId Nodes::part_of(const Tensor& partial, const NodeOperand& through, const Tensor& summands,
                      NodeId part) {
  const bool one_summand = partial.items.size() == 1;
  const bool one_factor = through == NodeOperand{};
  if (one_summand && one_factor) return part;
  Node node{.kind = Node::Kind::odd, .text = "a part of a factor", .dims = partial.dims};
  if (!one_factor) node.operands.push_back(through);
  if (!one_summand) node.operands.push_back({node_of(summands), {}});
  node.operands.push_back({part, {}});
  return add(node);
}

Item Nodes::item_of(NodeId id) const {
  return {
      .node = id, .shares = {}, .parts = {}, .odd = is_odd(id), .vanishes = !zero_dims(id).empty()};
}

void Nodes::name(NodeId id, const std::string& text) {
  if (keeps_names_) names_.try_emplace(id, text);
}

std::string Nodes::name_of(NodeId id) const {
  if (const auto found = names_.find(id); found != names_.end()) return found->second;
  if (const ScaledNode* of = scaled_of(id)) return name_of(of->node);
  const Node& node = at(id);
  switch (node.kind) {
    case Node::Kind::leaf:
    case Node::Kind::odd:
      return node.text;
    case Node::Kind::function: {
      const std::string name = node.text + (node.draw.empty() ? "" : " for " + node.draw);
      return node.operands.empty() ? name : name + " of " + name_of(node.operands[0].node);
    }
    case Node::Kind::product:
    case Node::Kind::sum:
      if (node.operands.empty() && node.terms.empty()) return "zero";
      return (node.kind == Node::Kind::sum ? "sum with " : "product with ") + name_of_part(node);
  }
  return {};
}

/// What a product or a sum is told by; of products of products, what the innermost are made of.
std::string Nodes::name_of_part(const Node& node) const {
  const Node* one = &node;
  NodeId id = 0;
  do {
    id = one->kind == Node::Kind::sum ? one->terms.front().node : one->operands.back().node;
    const bool named = names_.contains(id);
    one = &at(id);
    if (named || (one->operands.empty() && one->terms.empty())) break;
  } while (one->kind == node.kind);
  return name_of(id);
}

}  // namespace placet
