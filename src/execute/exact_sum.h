// Sums of products of numbers as they are read, without a rounding but of each product by itself
// (docs/theory.md §6.11).
#pragma once

#include <array>
#include <vector>

#include "execute/nest.h"
#include "execute/number.h"

namespace placet::execute {

struct ExactTerms {
  const Nest* nest = nullptr;  // of the factors
  std::size_t factors = 0;
  std::array<const double*, Nest::kMostTensors> first{};  // by factor
  double scale = 1;
  bool bounded = false;  // no product can be out of range
};

/// to += the sum over the nest of scale times the product of the factors. False: out of range.
bool add_sum(const ExactTerms& terms, Number& to);

/// All products, in the order of the loops.
std::vector<double> products_of(const ExactTerms& terms);

/// to += p, rounded to a multiple of 2^-80. False: out of range.
bool add_product_of(double p, Number& to);

}  // namespace placet::execute
