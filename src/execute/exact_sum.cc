#include "execute/exact_sum.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace placet::execute {
namespace {

bool is_in_range(const Bins::Four& p) {
  bool fits = true;
  for (int lane = 0; lane < 4; ++lane) fits = fits && std::fabs(p[lane]) < kMostNumber;
  return fits;
}

/// Collects rows of products.
class Collector {
 public:
  Collector(bool bounded, Number& to) : bounded_(bounded), to_(to) {}

  /// `n` products as at(k) gives them, or four(k, to) four at a time.
  template <class Fours, class One>
  bool add(std::int64_t n, const Fours& four, const One& at) {
    bool fits = true;
    for (std::int64_t begin = 0; begin < n && fits; begin += Bins::kMost) {
      const std::int64_t end = std::min<std::int64_t>(n, begin + Bins::kMost);
      const std::int64_t more = end - begin + 3;
      if (used_ + more > Bins::kMost && used_ > 0) fits = collect();
      used_ += more;
      std::int64_t k = begin;
      Bins::Four products{};
      for (; k + 4 <= end; k += 4) {
        four(k, products);
        fits = add(products) && fits;
      }
      if (k == end) continue;
      Bins::Four rest{};
      for (std::int64_t lane = 0; k + lane < end; ++lane) rest[lane] = at(k + lane);
      fits = add(rest) && fits;
    }
    return fits;
  }

  bool collect() {
    used_ = 0;
    return bins_.collect(to_);
  }

 private:
  bool add(const Bins::Four& p) {
    bins_.add(p);
    return bounded_ || is_in_range(p);
  }

  bool bounded_;
  Number& to_;
  Bins bins_;
  std::int64_t used_ = 0;
};

double product_at(const ExactTerms& terms, const std::int64_t* places, std::int64_t k) {
  double all = 1;
  for (std::size_t f = 0; f < terms.factors; ++f) {
    all *= terms.first[f][places[f] + k * terms.nest->stride(f)];
  }
  return terms.scale == 1 ? all : all * terms.scale;
}

/// Rows of two factors, which all large sums have.
bool add_row_of_two(const ExactTerms& terms, const std::int64_t* places, Collector& to) {
  const double* x = terms.first[0] + places[0];
  const double* y = terms.first[1] + places[1];
  const std::int64_t dx = terms.nest->stride(0);
  const std::int64_t dy = terms.nest->stride(1);
  const auto at = [&](std::int64_t k) { return x[k * dx] * y[k * dy]; };
  if (dx == 1 && dy == 1) {
    const auto four = [&](std::int64_t k, Bins::Four& products) {
      Bins::Four others;
      std::memcpy(&products, x + k, sizeof(products));
      std::memcpy(&others, y + k, sizeof(others));
      products *= others;
    };
    return to.add(terms.nest->row(), four, at);
  }
  const auto four = [&](std::int64_t k, Bins::Four& products) {
    products = Bins::Four{at(k), at(k + 1), at(k + 2), at(k + 3)};
  };
  return to.add(terms.nest->row(), four, at);
}

bool add_row_of_many(const ExactTerms& terms, const std::int64_t* places, Collector& to) {
  const auto at = [&](std::int64_t k) { return product_at(terms, places, k); };
  const auto four = [&](std::int64_t k, Bins::Four& products) {
    products = Bins::Four{at(k), at(k + 1), at(k + 2), at(k + 3)};
  };
  return to.add(terms.nest->row(), four, at);
}

}  // namespace

bool add_product_of(double p, Number& to) {
  bool fits = true;
  const Number one = number_of_real(p, fits);
  return fits && add_to(to, one);
}

bool add_sum(const ExactTerms& terms, Number& to) {
  constexpr std::array<std::int64_t, Nest::kMostTensors> kHere{};
  const bool is_row = terms.nest->extents.size() == 1;
  if (is_row && terms.nest->row() == 1)
    return add_product_of(product_at(terms, kHere.data(), 0), to);
  Collector collector(terms.bounded, to);
  const bool two = terms.factors == 2 && terms.scale == 1;
  bool fits = true;
  const auto add_row = [&](const std::int64_t* places) {
    fits = fits && (two ? add_row_of_two(terms, places, collector)
                        : add_row_of_many(terms, places, collector));
  };
  if (is_row) {
    add_row(kHere.data());
  } else {
    for_each_row(*terms.nest, add_row);
  }
  return fits && collector.collect();
}

std::vector<double> products_of(const ExactTerms& terms) {
  std::vector<double> all;
  for_each_row(*terms.nest, [&](const std::int64_t* places) {
    for (std::int64_t k = 0; k < terms.nest->row(); ++k) {
      all.push_back(product_at(terms, places, k));
    }
  });
  return all;
}

}  // namespace placet::execute
