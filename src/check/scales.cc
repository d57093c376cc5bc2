#include "check/scales.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "check/turned.h"

namespace placet {
namespace {

/// Every summand times the scales that all of them had.
void push_down(Nodes& nodes, Tensor& value) {
  if (value.scales.empty()) return;
  Tensor down{.dims = value.dims, .cuts = value.cuts, .items = {}, .scales = {}};
  for (Item item : value.items) {
    const Item whole = nodes.item_of(scaled(nodes, item.node, value.scales));
    item.node = whole.node;
    item.odd = item.odd || whole.odd;
    item.vanishes = item.vanishes || whole.vanishes;
    for (NodeId& part : item.parts) part = scaled(nodes, part, value.scales);
    for (Share& share : item.shares) share.of = scaled(nodes, share.of, value.scales);
    std::ranges::sort(item.parts);
    sort_shares(item.shares);
    add_to(down, Tensor{.dims = {}, .cuts = {}, .items = {std::move(item)}, .scales = {}});
  }
  value = std::move(down);
}

}  // namespace

bool is_scale(const Nodes& nodes, const Tensor& value) {
  if (!value.dims.empty() || value.items.size() != 1 || !is_complete(value)) return false;
  const Node& node = nodes.at(value.items[0].node);
  // An odd one is told apart from others like it by nothing, so that it is no common factor.
  return node.kind == Node::Kind::function && node.text == "inv" && node.dims.empty() &&
         !nodes.is_odd(value.items[0].node);
}

NodeId scaled(Nodes& nodes, NodeId node, const std::vector<NodeId>& scales) {
  if (scales.empty()) return node;
  std::vector<int> dims(nodes.at(node).dims.size());
  std::iota(dims.begin(), dims.end(), 0);
  // What is turned is so as a whole: its scales stand inside.
  if (const NodeOperand from = unturned(nodes, {node, dims}); from.node != node) {
    return turned(nodes, scaled(nodes, from.node, scales), from.dims, dims);
  }
  ScaledNode of{node, scales};
  if (const ScaledNode* known = nodes.scaled_of(node)) {
    of.node = known->node;
    of.by.insert(of.by.end(), known->by.begin(), known->by.end());
  }
  std::ranges::sort(of.by);
  std::vector<NodeOperand> factors{{of.node, dims}};
  for (const NodeId scale : of.by) factors.push_back({scale, {}});
  DimNumbers numbers;
  Node product = product_node(std::move(factors), dims, nodes.at(of.node).dims, numbers);
  const NodeId id = nodes.add(std::move(product));
  nodes.note_scaled(id, std::move(of));
  return id;
}

void multiply(Tensor& value, const std::vector<NodeId>& scales) {
  if (value.items.empty() || scales.empty()) return;
  value.scales.insert(value.scales.end(), scales.begin(), scales.end());
  std::ranges::sort(value.scales);
}

bool add(Nodes& nodes, Tensor& a, const Tensor& b) {
  bool met = false;
  if (a.items.empty()) a.scales = b.scales;
  if (b.items.empty() || a.scales == b.scales) {
    met = add_to(a, b);
  } else {
    Tensor more = b;
    push_down(nodes, a);
    push_down(nodes, more);
    met = add_to(a, more);
  }
  if (a.items.empty()) a.scales.clear();
  return met;
}

NodeOperand bare(const Nodes& nodes, NodeOperand operand, std::vector<NodeId>& scales) {
  const ScaledNode* of = nodes.scaled_of(operand.node);
  if (of == nullptr) return operand;
  scales.insert(scales.end(), of->by.begin(), of->by.end());
  operand.node = of->node;
  return operand;
}

}  // namespace placet
