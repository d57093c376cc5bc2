#include "execute/kernel_run.h"

#include <algorithm>
#include <cmath>

#include "execute/exact_sum.h"
#include "units/at.h"
#include "units/error.h"

namespace placet::execute {
namespace {

// What the kinds of numbers do, each in its own way.

double as_read(const Number& x) { return static_cast<double>(rounded(x)); }
/// Not rounded to binary32, which is a mistake.
double unrounded(const Number& x) { return static_cast<double>(x.high) * 0x1p-80; }

constexpr Number kOne{.high = Wide{1} << kHighBits};

bool add_scaled(Number& to, const Number& x, double factor) {
  if (factor == 1) return add_to(to, x);
  if (factor == -1) return add_to(to, negative(x));
  return add_exact_product(to, x, factor);
}

/// Mistakes on purpose: sums of rounded numbers in place of exact ones.
bool add_sum_wrongly(const ExactTerms& terms, Slip slip, Number& to) {
  std::vector<double> products = products_of(terms);
  double sum = 0;
  float single = 0;
  for (const double p : products) sum += p;
  std::ranges::reverse(products);
  for (const double p : products) single += static_cast<float>(p);
  return add_product_of(slip == Slip::reordered ? static_cast<double>(single) : sum, to);
}

bool is_flagged(const ProductCode& p, std::size_t operand, const std::vector<Level>& levels) {
  return levels[static_cast<std::size_t>(p.operands[operand].tensor)] > 0;
}

}  // namespace

int exact_operand(const ProductCode& p, const std::vector<Level>& levels) {
  int found = -1;
  for (std::size_t o = 0; o < p.operands.size(); ++o) {
    if (!is_flagged(p, o, levels)) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(o);
  }
  if (found < 0 || p.operands.size() < 2) return -1;
  const OperandCode& one = p.operands[static_cast<std::size_t>(found)];
  const bool linear_in_it = p.sums || one.has_own_dim;
  return linear_in_it && levels[static_cast<std::size_t>(one.tensor)] <= kMostExactLevel ? found
                                                                                         : -1;
}

Level level_of(const StatementCode& s, const std::vector<Level>& levels) {
  Level most = 0;
  for (const ProductCode& p : s.products) {
    Level own = p.sums ? 1 : 0;
    if (p.operands.size() == 1) {
      own = std::max(own, levels[static_cast<std::size_t>(p.operands[0].tensor)]);
    } else if (const int exact = exact_operand(p, levels); exact >= 0) {
      const OperandCode& one = p.operands[static_cast<std::size_t>(exact)];
      own = static_cast<Level>(levels[static_cast<std::size_t>(one.tensor)] + 1);
    }
    most = std::max(most, own);
  }
  return most;
}

template <class Numbers>
void KernelRunner<Numbers>::read(std::size_t tensor, std::size_t size) {
  if constexpr (kIsExact) {
    std::vector<double>& to = tensors_.rounded[tensor];
    to.resize(size);
    const Stored* from = tensors_.stored[tensor];
    double most = 0;
    for (std::size_t e = 0; e < size; ++e) {
      to[e] = rounds_ ? as_read(from[e]) : unrounded(from[e]);
      most = std::max(most, std::fabs(to[e]));
    }
    tensors_.most[tensor] = most;
  }
}

/// The caller's tensors, then the kernel's own.
template <class Numbers>
void KernelRunner<Numbers>::place_tensors(const KernelCode& code, const KernelPlan& plan,
                                          Stored* const* tensors) {
  if (scratch_.size() < at(plan.scratch_size)) scratch_.resize(at(plan.scratch_size));
  tensors_.stored.assign(tensors, tensors + code.arguments);
  for (std::size_t t = tensors_.stored.size(); t < code.sizes.size(); ++t) {
    tensors_.stored.push_back(plan.scratch[t] < 0 ? nullptr : scratch_.data() + plan.scratch[t]);
  }
  if (tensors_.rounded.size() < code.sizes.size()) tensors_.rounded.resize(code.sizes.size());
  tensors_.most.assign(code.sizes.size(), 0);
  for (std::size_t t = 0; t < at(code.inputs); ++t) read(t, code.sizes[t]);
}

template <class Numbers>
bool KernelRunner<Numbers>::run(const KernelCode& code, Stored* const* tensors,
                                std::vector<Level>& levels, const CallContext& context) {
  const auto [found, fresh] = plans_.try_emplace(&code);
  if (fresh)
    found->second = plan_of(code, functions_, kIsExact ? NumberKind::exact : NumberKind::floating);
  const KernelPlan& plan = found->second;
  rounds_ = context.slip != Slip::unread;
  levels.resize(code.sizes.size(), 0);
  place_tensors(code, plan, tensors);
  for (std::size_t n = 0; n < code.statements.size(); ++n) {
    const StatementCode& s = code.statements[n];
    const StatementPlan& own = plan.statements[n];
    if (own.is_looked_up) continue;
    const bool fits = s.products.empty() ? function_runner_.run(s, own, code, context)
                                         : run_linear(s, own, levels, context);
    if (!fits) return false;
    levels[at(s.result)] = level_of(s, levels);
    read(at(s.result), s.entries);
  }
  return true;
}

template <class Numbers>
void KernelRunner<Numbers>::clear(const StatementCode& s) {
  std::fill_n(tensors_.stored[at(s.result)], s.entries, Stored{});
}

template <class Numbers>
bool KernelRunner<Numbers>::run_linear(const StatementCode& s, const StatementPlan& plan,
                                       const std::vector<Level>& levels,
                                       const CallContext& context) {
  const bool sets_first = plan.products[0].contraction.has_value();
  if (!sets_first) clear(s);
  for (std::size_t i = 0; i < s.products.size(); ++i) {
    const ProductCode& p = s.products[i];
    ProductRun product{.code = &p,
                       .plan = &plan.products[i],
                       .scale = plan.products[i].scale * context.factor,
                       .sets = sets_first && i == 0,
                       .slip = context.slip};
    if constexpr (kIsExact) product.exact = exact_operand(p, levels);
    double most = std::fabs(product.scale);
    for (const OperandCode& o : p.operands) most *= tensors_.most[at(o.tensor)];
    product.bounded = most < kMostNumber;
    const bool fits = product.plan->lookup ? run_lookup(s, product, context) : run_sum(s, product);
    if (!fits) return false;
  }
  return true;
}

template <class Numbers>
bool KernelRunner<Numbers>::run_sum(const StatementCode& s, const ProductRun& product) {
  if constexpr (kIsExact) {
    return run_exactly(s, product);
  } else {
    std::vector<const Stored*> factors;
    factors.reserve(product.code->operands.size());
    for (const OperandCode& o : product.code->operands)
      factors.push_back(tensors_.numbers(o.tensor));
    Stored* result = tensors_.stored[at(s.result)];
    const Contraction& sum = *product.plan->contraction;
    if (product.sets) {
      sum.set(factors.data(), product.scale, result, static_cast<std::int64_t>(s.entries), room_);
    } else {
      sum.add(factors.data(), product.scale, result, room_);
    }
    return true;
  }
}

/// Entry by entry of the result: tensor 0 of the nest is the result, the others are the operands.
template <class Numbers>
bool KernelRunner<Numbers>::run_exactly(const StatementCode& s, const ProductRun& product) {
  Stored* result = tensors_.stored[at(s.result)];
  bool fits = true;
  for_each_entry(product.plan->outer, [&](const std::int64_t* places) {
    Stored& to = result[places[0]];
    if (product.code->operands.size() == 1) {
      fits = fits && add_single(product, places[1], to);
    } else if (product.exact >= 0) {
      fits = fits && add_read_exactly(product, places + 1, to);
    } else {
      fits = fits && add_rounded(product, places + 1, to);
    }
  });
  return fits;
}

/// Of numbers all of which are read rounded.
template <class Numbers>
bool KernelRunner<Numbers>::add_rounded(const ProductRun& product, const std::int64_t* places,
                                        Stored& to) const {
  const std::vector<OperandCode>& operands = product.code->operands;
  ExactTerms terms{.nest = &product.plan->inner,
                   .factors = operands.size(),
                   .scale = product.scale,
                   .bounded = product.bounded};
  for (std::size_t o = 0; o < operands.size(); ++o) {
    terms.first[o] = tensors_.rounded[at(operands[o].tensor)].data() + places[o];
  }
  const bool right = product.slip == Slip::none || product.slip == Slip::unread;
  if constexpr (kIsExact) {
    return right ? add_sum(terms, to) : add_sum_wrongly(terms, product.slip, to);
  } else {
    fail_internally("floating numbers have sums of their own");
  }
}

template <class Numbers>
bool KernelRunner<Numbers>::add_single(const ProductRun& product, std::int64_t place,
                                       Stored& to) const {
  const Stored* x = tensors_.stored[at(product.code->operands[0].tensor)] + place;
  bool fits = true;
  for_each_entry(product.plan->inner, [&](const std::int64_t* within) {
    if constexpr (kIsExact) fits = fits && add_scaled(to, x[within[0]], product.scale);
  });
  return fits;
}

template <class Numbers>
bool KernelRunner<Numbers>::add_read_exactly(const ProductRun& product, const std::int64_t* places,
                                             Stored& to) const {
  const std::vector<OperandCode>& operands = product.code->operands;
  const auto which = at(product.exact);
  const Stored* x = tensors_.stored[at(operands[which].tensor)] + places[which];
  [[maybe_unused]] ExactProducts sum;
  for_each_entry(product.plan->inner, [&](const std::int64_t* within) {
    double rest = product.scale;
    for (std::size_t o = 0; o < operands.size(); ++o) {
      if (o == which) continue;
      rest *= static_cast<double>(tensors_.numbers(operands[o].tensor)[places[o] + within[o]]);
    }
    if constexpr (kIsExact) {
      if (rest != 0) sum.add(x[within[which]], rest);
    }
  });
  if constexpr (kIsExact) {
    return sum.collect(to);
  } else {
    return true;
  }
}

/// Where the factor is 1, if that is in the part that is here.
template <class Numbers>
bool KernelRunner<Numbers>::run_lookup(const StatementCode& s, const ProductRun& product,
                                       const CallContext& context) {
  const Lookup& lookup = *product.plan->lookup;
  const Nest& nest = lookup.nest;
  const auto begin = [&](int dim) {
    return context.begins == nullptr || dim < 0 ? 0 : context.begins[dim];
  };
  const std::int64_t told = begin(lookup.from) - begin(lookup.along);
  const auto entry_at = [&](std::int64_t by) {
    const double place = lookup.ids < 0 ? static_cast<double>(by)
                                        : static_cast<double>(tensors_.numbers(lookup.ids)[by]);
    return place + static_cast<double>(told);
  };
  Stored* result = tensors_.stored[at(s.result)];
  bool fits = true;
  for_each_entry(nest, [&](const std::int64_t* places) {
    const double entry = entry_at(places[1 + lookup.factor]);
    const bool is_here = entry >= 0 && entry < static_cast<double>(lookup.extent);
    if (!is_here || entry != std::floor(entry)) return;
    const auto there = static_cast<std::int64_t>(entry);
    Stored& to = result[places[0] + there * lookup.strides[0]];
    fits = fits && add_looked_up(product, places, there, to);
  });
  return fits;
}

template <class Numbers>
bool KernelRunner<Numbers>::add_looked_up(const ProductRun& product, const std::int64_t* places,
                                          std::int64_t entry, Stored& to) const {
  const Lookup& lookup = *product.plan->lookup;
  const std::vector<OperandCode>& operands = product.code->operands;
  // In the order of sums that look nothing up: a part with one entry has one of those.
  double rest = product.exact >= 0 ? product.scale : 1;
  const Stored* exact = nullptr;
  for (std::size_t o = 0; o < operands.size(); ++o) {
    if (o == lookup.factor) continue;
    const std::int64_t place = places[o + 1] + entry * lookup.strides[o + 1];
    if (product.exact == static_cast<int>(o)) {
      exact = tensors_.stored[at(operands[o].tensor)] + place;
    } else {
      rest *= static_cast<double>(tensors_.numbers(operands[o].tensor)[place]);
    }
  }
  if (exact == nullptr) rest *= product.scale;
  if constexpr (!kIsExact) {
    to += static_cast<Stored>(rest);
    return true;
  } else if (exact != nullptr) {
    return rest == 0 || add_exact_product(to, *exact, rest);
  } else {
    return operands.size() == 1 ? add_scaled(to, kOne, rest) : add_product_of(rest, to);
  }
}

template class KernelRunner<CanonicalNumbers>;
template class KernelRunner<PlainNumbers<float>>;
template class KernelRunner<PlainNumbers<double>>;

}  // namespace placet::execute
