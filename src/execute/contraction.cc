#include "execute/contraction.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace placet::execute {
namespace {

using ranks::PlaceLoop;

/// Numbers of a factor that is made, where no other tensor is as large.
constexpr std::int64_t kMostMade = std::int64_t{1} << 22U;

/// The loops of a tensor that does not move in them.
std::vector<PlaceLoop> still(const ranks::Places& places) {
  std::vector<PlaceLoop> loops = places.loops();
  for (PlaceLoop& loop : loops) loop.stride = 0;
  return loops;
}

std::vector<PlaceLoop> with(std::vector<PlaceLoop> loops, const std::vector<PlaceLoop>& more) {
  loops.insert(loops.end(), more.begin(), more.end());
  return loops;
}

bool has_lines(std::int64_t rows, std::int64_t columns, std::int64_t row, std::int64_t column) {
  return rows == 1 || columns == 1 || row == 1 || column == 1;
}

/// Numbers that stand at equal distances.
template <class Pointer>
struct Line {
  Pointer first;
  std::int64_t apart;
};

/// to += scale x, entry by entry; where the result stays, one number is added up.
template <class Real>
void add_row(std::int64_t n, Real scale, const Line<const Real*>& x, const Line<Real*>& to) {
  if (to.apart == 0) {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x.first[i * x.apart]);
    *to.first += scale * static_cast<Real>(sum);
  } else if (to.apart == 1 && x.apart == 1) {
    for (std::int64_t i = 0; i < n; ++i) to.first[i] += scale * x.first[i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) to.first[i * to.apart] += scale * x.first[i * x.apart];
  }
}

/// to += scale x y, likewise.
template <class Real>
void add_row(std::int64_t n, Real scale, const std::array<Line<const Real*>, 2>& factors,
             const Line<Real*>& to) {
  const auto& [x, y] = factors;
  if (to.apart == 0) {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      sum += static_cast<double>(x.first[i * x.apart]) * static_cast<double>(y.first[i * y.apart]);
    }
    *to.first += scale * static_cast<Real>(sum);
  } else if (x.apart == 0) {
    add_row(n, scale * *x.first, y, to);
  } else if (y.apart == 0) {
    add_row(n, scale * *y.first, x, to);
  } else if (to.apart == 1 && x.apart == 1 && y.apart == 1) {
    for (std::int64_t i = 0; i < n; ++i) to.first[i] += scale * x.first[i] * y.first[i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      to.first[i * to.apart] += scale * x.first[i * x.apart] * y.first[i * y.apart];
    }
  }
}

/// Of any number of factors, entry by entry.
template <class Real>
void add_entries(const Nest& nest, const std::vector<const Real*>& factors, Real scale,
                 Real* result) {
  for_each_entry(nest, [&](const std::int64_t* places) {
    Real product = scale;
    for (std::size_t f = 0; f < factors.size(); ++f) product *= factors[f][places[f + 1]];
    result[places[0]] += product;
  });
}

/// Tensor 0 of the nest is the result, the others are the factors.
template <class Real>
void add_rows(const Nest& nest, const std::vector<const Real*>& factors, Real scale, Real* result) {
  if (factors.size() > 2) return add_entries(nest, factors, scale, result);
  const std::int64_t n = nest.row();
  for_each_row(nest, [&](const std::int64_t* places) {
    const Line<Real*> to{result + places[0], nest.stride(0)};
    const auto line = [&](std::size_t f) {
      return Line<const Real*>{factors[f] + places[f + 1], nest.stride(f + 1)};
    };
    if (factors.empty()) {
      for (std::int64_t i = 0; i < n; ++i) to.first[i * to.apart] += scale;
    } else if (factors.size() == 1) {
      add_row(n, scale, line(0), to);
    } else {
      add_row(n, scale, std::array{line(0), line(1)}, to);
    }
  });
}

}  // namespace

SumOfProducts sum_of(const ranks::ProductCode& product, const ranks::Places& result) {
  SumOfProducts sum{.result = result.loops(), .factors = {}};
  if (!product.operands.empty()) {
    sum.result = with(sum.result, still(product.operands[0].inner));
  }
  for (const ranks::OperandCode& o : product.operands) {
    sum.factors.push_back(joined(o.outer, o.inner));
  }
  return sum;
}

SumOfProducts sum_of_scores(const ranks::FunctionCode& function) {
  const ranks::OperandCode& query = function.operands[0];
  SumOfProducts sum{.result = with(function.result.loops(), still(query.along)), .factors = {}};
  for (std::size_t o = 0; o < 2; ++o) {
    const ranks::OperandCode& x = function.operands[o];
    sum.factors.push_back(joined(x.outer, x.along));
  }
  return sum;
}

Contraction::Contraction(const SumOfProducts& sum) {
  std::vector<Factor> all(sum.factors.size());
  for (std::size_t f = 0; f < all.size(); ++f) all[f].number = static_cast<int>(f);
  for (std::size_t d = 0; d < sum.result.size(); ++d) {
    if (sum.result[d].extent == 1) continue;
    extents_.push_back(sum.result[d].extent);
    result_.push_back(sum.result[d].stride);
    for (std::size_t f = 0; f < all.size(); ++f) all[f].strides.push_back(sum.factors[f][d].stride);
  }
  std::vector<Factor> factors;
  for (Factor& one : all) {
    const bool moves = std::ranges::any_of(one.strides, [](std::int64_t s) { return s != 0; });
    if (moves) {
      factors.push_back(std::move(one));
    } else {
      scalars_.push_back(one.number);
    }
  }
  while (factors.size() > 2 && multiply_some(factors)) {
  }
  if (factors.size() == 2) {
    sum_alone(factors[0], factors[1]);
    sum_alone(factors[1], factors[0]);
    has_matrices_ = plan_matrices(factors[0], factors[1]);
  }
  std::vector<const Strides*> tensors{&result_};
  for (const Factor& one : factors) {
    last_.push_back(one.number);
    tensors.push_back(&one.strides);
  }
  if (!has_matrices_) loops_ = nest_over(axes_of(tensors), tensors);
}

/// The axes that some of these go along.
std::vector<bool> Contraction::axes_of(const std::vector<const Strides*>& tensors) const {
  std::vector<bool> axes(extents_.size(), false);
  for (const Strides* tensor : tensors) {
    for (std::size_t a = 0; a < axes.size(); ++a) axes[a] = axes[a] || (*tensor)[a] != 0;
  }
  return axes;
}

std::int64_t Contraction::size_of(const Strides& strides) const {
  std::int64_t size = 1;
  for (std::size_t a = 0; a < strides.size(); ++a) {
    if (strides[a] != 0) size *= extents_[a];
  }
  return size;
}

/// Loops over these axes, those with the longest steps outermost, so that rows are close by.
Nest Contraction::nest_over(const std::vector<bool>& axes,
                            const std::vector<const Strides*>& tensors) const {
  std::vector<std::size_t> order;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (axes[a]) order.push_back(a);
  }
  const auto steps = [&](std::size_t a) {
    std::int64_t all = 0;
    for (const Strides* tensor : tensors) all += (*tensor)[a];
    return all;
  };
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return steps(a) > steps(b); });
  std::vector<std::vector<PlaceLoop>> loops(tensors.size());
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    for (const std::size_t a : order) loops[t].push_back({extents_[a], (*tensors[t])[a]});
  }
  return nest_of(loops);
}

/// Of the axes of `from`, those that are kept; in the order of the longest of them.
Contraction::Factor Contraction::make(const std::vector<Factor>& from,
                                      const std::vector<bool>& keeps) {
  const Factor& longest =
      *std::ranges::max_element(from, {}, [&](const Factor& f) { return size_of(f.strides); });
  std::vector<std::size_t> order(extents_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return longest.strides[a] > longest.strides[b]; });
  Factor out{.number = -1 - static_cast<int>(made_.size()), .strides = Strides(extents_.size(), 0)};
  std::int64_t stride = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    if (!keeps[order[i]]) continue;
    out.strides[order[i]] = stride;
    stride *= extents_[order[i]];
  }
  std::vector<const Strides*> tensors{&out.strides};
  Made made{.from = {}, .nest = {}, .place = room_, .size = stride};
  for (const Factor& f : from) {
    made.from.push_back(f.number);
    tensors.push_back(&f.strides);
  }
  made.nest = nest_over(axes_of(tensors), tensors);
  made_.push_back(std::move(made));
  room_ += stride;
  return out;
}

/// Makes one factor of two: of those that go through the fewest entries together. False, and
/// nothing done: there would be many more than any factor or the result has.
bool Contraction::multiply_some(std::vector<Factor>& factors) {
  const auto together = [&](std::size_t i, std::size_t j) {
    Strides either = factors[i].strides;
    for (std::size_t a = 0; a < either.size(); ++a) either[a] += factors[j].strides[a];
    return either;
  };
  std::pair<std::size_t, std::size_t> best{0, 1};
  std::int64_t fewest = size_of(together(0, 1));
  for (std::size_t i = 0; i < factors.size(); ++i) {
    for (std::size_t j = i + 1; j < factors.size(); ++j) {
      const std::int64_t entries = size_of(together(i, j));
      if (entries >= fewest) continue;
      fewest = entries;
      best = {i, j};
    }
  }
  std::int64_t largest = size_of(result_);
  for (const Factor& one : factors) largest = std::max(largest, size_of(one.strides));
  if (fewest > std::max(kMostMade, 2 * largest)) return false;
  const Strides either = together(best.first, best.second);
  std::vector<bool> keeps;
  keeps.reserve(either.size());
  for (const std::int64_t stride : either) keeps.push_back(stride != 0);
  Factor one = make({factors[best.first], factors[best.second]}, keeps);
  factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(best.second));
  factors[best.first] = std::move(one);
  return true;
}

/// Sums over the axes that neither the other nor the result goes along.
void Contraction::sum_alone(Factor& one, const Factor& other) {
  std::vector<bool> keeps;
  bool sums = false;
  for (std::size_t a = 0; a < extents_.size(); ++a) {
    const bool own = one.strides[a] != 0;
    keeps.push_back(own && (other.strides[a] != 0 || result_[a] != 0));
    sums = sums || (own && !keeps.back());
  }
  if (sums) one = make({one}, keeps);
}

/// The longest run of axes that both tensors go along as if they were one.
Contraction::Joined Contraction::longest(const std::vector<std::size_t>& axes, const Strides& one,
                                         const Strides& other) const {
  std::vector<std::size_t> order = axes;
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return one[a] < one[b]; });
  Joined best;
  for (std::size_t first = 0; first < order.size(); ++first) {
    const std::size_t inner = order[first];
    Joined run{extents_[inner], one[inner], other[inner], {inner}};
    for (std::size_t next = first + 1; next < order.size(); ++next) {
      const std::size_t a = order[next];
      if (one[a] != run.first * run.extent || other[a] != run.second * run.extent) break;
      run.extent *= extents_[a];
      run.axes.push_back(a);
    }
    if (run.extent > best.extent) best = run;
  }
  return best;
}

/// The axes of a sum of two factors by kind. None: some are of the result alone, or no matrices.
std::optional<Contraction::Kinds> Contraction::kinds_of(const Factor& a, const Factor& b) const {
  Kinds kinds;
  std::vector<std::size_t> around;
  std::vector<std::size_t> neither;
  for (std::size_t d = 0; d < extents_.size(); ++d) {
    const bool in_a = a.strides[d] != 0;
    const bool in_b = b.strides[d] != 0;
    const bool sums = result_[d] == 0;
    auto& one = in_a ? kinds.rows : kinds.columns;
    auto& other = in_a ? (sums ? kinds.terms : around) : neither;
    (in_a != in_b ? one : other).push_back(d);
  }
  const auto is_of_result = [&](std::size_t d) { return result_[d] != 0; };
  if (std::ranges::any_of(neither, is_of_result) || kinds.terms.empty()) return std::nullopt;
  if (kinds.rows.empty() && kinds.columns.empty()) return std::nullopt;
  return kinds;
}

bool Contraction::plan_matrices(const Factor& a, const Factor& b) {
  const std::optional<Kinds> kinds = kinds_of(a, b);
  if (!kinds) return false;
  const Joined row = longest(kinds->rows, result_, a.strides);
  const Joined column = longest(kinds->columns, result_, b.strides);
  const Joined term = longest(kinds->terms, a.strides, b.strides);
  matrices_ = {.rows = row.extent,
               .columns = column.extent,
               .terms = term.extent,
               .result_row = row.first,
               .result_column = column.first,
               .a_row = row.second,
               .a_column = term.first,
               .b_row = term.second,
               .b_column = column.second,
               .around = {}};
  std::vector<bool> around = axes_of({&result_, &a.strides, &b.strides});
  for (const Joined* one : {&row, &column, &term}) {
    for (const std::size_t d : one->axes) around[d] = false;
  }
  matrices_.around = nest_over(around, {&result_, &a.strides, &b.strides});
  writes_each_once_ = has_lines(row.extent, column.extent, row.first, column.first);
  for (std::size_t d = 0; d < extents_.size(); ++d) {
    if (around[d] && result_[d] == 0) writes_each_once_ = false;
  }
  return true;
}

namespace {

/// The matrix itself where its rows or columns have no gaps, else a copy of it.
template <class Real>
Matrix<const Real*> in_lines(std::int64_t rows, std::int64_t columns, Matrix<const Real*> m,
                             Real* room) {
  if (has_lines(rows, columns, m.row, m.column)) return m;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      room[i * columns + j] = m.first[i * m.row + j * m.column];
    }
  }
  return {room, columns, 1};
}

template <class Real>
void add_matrix(std::int64_t rows, std::int64_t columns, const Real* from,
                const Matrix<Real*>& to) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      to.first[r * to.row + c * to.column] += from[r * columns + c];
    }
  }
}

}  // namespace

/// One product of matrices after the other.
template <class Real>
void Contraction::multiply(const std::vector<const Real*>& factors, const MatrixProduct& product,
                           Real* result, Real* room) const {
  const Matrices& m = matrices_;
  Real* of_b = room + m.rows * m.terms;
  Real* of_result = of_b + m.terms * m.columns;
  for_each_entry(m.around, [&](const std::int64_t* places) {
    const Matrix<Real*> to{result + places[0], m.result_row, m.result_column};
    const Matrix<const Real*> x =
        in_lines(m.rows, m.terms, {factors[0] + places[1], m.a_row, m.a_column}, room);
    const Matrix<const Real*> y =
        in_lines(m.terms, m.columns, {factors[1] + places[2], m.b_row, m.b_column}, of_b);
    if (has_lines(m.rows, m.columns, to.row, to.column)) return add_product(product, x, y, to);
    MatrixProduct apart = product;
    apart.kept = 0;
    add_product(apart, x, y, Matrix<Real*>{of_result, m.columns, 1});
    add_matrix(m.rows, m.columns, of_result, to);
  });
}

template <class Real>
const Real* Contraction::numbers_of(int factor, const Real* const* factors,
                                    const Real* room) const {
  return factor >= 0 ? factors[factor] : room + made_[static_cast<std::size_t>(-1 - factor)].place;
}

std::int64_t Contraction::room_entries() const {
  const Matrices& m = matrices_;
  return room_ + (has_matrices_ ? m.rows * m.terms + m.terms * m.columns + m.rows * m.columns : 0);
}

template <class Real>
void Contraction::compute(const Real* const* factors, double scale, double kept, Real* result,
                          std::vector<Real>& room) const {
  const Matrices& m = matrices_;
  const auto needed = static_cast<std::size_t>(room_entries());
  if (room.size() < needed) room.resize(needed);
  for (const Made& one : made_) {
    std::vector<const Real*> from;
    from.reserve(one.from.size());
    for (const int f : one.from) from.push_back(numbers_of(f, factors, room.data()));
    std::fill_n(room.data() + one.place, one.size, Real{});
    add_rows(one.nest, from, Real{1}, room.data() + one.place);
  }
  for (const int f : scalars_) scale *= static_cast<double>(*factors[f]);
  std::vector<const Real*> last;
  last.reserve(last_.size());
  for (const int f : last_) last.push_back(numbers_of(f, factors, room.data()));
  if (has_matrices_) {
    const MatrixProduct product{
        .rows = m.rows, .columns = m.columns, .terms = m.terms, .scale = scale, .kept = kept};
    multiply(last, product, result, room.data() + room_);
  } else {
    add_rows(loops_, last, static_cast<Real>(scale), result);
  }
}

template void Contraction::compute(const float* const*, double, double, float*,
                                   std::vector<float>&) const;
template void Contraction::compute(const double* const*, double, double, double*,
                                   std::vector<double>&) const;

}  // namespace placet::execute
