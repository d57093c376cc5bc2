#include "program/kernel_text.h"

#include <algorithm>
#include <utility>

#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

constexpr std::size_t kMostDims = 64;
constexpr std::size_t kMostTensors = 512;
constexpr std::size_t kMostOperands = 256;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

class KernelReader {
 public:
  explicit KernelReader(Tokens& tokens) : in_(tokens) {}

  Kernel read() {
    in_.expect("kernel");
    kernel_.name = in_.expect_word("the kernel's name");
    kernel_.inputs = read_tensors();
    in_.expect("->");
    kernel_.outputs = read_tensors();
    made_.assign(kernel_.tensors.size(), false);
    std::fill_n(made_.begin(), kernel_.inputs, true);
    in_.expect("{");
    while (!in_.take("}")) {
      if (in_.is("dim")) {
        read_alias();
      } else {
        read_statement();
      }
    }
    finish();
    return std::move(kernel_);
  }

 private:
  int read_tensors() {
    int count = 0;
    in_.expect("(");
    while (!in_.take(")")) {
      if (count++ > 0) in_.expect(",");
      const std::string name = in_.expect_word("a tensor");
      if (find(name) >= 0) in_.refuse("the tensor '" + name + "' is there already");
      add_tensor(name, read_dims());
    }
    return count;
  }

  int find(std::string_view name) const {
    for (std::size_t t = 0; t < kernel_.tensors.size(); ++t) {
      if (kernel_.tensors[t].name == name) return static_cast<int>(t);
    }
    return -1;
  }

  int add_tensor(const std::string& name, std::vector<int> dims) {
    if (kernel_.tensors.size() >= kMostTensors) in_.refuse("a kernel has too many tensors");
    kernel_.tensors.push_back({.name = name, .dims = std::move(dims)});
    return static_cast<int>(kernel_.tensors.size()) - 1;
  }

  int dim_named(const std::string& name) {
    for (std::size_t d = 0; d < kernel_.dims.size(); ++d) {
      if (kernel_.dims[d].name == name) return static_cast<int>(d);
    }
    if (kernel_.dims.size() >= kMostDims) in_.refuse("a kernel has too many dims");
    kernel_.dims.push_back({.name = name});
    return static_cast<int>(kernel_.dims.size()) - 1;
  }

  bool at_dim() const { return in_.kind() == Tokens::Kind::word || in_.is(kAnyDims); }

  int read_dim() {
    if (in_.take(kAnyDims)) return dim_named(std::string(kAnyDims));
    return dim_named(in_.expect_word("a dim"));
  }

  /// Dims in brackets. Each stands once.
  std::vector<int> read_dims() {
    std::vector<int> dims;
    in_.expect("[");
    while (!in_.take("]")) {
      const int dim = read_dim();
      if (std::ranges::find(dims, dim) != dims.end()) in_.refuse("a dim stands twice");
      dims.push_back(dim);
    }
    return dims;
  }

  void read_alias() {
    in_.expect("dim");
    const int dim = read_dim();
    in_.expect("like");
    const int like = read_dim();
    if (dim == like) in_.refuse("a dim is like another one");
    kernel_.dims[at(dim)].like = like;
  }

  Operand read_operand() {
    const std::string name = in_.expect_word("a tensor");
    const int tensor = find(name);
    if (tensor < 0 || !made_[at(tensor)]) {
      in_.refuse("no tensor '" + name + "' is there yet", {}, nearest_tensor(name));
    }
    return with_dims(tensor);
  }

  Operand with_dims(int tensor) {
    Operand operand{.tensor = tensor, .dims = read_dims()};
    if (operand.dims.size() != kernel_.tensors[at(tensor)].dims.size()) {
      in_.refuse("'" + kernel_.tensors[at(tensor)].name + "' has another number of dims",
                 std::to_string(kernel_.tensors[at(tensor)].dims.size()));
    }
    return operand;
  }

  std::string nearest_tensor(const std::string& name) const {
    std::vector<std::string> names;
    for (const Kernel::Tensor& tensor : kernel_.tensors) names.push_back(tensor.name);
    return nearest(name, names);
  }

  void read_statement() {
    Statement s;
    const std::string name = in_.expect_word("a tensor");
    int tensor = find(name);
    if (tensor >= 0 && made_[at(tensor)]) in_.refuse("'" + name + "' is made twice");
    if (tensor < 0) {
      tensor = add_tensor(name, read_dims());
      made_.push_back(false);
      s.result = {.tensor = tensor, .dims = kernel_.tensors[at(tensor)].dims};
    } else {
      s.result = with_dims(tensor);
    }
    in_.expect("=");
    read_right_side(s);
    made_[at(tensor)] = true;
    kernel_.statements.push_back(std::move(s));
  }

  void read_right_side(Statement& s) {
    if (in_.is("sum") || in_.is("max")) {
      s.combine = in_.is("sum") ? Combine::sum : Combine::max;
      in_.next();
      while (!in_.take("of")) s.reduced.push_back(read_dim());
      read_function(s, in_.expect_word("a function"));
      return;
    }
    if (in_.kind() == Tokens::Kind::word) {
      const std::string word = in_.expect_word("a function or a tensor");
      if (in_.is("(")) return read_function(s, word);
      read_products(s, word);
      return;
    }
    read_products(s, {});
  }

  void read_function(Statement& s, std::string name) {
    s.function = std::move(name);
    in_.expect("(");
    while (!in_.is(")") && !in_.is(";")) {
      if (!s.operands.empty()) in_.expect(",");
      s.operands.push_back(read_operand());
      if (s.operands.size() > kMostOperands) in_.refuse("a function has too many operands");
    }
    while (in_.take(";")) {
      const std::string word = in_.expect_word("'whole' or 'at'");
      if (word != "whole" && word != "at") in_.refuse("unknown remark", "whole, at");
      std::vector<int>& dims = word == "whole" ? s.whole : s.positions;
      while (at_dim()) dims.push_back(read_dim());
    }
    in_.expect(")");
  }

  /// Products joined by + and -. `first`: the name of the first tensor, if read already.
  void read_products(Statement& s, std::string first) {
    bool negative = first.empty() && in_.take("-");
    while (true) {
      s.products.push_back(read_product(std::exchange(first, {}), negative));
      if (s.products.size() > kMostOperands) in_.refuse("a sum has too many products");
      if (in_.take("+")) {
        negative = false;
      } else if (in_.take("-")) {
        negative = true;
      } else {
        return;
      }
    }
  }

  Product read_product(const std::string& first, bool negative) {
    Product product;
    if (!first.empty()) {
      product.operands.push_back(known(first));
    } else if (in_.kind() == Tokens::Kind::integer) {
      product.factor = read_factor();
    } else {
      product.operands.push_back(read_operand());
    }
    while (in_.take("*")) {
      product.operands.push_back(read_operand());
      if (product.operands.size() > kMostOperands) in_.refuse("a product has too many factors");
    }
    if (product.operands.empty()) in_.refuse("a product has a tensor");
    if (negative) product.factor = Rational(0) - product.factor;
    return product;
  }

  Operand known(const std::string& name) {
    const int tensor = find(name);
    if (tensor < 0 || !made_[at(tensor)]) {
      in_.refuse("no tensor '" + name + "' is there yet", {}, nearest_tensor(name));
    }
    return with_dims(tensor);
  }

  Rational read_factor() {
    const std::int64_t numerator = in_.expect_integer("a factor");
    if (!in_.take("/")) return {numerator};
    const std::int64_t denominator = in_.expect_integer("a denominator");
    if (denominator == 0) in_.refuse("a denominator is zero");
    return {numerator, denominator};
  }

  void finish() {
    std::vector<bool> sized(kernel_.dims.size(), false);
    for (int i = 0; i < kernel_.inputs + kernel_.outputs; ++i) {
      for (int d : kernel_.tensors[at(i)].dims) sized[at(d)] = true;
    }
    for (std::size_t d = 0; d < sized.size(); ++d) {
      if (!sized[d] && kernel_.dims[d].like < 0) {
        in_.refuse(
            "the dim '" + kernel_.dims[d].name + "' has no extent: no input or output has it",
            "'dim " + kernel_.dims[d].name + " like OTHER'");
      }
    }
    for (std::size_t t = 0; t < made_.size(); ++t) {
      if (!made_[t]) in_.refuse("the output '" + kernel_.tensors[t].name + "' is never made");
    }
  }

  Tokens& in_;
  Kernel kernel_;
  std::vector<bool> made_;
};

std::string dims_text(const Kernel& kernel, const std::vector<int>& dims) {
  std::string text = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ' ';
    text += kernel.dims[at(dims[i])].name;
  }
  return text + "]";
}

std::string operand_text(const Kernel& kernel, const Operand& operand) {
  return kernel.tensors[at(operand.tensor)].name + dims_text(kernel, operand.dims);
}

std::string tensors_text(const Kernel& kernel, int first, int count) {
  std::string text = "(";
  for (int t = first; t < first + count; ++t) {
    if (t > first) text += ", ";
    text += kernel.tensors[at(t)].name + dims_text(kernel, kernel.tensors[at(t)].dims);
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

std::string function_text(const Kernel& kernel, const Statement& s) {
  std::string text;
  const auto names = [&](const std::vector<int>& dims) {
    std::string list;
    for (int d : dims) list += " " + kernel.dims[at(d)].name;
    return list;
  };
  if (!s.reduced.empty() || s.combine == Combine::max) {
    text += (s.combine == Combine::sum ? "sum" : "max") + names(s.reduced) + " of ";
  }
  text += s.function + "(";
  for (std::size_t i = 0; i < s.operands.size(); ++i) {
    if (i > 0) text += ", ";
    text += operand_text(kernel, s.operands[i]);
  }
  if (!s.whole.empty()) text += "; whole" + names(s.whole);
  if (!s.positions.empty()) text += "; at" + names(s.positions);
  return text + ")";
}

}  // namespace

Kernel read_kernel(Tokens& tokens) { return KernelReader(tokens).read(); }

Kernel kernel_from(std::string_view text) {
  Tokens tokens(text, "kernel");
  Kernel kernel = read_kernel(tokens);
  if (tokens.kind() != Tokens::Kind::end) tokens.refuse("text follows the kernel");
  validate(kernel);
  return kernel;
}

std::string to_text(const Kernel& kernel) {
  std::string text = "kernel " + kernel.name + tensors_text(kernel, 0, kernel.inputs) + " -> " +
                     tensors_text(kernel, kernel.inputs, kernel.outputs) + " {\n";
  for (const Kernel::LocalDim& dim : kernel.dims) {
    if (dim.like >= 0)
      text += "  dim " + dim.name + " like " + kernel.dims[at(dim.like)].name + "\n";
  }
  for (const Statement& s : kernel.statements) {
    text += "  " + operand_text(kernel, s.result) + " = ";
    if (s.is_linear()) {
      for (std::size_t i = 0; i < s.products.size(); ++i) {
        text += product_text(kernel, s.products[i], i == 0);
      }
    } else {
      text += function_text(kernel, s);
    }
    text += "\n";
  }
  return text + "}\n";
}

}  // namespace placet
