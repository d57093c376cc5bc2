#include "check/turned.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "check/identities.h"
#include "units/at.h"

namespace placet {
namespace {

int number_in_list(const std::vector<int>& list, int value) {
  return static_cast<int>(std::ranges::find(list, value) - list.begin());
}

std::vector<int> counted(std::size_t count) {
  std::vector<int> out(count);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

/// Whether which entry is which of it goes by the dims of its operands alone: not where a function
/// sees vectors, of which the order of the result's dims may tell the places apart.
bool goes_by_operands(const Node& node) {
  if (node.kind == Node::Kind::product) return true;
  if (node.kind != Node::Kind::function) return false;
  const auto reduced_end = std::ranges::find(node.seen, -1);
  const bool sees_vectors = reduced_end == node.seen.end() ||
                            std::next(reduced_end) == node.seen.end() ||
                            *std::next(reduced_end) != -1;
  const auto is_read = [&](int d) {
    return std::ranges::any_of(node.operands,
                               [&](const NodeOperand& o) { return contains(o.dims, d); });
  };
  return !sees_vectors && std::ranges::all_of(node.result, is_read);
}

/// Of a sum: its terms as what they are turned from, if all are turned alike.
std::optional<NodeOperand> unturned_sum(Nodes& nodes, NodeId id) {
  const Node& sum = nodes.at(id);
  if (sum.terms.empty()) return std::nullopt;
  std::vector<int> places;
  Tensor whole;
  for (const Item& term : sum.terms) {
    const std::optional<NodeOperand> from = turned_from(nodes, term.node);
    if (!from || (!places.empty() && places != from->dims)) return std::nullopt;
    places = from->dims;
    Item item = nodes.item_of(from->node);
    item.factor = term.factor;
    add_to(whole, Tensor{.dims = {}, .cuts = {}, .items = {std::move(item)}});
  }
  whole.dims.resize(places.size());
  for (std::size_t d = 0; d < places.size(); ++d) whole.dims[d] = sum.dims[at(places[d])];
  return NodeOperand{nodes.node_of(whole), places};
}

}  // namespace

bool is_turn(const std::vector<int>& from, const std::vector<int>& to) {
  std::vector<int> one = from;
  std::vector<int> other = to;
  std::ranges::sort(one);
  std::ranges::sort(other);
  return one == other && std::ranges::adjacent_find(one) == one.end();
}

std::optional<NodeOperand> turned_from(const Nodes& nodes, NodeId node) {
  const Node& n = nodes.at(node);
  if (n.kind != Node::Kind::product || n.operands.size() != 1) return std::nullopt;
  const NodeOperand& from = n.operands[0];
  if (!is_turn(from.dims, n.result)) return std::nullopt;
  NodeOperand out{from.node, {}};
  out.dims.reserve(from.dims.size());
  for (const int d : from.dims) out.dims.push_back(number_in_list(n.result, d));
  return out;
}

NodeId turned(Nodes& nodes, NodeId node, const std::vector<int>& from, const std::vector<int>& to) {
  NodeOperand inner = unturned(nodes, {node, from});
  if (inner.dims == to) return inner.node;
  std::vector<int> dims;
  dims.reserve(to.size());
  for (const int d : to)
    dims.push_back(nodes.at(inner.node).dims[at(number_in_list(inner.dims, d))]);
  DimNumbers numbers;
  return nodes.add(product_node({std::move(inner)}, to, dims, numbers));
}

NodeOperand unturned(Nodes& nodes, NodeOperand operand) {
  std::optional<NodeOperand> from = turned_from(nodes, operand.node);
  if (!from && nodes.at(operand.node).kind == Node::Kind::sum) {
    from = unturned_sum(nodes, operand.node);
  }
  if (!from) return operand;
  for (int& d : from->dims) d = operand.dims[at(d)];
  return *from;
}

std::optional<NodeOperand> known_turned(const Nodes& nodes, const Node& made) {
  constexpr std::size_t kMostDims = 5;
  const std::size_t count = made.result.size();
  if (count < 2 || count > kMostDims || !goes_by_operands(made)) return std::nullopt;
  std::vector<int> places = counted(count);
  Node other = made;
  while (std::ranges::next_permutation(places).found) {
    for (std::size_t d = 0; d < count; ++d) {
      other.result[d] = made.result[at(places[d])];
      other.dims[d] = made.dims[at(places[d])];
    }
    if (const NodeId known = nodes.find(other); known >= 0) return NodeOperand{known, places};
  }
  return std::nullopt;
}

Tensor turned(Nodes& nodes, const Tensor& value, const std::vector<int>& from,
              const std::vector<int>& to) {
  Tensor out{.dims = {}, .cuts = {}, .items = {}, .scales = value.scales};
  out.dims.reserve(to.size());
  out.cuts.reserve(to.size());
  for (const int d : to) {
    const std::size_t place = at(number_in_list(from, d));
    out.dims.push_back(value.dims[place]);
    out.cuts.push_back(value.cuts[place]);
  }
  for (const Item& item : value.items) {
    Item other = nodes.item_of(turned(nodes, item.node, from, to));
    other.factor = item.factor;
    other.shares = item.shares;
    other.parts = item.parts;
    other.combine = item.combine;
    add_to(out, Tensor{.dims = {}, .cuts = {}, .items = {std::move(other)}});
  }
  return out;
}

MadeNode add_turned(Nodes& nodes, Node node, NodeMaker maker) {
  const std::size_t before = nodes.size();
  const NodeId id = nodes.add(std::move(node));
  const bool is_new = nodes.size() > before;
  if (is_new && nodes.at(id).kind == Node::Kind::product && !nodes.is_odd(id)) {
    note_zeros(nodes, id);
  }
  if (is_new && maker == NodeMaker::program) {
    if (auto known = known_turned(nodes, nodes.at(id))) nodes.note_turn(id, *std::move(known));
  }
  const NodeOperand* turn = nodes.turn_of(id);
  if (turn == nullptr) return {id, id};
  const NodeOperand of = *turn;
  return {turned(nodes, of.node, of.dims, counted(of.dims.size())), of.node};
}

}  // namespace placet
