// Best-first branch and bound over a tree of choices (docs/theory.md §9.1): the k best leaves, and
// a proof that no other is better. Knows neither placements nor times: whoever searches says how a
// node opens, and bounds what is below it.
//
// A Problem gives
//   Node      with `double bound` (no leaf below has a smaller value) and `std::int64_t leaves`
//   Answer    with `double value`, a total order by value first (operator<), and `same_as`:
//             whether two leaves are one to whoever asked, who sees the better of them;
//             transitive
//   open(node, cutoff)   Opened<Node, Answer>: its children, or what its only leaf is worth; called
//             from several threads at once, must depend on nothing but its arguments
//   all_same_as(node, answer)   optional: whether each leaf below is the same as the answer; of
//             such leaves only better ones count
//   depth(node)          optional: its level, below kDepths; from kDeep on answers below it are
//                        near, and its bound close to them
//
// Rounds: the nodes with the least bounds are opened side by side, and what comes out is taken in
// their order. Until there are k answers, the least node of each level but the first is opened as
// well: the search dives before it spreads. After that a few deep nodes are, while one promises
// clearly more than what was found: a good answer that is found early makes all else cheaper to put
// aside. The number of threads changes neither the answer nor any count.
#pragma once

#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "units/error.h"

namespace placet {

inline constexpr double kNoBound = std::numeric_limits<double>::infinity();

/// Sums are added up in different orders; a bound may pass the exact value by this part of it.
inline constexpr double kRounding = 1e-9;

/// Levels of a tree, at most.
inline constexpr std::size_t kDepths = 16;

/// What a deep node must promise below the k-th best value to be opened before its turn.
inline constexpr double kDiveGain = 0.005;

/// A bound, less what rounding may have added to it.
inline double shrunk(double bound) { return bound * (1 - kRounding); }

template <class Node, class Answer>
struct Opened {
  std::vector<Node> children;
  std::optional<Answer> answer;                  // of a leaf
  std::int64_t visited = 0;                      // leaves evaluated
  std::map<std::string, std::int64_t> rejected;  // leaves that are none, by reason
  std::int64_t bounded = 0;                      // leaves below that cannot count
};

template <class Answer>
struct BestFound {
  std::vector<Answer> best;  // in order
  std::int64_t visited = 0;
  std::int64_t bounded = 0;
  std::map<std::string, std::int64_t> rejected;
  std::int64_t opened = 0;  // nodes
  std::int64_t widest = 0;  // most nodes that waited at once
  double least_open = 0;    // least bound of what was left open
  bool exact = true;        // false: stopped before the proof was complete
};

template <class Answer>
struct BestFirstOptions {
  std::size_t top = 1;
  std::size_t width = 64;         // nodes of a round
  std::size_t dives = 2;          // deep nodes that are opened before their turn
  double cutoff = kNoBound;       // only values up to here count
  std::function<bool()> stopped;  // asked once a round
  std::function<void(const BestFound<Answer>&)> progress;
};

template <class Problem>
class BestFirst {
 public:
  using Node = typename Problem::Node;
  using Answer = typename Problem::Answer;

  BestFirst(const Problem& problem, BestFirstOptions<Answer> options)
      : problem_(problem), options_(std::move(options)) {}

  BestFound<Answer> run(std::vector<Node> roots) {
    for (Node& root : roots) push(std::move(root));
    while (const Heap* next = least_heap()) {
      if (next->front().node.bound > cutoff()) break;
      if (options_.stopped && options_.stopped()) {
        found_.exact = false;
        break;
      }
      round();
      if (options_.progress) options_.progress(found_);
    }
    const Heap* left = least_heap();
    found_.least_open = left == nullptr ? kNoBound : left->front().node.bound;
    for (const Heap& heap : heaps_) {
      for (const Waiting& waiting : heap) found_.bounded += waiting.node.leaves;
    }
    return std::move(found_);
  }

 private:
  struct Waiting {
    Node node;
    std::int64_t number = 0;  // in order of arrival
  };
  using Heap = std::vector<Waiting>;

  /// A heap's front has the least bound; of equal ones the latest arrival, which lies deepest.
  static bool later(const Waiting& a, const Waiting& b) {
    return a.node.bound != b.node.bound ? a.node.bound > b.node.bound : a.number < b.number;
  }

  double cutoff() const {
    if (found_.best.size() < options_.top) return options_.cutoff;
    return std::min(options_.cutoff, found_.best.back().value);
  }

  /// Whether all below is the same as an answer, and worse.
  bool is_beaten(const Node& node) const {
    if constexpr (requires(const Answer& answer) { problem_.all_same_as(node, answer); }) {
      return std::ranges::any_of(found_.best, [&](const Answer& answer) {
        return answer.value < node.bound && problem_.all_same_as(node, answer);
      });
    }
    return false;
  }

  void push(Node node) {
    if (node.leaves == 0) return;
    if (node.bound == kNoBound || node.bound > cutoff() || is_beaten(node)) {
      found_.bounded += node.leaves;
      return;
    }
    Heap& heap = heaps_[depth_of(node)];
    heap.push_back({.node = std::move(node), .number = arrivals_++});
    std::push_heap(heap.begin(), heap.end(), later);
    found_.widest = std::max(found_.widest, ++waiting_);
  }

  static std::size_t depth_of(const Node& node) {
    if constexpr (requires { Problem::depth(node); }) return Problem::depth(node);
    return 0;
  }

  /// Where deep levels begin.
  static constexpr std::size_t first_deep() {
    if constexpr (requires { Problem::kDeep; }) return Problem::kDeep;
    return kDepths;
  }

  /// From a level on, the heap whose front comes first; none: they are empty.
  Heap* least_heap(std::size_t from = 0) {
    Heap* least = nullptr;
    for (std::size_t depth = from; depth < heaps_.size(); ++depth) {
      Heap& heap = heaps_[depth];
      if (heap.empty()) continue;
      if (least == nullptr || later(least->front(), heap.front())) least = &heap;
    }
    return least;
  }

  Node take_front(Heap& heap) {
    std::pop_heap(heap.begin(), heap.end(), later);
    Node node = std::move(heap.back().node);
    heap.pop_back();
    --waiting_;
    return node;
  }

  /// Nodes that are opened before their turn.
  void dive(std::vector<Node>& nodes) {
    if (found_.best.size() < options_.top) {
      for (std::size_t depth = 1; depth < heaps_.size(); ++depth) {
        Heap& heap = heaps_[depth];
        const bool may_count = !heap.empty() && heap.front().node.bound <= cutoff();
        if (may_count) nodes.push_back(take_front(heap));
      }
      return;
    }
    for (std::size_t i = 0; i < options_.dives; ++i) {
      Heap* deep = least_heap(first_deep());
      if (deep == nullptr || deep->front().node.bound >= cutoff() * (1 - kDiveGain)) return;
      nodes.push_back(take_front(*deep));
    }
  }

  void round() {
    std::vector<Node> nodes;
    const double limit = cutoff();
    while (nodes.size() < options_.width) {
      Heap* next = least_heap();
      if (next == nullptr || next->front().node.bound > limit) break;
      nodes.push_back(take_front(*next));
    }
    dive(nodes);
    std::erase_if(nodes, [&](const Node& node) {
      if (!is_beaten(node)) return false;
      found_.bounded += node.leaves;
      return true;
    });
    std::vector<Opened<Node, Answer>> opened(nodes.size());
    tbb::parallel_for(std::size_t{0}, nodes.size(),
                      [&](std::size_t i) { opened[i] = problem_.open(nodes[i], limit); });
    for (std::size_t i = 0; i < nodes.size(); ++i) take(nodes[i], std::move(opened[i]));
  }

  void take(const Node& node, Opened<Node, Answer> opened) {
    ++found_.opened;
    std::int64_t leaves = opened.visited + opened.bounded;
    found_.visited += opened.visited;
    found_.bounded += opened.bounded;
    for (const auto& [reason, count] : opened.rejected) {
      found_.rejected[reason] += count;
      leaves += count;
    }
    if (opened.answer) {
      ensure(node.bound <= opened.answer->value * (1 + kRounding),
             "a bound is never above what it bounds");
      insert(std::move(*opened.answer));
    }
    for (Node& child : opened.children) {
      leaves += child.leaves;
      child.bound = std::max(child.bound, node.bound);
      push(std::move(child));
    }
    ensure(leaves == node.leaves, "each leaf is visited, bounded or rejected exactly once");
  }

  void insert(Answer answer) {
    std::vector<Answer>& best = found_.best;
    if (answer.value > cutoff()) return;
    const auto same =
        std::ranges::find_if(best, [&](const Answer& other) { return other.same_as(answer); });
    if (same != best.end()) {
      if (answer < *same) *same = std::move(answer);
      std::sort(best.begin(), best.end());
      return;
    }
    best.insert(std::upper_bound(best.begin(), best.end(), answer), std::move(answer));
    if (best.size() > options_.top) best.pop_back();
  }

  const Problem& problem_;
  BestFirstOptions<Answer> options_;
  BestFound<Answer> found_;
  std::array<Heap, kDepths> heaps_;  // by level
  std::int64_t arrivals_ = 0;
  std::int64_t waiting_ = 0;
};

}  // namespace placet
