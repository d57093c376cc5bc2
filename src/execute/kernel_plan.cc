#include "execute/kernel_plan.h"

#include <algorithm>

#include "ranks/numbers.h"
#include "units/at.h"
#include "units/error.h"

namespace placet::execute {
namespace {

using ranks::FunctionCode;
using ranks::FunctionKind;
using ranks::KernelCode;
using ranks::OperandCode;
using ranks::PlaceLoop;
using ranks::ProductCode;
using ranks::StatementCode;

/// Entries of a table for functions of vectors.
constexpr std::size_t kMostVectors = std::size_t{1} << 25U;

double to_real(const Rational& fraction) {
  return static_cast<double>(fraction.numerator()) / static_cast<double>(fraction.denominator());
}

std::vector<PlaceLoop> with_still(const ranks::Places& outer, const ranks::Places& inner) {
  std::vector<PlaceLoop> loops = outer.loops();
  for (const PlaceLoop& loop : inner.loops()) loops.push_back({loop.extent, 0});
  return loops;
}

/// Where a tensor that is 1 at one entry of a dim says so.
struct OneHot {
  const FunctionCode* function = nullptr;
  int along = -1;           // dim of the kernel
  std::int64_t stride = 0;  // of the tensor along it
  std::int64_t extent = 1;
  const ranks::Places* told_by = nullptr;  // places of ids, or of the position, by entry
};

std::optional<OneHot> one_hot(const StatementCode& s) {
  const FunctionCode& f = s.function;
  if (!s.products.empty() || f.inner != 1) return std::nullopt;
  OneHot out{.function = &f, .told_by = nullptr};
  if (f.kind == FunctionKind::onehot && f.positions.size() == 1) {
    out.along = f.positions[0].dim;
    out.told_by = &f.operands[0].outer;
  } else if (f.kind == FunctionKind::position && f.positions.size() == 2) {
    out.along = f.positions[1].dim;
    out.told_by = &f.positions[0].outer;
  } else {
    return std::nullopt;
  }
  const std::vector<PlaceLoop>& along = f.positions.back().outer.loops();
  for (std::size_t d = 0; d < along.size(); ++d) {
    if (along[d].stride == 0 || along[d].extent == 1) continue;
    if (out.told_by->loops()[d].stride != 0) return std::nullopt;
    out.stride = f.result.loops()[d].stride;
    out.extent = along[d].extent;
  }
  if (out.stride == 0) return std::nullopt;
  return out;
}

class KernelPlanner {
 public:
  KernelPlanner(const KernelCode& code, const FunctionTable& functions, NumberKind kind)
      : code_(code), functions_(functions), floating_(kind == NumberKind::floating) {}

  KernelPlan run() {
    find_lookups();
    for (const StatementCode& s : code_.statements) {
      StatementPlan& plan = out_.statements.emplace_back();
      plan.is_looked_up = looked_up_.contains(s.result);
      if (!s.products.empty()) {
        for (const ProductCode& p : s.products) plan.products.push_back(product(s, p));
      } else {
        add_function(s.function, plan);
      }
    }
    for (std::size_t t = 0; t < code_.sizes.size(); ++t) {
      const bool stored = t >= at(code_.arguments) && !looked_up_.contains(static_cast<int>(t));
      out_.scratch.push_back(stored ? out_.scratch_size : -1);
      if (stored) out_.scratch_size += static_cast<std::int64_t>(code_.sizes[t]);
    }
    return std::move(out_);
  }

 private:
  /// Tensors of the kernel's own that are read by products alone, by each once.
  void find_lookups() {
    for (const StatementCode& s : code_.statements) {
      const auto found = one_hot(s);
      if (found && s.result >= code_.arguments) looked_up_.emplace(s.result, *found);
    }
    for (const StatementCode& s : code_.statements) {
      for (const OperandCode& o : s.function.operands) looked_up_.erase(o.tensor);
      for (const ProductCode& p : s.products) drop_several(p);
    }
  }

  /// A product looks up by one factor only.
  void drop_several(const ProductCode& p) {
    const auto is_one = [&](const OperandCode& o) { return looked_up_.contains(o.tensor); };
    if (std::ranges::count_if(p.operands, is_one) < 2) return;
    for (const OperandCode& o : p.operands) looked_up_.erase(o.tensor);
  }

  ProductPlan product(const StatementCode& s, const ProductCode& p) {
    ProductPlan plan{.scale = to_real(p.factor)};
    for (std::size_t o = 0; o < p.operands.size(); ++o) {
      const auto found = looked_up_.find(p.operands[o].tensor);
      if (found != looked_up_.end()) plan.lookup = lookup(s, p, o, found->second);
    }
    if (plan.lookup) return plan;
    if (floating_) {
      plan.contraction.emplace(sum_of(p, s.places));
      return plan;
    }
    std::vector<std::vector<PlaceLoop>> outer{s.places.loops()};
    std::vector<std::vector<PlaceLoop>> inner;
    for (const OperandCode& o : p.operands) {
      outer.push_back(o.outer.loops());
      inner.push_back(o.inner.loops());
    }
    plan.outer = nest_of(outer);
    plan.inner = nest_of(inner);
    return plan;
  }

  static Lookup lookup(const StatementCode& s, const ProductCode& p, std::size_t factor,
                       const OneHot& one) {
    const FunctionCode& f = *one.function;
    Lookup out{.factor = factor, .along = one.along, .extent = one.extent};
    if (f.kind == FunctionKind::onehot) {
      out.ids = f.operands[0].tensor;
    } else {
      out.from = f.positions[0].dim;
    }
    std::vector<std::vector<PlaceLoop>> tensors{with_still(s.places, p.operands[factor].inner)};
    for (const OperandCode& o : p.operands) tensors.push_back(joined(o.outer, o.inner));
    std::vector<PlaceLoop>& own = tensors[1 + factor];
    std::size_t looked = own.size();
    for (std::size_t d = 0; d < own.size(); ++d) {
      if (own[d].stride == 0 || own[d].extent == 1) continue;
      if (own[d].stride == one.stride) {
        looked = d;
      } else {
        own[d].stride = told_stride(f, *one.told_by, own[d]);
      }
    }
    ensure(looked < own.size(), "a product goes along the dim that a factor is 1 at one entry of");
    own[looked].stride = 0;
    for (std::vector<PlaceLoop>& loops : tensors) {
      out.strides.push_back(loops[looked].stride);
      loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(looked));
    }
    out.nest = nest_of(tensors);
    return out;
  }

  /// A loop of a product that reads the result of a function is known by its stride there.
  static std::int64_t told_stride(const FunctionCode& f, const ranks::Places& told_by,
                                  const PlaceLoop& loop) {
    for (std::size_t d = 0; d < f.result.loops().size(); ++d) {
      const PlaceLoop& made = f.result.loops()[d];
      if (made.extent != 1 && made.stride == loop.stride) return told_by.loops()[d].stride;
    }
    fail_internally("a tensor is read along dims that it has");
  }

  void add_function(const FunctionCode& f, StatementPlan& plan) const {
    plan.function = functions_.at(f.name);
    require_arguments(functions_.meanings(), plan.function, f.operands.size(), f.positions.size());
    if (sees_vectors(plan.function.function)) {
      require_indices(f, plan.function);
      plan.vectors = tabulated(f);
      return;
    }
    if (plan.function.function == Function::exp_dot) add_scores(f, plan);
    std::vector<std::vector<PlaceLoop>> tensors{f.result.loops()};
    if (!f.operands.empty()) {
      tensors[0] = with_still(f.result, f.operands[0].inner);
    } else if (!f.positions.empty()) {
      tensors[0] = with_still(f.result, f.positions[0].inner);
    } else {
      tensors[0].push_back({.extent = static_cast<std::int64_t>(f.inner)});
    }
    for (const OperandCode& o : f.operands) tensors.push_back(joined(o.outer, o.inner));
    for (const ranks::PositionCode& p : f.positions) tensors.push_back(joined(p.outer, p.inner));
    plan.rows = nest_of(tensors);
  }

  /// A derivative has indices of the operand's vector, behind all others.
  static void require_indices(const FunctionCode& f, const MeantFunction& meaning) {
    if (meaning.derivative < 0) return;
    const std::size_t vector = f.operands[at(meaning.derivative)].along.size();
    std::size_t entries = 1;
    for (std::size_t k = f.indices.size(); k-- > 0 && entries < vector;) {
      entries *= at(f.indices[k].extent);
    }
    if (entries == vector) return;
    throw InputError({.where = "program",
                      .value = meaning.name,
                      .problem = "is a derivative whose last indices are not those of its operand",
                      .allowed = "f'0[t t'] of f(x[t]; whole t)"});
  }

  void add_scores(const FunctionCode& f, StatementPlan& plan) const {
    plan.along = nest_of({f.operands[0].along.loops(), f.operands[1].along.loops()});
    const auto is_still = [](const PlaceLoop& loop) { return loop.stride == 0; };
    const bool one_scale =
        f.operands.size() < 3 || std::ranges::all_of(f.operands[2].outer.loops(), is_still);
    if (floating_ && f.inner == 1 && one_scale) plan.scores.emplace(sum_of_scores(f));
  }

  static FunctionCode tabulated(FunctionCode f) {
    for (const std::size_t entries : {f.outer, f.inner, f.index_place.size()}) {
      if (entries <= kMostVectors) continue;
      throw InputError({.where = "program",
                        .value = std::to_string(entries),
                        .problem = "are too many vectors for one function",
                        .allowed = "at most " + std::to_string(kMostVectors)});
    }
    f.result.tabulate();
    f.index_place.tabulate();
    for (OperandCode& o : f.operands) {
      for (ranks::Places* places : {&o.outer, &o.inner, &o.along}) places->tabulate();
    }
    for (auto* parts : {&f.positions, &f.indices}) {
      for (ranks::PositionCode& p : *parts) {
        p.outer.tabulate();
        p.inner.tabulate();
      }
    }
    return f;
  }

  const KernelCode& code_;
  const FunctionTable& functions_;
  bool floating_;
  std::map<int, OneHot> looked_up_;  // by tensor
  KernelPlan out_;
};

}  // namespace

void FunctionTable::add(const Kernel& kernel) {
  for (const Statement& s : kernel.statements) {
    if (s.is_linear()) continue;
    functions_.try_emplace(ranks::number_of(s.function), meant(s.function, kernel.name));
  }
}

std::int64_t workspace_entries(const KernelPlan& plan) {
  std::int64_t room = 0;  // one after the other use the same
  const auto use = [&](const std::optional<Contraction>& one) {
    if (one) room = std::max(room, one->room_entries());
  };
  for (const StatementPlan& statement : plan.statements) {
    for (const ProductPlan& product : statement.products) use(product.contraction);
    use(statement.scores);
  }
  return plan.scratch_size + room;
}

KernelPlan plan_of(const KernelCode& code, const FunctionTable& functions, NumberKind kind) {
  return KernelPlanner(code, functions, kind).run();
}

}  // namespace placet::execute
