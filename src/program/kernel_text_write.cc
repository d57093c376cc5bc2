// The writer of kernels.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "program/kernel_text.h"

#include "units/at.h"

namespace placet {
namespace {

std::string dim_text(const Kernel& kernel, int dim) {
  const std::string& name = kernel.dims[at(dim)].name;
  if (name == kAnyDims) return name;
  return name == "of" ? quoted(name) : spelled(name);
}

std::string dims_text(const Kernel& kernel, const std::vector<int>& dims) {
  std::string text = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ' ';
    text += dim_text(kernel, dims[i]);
  }
  return text + "]";
}

std::string operand_text(const Kernel& kernel, const Operand& operand) {
  return spelled(kernel.tensors[at(operand.tensor)].name) + dims_text(kernel, operand.dims);
}

std::string tensors_text(const Kernel& kernel, int first, int count) {
  std::string text = "(";
  for (int t = first; t < first + count; ++t) {
    if (t > first) text += ", ";
    text += spelled(kernel.tensors[at(t)].name) + dims_text(kernel, kernel.tensors[at(t)].dims);
  }
  return text + ")";
}

std::string product_text(const Kernel& kernel, const Product& product, bool first) {
  const bool negative = product.factor < Rational(0);
  const Rational factor = negative ? Rational(0) - product.factor : product.factor;
  std::string text = first ? (negative ? "- " : "") : (negative ? " - " : " + ");
  bool begun = factor != Rational(1);
  if (begun) text += to_string(factor);
  for (const Operand& operand : product.operands) {
    if (begun) text += " * ";
    text += operand_text(kernel, operand);
    begun = true;
  }
  return text;
}

std::string sum_text(const Kernel& kernel, const Statement& s) {
  std::string text;
  for (std::size_t i = 0; i < s.products.size(); ++i) {
    text += product_text(kernel, s.products[i], i == 0);
  }
  return text;
}

std::string function_text(const Kernel& kernel, const Statement& s) {
  std::string text;
  const auto names = [&](const std::vector<int>& dims) {
    std::string list;
    for (int d : dims) list += " " + dim_text(kernel, d);
    return list;
  };
  if (!s.reduced.empty() || s.combine == Combine::max) {
    text += (s.combine == Combine::sum ? "sum" : "max") + names(s.reduced) + " of ";
  }
  text += spelled(s.function) + "(";
  for (std::size_t i = 0; i < s.operands.size(); ++i) {
    if (i > 0) text += ", ";
    text += operand_text(kernel, s.operands[i]);
  }
  if (!s.whole.empty()) text += "; whole" + names(s.whole);
  if (!s.positions.empty()) text += "; at" + names(s.positions);
  return text + ")";
}

/// Collects dims in the order in which a reader of the text meets them.
class DimOrder {
 public:
  explicit DimOrder(const Kernel& kernel) : kernel_(kernel), met_(kernel.dims.size(), false) {}

  std::vector<int> find(bool with_inside) {
    const int outside = kernel_.inputs + kernel_.outputs;
    for (std::size_t t = 0; t < kernel_.tensors.size(); ++t) {
      if (with_inside || static_cast<int>(t) < outside) meet(kernel_.tensors[t].dims);
    }
    for (std::size_t d = 0; d < met_.size(); ++d) {
      const int like = kernel_.dims[d].like;
      if (like >= 0) meet({static_cast<int>(d), like});
    }
    for (const Statement& s : kernel_.statements) meet(s);
    return std::move(order_);
  }

 private:
  void meet(const std::vector<int>& dims) {
    for (int d : dims) {
      if (!met_[at(d)]) order_.push_back(d);
      met_[at(d)] = true;
    }
  }

  void meet(const Statement& s) {
    meet(s.result.dims);
    for (const Product& p : s.products) {
      for (const Operand& o : p.operands) meet(o.dims);
    }
    meet(s.reduced);
    for (const Operand& o : s.operands) meet(o.dims);
    meet(s.whole);
    meet(s.positions);
  }

  const Kernel& kernel_;
  std::vector<bool> met_;
  std::vector<int> order_;
};

/// Whether tensors inside are numbered as they are made, with the dims that they are made with.
bool made_in_order(const Kernel& kernel) {
  int next = kernel.inputs + kernel.outputs;
  for (const Statement& s : kernel.statements) {
    if (s.result.tensor < kernel.inputs + kernel.outputs) continue;
    if (s.result.tensor != next++) return false;
    if (kernel.tensors[at(s.result.tensor)].dims != s.result.dims) return false;
  }
  return true;
}

/// All dims in the order of their numbers, where that is not the order of reading.
std::string order_text(const Kernel& kernel) {
  std::vector<int> order(kernel.dims.size());
  for (std::size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int>(d);
  const bool usual = DimOrder(kernel).find(!made_in_order(kernel)) == order;
  return usual ? std::string() : dims_text(kernel, order);
}

}  // namespace

std::string to_text(const Kernel& kernel) {
  std::string text = "kernel " + spelled(kernel.name) + order_text(kernel) +
                     tensors_text(kernel, 0, kernel.inputs) + " -> " +
                     tensors_text(kernel, kernel.inputs, kernel.outputs);
  if (!made_in_order(kernel)) {
    const int outside = kernel.inputs + kernel.outputs;
    const int inside = static_cast<int>(kernel.tensors.size()) - outside;
    text += " with " + tensors_text(kernel, outside, inside);
  }
  text += " {\n";
  for (std::size_t d = 0; d < kernel.dims.size(); ++d) {
    const int like = kernel.dims[d].like;
    if (like < 0) continue;
    text += "  dim " + dim_text(kernel, static_cast<int>(d)) + " like " + dim_text(kernel, like);
    text += "\n";
  }
  for (const Statement& s : kernel.statements) {
    text += "  " + operand_text(kernel, s.result) + " = " +
            (s.is_linear() ? sum_text(kernel, s) : function_text(kernel, s)) + "\n";
  }
  return text + "}\n";
}

}  // namespace placet
