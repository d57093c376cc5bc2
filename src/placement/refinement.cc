#include "placement/refinement.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <ranges>

#include "units/checked.h"
#include "units/error.h"

namespace placet {
namespace {

/// Products of the innermost degrees: 4,8 has 1, 8, 32.
std::vector<std::int64_t> boundaries(const std::vector<std::int64_t>& degrees) {
  std::vector<std::int64_t> products = {1};
  for (const std::int64_t degree : degrees | std::views::reverse) {
    ensure(degree >= 1, "a degree is at least 1");
    products.push_back(checked_multiply(products.back(), degree, "devices of the placement"));
  }
  return products;
}

bool fits(std::int64_t boundary, const std::vector<std::int64_t>& others) {
  return std::ranges::all_of(
      others, [&](std::int64_t other) { return boundary % other == 0 || other % boundary == 0; });
}

double distance(std::int64_t a, std::int64_t b) {
  return std::abs(std::log(static_cast<double>(a)) - std::log(static_cast<double>(b)));
}

/// The boundary nearest to `wanted` that `inner` divides, that divides the devices, and that fits.
std::int64_t nearest_boundary(std::int64_t wanted, std::int64_t inner, std::int64_t devices,
                              const std::vector<std::int64_t>& others) {
  std::int64_t best = inner;
  const auto consider = [&](std::int64_t candidate) {
    if (candidate % inner != 0 || !fits(candidate, others)) return;
    if (distance(candidate, wanted) < distance(best, wanted)) best = candidate;
  };
  for (std::int64_t d = 1; d <= devices / d; ++d) {
    if (devices % d != 0) continue;
    consider(d);
    consider(devices / d);
  }
  return best;
}

std::vector<std::int64_t> nearest_second(const std::vector<std::int64_t>& first,
                                         const std::vector<std::int64_t>& second) {
  constexpr std::int64_t kMostSearched = std::int64_t{1} << 40;  // divisors up to its root, 2^20
  const std::vector<std::int64_t> fixed = boundaries(first);
  const std::vector<std::int64_t> wanted = boundaries(second);
  if (fixed.back() > kMostSearched) return first;
  std::vector<std::int64_t> degrees;
  std::int64_t inner = 1;
  for (std::size_t i = 1; i < wanted.size(); ++i) {
    const bool outermost = i + 1 == wanted.size();
    const std::int64_t next =
        outermost ? fixed.back() : nearest_boundary(wanted[i], inner, fixed.back(), fixed);
    degrees.insert(degrees.begin(), next / inner);
    inner = next;
  }
  return degrees;
}

std::string list(const std::vector<std::int64_t>& degrees) {
  std::string text;
  for (std::int64_t degree : degrees) text += (text.empty() ? "" : "x") + std::to_string(degree);
  return text;
}

/// Position in the list (outermost first) of the axis whose range of boundaries holds `inner`.
std::size_t owner(const std::vector<std::int64_t>& products, std::int64_t inner) {
  const auto above = std::ranges::upper_bound(products, inner);
  return static_cast<std::size_t>(products.end() - above) - 1;
}

}  // namespace

Refinement common_refinement(const std::vector<std::int64_t>& first,
                             const std::vector<std::int64_t>& second) {
  const std::vector<std::int64_t> a = boundaries(first);
  const std::vector<std::int64_t> b = boundaries(second);
  Refinement out;
  if (a.back() != b.back()) {
    out.problem = list(first) + " is " + std::to_string(a.back()) + " devices, " + list(second) +
                  " is " + std::to_string(b.back());
    out.nearest = nearest_second(first, second);
    return out;
  }
  std::vector<std::int64_t> all;
  std::ranges::set_union(a, b, std::back_inserter(all));
  all.erase(std::unique(all.begin(), all.end()), all.end());
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i] % all[i - 1] != 0) {
      out.axes.clear();
      out.problem = "the innermost " + std::to_string(all[i - 1]) + " devices of " + list(first) +
                    " and " + list(second) + " do not divide the innermost " +
                    std::to_string(all[i]);
      out.nearest = nearest_second(first, second);
      return out;
    }
    out.axes.insert(out.axes.begin(),
                    {all[i] / all[i - 1], owner(a, all[i - 1]), owner(b, all[i - 1])});
  }
  return out;
}

}  // namespace placet
