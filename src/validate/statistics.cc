#include "validate/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "units/error.h"

namespace placet {
namespace {

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Ranks from 1; equal values share the mean of their ranks.
std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t i, std::size_t j) { return values[i] < values[j]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double rank = (static_cast<double>(begin) + static_cast<double>(end) + 1) / 2;
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = rank;
    begin = end;
  }
  return ranks;
}

}  // namespace

ErrorSummary summarize(std::span<const double> errors) {
  ErrorSummary summary{.rows = static_cast<std::int64_t>(errors.size())};
  if (errors.empty()) return summary;
  std::vector<double> sizes;
  for (const double error : errors) sizes.push_back(std::abs(error));
  std::sort(sizes.begin(), sizes.end());
  summary.mean_abs = mean_of(sizes);
  summary.median_abs = quantile(sizes, 0.5);
  summary.p95_abs = quantile(sizes, 0.95);
  summary.worst_abs = sizes.back();
  summary.bias = mean_of(errors);
  for (std::size_t i = 0; i < kErrorBounds.size(); ++i) {
    const auto inside = std::upper_bound(sizes.begin(), sizes.end(), kErrorBounds[i]);
    summary.within[i] =
        static_cast<double>(inside - sizes.begin()) / static_cast<double>(sizes.size());
  }
  return summary;
}

double quantile(std::span<const double> sorted, double share) {
  ensure(!sorted.empty() && share >= 0 && share <= 1, "a quantile is of some values");
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = position - static_cast<double>(below);
  return sorted[below] + part * (sorted[above] - sorted[below]);
}

std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b) {
  ensure(a.size() == b.size(), "values are paired");
  if (a.size() < 2) return std::nullopt;
  const std::vector<double> rank_a = ranks_of(a);
  const std::vector<double> rank_b = ranks_of(b);
  const double mean = (static_cast<double>(a.size()) + 1) / 2;
  double both = 0;
  double only_a = 0;
  double only_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += (rank_a[i] - mean) * (rank_b[i] - mean);
    only_a += (rank_a[i] - mean) * (rank_a[i] - mean);
    only_b += (rank_b[i] - mean) * (rank_b[i] - mean);
  }
  if (only_a == 0 || only_b == 0) return std::nullopt;
  return both / std::sqrt(only_a * only_b);
}

Confusion with(Confusion counts, bool ran_out, FitGrade predicted) {
  switch (predicted) {
    case FitGrade::fits:
      ++(ran_out ? counts.false_negative : counts.true_negative);
      break;
    case FitGrade::tight:
      ++(ran_out ? counts.tight_ran_out : counts.tight_finished);
      break;
    case FitGrade::too_large:
      ++(ran_out ? counts.true_positive : counts.false_positive);
      break;
  }
  return counts;
}

}  // namespace placet
