#include "algebra/kernel_run.h"

#include <algorithm>
#include <numeric>

namespace placet::algebra {
namespace {

constexpr std::uint64_t kExp = number_of("exp");
constexpr std::uint64_t kChoice = number_of("choice");

/// The exponent that a complete logit stands for.
Element lifted(Element logit, const KeyedHash& hash) {
  return KeyedHash::exponent(hash.step(hash.start(kExp), logit));
}

/// exp(z - m).
Element shifted(Element z, Element m, const KeyedHash& hash) {
  const Element a = lifted(z, hash);
  const Element b = lifted(m, hash);
  return exponential(a >= b ? a - b : a + kExponents - b);
}

/// The sum over one product's terms for one entry, not yet reduced to less than p.
Element sum_of_one(const OperandCode& a, const Element* x) {
  Wide sum = 0;
  for (const std::uint32_t i : a.inner) sum += x[i];
  return reduce(sum);
}

Element sum_of_two(const OperandCode& a, const Element* x, const OperandCode& b, const Element* y) {
  const std::size_t terms = a.inner.size();
  const std::uint32_t* i = a.inner.data();
  const std::uint32_t* j = b.inner.data();
  Wide sum = 0;
  for (std::size_t begin = 0; begin < terms; begin += kMostProducts) {
    const std::size_t end = std::min(terms, begin + kMostProducts);
    if (begin > 0) sum = reduce(sum);
    for (std::size_t k = begin; k < end; ++k) sum += Wide{x[i[k]]} * y[j[k]];
  }
  return reduce(sum);
}

Element sum_of_many(const ProductCode& p, std::size_t entry, Element* const* tensors) {
  Element sum = 0;
  for (std::size_t k = 0; k < p.terms; ++k) {
    Element product = 1;
    for (const OperandCode& o : p.operands) {
      product = multiply(product, tensors[o.tensor][o.outer[entry] + o.inner[k]]);
    }
    sum = add(sum, product);
  }
  return sum;
}

Element sum_of(const ProductCode& p, std::size_t entry, Element* const* tensors) {
  const auto first = [&](const OperandCode& o) { return tensors[o.tensor] + o.outer[entry]; };
  if (p.operands.size() == 1) return sum_of_one(p.operands[0], first(p.operands[0]));
  if (p.operands.size() == 2) {
    return sum_of_two(p.operands[0], first(p.operands[0]), p.operands[1], first(p.operands[1]));
  }
  return sum_of_many(p, entry, tensors);
}

}  // namespace

bool KernelRunner::run(const KernelCode& code, Element* const* tensors,
                       const CallContext& context) {
  if (scratch_.size() < code.scratch) scratch_.resize(code.scratch);
  tensors_.assign(tensors, tensors + code.arguments);
  Element* next = scratch_.data();
  for (std::size_t t = tensors_.size(); t < code.sizes.size(); ++t) {
    tensors_.push_back(next);
    next += code.sizes[t];
  }
  for (const StatementCode& s : code.statements) {
    if (!s.products.empty()) {
      run_linear(s, context.factor);
    } else if (!run_function(s.function, s.result, context)) {
      return false;
    }
  }
  return true;
}

void KernelRunner::run_linear(const StatementCode& s, Element factor) {
  Element* result = tensors_[static_cast<std::size_t>(s.result)];
  for (std::size_t i = 0; i < s.products.size(); ++i) {
    const ProductCode& p = s.products[i];
    const Element own = element_of(p.factor);
    const Element scale = factor == 1 ? own : multiply(own, factor);
    for (std::size_t e = 0; e < s.entries; ++e) {
      Element sum = sum_of(p, e, tensors_.data());
      if (scale != 1) sum = multiply(sum, scale);
      result[e] = i == 0 ? sum : add(result[e], sum);
    }
  }
}

Element KernelRunner::operand(const FunctionCode& f, std::size_t which, Entry e) const {
  const OperandCode& o = f.operands[which];
  return tensors_[static_cast<std::size_t>(o.tensor)][o.outer[e.outer] + o.inner[e.inner]];
}

bool KernelRunner::run_function(const FunctionCode& f, int result, const CallContext& context) {
  Element* out = tensors_[static_cast<std::size_t>(result)];
  if (f.kind == FunctionKind::ratio || f.kind == FunctionKind::inv) return run_quotients(f, out);
  if (!f.indices.empty() || f.kind == FunctionKind::chosen || f.kind == FunctionKind::route) {
    run_vectors(f, out, context);
    return true;
  }
  for (std::size_t o = 0; o < f.outer; ++o) {
    Element all = f.combine == Combine::sum ? 0 : kLeast;
    for (std::size_t i = 0; i < f.inner; ++i) {
      const Element one = value(f, {o, i}, context);
      all = combined(f.combine, all, one);
    }
    out[f.result[o]] = all;
  }
  return true;
}

namespace {

std::int64_t position_of(const PositionCode& p, std::size_t outer, std::size_t inner,
                         const std::int64_t* begins) {
  const std::int64_t begin = begins == nullptr ? 0 : begins[p.dim];
  return begin + p.outer[outer] + p.inner[inner];
}

/// Whether a query sees a key; without a window: all up to itself.
bool sees(const FunctionCode& f, std::int64_t query, std::int64_t key) {
  return key <= query && (f.window <= 0 || query - key < f.window);
}

}  // namespace

Element KernelRunner::value(const FunctionCode& f, Entry e, const CallContext& context) const {
  const auto position = [&](std::size_t which) {
    return position_of(f.positions[which], e.outer, e.inner, context.begins);
  };
  switch (f.kind) {
    case FunctionKind::id:
      return operand(f, 0, e);
    case FunctionKind::onehot:
      return operand(f, 0, e) == static_cast<Element>(position(0)) ? 1 : 0;
    case FunctionKind::position:
      return position(0) == position(1) ? 1 : 0;
    case FunctionKind::exp_dot:
      return weight_of_key(f, e, context);
    case FunctionKind::exp_seen:
      if (!sees(f, position(0), position(1))) return 0;
      return KeyedHash::element(hash_of_numbers(f, e, f.name, context));
    case FunctionKind::exp_shift:
      return shifted(operand(f, 0, e), operand(f, 1, e), context.hash);
    case FunctionKind::unknown:
    case FunctionKind::draw:
    case FunctionKind::ratio:
    case FunctionKind::inv:
    case FunctionKind::chosen:
    case FunctionKind::route:
      break;
  }
  return KeyedHash::element(hash_of_operands(f, e, f.name, context));
}

/// exp(c q . k) where the query may see the key.
Element KernelRunner::weight_of_key(const FunctionCode& f, Entry e,
                                    const CallContext& context) const {
  const std::int64_t query = position_of(f.positions[0], e.outer, e.inner, context.begins);
  const std::int64_t key = position_of(f.positions[1], e.outer, e.inner, context.begins);
  if (!sees(f, query, key)) return 0;
  const OperandCode& a = f.operands[0];
  const OperandCode& b = f.operands[1];
  const Element* q =
      tensors_[static_cast<std::size_t>(a.tensor)] + a.outer[e.outer] + a.inner[e.inner];
  const Element* k =
      tensors_[static_cast<std::size_t>(b.tensor)] + b.outer[e.outer] + b.inner[e.inner];
  Element dot = 0;
  for (std::size_t i = 0; i < a.along.size(); ++i) {
    dot = add(dot, multiply(q[a.along[i]], k[b.along[i]]));
  }
  if (f.operands.size() > 2) dot = multiply(dot, operand(f, 2, e));
  return exponential(lifted(dot, context.hash));
}

/// The hash of a name and the function's operands.
std::uint64_t KernelRunner::hash_of_numbers(const FunctionCode& f, Entry e, std::uint64_t name,
                                            const CallContext& context) const {
  std::uint64_t h = context.hash.start(name);
  if (f.kind == FunctionKind::draw) h = context.hash.step(h, context.draw);
  for (const OperandCode& o : f.operands) {
    const Element* x =
        tensors_[static_cast<std::size_t>(o.tensor)] + o.outer[e.outer] + o.inner[e.inner];
    for (const std::uint32_t a : o.along) h = context.hash.step(h, x[a]);
  }
  return h;
}

/// The same with the function's positions.
std::uint64_t KernelRunner::hash_of_operands(const FunctionCode& f, Entry e, std::uint64_t name,
                                             const CallContext& context) const {
  std::uint64_t h = hash_of_numbers(f, e, name, context);
  for (const PositionCode& p : f.positions) {
    const std::int64_t position = position_of(p, e.outer, e.inner, context.begins);
    h = context.hash.step(h, static_cast<std::uint64_t>(position));
  }
  return h;
}

/// Marks the f.choices entries of the vector with the largest representatives; of functions of
/// several operands, with the largest hashes.
void KernelRunner::choose(const FunctionCode& f, Entry e, std::uint64_t hash,
                          const CallContext& context) {
  const OperandCode& o = f.operands[0];
  const Element* x =
      tensors_[static_cast<std::size_t>(o.tensor)] + o.outer[e.outer] + o.inner[e.inner];
  const std::size_t n = o.along.size();
  scores_.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    scores_[i] = f.operands.size() == 1 ? x[o.along[i]] : context.hash.step(hash, i);
  }
  order_.resize(n);
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::ranges::stable_sort(order_,
                           [&](std::size_t a, std::size_t b) { return scores_[a] > scores_[b]; });
  chosen_.assign(n, 0);
  for (std::size_t i = 0; i < std::min(n, f.choices); ++i) chosen_[order_[i]] = 1;
}

/// Indices of the whole tensor as numbers, and their first parts.
void KernelRunner::number_indices(const FunctionCode& f, const std::int64_t* begins) {
  index_numbers_.assign(f.index_place.size(), 0);
  index_rows_.assign(f.index_place.size(), 0);
  for (std::size_t d = f.indices.size(); d-- > 0;) {
    const PositionCode& part = f.indices[d];
    const auto begin = begins == nullptr ? 0U : static_cast<std::uint64_t>(begins[part.dim]);
    for (std::size_t k = 0; k < index_numbers_.size(); ++k) {
      index_rows_[k] = begin + part.outer[k];
      index_numbers_[k] = mixed(index_numbers_[k] + index_rows_[k] + 1);
    }
  }
}

/// Functions of whole vectors: one hash for the vector, then one for each index asked for.
void KernelRunner::run_vectors(const FunctionCode& f, Element* result, const CallContext& context) {
  const bool chooses = f.kind == FunctionKind::chosen || f.kind == FunctionKind::route;
  number_indices(f, context.begins);
  const Element least = f.combine == Combine::sum ? 0 : kLeast;
  for (std::size_t o = 0; o < f.outer; ++o) {
    for (const std::uint32_t k : f.index_place) result[f.result[o] + k] = least;
    for (std::size_t i = 0; i < f.inner; ++i) {
      const std::uint64_t h = hash_of_operands(f, {o, i}, f.name, context);
      // A choice depends on the operands alone, whatever the function that makes use of it.
      if (chooses) choose(f, {o, i}, hash_of_operands(f, {o, i}, kChoice, context), context);
      add_vector(f, h, result + f.result[o], context);
    }
  }
}

/// The entries of one vector function, with the choice that was made where it is one.
void KernelRunner::add_vector(const FunctionCode& f, std::uint64_t hash, Element* result,
                              const CallContext& context) const {
  for (std::size_t k = 0; k < f.index_place.size(); ++k) {
    Element one = KeyedHash::element(context.hash.step(hash, index_numbers_[k]));
    if (f.kind == FunctionKind::chosen) one = is_chosen(index_rows_[k]) ? 1 : 0;
    if (f.kind == FunctionKind::route && !is_chosen(index_rows_[k])) one = 0;
    Element& out = result[f.index_place[k]];
    out = combined(f.combine, out, one);
  }
}

bool KernelRunner::run_quotients(const FunctionCode& f, Element* result) {
  const std::size_t below = f.kind == FunctionKind::ratio ? 1 : 0;
  inverses_.clear();
  for (std::size_t o = 0; o < f.outer; ++o) {
    for (std::size_t i = 0; i < f.inner; ++i) inverses_.push_back(operand(f, below, {o, i}));
  }
  if (!invert(inverses_)) return false;
  for (std::size_t o = 0, n = 0; o < f.outer; ++o) {
    Element all = f.combine == Combine::sum ? 0 : kLeast;
    for (std::size_t i = 0; i < f.inner; ++i, ++n) {
      const Element one = below == 0 ? inverses_[n] : multiply(operand(f, 0, {o, i}), inverses_[n]);
      all = combined(f.combine, all, one);
    }
    result[f.result[o]] = all;
  }
  return true;
}

}  // namespace placet::algebra
