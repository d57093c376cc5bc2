// The grammar of kernels.
#include <algorithm>
#include <limits>

#include "program/grammar.h"
#include "program/text_names.h"

namespace placet {
namespace {

bool has_value(const std::vector<int>& values, int value) {
  return std::ranges::find(values, value) != values.end();
}

class KernelGrammar {
 public:
  KernelGrammar(Grammar& g, const Kernel& kernel) : g_(g), kernel_(kernel) {}

  void check() {
    g_.go_to([&k = kernel_] { return "kernel '" + cut_short(k.name) + "'"; });
    const std::int64_t outside = std::int64_t{kernel_.inputs} + kernel_.outputs;
    g_.require(kernel_.inputs >= 0 && kernel_.outputs >= 1 &&
                   outside <= static_cast<std::int64_t>(kernel_.tensors.size()),
               kernel_.name, "has not the tensors that come in and go out");
    g_.require_names(kernel_.dims, "a dim of the kernel");
    g_.require_names(kernel_.tensors, "a tensor of the kernel");
    for (const Kernel::Tensor& t : kernel_.tensors) check_dims(t.dims);
    check_extents();
    made_.assign(kernel_.tensors.size(), false);
    std::fill_n(made_.begin(), kernel_.inputs, true);
    for (const Statement& s : kernel_.statements) check(s);
    const auto unmade = std::ranges::find(made_, false);
    if (unmade != made_.end()) {
      g_.refuse(kernel_.tensors[static_cast<std::size_t>(unmade - made_.begin())].name,
                "is never made");
    }
  }

 private:
  void check_numbers(const std::vector<int>& dims) const {
    for (int d : dims) g_.require_number(d, kernel_.dims.size(), "dim of the kernel");
  }

  /// Dims of a tensor: each once, "..." alone.
  void check_dims(const std::vector<int>& dims) const {
    check_numbers(dims);
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const std::string& name = kernel_.dims[as_index(dims[i])].name;
      g_.require(std::find(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(i), dims[i]) ==
                     dims.begin() + static_cast<std::ptrdiff_t>(i),
                 name, "is a dim of one tensor twice");
      g_.require(name != kAnyDims || dims.size() == 1, name, "stands beside other dims");
    }
  }

  /// Every dim is that of an input or output, or like one, or like one that is.
  void check_extents() const {
    std::vector<bool> sized(kernel_.dims.size(), false);
    for (int i = 0; i < kernel_.inputs + kernel_.outputs; ++i) {
      for (int d : kernel_.tensors[as_index(i)].dims) sized[as_index(d)] = true;
    }
    for (std::size_t d = 0; d < sized.size(); ++d) {
      bool found = sized[d];
      std::size_t steps = 0;
      for (int at = kernel_.dims[d].like; at != -1; at = kernel_.dims[as_index(at)].like) {
        g_.require_number(at, sized.size(), "dim of the kernel");
        g_.require(++steps <= sized.size(), kernel_.dims[d].name, "is like itself");
        found = found || sized[as_index(at)];
      }
      g_.require(found, kernel_.dims[d].name, "has no extent: no input or output has it",
                 [&] { return "'dim " + kernel_.dims[d].name + " like OTHER'"; });
    }
  }

  void check(const Operand& operand, bool made) const {
    g_.require_number(operand.tensor, kernel_.tensors.size(), "tensor of the kernel");
    const Kernel::Tensor& tensor = kernel_.tensors[as_index(operand.tensor)];
    g_.require(made_[as_index(operand.tensor)] == made, tensor.name,
               [&] { return made ? "is read before it is made" : "is made twice"; });
    g_.require(operand.dims.size() == tensor.dims.size(), tensor.name, "has another number of dims",
               [&] { return std::to_string(tensor.dims.size()); });
    check_dims(operand.dims);
  }

  void check(const Statement& s) {
    for (const Product& product : s.products) {
      for (const Operand& operand : product.operands) check(operand, true);
    }
    for (const Operand& operand : s.operands) check(operand, true);
    check(s.result, false);
    made_[as_index(s.result.tensor)] = true;
    const std::string& name = kernel_.tensors[as_index(s.result.tensor)].name;
    if (s.is_linear()) {
      check_linear(s, name);
    } else {
      check_function(s, name);
    }
  }

  void check_linear(const Statement& s, const std::string& name) const {
    g_.require(!s.products.empty(), name, "is a sum of nothing");
    for (const Product& product : s.products) {
      g_.require(!product.operands.empty(), name, "is made of a product without a tensor");
      g_.require(product.factor.numerator() != std::numeric_limits<std::int64_t>::min(), name,
                 "has a factor out of range");
    }
    const bool plain = s.operands.empty() && s.whole.empty() && s.positions.empty() &&
                       s.reduced.empty() && s.combine == Combine::sum;
    g_.require(plain, name, "is a sum of products with parts of a function");
  }

  void check_function(const Statement& s, const std::string& name) const {
    g_.require_text(s.function, "a function");
    g_.require(s.products.empty(), name, "is a function with products");
    check_numbers(s.whole);
    check_numbers(s.positions);
    check_numbers(s.reduced);
    for (int d : s.reduced) {
      g_.require(!has_value(s.result.dims, d), kernel_.dims[as_index(d)].name,
                 "is combined and left");
    }
    for (const Operand& operand : s.operands) check_operand_dims(s, operand);
  }

  void check_operand_dims(const Statement& s, const Operand& operand) const {
    const auto nowhere = [&] {
      return "is a dim of an operand of '" + cut_short(s.function) + "' that goes nowhere";
    };
    for (int d : operand.dims) {
      g_.require(has_value(s.result.dims, d) || has_value(s.reduced, d) || has_value(s.whole, d),
                 kernel_.dims[as_index(d)].name, nowhere,
                 "the result has it, it is combined, or it is seen whole");
    }
  }

  Grammar& g_;
  const Kernel& kernel_;
  std::vector<bool> made_;
};

}  // namespace

void check_kernels(Grammar& g) {
  g.go_to("kernels");
  g.require_names(g.program().kernels, "a kernel");
  for (const Kernel& kernel : g.program().kernels) KernelGrammar(g, kernel).check();
}

}  // namespace placet
