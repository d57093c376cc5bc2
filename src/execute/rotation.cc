// Turns of heads by where a token stands (docs/theory.md §6.11).
#include "execute/elementary.h"
#include "execute/meanings.h"

namespace placet::execute {
namespace {

/// How much of entry `from` of a head is in entry `to` after a turn by `token` steps.
double turned(const Meanings& m, std::int64_t token, std::int64_t from, std::int64_t to,
              std::int64_t size) {
  const std::int64_t half = size / 2;
  if (from >= 2 * half || to >= 2 * half) return from == to ? 1 : 0;
  const auto plane = [&](std::int64_t e) { return m.rotary_pairs ? e / 2 : e % half; };
  const auto second = [&](std::int64_t e) { return m.rotary_pairs ? e % 2 == 1 : e >= half; };
  if (plane(from) != plane(to)) return 0;
  const double exponent = -2.0 * static_cast<double>(plane(from)) / static_cast<double>(2 * half);
  const double angle = static_cast<double>(token) * power_of(m.rotary_base, exponent);
  if (from == to) return cosine_of(angle);
  return second(to) ? sine_of(angle) : -sine_of(angle);
}

}  // namespace

/// At three positions (token, from, to): a turn, to the last entries where there are more of them.
/// At two (from, to): to the first entries.
double rotation_of(const Meanings& m, const FunctionPlace& place, std::size_t positions) {
  const auto& at = place.positions;
  if (positions == 2) return at[0] == at[1] ? 1 : 0;
  const std::int64_t ahead = place.sizes[2] - place.sizes[1];
  if (at[2] < ahead) return 0;
  return turned(m, at[0], at[1], at[2] - ahead, place.sizes[1]);
}

}  // namespace placet::execute
