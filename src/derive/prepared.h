// What can be read off a model once and for all placements: who produces and uses each value, what
// is kept for backward, what a gradient sums over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/gradients.h"
#include "profile/job.h"

namespace placet {

/// Facts of one value of a unit kind.
struct PreparedValue {
  int producer = -1;             // operator; -1: the unit's input
  int last_use = -1;             // last operator that takes it as input; -1: the unit's output
  int root = 0;                  // the value whose storage it shares (itself, mostly)
  ClassSet classes = 0;          // of the operator that produces it
  bool on_stream = false;        // its tokens are divided as the residual stream's are
  bool routed = false;           // one entry per token and chosen expert, placed with the experts
  bool leaves_parallel = false;  // value of a parallel region taken by an operator of the stream
  bool enters_parallel = false;  // residual value taken by an operator of a parallel region
  bool taken_inside = false;     // by an operator of a parallel region
  std::int64_t copies = 1;       // in the products' format, where some operator takes one
};

/// Facts of one parameter.
struct PreparedParameter {
  IndexSet summed = 0;   // indices its gradient sums over
  bool routed = false;   // used on routed tokens
  bool backward = true;  // backward has work in its unit
  bool narrow = false;   // only products in fewer bits take it
  IndexSet partial = 0;  // a tensor cut of these, which cuts nothing of it, leaves its gradient P
  std::int64_t elements = 0;  // whole
};

/// What one unit keeps from forward to backward, under one recomputation choice. Here and in
/// PreparedOperator::made, dead_after a value v of the unit is v, its copies in the format of
/// products, where some operator takes it in that, are n + v, and what operator o casts of its
/// weights is 2 n + o, for n values of the unit.
struct SavedPlan {
  std::vector<int> kept;      // values
  std::vector<int> rebuilt;   // values made again in backward, alive until the unit's backward ends
  std::vector<bool> is_kept;  // by value
  std::vector<std::vector<int>> done;  // by operator: kept or rebuilt values whose last reader in
                                       // backward it is
  std::vector<int> only_again;         // kept values that only the second forward reads
  /// By operator that runs again: values that none of those behind it reads.
  std::vector<std::vector<int>> dead_again;
  bool whole_unit = false;      // recomputed as a whole: `kept` is the unit's input, a checkpoint
  std::vector<Module> modules;  // recomputed modules (all, if whole_unit)
  std::vector<bool> spared;     // by operator: a policy keeps what it makes; empty: none
  /// Kept or rebuilt values that gradients of weights are made from, and by operator: those of
  /// which it is the last in backward to do so.
  std::vector<int> for_weights;
  std::vector<std::vector<int>> done_weights;
};

/// Gradients of values in the two parts of an operator's backward, where it is split
/// (docs/theory.md §3.4). The weights' part works on the gradients that came in, which stay for it.
struct PreparedParts {
  std::vector<int> made;      // inputs' part: buffers that appear
  std::vector<int> added;     // temporaries of shares that are added to what is there
  std::vector<int> dead;      // buffers that vanish after it
  std::vector<int> carried;   // buffers that stay from here on for the weights' part
  std::vector<int> released;  // weights' part: of these, those that vanish after it
};

/// Per operator, what appears and vanishes in forward and backward (docs/theory.md §3.3).
struct PreparedOperator {
  ClassSet classes = 0;
  IndexSet around = 0;              // indices of the operators of its classes; of none: of all
  bool backward = true;             // some result of it has a gradient
  bool narrow = false;              // takes its inputs as copies in the products' format
  bool casts_weights = false;       // and its weights
  std::vector<int> made;            // outputs with storage of their own, copies that it takes first
  std::vector<int> dead_after;      // values not needed by any later operator of the forward pass
  std::vector<int> adjoints_made;   // inputs whose gradient first appears in this backward
  std::vector<int> adjoints_added;  // inputs whose gradient exists already: a temporary of its size
  std::vector<int> adjoints_dead;   // outputs whose gradient is used up
  std::vector<int> inner_gradients;  // internals whose gradient its kernels hand one another
  PreparedParts parts;               // empty unless the job's schedule splits backward
};

struct PreparedKind {
  int stored = 0;           // values; their copies, and casts of weights, where there are some
  int output = -1;          // the value handed to the next unit; -1: none (head)
  int input_gradient = 0;   // the value whose gradient's storage is that of the input's
  KindGradients gradients;  // how far backward goes in it
  std::vector<PreparedValue> values;
  std::vector<PreparedParameter> parameters;
  std::vector<PreparedOperator> operators;
  SavedPlan plain;       // blocks that are not recomputed
  SavedPlan recomputed;  // blocks that are
};

struct Prepared {
  std::vector<PreparedKind> kinds;
};

/// The value that `v` is, or is a copy of. REQUIRES: it is no cast of weights.
int value_of(const UnitKind& kind, int v);
bool is_copy(const UnitKind& kind, int v);
/// The operator whose weights `v` is a cast of; none: it is a value or a copy.
std::optional<std::size_t> casting_operator(const UnitKind& kind, int v);
/// The place of what operator `op` casts of its weights.
int cast_of(const UnitKind& kind, std::size_t op);

/// The one whose storage it shares, itself mostly; copies share where their values do.
int root_of(const UnitKind& kind, const PreparedKind& prepared, int v);

/// Whether operator `op` of a unit runs once more in backward: its module is recomputed, and no
/// policy keeps what it makes. Case: of y = W x, z = act(y) under a policy that keeps y, the
/// activation alone runs again.
bool runs_again(const UnitKind& kind, const SavedPlan& plan, std::size_t op);

/// Whether the job recomputes whole units: asked for as such, or by activations = M on an axis.
bool recomputes_units(const Job& job);

/// Reads a job's model under its profile and recomputation. O(operators x values of a kind).
Prepared prepare(const Job& job);

}  // namespace placet
