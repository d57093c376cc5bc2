#include "derive/product_copies.h"

#include <vector>

#include "derive/narrow_products.h"
#include "units/at.h"

namespace placet {
namespace {

/// Inputs that products take in their own format: the first that takes one makes the copy, and
/// after the last nobody needs it.
void read_inputs(const Job& job, const UnitKind& kind, PreparedKind& out) {
  const int values = static_cast<int>(kind.values.size());
  std::vector<int> last(kind.values.size(), -1);
  out.stored = values;
  for (std::size_t o = 0; o < kind.operators.size(); ++o) {
    PreparedOperator& op = out.operators[o];
    op.narrow = keeps_narrow_inputs(job, kind, kind.operators[o]);
    if (!op.narrow) continue;
    const bool own = casts_inputs(job, kind, kind.operators[o]);
    out.stored = 2 * values;
    for (int v : kind.operators[o].inputs) {
      const int root = out.values[at(v)].root;
      if (last[at(root)] < 0) {
        op.made.push_back(values + root);
      } else if (own) {
        ++out.values[at(root)].copies;
      }
      last[at(root)] = static_cast<int>(o);
    }
  }
  for (std::size_t v = 0; v < last.size(); ++v) {
    if (last[v] < 0) continue;
    out.operators[at(last[v])].dead_after.push_back(values + static_cast<int>(v));
  }
}

/// Weights that products cast: there from the product on.
void read_casts(const Job& job, const UnitKind& kind, PreparedKind& out) {
  for (std::size_t o = 0; o < kind.operators.size(); ++o) {
    if (!casts_weights(job, kind, kind.operators[o])) continue;
    PreparedOperator& op = out.operators[o];
    op.casts_weights = true;
    op.made.push_back(cast_of(kind, o));
    op.dead_after.push_back(cast_of(kind, o));
    out.stored = cast_of(kind, kind.operators.size());
  }
}

}  // namespace

void read_copies(const Job& job, const UnitKind& kind, PreparedKind& out) {
  read_inputs(job, kind, out);
  read_casts(job, kind, out);
}

bool is_copy(const UnitKind& kind, int v) {
  return at(v) >= kind.values.size() && !casting_operator(kind, v);
}

std::optional<std::size_t> casting_operator(const UnitKind& kind, int v) {
  const std::size_t values = 2 * kind.values.size();
  return at(v) < values ? std::nullopt : std::optional(at(v) - values);
}

int cast_of(const UnitKind& kind, std::size_t op) {
  return static_cast<int>(2 * kind.values.size() + op);
}

int value_of(const UnitKind& kind, int v) {
  return is_copy(kind, v) ? v - static_cast<int>(kind.values.size()) : v;
}

int root_of(const UnitKind& kind, const PreparedKind& prepared, int v) {
  if (casting_operator(kind, v)) return v;
  const int value = value_of(kind, v);
  return v - value + prepared.values[at(value)].root;
}

}  // namespace placet
