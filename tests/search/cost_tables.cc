#include "search/cost_tables.h"

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include "search/best_first.h"
#include "units/at.h"

namespace placet::testing {
namespace {

/// A leaf: one choice per level.
struct TableLeaf {
  double value = 0;
  std::vector<int> choices;
  bool same_as(const TableLeaf& other) const { return choices == other.choices; }
  friend bool operator<(const TableLeaf& a, const TableLeaf& b) {
    return std::tie(a.value, a.choices) < std::tie(b.value, b.choices);
  }
  friend bool operator==(const TableLeaf& a, const TableLeaf& b) = default;
};

/// Costs by level and choice, and for pairs of neighbouring levels; memory likewise.
class CostTable {
 public:
  struct Node {
    double bound = 0;
    std::int64_t leaves = 0;
    std::vector<int> choices;
  };
  using Answer = TableLeaf;

  explicit CostTable(std::uint32_t seed) : random_(seed) {
    const int levels = whole(2, 5);
    // Few different costs, so that equal leaves occur.
    const int coarse = whole(3, 1000);
    for (int l = 0; l < levels; ++l) {
      const int choices = whole(1, 5);
      costs_.emplace_back();
      pairs_.emplace_back();
      bytes_.emplace_back();
      for (int c = 0; c < choices; ++c) {
        costs_.back().push_back(whole(0, coarse));
        bytes_.back().push_back(whole(0, 100));
        std::vector<double>& row = pairs_.back().emplace_back();
        const int before = l == 0 ? 1 : static_cast<int>(costs_[at(l - 1)].size());
        for (int b = 0; b < before; ++b) row.push_back(whole(0, coarse));
      }
    }
    limit_ = whole(20, 100 * levels);
    rejected_in_ = whole(2, 30);
    slack_ = whole(0, 4) * 0.25;
  }

  int top() const { return top_; }
  std::vector<Node> roots() const { return {{.leaves = leaves_below(0)}}; }

  Opened<Node, TableLeaf> open(const Node& node, double) const {
    Opened<Node, TableLeaf> out;
    const std::size_t level = node.choices.size();
    if (level == costs_.size()) return judge(node.choices);
    for (std::size_t c = 0; c < costs_[level].size(); ++c) {
      Node child{.leaves = leaves_below(level + 1), .choices = node.choices};
      child.choices.push_back(static_cast<int>(c));
      if (level + 1 < costs_.size() && is_rejected(child.choices)) {
        out.rejected["table"] += child.leaves;
        continue;
      }
      child.bound = bytes_of(child.choices) > limit_ ? kNoBound : bound_of(child.choices);
      out.children.push_back(std::move(child));
    }
    return out;
  }

  /// Every leaf that is a plan, the best first.
  std::vector<TableLeaf> all() const {
    std::vector<TableLeaf> out;
    std::vector<int> choices;
    collect(choices, out);
    std::sort(out.begin(), out.end());
    return out;
  }

  std::int64_t size() const { return leaves_below(0); }

 private:
  int whole(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random_);
  }

  std::int64_t leaves_below(std::size_t level) const {
    std::int64_t leaves = 1;
    for (std::size_t l = level; l < costs_.size(); ++l) {
      leaves *= static_cast<std::int64_t>(costs_[l].size());
    }
    return leaves;
  }

  double value_of(const std::vector<int>& choices) const {
    double value = 0;
    for (std::size_t l = 0; l < choices.size(); ++l) {
      value +=
          costs_[l][at(choices[l])] + pairs_[l][at(choices[l])][l == 0 ? 0 : at(choices[l - 1])];
    }
    return value;
  }

  int bytes_of(const std::vector<int>& choices) const {
    int bytes = 0;
    for (std::size_t l = 0; l < choices.size(); ++l) bytes += bytes_[l][at(choices[l])];
    return bytes;
  }

  /// What is chosen, and of the rest a part of the least.
  double bound_of(const std::vector<int>& choices) const {
    double bound = value_of(choices);
    for (std::size_t l = choices.size(); l < costs_.size(); ++l) {
      bound += *std::min_element(costs_[l].begin(), costs_[l].end()) * slack_;
    }
    return bound;
  }

  bool is_rejected(const std::vector<int>& choices) const {
    std::uint32_t hash = 17;
    for (const int c : choices) hash = hash * 31 + static_cast<std::uint32_t>(c) + 7;
    return hash % static_cast<std::uint32_t>(rejected_in_) == 0;
  }

  Opened<Node, TableLeaf> judge(const std::vector<int>& choices) const {
    Opened<Node, TableLeaf> out;
    if (is_rejected(choices)) {
      out.rejected["table"] = 1;
      return out;
    }
    out.visited = 1;
    if (bytes_of(choices) <= limit_) {
      out.answer = TableLeaf{.value = value_of(choices), .choices = choices};
    }
    return out;
  }

  void collect(std::vector<int>& choices, std::vector<TableLeaf>& out) const {
    if (!choices.empty() && is_rejected(choices)) return;
    if (choices.size() == costs_.size()) {
      if (bytes_of(choices) > limit_) return;
      out.push_back({.value = value_of(choices), .choices = choices});
      return;
    }
    for (std::size_t c = 0; c < costs_[choices.size()].size(); ++c) {
      choices.push_back(static_cast<int>(c));
      collect(choices, out);
      choices.pop_back();
    }
  }

  std::mt19937 random_;
  std::vector<std::vector<double>> costs_;
  std::vector<std::vector<std::vector<double>>> pairs_;
  std::vector<std::vector<int>> bytes_;
  int limit_ = 0;
  int rejected_in_ = 2;
  double slack_ = 1;
  int top_ = whole(1, 6);
};

}  // namespace

std::string compare_on_table(std::uint32_t seed) {
  const CostTable table(seed);
  std::vector<TableLeaf> expected = table.all();
  const auto top = static_cast<std::size_t>(table.top());
  if (expected.size() > top) expected.resize(top);
  const std::size_t width = 1 + seed % 7;
  const BestFound<TableLeaf> found =
      BestFirst<CostTable>(table, {.top = top, .width = width}).run(table.roots());
  const std::string where = "seed " + std::to_string(seed) + ": ";
  if (!found.exact) return where + "was not exact";
  if (found.best != expected) return where + "other leaves are the best";
  std::int64_t counted = found.visited + found.bounded;
  for (const auto& [reason, count] : found.rejected) counted += count;
  return counted == table.size() ? "" : where + "leaves were lost";
}

}  // namespace placet::testing
