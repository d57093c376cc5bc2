#include "execute/function_run.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "units/at.h"
#include "units/error.h"

namespace placet::execute {
namespace {

bool store(double x, Number& to) {
  bool fits = true;
  to = number_of_real(x, fits);
  return fits;
}
template <class Real>
bool store(double x, Real& to) {
  to = static_cast<Real>(x);
  return true;
}

/// Below all that is stored.
void set_least(Number& to) { to = {.high = -(Wide{1} << 126)}; }
template <class Real>
void set_least(Real& to) {
  to = -std::numeric_limits<Real>::infinity();
}

bool is_no_number(const Number&) { return false; }
template <class Real>
bool is_no_number(Real x) {
  return std::isnan(x);
}

/// Whether a query sees a key; without a window: all up to itself.
bool sees(std::int64_t query, std::int64_t key, std::int64_t window) {
  return key <= query && (window <= 0 || query - key < window);
}

/// The larger one; what is no number stays.
template <class Stored>
void take_larger(Stored& to, const Stored& x) {
  if (to < x || is_no_number(x)) to = x;
}

}  // namespace

template <class Numbers>
FunctionPlace FunctionRunner<Numbers>::place_of(const FunctionCode& f, const KernelCode& code,
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
bool FunctionRunner<Numbers>::run(const StatementCode& s, const StatementPlan& plan,
                                  const KernelCode& code, const CallContext& context) {
  const FunctionPlace place = place_of(s.function, code, context);
  if (sees_vectors(plan.function.function)) return run_vectors(s, plan, place, context);
  if (plan.scores) return run_scores(s, plan, context);
  if (s.function.kind == ranks::FunctionKind::id) return run_identity(s, plan);
  return run_numbers(s, plan, place, context);
}

/// What entries that are put together begin with.
template <class Numbers>
void FunctionRunner<Numbers>::begin_combined(const StatementCode& s) {
  Stored first{};
  if (s.function.combine == Combine::max) set_least(first);
  std::fill_n(tensors_.stored[at(s.result)], s.entries, first);
}

/// Values as they are stored. What a maximum is taken of is not rounded.
template <class Numbers>
bool FunctionRunner<Numbers>::run_identity(const StatementCode& s, const StatementPlan& plan) {
  const bool sums = s.function.combine == Combine::sum;
  Stored* result = tensors_.stored[at(s.result)];
  const Stored* from = tensors_.stored[at(s.function.operands[0].tensor)];
  begin_combined(s);
  const Nest& rows = plan.rows;
  bool fits = true;
  for_each_entry(rows, [&](const std::int64_t* places) {
    Stored& to = result[places[0]];
    const Stored& x = from[places[1]];
    if (sums) fits = add_to(to, x) && fits;
    if (!sums) take_larger(to, x);
  });
  return fits;
}

template <class Numbers>
bool FunctionRunner<Numbers>::run_numbers(const StatementCode& s, const StatementPlan& plan,
                                          const FunctionPlace& place, const CallContext& context) {
  const FunctionCode& f = s.function;
  Stored* result = tensors_.stored[at(s.result)];
  if (f.inner != 1) begin_combined(s);
  FunctionRow<Read> entries{
      .width = f.operands.size(), .place = place, .positions = f.positions.size()};
  const Nest& rows = plan.rows;
  for (std::size_t p = 0; p < entries.positions; ++p) {
    entries.ahead[p] = rows.stride(1 + f.operands.size() + p);
  }
  row_.resize(kBlock);
  bool fits = true;
  for_each_row(rows, [&](const std::int64_t* places) {
    Row row{.places = places, .begins = context.begins, .result = result, .apart = rows.stride(0)};
    for (; row.first < rows.row() && fits; row.first += static_cast<std::int64_t>(kBlock)) {
      row.count = std::min<std::size_t>(kBlock, at(rows.row() - row.first));
      fits = run_row(s, plan, row, entries);
    }
  });
  return fits;
}

template <class Numbers>
bool FunctionRunner<Numbers>::run_row(const StatementCode& s, const StatementPlan& plan,
                                      const Row& row, FunctionRow<Read>& entries) {
  fill_row(s, plan.rows, row, entries);
  if (plan.function.function != Function::exp_dot) {
    values_of(functions_.meanings(), plan.function, entries, row_.data());
  } else {
    for (std::size_t e = 0; e < row.count; ++e) {
      row_[e] = static_cast<Read>(score(s.function, plan, row, entries, e));
    }
  }
  return put_row(s.function, row);
}

/// The operands of some entries as rows of their own, and where the first of them stands.
template <class Numbers>
void FunctionRunner<Numbers>::fill_row(const StatementCode& s, const Nest& nest, const Row& row,
                                       FunctionRow<Read>& out) {
  const FunctionCode& f = s.function;
  out.count = row.count;
  for (std::size_t o = 0; o < f.operands.size(); ++o) {
    const std::int64_t stride = nest.stride(1 + o);
    const std::int64_t place = row.places[1 + o] + row.first * stride;
    if (f.kind == ranks::FunctionKind::exp_dot && o < 2) continue;  // of two vectors
    out.operands[o] = gathered(f.operands[o].tensor, place, stride, o, row.count);
  }
  for (std::size_t p = 0; p < f.positions.size(); ++p) {
    const std::size_t t = 1 + f.operands.size() + p;
    out.place.positions[p] = (row.begins == nullptr ? 0 : row.begins[f.positions[p].dim]) +
                             row.places[t] + row.first * nest.stride(t);
  }
}

template <class Numbers>
auto FunctionRunner<Numbers>::gathered(int tensor, std::int64_t place, std::int64_t stride,
                                       std::size_t operand, std::size_t count) -> const Read* {
  const Read* from = tensors_.numbers(tensor) + place;
  if (stride == 1) return from;
  std::vector<Read>& to = operands_[operand];
  to.resize(kBlock);
  if (stride == 0) {
    std::fill_n(to.begin(), count, *from);
  } else {
    for (std::size_t k = 0; k < count; ++k) to[k] = from[static_cast<std::int64_t>(k) * stride];
  }
  return to.data();
}

/// exp(c q . k) where the query may see the key. Heads are whole: the sum has one order everywhere.
template <class Numbers>
double FunctionRunner<Numbers>::score(const FunctionCode& f, const StatementPlan& plan,
                                      const Row& row, const FunctionRow<Read>& at_first,
                                      std::size_t entry) const {
  const Nest& rows = plan.rows;
  const auto ahead = static_cast<std::int64_t>(entry);
  const std::int64_t k = row.first + ahead;
  const std::int64_t query = at_first.place.positions[0] + ahead * at_first.ahead[0];
  const std::int64_t key = at_first.place.positions[1] + ahead * at_first.ahead[1];
  if (!sees(query, key, plan.function.number)) return 0;
  const Read* a = tensors_.numbers(f.operands[0].tensor) + row.places[1] + k * rows.stride(1);
  const Read* b = tensors_.numbers(f.operands[1].tensor) + row.places[2] + k * rows.stride(2);
  double dot = 0;
  for_each_entry(plan.along, [&](const std::int64_t* places) {
    dot += static_cast<double>(a[places[0]]) * static_cast<double>(b[places[1]]);
  });
  return exp_of(f.operands.size() < 3 ? dot
                                      : dot * static_cast<double>(at_first.operands[2][entry]));
}

/// Of floating numbers: all products as those of matrices, then what the queries may see.
template <class Numbers>
bool FunctionRunner<Numbers>::run_scores(const StatementCode& s, const StatementPlan& plan,
                                         const CallContext& context) {
  if constexpr (kIsExact) {
    fail_internally("exact scores are made one by one");
  } else {
    const FunctionCode& f = s.function;
    Stored* result = tensors_.stored[at(s.result)];
    const std::array<const Stored*, 2> factors = {tensors_.numbers(f.operands[0].tensor),
                                                  tensors_.numbers(f.operands[1].tensor)};
    double scale = 1;
    if (f.operands.size() > 2) scale = static_cast<double>(*tensors_.numbers(f.operands[2].tensor));
    plan.scores->set(factors.data(), scale, result, static_cast<std::int64_t>(s.entries), room_);
    const Nest& rows = plan.rows;
    const std::size_t first = 1 + f.operands.size();
    const auto begin = [&](std::size_t p) {
      return context.begins == nullptr ? 0 : context.begins[f.positions[p].dim];
    };
    const std::int64_t queries = begin(0);
    const std::int64_t keys = begin(1);
    make_exponentials(result, s.entries);
    for_each_entry(rows, [&](const std::int64_t* places) {
      const bool seen =
          sees(queries + places[first], keys + places[first + 1], plan.function.number);
      if (!seen) result[places[0]] = 0;
    });
    return true;
  }
}

/// Entries of the result by themselves, or put together in one.
template <class Numbers>
bool FunctionRunner<Numbers>::put_row(const FunctionCode& f, const Row& row) {
  Stored* to = row.result + row.places[0] + row.first * row.apart;
  bool fits = true;
  if (f.inner == 1) {
    for (std::size_t k = 0; k < row.count; ++k) {
      fits =
          store(static_cast<double>(row_[k]), to[static_cast<std::int64_t>(k) * row.apart]) && fits;
    }
    return fits;
  }
  for (std::size_t k = 0; k < row.count; ++k) {
    Stored one{};
    fits = store(static_cast<double>(row_[k]), one) && fits;
    Stored& all = to[static_cast<std::int64_t>(k) * row.apart];
    if (f.combine == Combine::sum) {
      fits = add_to(all, one) && fits;
    } else {
      take_larger(all, one);
    }
  }
  return fits;
}

namespace {

/// The indices of a derivative that are those of the operand: the last.
std::size_t operand_indices(const FunctionCode& fc, const MeantFunction& f) {
  if (f.derivative < 0) return 0;
  return fc.operands[static_cast<std::size_t>(f.derivative)].along.loops().size();
}

/// How long the dims are that it gives entries of.
void set_given(const FunctionCode& fc, const MeantFunction& f, FunctionPlace& place) {
  const std::size_t own = fc.indices.size() - operand_indices(fc, f);
  for (std::size_t i = 0; i < std::min(own, place.given.size()); ++i) {
    place.given[i] = fc.indices[i].extent;
  }
}

}  // namespace

template <class Numbers>
bool FunctionRunner<Numbers>::run_vectors(const StatementCode& s, const StatementPlan& plan,
                                          FunctionPlace place, const CallContext& context) {
  const FunctionCode& fc = plan.vectors;
  set_given(fc, plan.function, place);
  Stored* out = tensors_.stored[at(s.result)];
  bool fits = true;
  for (std::size_t o = 0; o < fc.outer; ++o) {
    for (const std::uint32_t k : fc.index_place) out[fc.result[o] + k] = Stored{};
    for (std::size_t i = 0; i < fc.inner; ++i) {
      set_positions(fc, o, i, context.begins, place);
      read_vectors(fc, o, i);
      values_of(functions_.meanings(), plan.function, vectors_, place, values_);
      fits = add_values(fc, context, out + fc.result[o]) && fits;
    }
  }
  return fits;
}

template <class Numbers>
void FunctionRunner<Numbers>::read_vectors(const FunctionCode& fc, std::size_t outer,
                                           std::size_t inner) {
  vectors_.resize(fc.operands.size());
  for (std::size_t v = 0; v < fc.operands.size(); ++v) {
    const OperandCode& x = fc.operands[v];
    const Read* from = tensors_.numbers(x.tensor) + x.outer[outer] + x.inner[inner];
    vectors_[v].clear();
    for (const std::uint32_t a : x.along) vectors_[v].push_back(static_cast<double>(from[a]));
  }
}

/// Adds the values at the indices that are asked for: first by those of the result, then, of a
/// derivative, by those of the operand.
template <class Numbers>
bool FunctionRunner<Numbers>::add_values(const FunctionCode& fc, const CallContext& context,
                                         Stored* out) const {
  bool fits = true;
  for (std::size_t k = 0; k < fc.index_place.size(); ++k) {
    std::size_t at = 0;
    for (const ranks::PositionCode& index : fc.indices) {
      const std::int64_t begin = context.begins == nullptr ? 0 : context.begins[index.dim];
      at = at * static_cast<std::size_t>(index.extent) + static_cast<std::size_t>(begin) +
           index.outer[k];
    }
    Stored one{};
    fits = store(values_.at(at), one) && add_to(out[fc.index_place[k]], one) && fits;
  }
  return fits;
}

template class FunctionRunner<CanonicalNumbers>;
template class FunctionRunner<PlainNumbers<float>>;
template class FunctionRunner<PlainNumbers<double>>;

}  // namespace placet::execute
