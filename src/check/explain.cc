#include "check/explain.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "check/quotients.h"
#include "units/at.h"

namespace placet {
namespace {

/// Goes down two expressions while they agree on what is done with what.
class Difference {
 public:
  Difference(const Nodes& nodes, const Machine& machine, const Program& program)
      : nodes_(nodes), machine_(machine), program_(program) {
    const Reference& r = program.reference;
    add_functions(r.clip_kernel, limits_);
    add_functions(r.adjust_kernel, next_numbers_);
    if (r.overflow_kernel < 0) return;
    for (const UpdateRule& rule : r.rules) add_decisions(program.kernels[at(rule.kernel)]);
  }

  /// `found`: what all of it is about.
  Explained take(const Tensor& found) {
    const bool gradient = out_.finding.condition == Condition::gradient_integrity;
    if (const auto drawn = gradient ? foreign_draw(found) : std::nullopt) {
      const std::string name = nodes_.name_of(*drawn);
      out_.finding.condition = Condition::input_integrity;
      out_.finding.found = name;
      out_.finding.difference = "'" + name + "' is drawn, as no random number of one device is";
    }
    // What is wrong may have been made long before it met the reference's: the place stays where
    // it shows, and the chain leads to what made it.
    const Origin* root = settled_ ? nullptr : machine_.root_of(last_);
    if (root != nullptr) lead_to(*root);
    for (const Origin& origin : out_.chain) {
      out_.finding.chain.push_back(machine_.describe(origin));
    }
    return std::move(out_);
  }

  void compare(NodeId expected, NodeId found) {
    note(found);
    const Node& e = nodes_.at(expected);
    const Node& f = nodes_.at(found);
    if (++depth_ > kDeepest) return differ(expected, found);
    if (differ_in_scales(expected, found)) return;
    if (f.kind == Node::Kind::odd) return odd(expected, f);
    if (e.kind == Node::Kind::leaf && f.kind == Node::Kind::leaf) return leaves(expected, found);
    if (e.kind == Node::Kind::sum || f.kind == Node::Kind::sum) return sums(expected, found);
    if (e.kind != f.kind || e.text != f.text || e.draw != f.draw) return differ(expected, found);
    operands(expected, found);
  }

  /// Goes on with what is divided, or by what, where one of the two is (check/scales.h).
  bool differ_in_scales(NodeId expected, NodeId found) {
    std::vector<NodeId> mine = scales_of(expected);
    std::vector<NodeId> theirs = scales_of(found);
    const std::vector<NodeId>& by = mine.empty() ? owed_ : mine;
    if (const NodeId own = odd_division(nodes_.at(found)); own >= 0 && !by.empty()) {
      compare(by.front(), own);
      return true;
    }
    if (mine.empty() && theirs.empty()) return false;
    const NodeId e = nodes_.unscaled(expected);
    const NodeId f = nodes_.unscaled(found);
    if (nodes_.at(found).kind == Node::Kind::odd) return false;
    remove_common(mine, theirs);
    remove_common(owed_, theirs);
    if (!mine.empty() && !theirs.empty()) {
      compare(mine.front(), theirs.front());
    } else if (e == f && mine.size() + theirs.size() > 0) {
      differ_in_division(expected, found, mine, theirs);
    } else {
      owed_.insert(owed_.end(), mine.begin(), mine.end());
      compare(e, f);
    }
    return true;
  }

  /// The inverse of a count that is not complete among the factors, which is no scale; -1: none.
  NodeId odd_division(const Node& product) const {
    for (const NodeOperand& o : product.operands) {
      if (nodes_.is_odd(o.node) && nodes_.at(o.node).text == "inv") return o.node;
    }
    return -1;
  }

  std::vector<NodeId> scales_of(NodeId id) const {
    const ScaledNode* of = nodes_.scaled_of(id);
    return of == nullptr ? std::vector<NodeId>() : of->by;
  }

  /// What is found, where it is divided as all of the expected is.
  NodeId over_owed(NodeId id) const { return scales_of(id) == owed_ ? nodes_.unscaled(id) : id; }

  /// Divided once too often, by what is in `theirs`, or once too seldom.
  void differ_in_division(NodeId expected, NodeId found, const std::vector<NodeId>& mine,
                          const std::vector<NodeId>& theirs) {
    if (const Origin* first = machine_.first_of(found)) point_at(*first);
    const NodeId by = operands_of(nodes_.at(mine.empty() ? theirs.front() : mine.front())).front();
    const std::string name = nodes_.name_of(by);
    set(Condition::gradient_integrity, nodes_.name_of(expected),
        mine.empty() ? "that, divided once more" : "that, not divided",
        mine.empty() ? "it is divided by '" + name + "' once more"
                     : "it is not divided by '" + name + "'");
    out_.finding.fix = mine.empty() ? "leave that division out" : "divide it by the " + name;
  }

  void incomplete(NodeId expected, const Tensor& found) {
    const int micro_axis = static_cast<int>(program_.axes.size()) - 1;
    std::vector<int> axes;
    for (const Item& item : found.items) {
      for (const Share& s : item.shares) add_missing_axes(s, micro_axis, axes);
    }
    std::string parts = wrong_parts(found, Regions(program_));
    if (parts.empty()) {
      parts = missing_micro_batches(found, program_.axes[at(micro_axis)].degree);
    }
    missing(expected, axes, parts);
  }

 private:
  /// Those of a kernel that are no arithmetic; -1: there is no kernel.
  void add_functions(int kernel, std::set<std::string>& out) const {
    if (kernel < 0) return;
    for (const Statement& s : program_.kernels[at(kernel)].statements) {
      if (!s.is_linear() && !is_division(s)) out.insert(s.function);
    }
  }

  /// The functions of an update of the last input, which says whether the step counts.
  void add_decisions(const Kernel& kernel) {
    for (const Statement& s : kernel.statements) {
      const auto flag = [&](const Operand& o) { return o.tensor == kernel.inputs - 1; };
      if (!s.is_linear() && std::ranges::any_of(s.operands, flag)) decisions_.insert(s.function);
    }
  }

  void note(NodeId node) {
    last_ = node;
    if (const Origin* origin = machine_.origin_of(node)) point_at(*origin);
  }

  void point_at(const Origin& origin) {
    lead_to(origin);
    out_.finding.at = machine_.describe(origin);
  }

  /// One more link of the chain, which ends where it all began.
  void lead_to(const Origin& origin) {
    std::erase(out_.chain, origin);
    if (out_.chain.size() == kLongestChain) out_.chain.erase(out_.chain.begin() + 1);
    out_.chain.push_back(origin);
  }

  std::string names(std::vector<int> axes) const {
    std::ranges::sort(axes);
    axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
    std::string text;
    for (int a : axes) text += (text.empty() ? "" : ", ") + program_.axes[at(a)].name;
    return text;
  }

  /// `parts`: which parts are missing of a sum that is added up part by part, or which
  /// micro-batches of one over them; empty: neither can be said.
  void missing(NodeId expected, const std::vector<int>& axes, const std::string& parts) {
    const bool gaps = parts.starts_with("micro-batch");
    if (!parts.empty() && !gaps) {
      set(Condition::gradient_integrity, nodes_.name_of(expected), "a part of that sum", parts);
      out_.finding.fix = "add each device's part once";
      out_.kind = Explained::Kind::incomplete;
      return;
    }
    std::vector<int> devices = axes;
    std::erase(devices, static_cast<int>(program_.axes.size()) - 1);
    std::string what;
    std::string fix;
    if (!devices.empty()) {
      what = "what the other devices along " + names(devices) + " hold is missing";
      fix = "reduce it over " + names(devices) + " before it is used";
    }
    if (devices.size() < axes.size()) {
      what += std::string(what.empty() ? "" : ", and ") + "not every micro-batch counts once";
      if (gaps) what += ": " + parts;
      out_.tells_gaps = gaps;
      fix += std::string(fix.empty() ? "" : ", and ") + "add up all micro-batches alike";
    }
    if (axes.empty()) what = "its terms are incomplete in different ways, or counted differently";
    set(Condition::gradient_integrity, nodes_.name_of(expected), "a part of that sum", what);
    out_.finding.fix = fix;
    out_.missing = devices;
    out_.kind = Explained::Kind::incomplete;
  }

  void odd(NodeId expected, const Node& f) {
    if (f.text == "an incomplete sum" && !f.operands.empty()) {
      const NodeId whole = f.operands[0].node;
      if (whole == expected || differ_in_limit(expected, whole))
        return missing(expected, f.result, f.draw);
      const Node& e = nodes_.at(expected);
      const Node& w = nodes_.at(whole);
      if (e.kind == w.kind || e.kind == Node::Kind::sum || w.kind == Node::Kind::sum) {
        return compare(expected, whole);
      }
      return missing(expected, f.result, f.draw);
    }
    const auto before = std::ranges::find_if(f.operands, [&](const NodeOperand& o) {
      return nodes_.at(o.node).kind == Node::Kind::odd && nodes_.at(o.node).text != f.text;
    });
    if (before != f.operands.end()) return compare(expected, before->node);
    const auto wrong = std::ranges::find_if(
        f.operands, [&](const NodeOperand& o) { return stands_instead(expected, o.node); });
    const bool inputs = f.text.find("takes its part") != std::string::npos;
    set(inputs ? Condition::input_integrity : Condition::gradient_integrity,
        nodes_.name_of(expected), f.text, f.text);
    // One of the devices may hold what it should: what another one holds instead is the cause.
    if (wrong != f.operands.end()) compare(expected, wrong->node);
  }

  /// Whether what one of several devices holds may be what stands in the place of the expected.
  bool stands_instead(NodeId expected, NodeId held) const {
    if (held == expected || over_owed(held) == expected) return false;
    const Node& e = nodes_.at(nodes_.unscaled(expected));
    const Node& h = nodes_.at(nodes_.unscaled(held));
    const bool alike = h.kind == e.kind && h.text == e.text;
    return alike || stem_of(held) == stem_of(expected);
  }

  /// Random numbers in it that the reference does not draw.
  std::optional<NodeId> foreign_draw(const Tensor& tensor) const {
    std::vector<NodeId> open;
    std::set<NodeId> seen;
    for (const Item& item : tensor.items) open.push_back(item.node);
    while (!open.empty() && seen.size() < kMostLookedAt) {
      const NodeId id = open.back();
      open.pop_back();
      // What the reference makes has no beginning in the program, nor has what that is made of.
      if (machine_.origin_of(id) == nullptr || !seen.insert(id).second) continue;
      const Node& one = nodes_.at(id);
      if (one.kind == Node::Kind::function && !one.draw.empty()) return id;
      for_each_operand(one, [&](NodeId o) { open.push_back(o); });
    }
    return std::nullopt;
  }

  void leaves(NodeId expected, NodeId found) {
    const std::string e = nodes_.name_of(expected);
    const std::string f = nodes_.name_of(found);
    const bool version =
        e.find(" step") != std::string::npos && f.find(" step") != std::string::npos;
    if (version && stem_of(expected) == stem_of(found)) out_.kind = Explained::Kind::version;
    set(version ? of_version(expected, found) : Condition::input_integrity, e, f,
        "'" + f + "' is used where '" + e + "' is required");
  }

  /// Summands with factors; a node that is no sum is one of itself.
  std::vector<std::pair<NodeId, Rational>> summands(NodeId id) const {
    const Node& n = nodes_.at(id);
    if (n.kind != Node::Kind::sum) return {{id, Rational(1)}};
    std::vector<std::pair<NodeId, Rational>> out;
    out.reserve(n.terms.size());
    for (const Item& term : n.terms) out.emplace_back(term.node, term.factor);
    return out;
  }

  using Summand = std::pair<NodeId, Rational>;

  static std::vector<NodeId> nodes_of(const std::vector<Summand>& summands) {
    std::vector<NodeId> out(summands.size());
    std::ranges::transform(summands, out.begin(), &Summand::first);
    return out;
  }

  void sums(NodeId expected, NodeId found) {
    auto e = summands(expected);
    auto f = summands(found);
    for (Summand& term : f) term.first = over_owed(term.first);
    if (differ_in_scale(expected, e, f)) return;
    const auto g = e;
    std::erase_if(e, [&](const Summand& x) { return std::ranges::find(f, x) != f.end(); });
    std::erase_if(f, [&](const Summand& x) { return std::ranges::find(g, x) != g.end(); });
    if (e.size() == 1 && f.size() == 1 && differ_in_scale_and_limit(expected, e[0], f[0])) return;
    if (!e.empty() && !f.empty()) {
      const auto [expected_one, found_one] = most_alike(nodes_of(e), nodes_of(f));
      return compare(expected_one, found_one);
    }
    differ_in_terms(expected, found, e, f);
  }

  /// Whether some summand is there with another factor.
  bool differ_in_scale(NodeId expected, const std::vector<Summand>& e,
                       const std::vector<Summand>& f) {
    for (const auto& [node, factor] : e) {
      const auto same = std::ranges::find(f, node, &Summand::first);
      if (same == f.end() || same->second == factor) continue;
      if (const Origin* origin = machine_.scaled_at(node, same->second)) {
        if (const Origin* first = machine_.first_of(node)) lead_to(*first);
        point_at(*origin);
        settle(node, same->second);
      }
      scale(expected, same->second / factor);
      return true;
    }
    return false;
  }

  /// Whether two summands are one but for their factors and the limit of all gradients.
  bool differ_in_scale_and_limit(NodeId expected, const Summand& e, const Summand& f) {
    if (e.second == f.second || !differ_in_limit(e.first, f.first)) return false;
    for (const NodeOperand& o : nodes_.at(nodes_.unscaled(f.first)).operands) {
      if (!is_limit(o.node)) settle(o.node, f.second / e.second);
    }
    scale(expected, f.second / e.second);
    return true;
  }

  /// Terms that one sum has and the other has not: `e` of what is expected, `f` of what is found.
  void differ_in_terms(NodeId expected, NodeId found, const std::vector<Summand>& e,
                       const std::vector<Summand>& f) {
    // What the reference never makes has a beginning of its own.
    const bool known = f.empty() || machine_.origin_of(f[0].first) == nullptr;
    if (known) {
      out_.kind = Explained::Kind::terms;
      out_.terms = nodes_of(summands(found));
      std::ranges::sort(out_.terms);
    }
    if (!e.empty()) {
      set(Condition::gradient_integrity, nodes_.name_of(expected), "a sum without one of its terms",
          nodes_.name_of(e[0].first) + " is missing");
    } else if (!f.empty()) {
      last_ = f[0].first;
      set(Condition::gradient_integrity, nodes_.name_of(expected), "a sum with a term too many",
          nodes_.name_of(f[0].first) + " is counted although it does not belong there");
    } else {
      differ(expected, found);
    }
  }

  /// The chain ends where the node began to have a scale of its own.
  void settle(NodeId node, const Rational& factor) {
    const auto beginning = machine_.beginning_of_scale(node, factor);
    if (!beginning) return;
    out_.ending = beginning->origin;
    out_.divides = beginning->divides;
    settled_ = true;
  }

  /// Axes whose degrees make a factor, few of them first: "tp or dp*cp", "1/(rep*dp)".
  std::string degrees_of(const Rational& by) const {
    std::vector<const ProgramAxis*> axes;
    for (const ProgramAxis& axis : program_.axes) {
      if (axis.degree > 1 && axes.size() < kMostFactors) axes.push_back(&axis);
    }
    std::map<int, std::string> found;  // by how many axes they are
    for (unsigned chosen = 1; chosen < 1U << axes.size(); ++chosen) {
      const std::string names = product_named(axes, chosen, by);
      if (!names.empty()) add_alternative(found[std::popcount(chosen)], names);
    }
    std::string text;
    for (const auto& [count, names] : found) add_alternative(text, names);
    return text;
  }

  static void add_alternative(std::string& text, const std::string& more) {
    if (!text.empty()) text += " or ";
    text += more;
  }

  /// The chosen axes as a product, "dp*tp", or one over it, if that is the factor; else empty.
  static std::string product_named(const std::vector<const ProgramAxis*>& axes, unsigned chosen,
                                   const Rational& by) {
    Rational product(1);
    std::string names;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      if ((chosen >> a & 1U) == 0) continue;
      product = product * Rational(axes[a]->degree);
      names += (names.empty() ? "" : "*") + axes[a]->name;
    }
    if (by == product) return names;
    if (by * product != Rational(1)) return {};
    return std::popcount(chosen) > 1 ? "1/(" + names + ")" : "1/" + names;
  }

  void scale(NodeId expected, const Rational& by) {
    std::string why = "the scale is " + to_string(by) + " times what it should be";
    const std::string axes = degrees_of(by);
    if (!axes.empty()) why += " (" + axes + ")";
    set(Condition::gradient_integrity, nodes_.name_of(expected), to_string(by) + " times that",
        why);
    if (by == Rational(0)) return;
    out_.finding.fix =
        out_.divides ? "it is divided by what is made there: multiply that by " + to_string(by)
                     : "multiply it by " + to_string(Rational(1) / by);
    out_.scale = by;
  }

  /// The same operation on different operands: go on with the first that differs.
  void operands(NodeId expected, NodeId found) {
    const Node e = nodes_.at(expected);
    const Node f = nodes_.at(found);
    std::vector<NodeId> mine = operands_of(e);
    std::vector<NodeId> theirs = operands_of(f);
    if (e.kind == Node::Kind::product) {
      remove_common(mine, theirs);
      leave_limits_out(mine, theirs);
    } else {
      while (!mine.empty() && !theirs.empty() && mine.front() == theirs.front()) {
        mine.erase(mine.begin());
        theirs.erase(theirs.begin());
      }
    }
    if (mine.empty() || theirs.empty()) return differ(expected, found);
    if (e.kind == Node::Kind::product) {
      const auto [expected_one, found_one] = most_alike(mine, theirs);
      return compare(expected_one, found_one);
    }
    compare(mine.front(), theirs.front());
    if (!steers(e, mine.size())) return;
    out_.finding.condition = Condition::update_integrity;
    out_.follows = true;
  }

  /// Whether what is wrong is a number that steers updates: it makes the factor of gradients or the
  /// next scale of the loss, or it is all that is wrong of what decides whether a step counts.
  bool steers(const Node& node, std::size_t wrong) const {
    return limits_.contains(node.text) || next_numbers_.contains(node.text) ||
           (decisions_.contains(node.text) && wrong == 1);
  }

  /// What a node is named without its version.
  std::string stem_of(NodeId id) const {
    std::string name = nodes_.name_of(id);
    for (const char* version : {" before the step", " after step"}) {
      name = name.substr(0, name.find(version));
    }
    return name;
  }

  /// What some nodes are made of, of long sums not.
  std::vector<NodeId> operands_below(const std::vector<NodeId>& nodes) const {
    std::vector<NodeId> out;
    for (const NodeId id : nodes) {
      if (nodes_.at(id).kind == Node::Kind::sum) continue;
      for_each_operand(nodes_.at(id), [&](NodeId below) { out.push_back(below); });
    }
    return out;
  }

  /// How much speaks for one node standing in the other's place.
  int likeness(NodeId a, NodeId b) const {
    const Node& x = nodes_.at(a);
    const Node& y = nodes_.at(b);
    int score = x.kind == y.kind && x.text == y.text ? 1 : 0;
    const std::vector<NodeId> mine = operands_of(x);
    const std::vector<NodeId> theirs = operands_of(y);
    for (const NodeId one : mine) {
      score += std::ranges::find(theirs, one) != theirs.end() ? 2 : 0;
    }
    const std::vector<NodeId> below = operands_below(mine);
    for (const NodeId one : operands_below(theirs)) {
      score += std::ranges::find(below, one) != below.end() ? 1 : 0;
    }
    const bool named = mine.empty() || theirs.empty();
    return named && stem_of(a) == stem_of(b) ? 100 : score;
  }

  /// What the reference never makes, with what it stands for; without such, the first pair of those
  /// that are most alike.
  std::pair<NodeId, NodeId> most_alike(const std::vector<NodeId>& expected,
                                       const std::vector<NodeId>& found) const {
    for (std::size_t j = 0; j < found.size(); ++j) {
      if (nodes_.at(found[j]).kind != Node::Kind::odd) continue;
      return {expected[std::min(j, expected.size() - 1)], found[j]};
    }
    std::pair<NodeId, NodeId> best{expected.front(), found.front()};
    int most = likeness(best.first, best.second);
    for (std::size_t i = 0; i < std::min(expected.size(), kMostCompared); ++i) {
      for (std::size_t j = 0; j < std::min(found.size(), kMostCompared); ++j) {
        const int score = likeness(expected[i], found[j]);
        if (score <= most) continue;
        most = score;
        best = {expected[i], found[j]};
      }
    }
    return best;
  }

  bool is_limit(NodeId id) const { return limits_.contains(nodes_.at(id).text); }

  /// A gradient that is wrong makes the factor wrong that limits all: the gradient is the cause.
  void leave_limits_out(std::vector<NodeId>& mine, std::vector<NodeId>& theirs) const {
    const auto is_one = [&](NodeId id) { return is_limit(id); };
    if (std::ranges::all_of(mine, is_one) || std::ranges::all_of(theirs, is_one)) return;
    std::erase_if(mine, is_one);
    std::erase_if(theirs, is_one);
  }

  /// Whether two products are one but for the factor that limits them.
  bool differ_in_limit(NodeId expected, NodeId found) const {
    if (scales_of(expected) != scales_of(found)) return false;
    const Node& e = nodes_.at(nodes_.unscaled(expected));
    const Node& f = nodes_.at(nodes_.unscaled(found));
    if (e.kind != Node::Kind::product || f.kind != Node::Kind::product) return false;
    std::vector<NodeId> mine = operands_of(e);
    std::vector<NodeId> theirs = operands_of(f);
    remove_common(mine, theirs);
    return mine.size() == 1 && theirs.size() == 1 && is_limit(mine[0]) && is_limit(theirs[0]);
  }

  static void remove_common(std::vector<NodeId>& a, std::vector<NodeId>& b) {
    for (std::size_t i = 0; i < a.size();) {
      const auto found = std::ranges::find(b, a[i]);
      if (found == b.end()) {
        ++i;
        continue;
      }
      b.erase(found);
      a.erase(a.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  /// Whether `after` is made of `before` alone, as a count of steps is of the one before it. What a
  /// movement compresses or masks is no count.
  bool counts_on(NodeId before, NodeId after) const {
    const Node& node = nodes_.at(after);
    const bool passes_on = node.text.starts_with("compressed.") || node.text.starts_with("masked.");
    return !passes_on && node.kind == Node::Kind::function && !node.operands.empty() &&
           std::ranges::all_of(node.operands,
                               [&](const NodeOperand& o) { return o.node == before; });
  }

  /// What another version breaks: a single number, and what counts steps, steer updates.
  Condition of_version(NodeId expected, NodeId found) const {
    const bool steers = nodes_.at(expected).dims.empty() || counts_on(expected, found) ||
                        counts_on(found, expected);
    return steers ? Condition::update_integrity : Condition::state_consistency;
  }

  void differ(NodeId expected, NodeId found) {
    const std::string e = nodes_.name_of(expected);
    const std::string f = nodes_.name_of(found);
    const bool random = !nodes_.at(expected).draw.empty();
    const auto is_version = [](const std::string& name) {
      return name.find("before the step") != std::string::npos ||
             name.find("after step") != std::string::npos;
    };
    const bool version = is_version(e) && is_version(f);
    if (version && stem_of(expected) == stem_of(found)) out_.kind = Explained::Kind::version;
    const Condition condition = random    ? Condition::input_integrity
                                : version ? of_version(expected, found)
                                          : Condition::gradient_integrity;
    set(condition, e, f, "'" + f + "' stands where '" + e + "' is required");
  }

  void set(Condition condition, const std::string& expected, const std::string& found,
           const std::string& difference) {
    out_.finding.condition = condition;
    out_.finding.expected = expected;
    out_.finding.found = found;
    out_.finding.difference = difference;
  }

  static constexpr int kDeepest = 10'000;
  static constexpr std::size_t kMostCompared = 16;
  static constexpr std::size_t kMostFactors = 8;
  static constexpr std::size_t kMostLookedAt = 2'000;
  static constexpr std::size_t kLongestChain = 8;

  const Nodes& nodes_;
  const Machine& machine_;
  const Program& program_;
  std::set<std::string> limits_;        // functions that make a factor of the gradients' norm
  std::set<std::string> next_numbers_;  // that make what the next step has of a scaled loss
  std::set<std::string> decisions_;     // that leave what they are given as it was, or not
  Explained out_;
  std::vector<NodeId> owed_;  // by what all of the expected is divided, and what is found not yet
  NodeId last_ = 0;           // that was looked at
  bool settled_ = false;      // where it went wrong is known
  int depth_ = 0;
};

}  // namespace

Explained explain(Nodes& nodes, const Machine& machine, const Program& program, NodeId expected,
                  const Tensor& found) {
  Difference difference(nodes, machine, program);
  if (is_complete(found)) {
    difference.compare(expected, nodes.node_of(found));
  } else {
    difference.incomplete(expected, found);
  }
  return difference.take(found);
}

}  // namespace placet
