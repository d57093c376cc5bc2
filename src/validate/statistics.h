// How far predictions are from measurements, in the few figures that people compare.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "derive/derivation.h"

namespace placet {

/// Bounds of the absolute error for which the share of rows inside is given.
inline constexpr std::array<double, 4> kErrorBounds = {0.02, 0.05, 0.10, 0.18};

/// Errors are fractions of the measured value: predicted / measured - 1. Without rows all is zero.
struct ErrorSummary {
  std::int64_t rows = 0;
  double mean_abs = 0;
  double median_abs = 0;
  double p95_abs = 0;
  double worst_abs = 0;
  double bias = 0;                                   // the mean with its sign
  std::array<double, kErrorBounds.size()> within{};  // share of rows at or below each bound

  friend bool operator==(const ErrorSummary&, const ErrorSummary&) = default;
};

/// Case: errors -0.1, 0.1, 0.4: mean 0.2, median 0.1, worst 0.4, bias 0.4/3; within 0.10 two
/// thirds.
ErrorSummary summarize(std::span<const double> errors);

/// The value below which `share` of the sorted values lie, linear between neighbours.
/// Case: quantile({0, 10}, 0.95) == 9.5. REQUIRES: not empty, 0 <= share <= 1.
double quantile(std::span<const double> sorted, double share);

/// Spearman's rank correlation of equal positions, ties sharing their mean rank; none for fewer
/// than two pairs or where one side is constant. Case: (1,2,3) with (10,30,20): 0.5.
std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b);

/// Runs that ran out of memory (positive) against predictions that they would (too large) or would
/// not (they fit). Those called tight are counted apart: they may do either.
struct Confusion {
  std::int64_t true_positive = 0;
  std::int64_t false_positive = 0;
  std::int64_t false_negative = 0;
  std::int64_t true_negative = 0;
  std::int64_t tight_ran_out = 0;
  std::int64_t tight_finished = 0;

  friend bool operator==(const Confusion&, const Confusion&) = default;
};

/// Counts one run.
Confusion with(Confusion counts, bool ran_out, FitGrade predicted);

}  // namespace placet
