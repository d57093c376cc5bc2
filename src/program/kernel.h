// What a device computes in one go: a few statements over tensors with named dims
// (docs/theory.md §6.2). The same form says what the reference computes with whole tensors.
//
// There are two kinds of statements. A linear one is a sum of products,
//     y[s t o] = x[s t i] * w[o i] + 1/2 * b[o]
// summed over the dims that the result does not have. A function is applied entry by entry to
// numbers, or to vectors along the dims that it needs whole,
//     r[s t] = rsqrt(q[s t])        g[s t e] = route(z[s t e]; whole e)
// Nothing is known of a function but its name (`docs/theory.md` lists those with an algebra of
// their own), so that what is proved holds for all functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "units/rational.h"

namespace placet {

/// A tensor of a kernel with its dims, both by number.
struct Operand {
  int tensor = 0;
  std::vector<int> dims;

  friend bool operator==(const Operand&, const Operand&) = default;
};

/// A product of tensors, of which all dims that the result does not have are summed.
struct Product {
  Rational factor{1};
  std::vector<Operand> operands;

  friend bool operator==(const Product&, const Product&) = default;
};

/// How the entries of a function along its reduced dims are put together.
enum class Combine : std::uint8_t { sum, max };

struct Statement {
  Operand result;
  std::vector<Product> products;  // of a linear statement
  std::string function;           // empty: a linear statement
  std::vector<Operand> operands;  // of the function
  std::vector<int> whole;         // dims along which the function sees vectors
  std::vector<int> positions;     // dims along which it depends on where an entry stands
  std::vector<int> reduced;       // dims over which its entries are combined
  Combine combine = Combine::sum;

  bool is_linear() const { return function.empty(); }
  friend bool operator==(const Statement&, const Statement&) = default;
};

/// Tensors are numbered: inputs, then outputs, then those that exist inside the kernel only.
struct Kernel {
  struct Tensor {
    std::string name;
    std::vector<int> dims;
    friend bool operator==(const Tensor&, const Tensor&) = default;
  };
  struct LocalDim {
    std::string name;
    int like = -1;  // the dim whose extent it has, if no input or output has it
    friend bool operator==(const LocalDim&, const LocalDim&) = default;
  };
  std::string name;
  std::vector<LocalDim> dims;  // the dim "..." stands for all dims that a tensor has
  std::vector<Tensor> tensors;
  int inputs = 0;
  int outputs = 0;
  std::vector<Statement> statements;

  friend bool operator==(const Kernel&, const Kernel&) = default;
};

/// The name of the dim that stands for all dims a tensor has.
inline constexpr std::string_view kAnyDims = "...";

/// Whether a function draws random numbers: equal ones where position, key and step are equal.
bool draws(std::string_view function);
/// Whether some function of the kernel draws.
bool draws(const Kernel& kernel);

/// Dims by number that some statement uses the positions of, without repeats.
std::vector<int> positions_of(const Kernel& kernel);

/// Throws InternalError where a number is out of range, a tensor is used before it is made or made
/// twice, or a result has a dim that nothing gives an extent.
void validate(const Kernel& kernel);

/// Kernels `first` then `second` as one, its inputs those of `first` and then those of `second`
/// that `wires` does not give: wires[i] is the output of `first` that is input i of `second`, or
/// -1. Dims of a wired input are those of the output. Outputs of `first` named in `drop` are kept
/// inside; all others remain outputs, before those of `second`.
Kernel fuse(const Kernel& first, const Kernel& second, const std::vector<int>& wires,
            const std::vector<int>& drop);

}  // namespace placet
