#include "execute/orthogonal.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "units/error.h"

namespace placet::execute {
namespace {

struct Rows {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<double> entries;  // row by row

  double at(std::size_t r, std::size_t c) const { return entries[r * columns + c]; }
};

Rows turned_rows(const Rows& a) {
  Rows out{.rows = a.columns, .columns = a.rows, .entries = {}};
  out.entries.reserve(a.entries.size());
  for (std::size_t c = 0; c < a.columns; ++c) {
    for (std::size_t r = 0; r < a.rows; ++r) out.entries.push_back(a.at(r, c));
  }
  return out;
}

Rows multiplied(const Rows& a, const Rows& b) {
  Rows out{.rows = a.rows, .columns = b.columns, .entries = {}};
  out.entries.assign(a.rows * b.columns, 0);
  for (std::size_t r = 0; r < a.rows; ++r) {
    double* row = &out.entries[r * b.columns];
    for (std::size_t k = 0; k < a.columns; ++k) {
      const double factor = a.at(r, k);
      for (std::size_t c = 0; c < b.columns; ++c) row[c] += factor * b.at(k, c);
    }
  }
  return out;
}

void add_to(Rows& to, double factor, const Rows& x) {
  for (std::size_t e = 0; e < to.entries.size(); ++e) to.entries[e] += factor * x.entries[e];
}

void scale_by(Rows& x, double factor) {
  for (double& entry : x.entries) entry *= factor;
}

double norm_of_rows(const Rows& x) {
  double squares = 0;
  for (const double entry : x.entries) squares += entry * entry;
  return std::sqrt(squares);
}

/// X with a X + (b A + c A A) X of A = X X^T.
void iterate_once(Rows& x) {
  constexpr double kX = 3.4445;
  constexpr double kGram = -4.7750;
  constexpr double kSquare = 2.0315;
  const Rows gram = multiplied(x, turned_rows(x));
  Rows factor = multiplied(gram, gram);
  scale_by(factor, kSquare);
  add_to(factor, kGram, gram);
  Rows next = multiplied(factor, x);
  add_to(next, kX, x);
  x = std::move(next);
}

}  // namespace

std::vector<double> orthogonal(const std::vector<double>& matrix, std::size_t rows) {
  constexpr int kIterations = 5;
  constexpr double kTiny = 1e-7;
  constexpr double kStep = 0.2;
  ensure(rows > 0 && matrix.size() % rows == 0, "a matrix has whole rows");
  Rows x{.rows = rows, .columns = matrix.size() / rows, .entries = matrix};
  const bool tall = x.rows > x.columns;
  if (tall) x = turned_rows(x);
  scale_by(x, 1 / (norm_of_rows(x) + kTiny));
  for (int i = 0; i < kIterations; ++i) iterate_once(x);
  if (tall) x = turned_rows(x);
  scale_by(x, kStep * std::sqrt(static_cast<double>(std::max(x.rows, x.columns))));
  return std::move(x.entries);
}

}  // namespace placet::execute
