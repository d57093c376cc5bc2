#include "derive/quantised_traffic.h"

#include <algorithm>

#include "units/shares.h"

namespace placet {
namespace {

constexpr std::int64_t kEights = 8;

/// The least divisor of `number` that is not below `least`; `number` itself is one.
std::int64_t least_divisor(std::int64_t number, std::int64_t least) {
  std::int64_t best = number;
  for (std::int64_t d = 1; d <= number / d; ++d) {
    if (number % d != 0) continue;
    if (d >= least) best = std::min(best, d);
    if (number / d >= least) best = std::min(best, number / d);
  }
  return best;
}

std::int64_t innermost(AxisMask axes) {
  std::int64_t last = 0;
  while ((axes >> (last + 1)) != 0) ++last;
  return last;
}

}  // namespace

std::int64_t equal_blocks(std::int64_t elements, std::int64_t block) {
  const std::int64_t needed = largest_share(elements, block);
  if (elements % kEights != 0 || needed > elements / kEights) return needed;
  return least_divisor(elements / kEights, needed);
}

std::vector<GradientExchange> gradient_exchanges(const Placement& placement,
                                                 const LocalParameter& parameter, AxisMask axes) {
  if (axes == 0) return {};
  const bool stacked = parameter.rows * parameter.matrix_columns != parameter.elements;
  const std::int64_t second = stacked ? parameter.matrix_rows : parameter.matrix_columns;
  const std::int64_t blocks = std::max({parameter.rows, second, degree_of(placement, axes)});
  const AxisMask inner = axis_bit(static_cast<int>(innermost(axes)));
  const std::int64_t degree = degree_of(placement, inner);
  return {
      {.axes = inner, .elements = parameter.elements, .blocks = blocks},
      {.axes = axes & ~inner, .elements = parameter.elements / degree, .blocks = blocks / degree}};
}

bool can_be_exchanged(const Placement& placement, const LocalParameter& parameter, AxisMask axes) {
  const bool matrix = parameter.rows < parameter.elements;
  return matrix && axes != 0 && parameter.elements % (2 * degree_of(placement, axes)) == 0;
}

}  // namespace placet
