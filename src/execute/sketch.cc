#include "execute/sketch.h"

#include <bit>

#include "ranks/numbers.h"

namespace placet::execute {
namespace {

std::uint64_t field_of(float x) { return reduced(std::bit_cast<std::uint32_t>(x)); }
std::uint64_t field_of(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  // The upper bits of a binary64 with a weight of their own: both halves are below the prime.
  return field_sum(bits & 0xffffffffU, field_product(bits >> 32U, 0x9e3779b97f4a7c1U));
}

using Powers = std::array<std::uint64_t, SketchWeights::kLanes + 1>;

/// A polynomial in a, the last entry first. Entries whose places have the same rest by the number
/// of lanes are a polynomial in a power of it, which do not wait for each other.
template <class Real>
std::uint64_t horner(const Real* entries, std::int64_t length, const Powers& powers) {
  constexpr auto kLanes = static_cast<std::int64_t>(SketchWeights::kLanes);
  std::array<std::uint64_t, SketchWeights::kLanes> sums{};
  const std::int64_t whole = length / kLanes * kLanes;
  std::uint64_t rest = 0;
  for (std::int64_t k = length; k-- > whole;) {
    rest = field_sum(field_product(rest, powers[1]), field_of(entries[k]));
  }
  sums[0] = rest;
  for (std::int64_t k = whole; k > 0; k -= kLanes) {
    for (std::size_t lane = 0; lane < sums.size(); ++lane) {
      const Real& x = entries[k - kLanes + static_cast<std::int64_t>(lane)];
      sums[lane] = field_sum(field_product(sums[lane], powers[kLanes]), field_of(x));
    }
  }
  std::uint64_t sum = 0;
  for (std::size_t lane = sums.size(); lane-- > 0;) {
    sum = field_sum(field_product(sum, powers[1]), sums[lane]);
  }
  return sum;
}

template <class Real>
Sketch sketch_of_floats(const Real* entries, const std::vector<LabelRun>& runs,
                        const Powers& powers, std::uint64_t signs) {
  Sketch out;
  for (const LabelRun& run : runs) {
    out.field =
        field_sum(out.field, field_product(run.weight, horner(entries, run.length, powers)));
    for (std::int64_t k = 0; k < run.length; ++k) {
      const auto x = static_cast<double>(entries[k]);
      const bool is_negative =
          (ranks::mixed(signs ^ static_cast<std::uint64_t>(run.label + k)) & 1U) != 0;
      out.sum += is_negative ? -x : x;
      out.squares += x * x;
    }
    entries += run.length;
  }
  return out;
}

}  // namespace

SketchWeights::SketchWeights(std::uint64_t seed)
    : signs_(ranks::mixed(seed + 0x14057b7ef767814fU)) {
  powers_[0] = 1;
  const std::uint64_t base = reduced(ranks::mixed(seed ^ 0x5851f42d4c957f2dU) >> 2U);
  for (std::size_t k = 1; k < powers_.size(); ++k) powers_[k] = field_product(powers_[k - 1], base);
}

std::uint64_t SketchWeights::of(std::int64_t label) const {
  std::uint64_t weight = 1;
  std::uint64_t power = powers_[1];
  for (auto k = static_cast<std::uint64_t>(label); k != 0; k >>= 1U) {
    if ((k & 1U) != 0) weight = field_product(weight, power);
    power = field_product(power, power);
  }
  return weight;
}

void SketchWeights::weigh(std::vector<LabelRun>& runs) const {
  for (LabelRun& run : runs) run.weight = of(run.label);
}

Sketch SketchWeights::sketch(const Number* entries, const std::vector<LabelRun>& runs) const {
  Sketch out;
  for (const LabelRun& run : runs) {
    out.field =
        field_sum(out.field, field_product(run.weight, horner(entries, run.length, powers_)));
    entries += run.length;
  }
  return out;
}

Sketch SketchWeights::sketch(const float* entries, const std::vector<LabelRun>& runs) const {
  return sketch_of_floats(entries, runs, powers_, signs_);
}

Sketch SketchWeights::sketch(const double* entries, const std::vector<LabelRun>& runs) const {
  return sketch_of_floats(entries, runs, powers_, signs_);
}

void add(Sketch& to, const Sketch& more) {
  to.field = field_sum(to.field, more.field);
  to.sum += more.sum;
  to.squares += more.squares;
}

}  // namespace placet::execute
