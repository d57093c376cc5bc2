#include "execute/kernel_run.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "ranks/numbers.h"
#include "units/error.h"

namespace placet::execute {
namespace {

double to_real(const Rational& fraction) {
  return static_cast<double>(fraction.numerator()) / static_cast<double>(fraction.denominator());
}

// What the kinds of numbers do, each in its own way.

double as_read(const Number& x) { return static_cast<double>(rounded(x)); }
double as_read(float x) { return static_cast<double>(x); }
double as_read(double x) { return x; }

/// Not rounded to binary32, which is a mistake.
double unrounded(const Number& x) { return static_cast<double>(x.high) * 0x1p-80; }
double unrounded(float x) { return static_cast<double>(x); }
double unrounded(double x) { return x; }

bool store(double x, Number& to) {
  bool fits = true;
  to = number_of_real(x, fits);
  return fits;
}
bool store(double x, float& to) {
  to = static_cast<float>(x);
  return true;
}
bool store(double x, double& to) {
  to = x;
  return true;
}

bool add_scaled(Number& to, const Number& x, double factor) {
  if (factor == 1) return add_to(to, x);
  if (factor == -1) return add_to(to, negative(x));
  return add_exact_product(to, x, factor);
}
template <class Real>
bool add_scaled(Real& to, Real x, double factor) {
  to += static_cast<Real>(factor) * x;
  return true;
}

/// One product of several numbers as they are read.
struct Term {
  std::vector<const double*> numbers;  // by operand: of the entry
  const ProductCode* product = nullptr;

  double at(std::size_t k, double scale) const {
    double all = 1;
    for (std::size_t o = 0; o < numbers.size(); ++o)
      all *= numbers[o][product->operands[o].inner[k]];
    return scale == 1 ? all : all * scale;
  }
};

bool is_in_range(const Bins::Four& p) {
  bool fits = true;
  for (int lane = 0; lane < 4; ++lane) fits = fits && std::fabs(p[lane]) < kMostNumber;
  return fits;
}

/// Terms begin to end - 1, as `at` gives them, four at a time. False: one is out of range.
template <class At>
bool add_range(std::size_t begin, std::size_t end, bool bounded, const At& at, Bins& bins) {
  bool fits = true;
  std::size_t k = begin;
  for (; k + 4 <= end; k += 4) {
    const Bins::Four p = {at(k), at(k + 1), at(k + 2), at(k + 3)};
    fits = fits && (bounded || is_in_range(p));
    bins.add(p);
  }
  Bins::Four rest{};
  for (std::size_t lane = 0; k + lane < end; ++lane) rest[lane] = at(k + lane);
  bins.add(rest);
  return fits && (bounded || is_in_range(rest));
}

/// The sum over a product's terms for one entry, added to what is there. `bounded`: no term can be
/// out of range.
bool add_terms(const Term& term, double scale, bool bounded, Number& to) {
  const bool two = term.numbers.size() == 2 && scale == 1;
  const std::uint32_t* i = term.product->operands[0].inner.data();
  const std::uint32_t* j = term.product->operands[1].inner.data();
  const double* x = term.numbers[0];
  const double* y = term.numbers[1];
  const auto of_two = [&](std::size_t k) { return x[i[k]] * y[j[k]]; };
  const auto of_many = [&](std::size_t k) { return term.at(k, scale); };
  const std::size_t terms = term.product->terms;
  Bins bins;
  bool fits = true;
  for (std::size_t begin = 0; begin < terms && fits; begin += Bins::kMost) {
    const std::size_t end = std::min<std::size_t>(terms, begin + Bins::kMost);
    fits = two ? add_range(begin, end, bounded, of_two, bins)
               : add_range(begin, end, bounded, of_many, bins);
    fits = fits && bins.collect(to);
  }
  return fits;
}
template <class Real>
bool add_terms(const Term& term, double scale, bool, Real& to) {
  Real sum = 0;
  const std::size_t terms = term.product->terms;
  for (std::size_t k = 0; k < terms; ++k) {
    Real all = static_cast<Real>(scale);
    for (std::size_t o = 0; o < term.numbers.size(); ++o) {
      all *= static_cast<Real>(term.numbers[o][term.product->operands[o].inner[k]]);
    }
    sum += all;
  }
  to += sum;
  return true;
}

/// Mistakes on purpose: sums of rounded numbers in place of exact ones.
bool add_terms_wrongly(const Term& term, double scale, Slip slip, Number& to) {
  double sum = 0;
  float single = 0;
  for (std::size_t k = term.product->terms; k-- > 0;) {
    sum += term.at(slip == Slip::float_sums ? term.product->terms - 1 - k : k, scale);
    single += static_cast<float>(term.at(k, scale));
  }
  Number number;
  return store(slip == Slip::reordered ? static_cast<double>(single) : sum, number) &&
         add_to(to, number);
}
template <class Real>
bool add_terms_wrongly(const Term& term, double scale, Slip, Real& to) {
  return add_terms(term, scale, true, to);
}

bool add_exactly(Number& to, const Number& x, double factor) {
  return add_exact_product(to, x, factor);
}
template <class Real>
bool add_exactly(Real&, Real, double) {
  fail_internally("numbers of a floating format are not read exactly");
}

/// Of a product all of whose numbers are rounded.
template <class Stored>
bool add_rounded(const Term& term, const ProductRun& product, Stored& to) {
  const bool right = product.slip == Slip::none || product.slip == Slip::unread;
  return right ? add_terms(term, product.scale, product.bounded, to)
               : add_terms_wrongly(term, product.scale, product.slip, to);
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

void FunctionTable::add(const Kernel& kernel) {
  for (const Statement& s : kernel.statements) {
    if (s.is_linear()) continue;
    functions_.try_emplace(ranks::number_of(s.function), meant(s.function, kernel.name));
  }
}

template <class Numbers>
const typename KernelRunner<Numbers>::Prepared& KernelRunner<Numbers>::prepared(
    const KernelCode& code) {
  const auto [found, fresh] = prepared_.try_emplace(&code);
  if (!fresh) return found->second;
  Prepared& out = found->second;
  for (const StatementCode& s : code.statements) {
    out.functions.push_back(s.products.empty() ? functions_.at(s.function.name) : MeantFunction{});
    std::vector<double>& scales = out.scales.emplace_back();
    for (const ProductCode& p : s.products) scales.push_back(to_real(p.factor));
  }
  return out;
}

template <class Numbers>
void KernelRunner<Numbers>::read(std::size_t tensor, std::size_t size) {
  std::vector<double>& to = rounded_[tensor];
  to.resize(size);
  const Stored* from = tensors_[tensor];
  double most = 0;
  for (std::size_t e = 0; e < size; ++e) {
    to[e] = rounds_ ? as_read(from[e]) : unrounded(from[e]);
    most = std::max(most, std::fabs(to[e]));
  }
  most_[tensor] = most;
}

template <class Numbers>
bool KernelRunner<Numbers>::run(const KernelCode& code, Stored* const* tensors,
                                std::vector<Level>& levels, const CallContext& context) {
  if (scratch_.size() < code.scratch) scratch_.resize(code.scratch);
  tensors_.assign(tensors, tensors + code.arguments);
  Stored* next = scratch_.data();
  for (std::size_t t = tensors_.size(); t < code.sizes.size(); ++t) {
    tensors_.push_back(next);
    next += code.sizes[t];
  }
  rounds_ = context.slip != Slip::unread;
  levels.resize(code.sizes.size(), 0);
  if (rounded_.size() < code.sizes.size()) rounded_.resize(code.sizes.size());
  most_.assign(code.sizes.size(), 0);
  for (std::size_t t = 0; t < static_cast<std::size_t>(code.inputs); ++t) read(t, code.sizes[t]);
  const Prepared& known = prepared(code);
  for (std::size_t n = 0; n < code.statements.size(); ++n) {
    const StatementCode& s = code.statements[n];
    const auto result = static_cast<std::size_t>(s.result);
    const bool fits = s.products.empty() ? run_function(s, known.functions[n], code, context)
                                         : run_linear(s, known.scales[n], levels, context);
    if (!fits) return false;
    levels[result] = level_of(s, levels);
    read(result, s.entries);
  }
  return true;
}

template <class Numbers>
bool KernelRunner<Numbers>::run_linear(const StatementCode& s, const std::vector<double>& scales,
                                       const std::vector<Level>& levels,
                                       const CallContext& context) {
  std::fill_n(tensors_[static_cast<std::size_t>(s.result)], s.entries, Stored{});
  for (std::size_t i = 0; i < s.products.size(); ++i) {
    const ProductCode& p = s.products[i];
    ProductRun product{.code = &p, .scale = scales[i] * context.factor, .slip = context.slip};
    if constexpr (std::is_same_v<Stored, Number>) product.exact = exact_operand(p, levels);
    double most = std::fabs(product.scale);
    for (const OperandCode& o : p.operands) most *= most_[static_cast<std::size_t>(o.tensor)];
    product.bounded = most < kMostNumber;
    if (!run_product(s, product)) return false;
  }
  return true;
}

template <class Numbers>
bool KernelRunner<Numbers>::run_product(const StatementCode& s, const ProductRun& product) {
  const ProductCode& p = *product.code;
  Stored* result = tensors_[static_cast<std::size_t>(s.result)];
  Term term{.numbers = std::vector<const double*>(p.operands.size()), .product = &p};
  bool fits = true;
  for (std::size_t e = 0; e < s.entries && fits; ++e) {
    if (p.operands.size() == 1) {
      fits = add_single(product, e, result[e]);
      continue;
    }
    for (std::size_t o = 0; o < p.operands.size(); ++o) {
      const OperandCode& operand = p.operands[o];
      term.numbers[o] =
          rounded_[static_cast<std::size_t>(operand.tensor)].data() + operand.outer[e];
    }
    fits = product.exact >= 0 ? add_read_exactly(product, term.numbers, e, result[e])
                              : add_rounded(term, product, result[e]);
  }
  return fits;
}

template <class Numbers>
bool KernelRunner<Numbers>::add_single(const ProductRun& product, std::size_t e, Stored& to) const {
  const OperandCode& o = product.code->operands[0];
  const Stored* x = tensors_[static_cast<std::size_t>(o.tensor)] + o.outer[e];
  bool fits = true;
  for (std::size_t k = 0; k < product.code->terms && fits; ++k) {
    fits = add_scaled(to, x[o.inner[k]], product.scale);
  }
  return fits;
}

template <class Numbers>
bool KernelRunner<Numbers>::add_read_exactly(const ProductRun& product,
                                             const std::vector<const double*>& numbers,
                                             std::size_t e, Stored& to) const {
  const std::vector<OperandCode>& operands = product.code->operands;
  const auto which = static_cast<std::size_t>(product.exact);
  const OperandCode& own = operands[which];
  const Stored* x = tensors_[static_cast<std::size_t>(own.tensor)] + own.outer[e];
  bool fits = true;
  for (std::size_t k = 0; k < product.code->terms && fits; ++k) {
    double rest = product.scale;
    for (std::size_t o = 0; o < operands.size(); ++o) {
      if (o != which) rest *= numbers[o][operands[o].inner[k]];
    }
    if (rest != 0) fits = add_exactly(to, x[own.inner[k]], rest);
  }
  return fits;
}

template <class Numbers>
FunctionPlace KernelRunner<Numbers>::place_of(const FunctionCode& f, const KernelCode& code,
                                              const CallContext& context) const {
  FunctionPlace place{.step = context.step, .draw = context.draw};
  const auto whole = [&](int dim) {
    const auto d = static_cast<std::size_t>(dim);
    return context.wholes == nullptr ? code.extents[d] : context.wholes[d];
  };
  if (f.positions.size() > place.positions.size()) {
    throw InputError({.where = "program",
                      .value = std::to_string(f.positions.size()),
                      .problem = "is more positions than a function can depend on",
                      .allowed = "at most " + std::to_string(place.positions.size())});
  }
  for (std::size_t p = 0; p < f.positions.size(); ++p) {
    place.sizes[p] = code.extents[static_cast<std::size_t>(f.positions[p].dim)];
  }
  for (int d : f.beyond) place.count *= static_cast<double>(whole(d));
  return place;
}

namespace {

void set_positions(const FunctionCode& f, std::size_t outer, std::size_t inner,
                   const std::int64_t* begins, FunctionPlace& place) {
  for (std::size_t p = 0; p < f.positions.size(); ++p) {
    const ranks::PositionCode& at = f.positions[p];
    place.positions[p] =
        (begins == nullptr ? 0 : begins[at.dim]) + at.outer[outer] + at.inner[inner];
  }
}

}  // namespace

template <class Numbers>
bool KernelRunner<Numbers>::run_function(const StatementCode& s, const MeantFunction& f,
                                         const KernelCode& code, const CallContext& context) {
  const FunctionCode& fc = s.function;
  FunctionPlace place = place_of(fc, code, context);
  if (sees_vectors(f.function)) return run_vectors(s, f, place, context);
  Stored* out = tensors_[static_cast<std::size_t>(s.result)];
  bool fits = true;
  for (std::size_t o = 0; o < fc.outer && fits; ++o) {
    Stored all{};
    for (std::size_t i = 0; i < fc.inner && fits; ++i) {
      Stored one{};
      fits = make_one(fc, f, {o, i}, {place, context}, one);
      const bool adds = fc.combine == Combine::sum || i == 0;
      if (adds) fits = add_to(all, one) && fits;
      if (!adds && all < one) all = one;
    }
    out[fc.result[o]] = all;
  }
  return fits;
}

/// A value as it is stored. What a maximum is taken of is not rounded.
template <class Numbers>
bool KernelRunner<Numbers>::make_one(const FunctionCode& fc, const MeantFunction& f, Entry e,
                                     const ValueContext& context, Stored& one) {
  if (fc.kind != ranks::FunctionKind::id) {
    return store(one_value(fc, f, e, context.place, context.call), one);
  }
  const OperandCode& x = fc.operands[0];
  one = tensors_[static_cast<std::size_t>(x.tensor)][x.outer[e.outer] + x.inner[e.inner]];
  return true;
}

template <class Numbers>
double KernelRunner<Numbers>::one_value(const FunctionCode& fc, const MeantFunction& f, Entry e,
                                        FunctionPlace& place, const CallContext& context) {
  set_positions(fc, e.outer, e.inner, context.begins, place);
  if (f.function == Function::exp_dot) return score(fc, f, e, place);
  if (f.function == Function::rotation) {
    return rotation_of(functions_.meanings(), place, fc.positions.size());
  }
  operands_.clear();
  for (const OperandCode& o : fc.operands) {
    operands_.push_back(
        rounded_[static_cast<std::size_t>(o.tensor)][o.outer[e.outer] + o.inner[e.inner]]);
  }
  return value_of(functions_.meanings(), f, operands_, place);
}

/// exp(c q . k) where the query may see the key. Heads are whole: the sum has one order everywhere.
template <class Numbers>
double KernelRunner<Numbers>::score(const FunctionCode& fc, const MeantFunction& f, Entry e,
                                    const FunctionPlace& place) const {
  const std::int64_t query = place.positions[0];
  const std::int64_t key = place.positions[1];
  if (key > query || (f.number > 0 && query - key >= f.number)) return 0;
  const OperandCode& a = fc.operands[0];
  const OperandCode& b = fc.operands[1];
  const double* q =
      rounded_[static_cast<std::size_t>(a.tensor)].data() + a.outer[e.outer] + a.inner[e.inner];
  const double* k =
      rounded_[static_cast<std::size_t>(b.tensor)].data() + b.outer[e.outer] + b.inner[e.inner];
  double dot = 0;
  for (std::size_t i = 0; i < a.along.size(); ++i) dot += q[a.along[i]] * k[b.along[i]];
  if (fc.operands.size() < 3) return exp_of(dot);
  const OperandCode& c = fc.operands[2];
  return exp_of(dot *
                rounded_[static_cast<std::size_t>(c.tensor)][c.outer[e.outer] + c.inner[e.inner]]);
}

template <class Numbers>
bool KernelRunner<Numbers>::run_vectors(const StatementCode& s, const MeantFunction& f,
                                        FunctionPlace place, const CallContext& context) {
  const FunctionCode& fc = s.function;
  Stored* out = tensors_[static_cast<std::size_t>(s.result)];
  bool fits = true;
  for (std::size_t o = 0; o < fc.outer; ++o) {
    for (const std::uint32_t k : fc.index_place) out[fc.result[o] + k] = Stored{};
    for (std::size_t i = 0; i < fc.inner; ++i) {
      set_positions(fc, o, i, context.begins, place);
      read_vectors(fc, {o, i});
      values_of(functions_.meanings(), f, vectors_, place, values_);
      fits = add_values(fc, f, context, out + fc.result[o]) && fits;
    }
  }
  return fits;
}

template <class Numbers>
void KernelRunner<Numbers>::read_vectors(const FunctionCode& fc, Entry e) {
  vectors_.resize(fc.operands.size());
  for (std::size_t v = 0; v < fc.operands.size(); ++v) {
    const OperandCode& x = fc.operands[v];
    const double* from =
        rounded_[static_cast<std::size_t>(x.tensor)].data() + x.outer[e.outer] + x.inner[e.inner];
    vectors_[v].clear();
    for (const std::uint32_t a : x.along) vectors_[v].push_back(from[a]);
  }
}

/// Adds the values at the indices that are asked for: first by the result's index, then, of a
/// derivative, by that of the operand.
template <class Numbers>
bool KernelRunner<Numbers>::add_values(const FunctionCode& fc, const MeantFunction& f,
                                       const CallContext& context, Stored* out) const {
  bool fits = true;
  for (std::size_t k = 0; k < fc.index_place.size(); ++k) {
    std::size_t at = 0;
    for (std::size_t d = 0; d < fc.indices.size(); ++d) {
      const ranks::PositionCode& index = fc.indices[d];
      const std::int64_t begin = context.begins == nullptr ? 0 : context.begins[index.dim];
      const bool by_entry = f.derivative >= 0 && d + 1 == fc.indices.size();
      if (by_entry) at *= vectors_[static_cast<std::size_t>(f.derivative)].size();
      at += static_cast<std::size_t>(begin) + index.outer[k];
    }
    Stored one{};
    fits = store(values_.at(at), one) && add_to(out[fc.index_place[k]], one) && fits;
  }
  return fits;
}

template class KernelRunner<CanonicalNumbers>;
template class KernelRunner<PlainNumbers<float>>;
template class KernelRunner<PlainNumbers<double>>;

}  // namespace placet::execute
