// How the statements of a compiled kernel are gone through, worked out before the first call
// (docs/theory.md §6.11).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "execute/contraction.h"
#include "execute/meanings.h"
#include "execute/nest.h"
#include "program/kernel.h"
#include "ranks/kernel_code.h"

namespace placet::execute {

/// The meanings of all functions of a program by ranks::number_of(name).
class FunctionTable {
 public:
  explicit FunctionTable(const Meanings& meanings) : meanings_(meanings) {}
  /// Throws InputError for a function without a meaning.
  void add(const Kernel& kernel);
  const MeantFunction& at(std::uint64_t name) const { return functions_.at(name); }
  const Meanings& meanings() const { return meanings_; }

 private:
  Meanings meanings_;
  std::map<std::uint64_t, MeantFunction> functions_;
};

/// A factor that is 1 at one entry along a dim and 0 at all others, as `onehot` and `position` make
/// it. It is never stored: of that dim only this entry is gone through.
struct Lookup {
  std::size_t factor = 0;  // of the product's operands
  int ids = -1;            // the tensor that says where it is 1; -1: the place along `from` does
  int from = -1;           // dim of the kernel
  int along = -1;          // likewise: that it is 1 along
  std::int64_t extent = 1;
  Nest nest;                          // of all other loops: result, operands (the factor's: of ids)
  std::vector<std::int64_t> strides;  // along the dim: of the result, of the operands
};

struct ProductPlan {
  double scale = 1;
  Nest outer;  // result, then operands
  Nest inner;  // operands
  std::optional<Lookup> lookup;
  std::optional<Contraction> contraction;  // of floating numbers
};

struct StatementPlan {
  bool is_looked_up = false;  // every product that reads its result has a Lookup: nothing to do
  std::vector<ProductPlan> products;
  MeantFunction function;
  Nest rows;                          // of functions of numbers: result, operands, positions
  ranks::FunctionCode vectors;        // of functions of vectors: with tables
  Nest along;                         // of scores: the entries of two vectors
  std::optional<Contraction> scores;  // of floating numbers, where none are put together
};

struct KernelPlan {
  std::vector<StatementPlan> statements;
  std::vector<std::int64_t> scratch;  // by tensor: where it stands there; -1: it does not
  std::int64_t scratch_size = 0;
};

/// How many numbers of its own a kernel has room for: tensors that are made inside it, and what
/// products of matrices are made of.
std::int64_t workspace_entries(const KernelPlan& plan);

enum class NumberKind : std::uint8_t { exact, floating };

/// Throws InputError for functions with other operands than they have a meaning for, and for more
/// dims, tensors or vectors than can be gone through.
KernelPlan plan_of(const ranks::KernelCode& code, const FunctionTable& functions, NumberKind kind);

}  // namespace placet::execute
