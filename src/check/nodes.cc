#include "check/nodes.h"

#include <algorithm>
#include <functional>

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
  for (const Rational& f : node.factors) hash = mixed(hash, f);
  return mixed(mixed(hash, node.result), node.seen);
}

/// Of a complete tensor.
std::uint64_t hash_of_sum(const Tensor& tensor) {
  std::uint64_t hash = mixed(tensor.items.size(), tensor.dims);
  for (const Item& item : tensor.items) {
    hash = mixed(mixed(hash, static_cast<std::uint64_t>(item.node)), item.factor);
  }
  return hash;
}

}  // namespace

NodeId Nodes::find(const Node& node, std::uint64_t hash) const {
  const auto [first, last] = known_.equal_range(hash);
  for (auto k = first; k != last; ++k) {
    if (at(k->second) == node) return k->second;
  }
  return -1;
}

NodeId Nodes::find(const Node& node) const { return find(node, hash_of(node)); }

NodeId Nodes::add(Node node) {
  const std::uint64_t hash = hash_of(node);
  if (const NodeId known = find(node, hash); known >= 0) return known;
  const auto id = static_cast<NodeId>(nodes_.size());
  const bool odd =
      node.kind == Node::Kind::odd ||
      std::ranges::any_of(node.operands, [&](const NodeOperand& o) { return is_odd(o.node); });
  odd_.push_back(odd);
  nodes_.push_back(std::make_shared<const Node>(std::move(node)));
  known_.emplace(hash, id);
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
    for (const NodeOperand& o : node.operands) open.push_back(o.node);
  }
  return false;
}

void Nodes::note_zero(NodeId product, int dim) {
  std::vector<int>& dims = zeros_[product];
  if (std::ranges::find(dims, dim) == dims.end()) dims.push_back(dim);
}

const std::vector<int>& Nodes::zero_dims(NodeId id) const {
  static const std::vector<int> kNone;
  const auto found = zeros_.find(id);
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
  for (NodeOperand& f : factors) node.operands.push_back({f.node, numbers.of(f.dims)});
  node.result = numbers.of(result);
  return node;
}

NodeId Nodes::leaf(const std::string& name, const std::vector<int>& which,
                   const std::vector<int>& dims) {
  return add({.kind = Node::Kind::leaf,
              .text = name,
              .operands = {},
              .factors = {},
              .result = {},
              .seen = which,
              .dims = dims});
}

NodeId Nodes::node_of(const Tensor& tensor) {
  ensure(is_complete(tensor), "only complete values are nodes");
  if (tensor.items.size() == 1 && tensor.items[0].factor == Rational(1)) {
    return tensor.items[0].node;
  }
  // Streams are sums of as many items as there were layers: a known one is not made again.
  const std::uint64_t hash = hash_of_sum(tensor);
  if (const NodeId known = find_sum(tensor, hash); known >= 0) return known;
  Node node{.kind = Node::Kind::sum, .text = {}, .dims = tensor.dims};
  std::vector<int> all;
  for (std::size_t d = 0; d < tensor.dims.size(); ++d) all.push_back(static_cast<int>(d));
  node.result = all;
  for (const Item& item : tensor.items) {
    node.operands.push_back({item.node, all});
    node.factors.push_back(item.factor);
  }
  const NodeId made = add(std::move(node));
  sums_.emplace(hash, made);
  return made;
}

namespace {

Tensor in_proportion(const Tensor& value, const std::vector<Rational>& proportions) {
  Tensor whole = completed(value);
  for (std::size_t i = 0; i < whole.items.size(); ++i) whole.items[i].factor = proportions[i];
  return whole;
}

}  // namespace

std::vector<Rational> Nodes::proportions_in_name(const Tensor& value) const {
  std::vector<Rational> once(value.items.size(), Rational(1));
  if (once.size() < 2 || has_parts_and_whole(value)) return once;
  const auto is_factor = [&](const std::vector<Rational>& proportions) {
    const Tensor sum = in_proportion(value, proportions);
    return factors_.contains(find_sum(sum, hash_of_sum(sum)));
  };
  std::vector<Rational> proportions = proportions_of(value);
  return proportions == once || is_factor(once) || !is_factor(proportions) ? once : proportions;
}

NodeId Nodes::node_of(const Tensor& value, const std::vector<Rational>& proportions) {
  return node_of(in_proportion(value, proportions));
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
  return {.node = id, .shares = {}, .parts = {}, .odd = is_odd(id)};
}

NodeId Nodes::find_sum(const Tensor& tensor, std::uint64_t hash) const {
  const auto is_it = [&](const Node& sum) {
    if (sum.dims != tensor.dims || sum.operands.size() != tensor.items.size()) return false;
    for (std::size_t i = 0; i < tensor.items.size(); ++i) {
      const Item& item = tensor.items[i];
      if (sum.operands[i].node != item.node || sum.factors[i] != item.factor) return false;
    }
    return true;
  };
  const auto [first, last] = sums_.equal_range(hash);
  const auto found = std::find_if(first, last, [&](const auto& k) { return is_it(at(k.second)); });
  return found == last ? -1 : found->second;
}

void Nodes::name(NodeId id, const std::string& text) { names_.try_emplace(id, text); }

std::string Nodes::name_of(NodeId id) const {
  if (const auto found = names_.find(id); found != names_.end()) return found->second;
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
      if (node.operands.empty()) return "zero";
      return (node.kind == Node::Kind::sum ? "sum with " : "product with ") + name_of_part(node);
  }
  return {};
}

/// What a product or a sum is told by; of products of products, what the innermost are made of.
std::string Nodes::name_of_part(const Node& node) const {
  const Node* one = &node;
  NodeId id = 0;
  do {
    id = one->kind == Node::Kind::sum ? one->operands.front().node : one->operands.back().node;
    const bool named = names_.contains(id);
    one = &at(id);
    if (named || one->operands.empty()) break;
  } while (one->kind == node.kind);
  return name_of(id);
}

}  // namespace placet
