// A kernel for tensors of known extents, ready to run over any numbers (docs/theory.md §6.7).
//
// The place of every number that a statement reads is worked out here, once: it is the sum of its
// places in the loops over the entries of the result and in those over what is summed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/kernel.h"
#include "ranks/places.h"
#include "units/rational.h"

namespace placet::ranks {

/// A tensor that is read. An entry stands at outer[o] + inner[i] + along[a].
struct OperandCode {
  int tensor = 0;
  Places outer;              // by entry of the result, for functions: without its index dims
  Places inner;              // by term of the sum
  Places along;              // by entry of the vectors that a function sees
  bool has_own_dim = false;  // of products: a dim that no other operand has
};

/// factor times the sum over `inner` of the products of the operands.
struct ProductCode {
  Rational factor{1};
  std::size_t terms = 1;
  bool sums = false;  // over some dim, be its extent one
  std::vector<OperandCode> operands;
};

/// What is known of a function. Of all others nothing is but their names.
enum class FunctionKind : std::uint8_t {
  unknown,
  draw,       // kept: a random number for a key and a position
  exp_dot,    // exp(c q . k) where the key's position is allowed, else 0
  exp_seen,   // exp(x) where the key's position is allowed, else 0
  exp_shift,  // exp(z - m)
  ratio,
  inv,
  id,
  onehot,    // whether a number is the position
  position,  // whether two positions are the same
  chosen,    // whether the index is among the `choices` largest of the vector
  route      // unknown where chosen, else 0
};

struct PositionCode {
  int dim = 0;  // of the kernel
  std::int64_t extent = 1;
  Places outer;
  Places inner;
};

struct FunctionCode {
  FunctionKind kind = FunctionKind::unknown;
  std::uint64_t name = 0;
  Combine combine = Combine::sum;
  std::size_t outer = 1;  // entries of the result without its index dims
  std::size_t inner = 1;  // entries that are combined into one
  std::vector<OperandCode> operands;
  std::vector<PositionCode> positions;
  /// Dims of the first operand that the last one lacks: what a statistic was taken over.
  std::vector<int> beyond;
  Places result;  // by outer entry
  Places
      index_place;  // by index that is asked of a function of whole vectors: its place from there
  std::vector<PositionCode> indices;  // the parts of that index, as `outer`
  std::size_t choices = 0;
  std::int64_t window = 0;  // exp_dot, exp_seen: keys a query sees; 0: all up to itself
};

struct StatementCode {
  int result = 0;  // a tensor of the kernel
  std::size_t entries = 1;
  Places places;                      // of the result of a linear statement
  std::vector<ProductCode> products;  // of a linear statement
  FunctionCode function;
};

struct KernelCode {
  std::vector<StatementCode> statements;
  std::vector<std::size_t> sizes;     // elements by tensor of the kernel
  std::vector<std::int64_t> extents;  // by dim of the kernel
  int inputs = 0;
  int arguments = 0;        // tensors that the caller gives: inputs and outputs
  std::size_t scratch = 0;  // elements of all others together
  // What it costs to run, and what the bound of the error counts.
  double products = 0;
  double hashes = 0;
  double inversions = 0;
};

/// `extents` by dim of the kernel. Throws InputError if a function has an operand with a dim that
/// is neither in the result nor whole nor reduced, or too few operands or positions for its name;
/// or if a table would be longer than kMostPlaces.
KernelCode compile(const Kernel& kernel, const std::vector<std::int64_t>& extents,
                   Tables tables = Tables::made);

}  // namespace placet::ranks
