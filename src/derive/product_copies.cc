#include "derive/product_copies.h"

#include <vector>

#include "derive/narrow_products.h"
#include "units/at.h"

namespace placet {
namespace {

/// Copies of values, in order of the operators that take them.
class CopyWalk {
 public:
  CopyWalk(const UnitKind& kind, PreparedKind& out)
      : values_(static_cast<int>(kind.values.size())), out_(out), last_(kind.values.size(), -1) {}

  /// Operator `o` takes one of `v`: the first makes it; each further one of those that cast, which
  /// share none, makes its own.
  void take(std::size_t o, int v, bool shares) {
    const int root = out_.values[at(v)].root;
    if (last_[at(root)] < 0) {
      out_.operators[o].made.push_back(values_ + root);
    } else if (!shares) {
      ++out_.values[at(root)].copies;
    }
    last_[at(root)] = static_cast<int>(o);
  }

  /// After its last reader nobody needs a copy.
  void leave() {
    for (std::size_t v = 0; v < last_.size(); ++v) {
      if (last_[v] < 0) continue;
      out_.operators[at(last_[v])].dead_after.push_back(values_ + static_cast<int>(v));
    }
  }

 private:
  int values_;
  PreparedKind& out_;
  std::vector<int> last_;  // by value: the last operator that takes a copy
};

/// Inputs that products take in their own format.
void read_taken(const Job& job, const UnitKind& kind, PreparedKind& out) {
  CopyWalk walk(kind, out);
  out.stored = static_cast<int>(kind.values.size());
  for (std::size_t o = 0; o < kind.operators.size(); ++o) {
    const Operator& op = kind.operators[o];
    out.operators[o].narrow = keeps_narrow_inputs(job, kind, op);
    if (!out.operators[o].narrow) continue;
    out.stored = 2 * static_cast<int>(kind.values.size());
    for (int v : op.inputs) walk.take(o, v, !casts_inputs(job, kind, op));
  }
  walk.leave();
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
  read_taken(job, kind, out);
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
