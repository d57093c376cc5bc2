#include "program/adjoint.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "program/known_functions.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

bool contains(const std::vector<int>& values, int value) {
  return std::ranges::find(values, value) != values.end();
}

/// Differentiates one kernel. Tensors of the original are numbered as there; those of the new
/// kernel are made as they are asked for, and put in order at the end.
class Differentiation {
 public:
  Differentiation(const Kernel& kernel, const std::vector<int>& from, const std::vector<int>& to)
      : old_(kernel), from_(from), to_(to) {
    new_.name = old_.name + "-back";
    new_.dims = old_.dims;
    find_active();
  }

  std::optional<Adjoint> run() {
    const bool reaches = std::ranges::any_of(to_, [&](int t) { return active_[at(t)]; });
    if (!reaches) return std::nullopt;
    for (int t : from_) incoming_.push_back(gradient_input(t));
    for (std::size_t s = old_.statements.size(); s-- > 0;) step_back(old_.statements[s]);
    std::vector<int> made;
    for (int t : to_) {
      if (gradients_[t].empty()) continue;
      made.push_back(t);
    }
    if (made.empty()) return std::nullopt;
    return assemble(made);
  }

 private:
  /// Tensors on a way from `to` to `from`.
  void find_active() {
    const std::size_t n = old_.tensors.size();
    std::vector<bool> depends(n, false);
    for (int t : to_) depends[at(t)] = true;
    for (const Statement& s : old_.statements) {
      bool any = false;
      for_each_operand(s, [&](const Operand& o) { any = any || depends[at(o.tensor)]; });
      if (any && !(s.is_linear() ? false : stops(s))) depends[at(s.result.tensor)] = true;
    }
    std::vector<bool> leads(n, false);
    for (int t : from_) leads[at(t)] = true;
    for (std::size_t i = old_.statements.size(); i-- > 0;) {
      const Statement& s = old_.statements[i];
      if (!leads[at(s.result.tensor)]) continue;
      for_each_operand(s, [&](const Operand& o) { leads[at(o.tensor)] = true; });
    }
    active_.resize(n);
    for (std::size_t t = 0; t < n; ++t) active_[t] = depends[t] && leads[t];
  }

  static bool stops(const Statement& s) {
    return is_constant(s.function) || s.combine == Combine::max;
  }

  template <class Visit>
  static void for_each_operand(const Statement& s, Visit visit) {
    for (const Product& p : s.products) {
      for (const Operand& o : p.operands) visit(o);
    }
    for (const Operand& o : s.operands) visit(o);
  }

  /// One use's share of a tensor's gradient, laid out as the tensor.
  struct Share {
    int tensor = 0;  // of the new kernel
  };

  int add_tensor(std::string name, std::vector<int> dims) {
    const auto taken = [&](const std::string& text) {
      return std::ranges::any_of(new_.tensors, [&](const auto& t) { return t.name == text; });
    };
    while (taken(name)) name += "'";
    new_.tensors.push_back({.name = std::move(name), .dims = std::move(dims)});
    return static_cast<int>(new_.tensors.size()) - 1;
  }

  int gradient_input(int old) {
    const int t = add_tensor("d." + old_.tensors[at(old)].name, old_.tensors[at(old)].dims);
    gradients_[old].push_back(
        {.factor = Rational(1), .operands = {{t, old_.tensors[at(old)].dims}}});
    return t;
  }

  /// A tensor of the original in the new kernel: read, or computed again.
  int value_of(int old) {
    if (const auto found = values_.find(old); found != values_.end()) return found->second;
    const bool outside = old < old_.inputs + old_.outputs;
    if (outside) {
      reads_.push_back(old);
      return values_[old] = add_tensor(old_.tensors[at(old)].name, old_.tensors[at(old)].dims);
    }
    const auto maker = std::ranges::find_if(
        old_.statements, [&](const Statement& s) { return s.result.tensor == old; });
    ensure(maker != old_.statements.end(), "a tensor inside a kernel is made there");
    Statement again = *maker;
    for (Product& p : again.products) {
      for (Operand& o : p.operands) o.tensor = value_of(o.tensor);
    }
    for (Operand& o : again.operands) o.tensor = value_of(o.tensor);
    again.result.tensor = add_tensor(old_.tensors[at(old)].name, again.result.dims);
    values_[old] = again.result.tensor;
    new_.statements.push_back(again);
    return again.result.tensor;
  }

  Operand value_operand(const Operand& old) { return {value_of(old.tensor), old.dims}; }

  /// The gradient of a tensor as one tensor of the new kernel, its shares added up.
  int gradient_of(int old) {
    if (const auto found = sums_.find(old); found != sums_.end()) return found->second;
    std::vector<Product>& shares = gradients_[old];
    ensure(!shares.empty(), "a gradient has a share");
    const bool plain = shares.size() == 1 && shares[0].factor == Rational(1) &&
                       shares[0].operands.size() == 1 &&
                       shares[0].operands[0].dims == old_.tensors[at(old)].dims;
    if (plain) return sums_[old] = shares[0].operands[0].tensor;
    const int t = add_tensor("d." + old_.tensors[at(old)].name, old_.tensors[at(old)].dims);
    new_.statements.push_back({.result = {t, old_.tensors[at(old)].dims}, .products = shares});
    return sums_[old] = t;
  }

  /// Adds a product to the gradient of an operand's tensor. The product's dims are those of the
  /// statement, in which the operand stands with `o.dims`; the tensor's own names for them differ.
  void give(const Operand& o, Product share) {
    if (!active_[at(o.tensor)]) return;
    const std::vector<int>& own = old_.tensors[at(o.tensor)].dims;
    if (own != o.dims) {
      // Computed under the statement's names, then read under the tensor's.
      const int t = add_tensor("d." + old_.tensors[at(o.tensor)].name, o.dims);
      new_.statements.push_back({.result = {t, o.dims}, .products = {std::move(share)}});
      share = {.factor = Rational(1), .operands = {{t, own}}};
    }
    gradients_[o.tensor].push_back(std::move(share));
  }

  void step_back(const Statement& s) {
    const int made = s.result.tensor;
    if (!active_[at(made)] || gradients_[made].empty()) return;
    if (!s.is_linear() && stops(s)) return;
    if (s.function == "exp" || is_seen(s)) return differentiate_exp(s);
    const Operand dy{gradient_of(made), s.result.dims};
    if (s.is_linear()) {
      for (const Product& p : s.products) differentiate(p, dy);
    } else {
      differentiate(s, dy);
    }
  }

  void differentiate(const Product& p, const Operand& dy) {
    for (std::size_t i = 0; i < p.operands.size(); ++i) {
      if (!active_[at(p.operands[i].tensor)]) continue;
      Product share{.factor = p.factor, .operands = {dy}};
      for (std::size_t j = 0; j < p.operands.size(); ++j) {
        if (j != i) share.operands.push_back(value_operand(p.operands[j]));
      }
      give(p.operands[i], std::move(share));
    }
  }

  /// "exp_seen", "exp_seen.4096".
  static bool is_seen(const Statement& s) {
    const FunctionName name = function_name(s.function);
    return name.stem == "exp_seen" && name.derivative < 0;
  }

  void differentiate(const Statement& s, const Operand& dy) {
    if (s.function.starts_with("exp_dot")) return differentiate_exp_dot(s, dy);
    if (s.function == "exp_shift") {
      give(s.operands[0], {.operands = {dy, value_operand(s.result)}});
      return;
    }
    if (s.function == "ratio") return differentiate_ratio(s, dy);
    for (std::size_t i = 0; i < s.operands.size(); ++i) {
      if (active_[at(s.operands[i].tensor)]) differentiate_operand(s, i, dy);
    }
  }

  /// z = exp(x): dx = dz z, of each share of dz by itself. What devices add up are then products,
  /// and not such a sum times a number.
  void differentiate_exp(const Statement& s) {
    for (Product share : gradients_[s.result.tensor]) {
      share.operands.push_back(value_operand(s.result));
      give(s.operands[0], std::move(share));
    }
  }

  /// w = exp(c q . k): dq = dw w k c, dk = dw w q c, dc = dw w q . k.
  void differentiate_exp_dot(const Statement& s, const Operand& dy) {
    for (std::size_t i = 0; i < s.operands.size(); ++i) {
      if (!active_[at(s.operands[i].tensor)]) continue;
      Product share{.operands = {dy, value_operand(s.result)}};
      for (std::size_t j = 0; j < s.operands.size(); ++j) {
        if (j != i) share.operands.push_back(value_operand(s.operands[j]));
      }
      give(s.operands[i], std::move(share));
    }
  }

  /// y = a / b: da = dy / b, db = - dy y / b.
  void differentiate_ratio(const Statement& s, const Operand& dy) {
    const Operand& b = s.operands[1];
    const int inverse = add_tensor("inverse", b.dims);
    new_.statements.push_back(
        {.result = {inverse, b.dims}, .function = "inv", .operands = {value_operand(b)}});
    give(s.operands[0], {.operands = {dy, {inverse, b.dims}}});
    give(b, {.factor = Rational(-1), .operands = {dy, value_operand(s.result), {inverse, b.dims}}});
  }

  /// A function of unknown meaning: its derivative is another one, with an entry for each entry of
  /// the function and of the operand's vector. Other operands' vectors have no part in its dims.
  void differentiate_operand(const Statement& s, std::size_t i, const Operand& dy) {
    const Operand& x = s.operands[i];
    Statement derivative = s;
    derivative.function = s.function + "'" + std::to_string(i);
    derivative.reduced.clear();
    for (Operand& o : derivative.operands) o = value_operand(o);
    std::vector<int> dims = s.result.dims;
    dims.insert(dims.end(), s.reduced.begin(), s.reduced.end());
    // The operand's vector dims stand last, under new names where the result has them too.
    Operand given = x;
    for (int& d : given.dims) {
      if (contains(s.whole, d) && contains(s.result.dims, d)) d = new_dim_like(d);
      if (!contains(dims, d)) dims.push_back(d);
    }
    derivative.result = {add_tensor(derivative.function, dims), dims};
    const Operand factor = derivative.result;
    new_.statements.push_back(std::move(derivative));
    give(given, {.operands = {dy, factor}});
  }

  int new_dim_like(int dim) {
    std::string name = new_.dims[at(dim)].name + "'";
    const auto taken = [&](const std::string& text) {
      return std::ranges::any_of(new_.dims, [&](const auto& d) { return d.name == text; });
    };
    while (taken(name)) name += "'";
    new_.dims.push_back({.name = std::move(name), .like = dim});
    return static_cast<int>(new_.dims.size()) - 1;
  }

  /// Inputs first, then outputs, then the rest; statements stand in a good order already.
  Adjoint assemble(const std::vector<int>& made) {
    std::vector<int> results;
    results.reserve(made.size());
    for (int t : made) results.push_back(own_gradient(t));
    std::vector<int> order = incoming_;
    for (int t : reads_) order.push_back(values_.at(t));
    new_.inputs = static_cast<int>(order.size());
    order.insert(order.end(), results.begin(), results.end());
    new_.outputs = static_cast<int>(results.size());
    for (int t = 0; at(t) < new_.tensors.size(); ++t) {
      if (!contains(order, t)) order.push_back(t);
    }
    std::vector<int> number(new_.tensors.size());
    std::vector<Kernel::Tensor> tensors;
    for (std::size_t i = 0; i < order.size(); ++i) {
      number[at(order[i])] = static_cast<int>(i);
      tensors.push_back(new_.tensors[at(order[i])]);
    }
    new_.tensors = std::move(tensors);
    for (Statement& s : new_.statements) {
      s.result.tensor = number[at(s.result.tensor)];
      for (Product& p : s.products) {
        for (Operand& o : p.operands) o.tensor = number[at(o.tensor)];
      }
      for (Operand& o : s.operands) o.tensor = number[at(o.tensor)];
    }
    drop_unused_dims();
    validate(new_);
    return {.kernel = std::move(new_), .from = from_, .reads = reads_, .to = made};
  }

  /// The gradient of an input as a tensor of its own, not one that came in.
  int own_gradient(int old) {
    const int t = gradient_of(old);
    if (!contains(incoming_, t)) {
      const auto taken = std::ranges::count_if(sums_, [&](const auto& s) { return s.second == t; });
      if (taken == 1) return t;
    }
    const std::vector<int>& dims = old_.tensors[at(old)].dims;
    const int copy = add_tensor("d." + old_.tensors[at(old)].name, dims);
    new_.statements.push_back({.result = {copy, dims}, .products = {{.operands = {{t, dims}}}}});
    return copy;
  }

  /// Dims of the original that nothing here has.
  void drop_unused_dims() {
    std::vector<bool> used(new_.dims.size(), false);
    const auto mark = [&](const std::vector<int>& dims) {
      for (int d : dims) used[at(d)] = true;
    };
    for (const Kernel::Tensor& t : new_.tensors) mark(t.dims);
    for_each_dims(mark);
    for (std::size_t d = 0; d < used.size(); ++d) {
      if (used[d] && new_.dims[d].like >= 0) used[at(new_.dims[d].like)] = true;
    }
    const std::vector<int> number = keep_dims(used);
    const auto renumber = [&](std::vector<int>& list) {
      for (int& d : list) d = number[at(d)];
    };
    for (Kernel::Tensor& t : new_.tensors) renumber(t.dims);
    for_each_dims(renumber);
  }

  /// Keeps the dims that are used; gives their new numbers.
  std::vector<int> keep_dims(const std::vector<bool>& used) {
    std::vector<int> number(new_.dims.size(), -1);
    std::vector<Kernel::LocalDim> dims;
    for (std::size_t d = 0; d < used.size(); ++d) {
      if (!used[d]) continue;
      number[d] = static_cast<int>(dims.size());
      dims.push_back(new_.dims[d]);
    }
    for (Kernel::LocalDim& d : dims) {
      if (d.like >= 0) d.like = number[at(d.like)];
    }
    new_.dims = std::move(dims);
    return number;
  }

  template <class Visit>
  void for_each_dims(Visit visit) {
    for (Statement& s : new_.statements) {
      visit(s.result.dims);
      for (Product& p : s.products) {
        for (Operand& o : p.operands) visit(o.dims);
      }
      for (Operand& o : s.operands) visit(o.dims);
      visit(s.whole);
      visit(s.positions);
      visit(s.reduced);
    }
  }

  const Kernel& old_;
  const std::vector<int>& from_;
  const std::vector<int>& to_;
  Kernel new_;
  std::vector<bool> active_;
  std::vector<int> incoming_;                      // gradients that come in
  std::vector<int> reads_;                         // tensors of the original that are read
  std::map<int, int> values_;                      // of the original: where it is here
  std::map<int, int> sums_;                        // of the original: its gradient here
  std::map<int, std::vector<Product>> gradients_;  // shares by tensor of the original
};

}  // namespace

std::optional<Adjoint> adjoint_of(const Kernel& kernel, const std::vector<int>& from,
                                  const std::vector<int>& to) {
  return Differentiation(kernel, from, to).run();
}

bool is_constant(std::string_view function) {
  return function == "onehot" || function.starts_with("chosen") || function == "position" ||
         function == "rotation" || draws(function);
}

}  // namespace placet
