#include "check/passed_shares.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace placet {
namespace {

class Passing {
 public:
  Passing(Nodes& nodes, const Regions& regions, const PassedShares& from)
      : nodes_(nodes), regions_(regions), from_(from) {}

  std::string pass(Item& item) {
    const Tensor& partial = from_.partial;
    const std::vector<Rational> proportions = nodes_.proportions_in_name(partial);
    for (std::size_t i = 0; i < partial.items.size(); ++i) {
      const Item& whole = partial.items[i];
      if (whole.complete()) pass_whole(whole, sum_of({i}), proportions[i], item);
    }
    if (has_open_maximum(partial)) trouble("a maximum that is not complete is multiplied");
    for (const std::vector<std::size_t>& group : incomplete_alike(partial)) {
      pass_part(partial.items[group.front()], sum_of(group), proportions[group.front()], item);
    }
    if (item.parts.size() > from_.most_parts) {
      trouble("a sum of more than " + std::to_string(from_.most_parts) + " incomplete parts");
      item.parts.clear();
      item.shares.clear();
    }
    std::ranges::sort(item.parts);
    sort_shares(item.shares);
    return std::move(trouble_);
  }

 private:
  void trouble(const std::string& text) {
    if (trouble_.empty()) trouble_ = text;
  }

  Tensor sum_of(const std::vector<std::size_t>& some) const {
    Tensor sum{.dims = from_.partial.dims, .cuts = {}, .items = {}};
    for (std::size_t i : some) sum.items.push_back(nodes_.item_of(from_.partial.items[i].node));
    return sum;
  }

  void pass_whole(const Item& summand, const Tensor& sum, const Rational& proportion, Item& item) {
    Share whole = from_.own;
    whole.of = nodes_.part_of(from_.partial, from_.through, sum, summand.node);
    item.parts.push_back(whole.of);
    item.shares.push_back(scaled(std::move(whole), summand.factor / proportion));
  }

  void pass_part(const Item& summand, const Tensor& sum, const Rational& proportion, Item& item) {
    for (NodeId p : summand.parts) {
      item.parts.push_back(nodes_.part_of(from_.partial, from_.through, sum, p));
    }
    const Rational by = Rational(1) / proportion;
    for (const Share& s : summand.shares) {
      item.shares.push_back(scaled(nested(s), by));
      item.shares.back().of = nodes_.part_of(from_.partial, from_.through, sum, s.of);
    }
  }

  /// A share of the factor, whose terms are themselves summed with the product's own.
  Share nested(Share share) {
    const Share& own = from_.own;
    share = scaled(std::move(share), own.factor);
    share.open.insert(share.open.end(), own.open.begin(), own.open.end());
    if (!is_one_sum_each(share.open)) {
      const std::string parts = wrong_parts(from_.partial, regions_);
      trouble(parts.empty() ? "one axis divides two sums" : parts);
    }
    std::ranges::sort(share.open);
    if (!own.runs.empty() && !share.runs.empty()) trouble("sums over micro-batches are nested");
    if (share.runs.empty() && !own.runs.empty()) share.sum_over(own.runs);
    return share;
  }

  Nodes& nodes_;
  const Regions& regions_;
  const PassedShares& from_;
  std::string trouble_;
};

}  // namespace

std::string pass_shares(Nodes& nodes, const Regions& regions, const PassedShares& from,
                        Item& item) {
  return Passing(nodes, regions, from).pass(item);
}

}  // namespace placet
