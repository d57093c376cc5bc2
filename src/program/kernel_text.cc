#include "program/kernel_text.h"

#include <algorithm>
#include <utility>

#include "program/known_functions.h"
#include "units/at.h"

namespace placet {
namespace {

constexpr std::size_t kMostKernelDims = 64;
constexpr std::size_t kMostTensors = 512;
constexpr std::size_t kMostOperands = 256;

class KernelReader {
 public:
  explicit KernelReader(Tokens& tokens) : in_(tokens) {}

  Kernel read() {
    in_.expect("kernel");
    kernel_.name = in_.expect_name("the kernel's name");
    if (in_.is("[")) read_dims();
    kernel_.inputs = read_tensors();
    in_.expect("->");
    kernel_.outputs = read_tensors();
    if (in_.take("with")) read_tensors();
    made_.assign(kernel_.tensors.size(), false);
    std::fill_n(made_.begin(), kernel_.inputs, true);
    in_.expect("{");
    while (!in_.take("}")) {
      if (in_.is_keyword("dim")) {
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
      const std::string name = in_.expect_name("a tensor");
      if (find(name) >= 0) in_.refuse_name(name, "is a tensor of the kernel already");
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
    if (kernel_.tensors.size() >= kMostTensors)
      in_.refuse_name(name, "is one tensor too many for a kernel", std::to_string(kMostTensors));
    kernel_.tensors.push_back({.name = name, .dims = std::move(dims)});
    return static_cast<int>(kernel_.tensors.size()) - 1;
  }

  int dim_named(const std::string& name) {
    for (std::size_t d = 0; d < kernel_.dims.size(); ++d) {
      if (kernel_.dims[d].name == name) return static_cast<int>(d);
    }
    if (kernel_.dims.size() >= kMostKernelDims)
      in_.refuse_name(name, "is one dim too many for a kernel", std::to_string(kMostKernelDims));
    kernel_.dims.push_back({.name = name});
    return static_cast<int>(kernel_.dims.size()) - 1;
  }

  bool at_dim() const { return in_.at_name() || in_.is(kAnyDims); }

  int read_dim() {
    if (in_.take(kAnyDims)) return dim_named(std::string(kAnyDims));
    return dim_named(in_.expect_name("a dim"));
  }

  /// Dims in brackets. Each stands once.
  std::vector<int> read_dims() {
    std::vector<int> dims;
    in_.expect("[");
    while (!in_.take("]")) {
      const int dim = read_dim();
      if (std::ranges::find(dims, dim) != dims.end()) {
        in_.refuse_name(kernel_.dims[at(dim)].name, "is a dim of one tensor twice");
      }
      dims.push_back(dim);
    }
    return dims;
  }

  void read_alias() {
    in_.expect("dim");
    const int dim = read_dim();
    in_.expect("like");
    const int like = read_dim();
    if (dim == like) in_.refuse_name(kernel_.dims[at(dim)].name, "is a dim like itself");
    kernel_.dims[at(dim)].like = like;
  }

  Operand read_operand() { return known(in_.expect_name("a tensor")); }

  Operand with_dims(int tensor) {
    Operand operand{.tensor = tensor, .dims = read_dims()};
    if (operand.dims.size() != kernel_.tensors[at(tensor)].dims.size()) {
      in_.refuse_name(kernel_.tensors[at(tensor)].name,
                      "has " + std::to_string(operand.dims.size()) + " dims here",
                      std::to_string(kernel_.tensors[at(tensor)].dims.size()));
    }
    return operand;
  }

  void read_statement() {
    Statement s;
    const std::string name = in_.expect_name("a tensor");
    int tensor = find(name);
    if (tensor >= 0 && made_[at(tensor)]) in_.refuse_name(name, "is made twice");
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
    if ((in_.is_keyword("sum") || in_.is_keyword("max")) && in_.next_begins() != '(') {
      s.combine = in_.is("sum") ? Combine::sum : Combine::max;
      in_.next();
      while (!in_.take("of")) s.reduced.push_back(read_dim());
      read_function(s, in_.expect_name("a function"));
      return;
    }
    if (in_.at_name()) {
      const std::string word = in_.expect_name("a function or a tensor");
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
      if (s.operands.size() > kMostOperands)
        in_.refuse_name(s.function, "has too many operands", std::to_string(kMostOperands));
    }
    while (in_.take(";")) {
      const std::string word = in_.expect_word("'whole' or 'at'");
      if (word != "whole" && word != "at") {
        static const std::vector<std::string> kWords = {"whole", "at"};
        in_.refuse_unknown(word, "whole, at", kWords);
      }
      std::vector<int>& dims = word == "whole" ? s.whole : s.positions;
      while (at_dim()) dims.push_back(read_dim());
    }
    in_.expect(")");
    const std::string misuse = misuse_of(s);
    if (!misuse.empty()) in_.refuse_name(s.function, misuse);
  }

  /// Products joined by + and -. `first`: the name of the first tensor, if read already.
  void read_products(Statement& s, std::string first) {
    bool negative = first.empty() && in_.take("-");
    while (true) {
      s.products.push_back(read_product(std::exchange(first, {}), negative));
      if (s.products.size() > kMostOperands)
        in_.refuse("stands in a sum of too many products", std::to_string(kMostOperands));
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
      if (product.operands.size() > kMostOperands)
        in_.refuse("stands in a product of too many factors", std::to_string(kMostOperands));
    }
    if (product.operands.empty())
      in_.refuse("is not expected here", "a tensor: a product has at least one");
    if (negative) product.factor = Rational(0) - product.factor;
    return product;
  }

  Operand known(const std::string& name) {
    const int tensor = find(name);
    if (tensor < 0 || !made_[at(tensor)]) {
      std::vector<std::string> names;
      for (std::size_t t = 0; t < made_.size(); ++t) {
        if (made_[t]) names.push_back(kernel_.tensors[t].name);
      }
      in_.refuse_unknown(name, "a tensor that comes in or was made before", names);
    }
    return with_dims(tensor);
  }

  Rational read_factor() {
    const std::int64_t numerator = in_.expect_integer("a factor");
    if (!in_.take("/")) return {numerator};
    const std::int64_t denominator = in_.expect_integer("a denominator");
    if (denominator == 0) in_.refuse_name("0", "is no denominator");
    return {numerator, denominator};
  }

  void finish() {
    std::vector<bool> sized(kernel_.dims.size(), false);
    for (int i = 0; i < kernel_.inputs + kernel_.outputs; ++i) {
      for (int d : kernel_.tensors[at(i)].dims) sized[at(d)] = true;
    }
    for (std::size_t d = 0; d < sized.size(); ++d) {
      bool found = sized[d];
      std::size_t steps = 0;
      for (int i = kernel_.dims[d].like; i >= 0; i = kernel_.dims[at(i)].like) {
        found = found || sized[at(i)];
        if (++steps > sized.size()) in_.refuse_name(kernel_.dims[d].name, "is a dim like itself");
      }
      if (!found) {
        in_.refuse_name(kernel_.dims[d].name, "is a dim without extent: no input or output has it",
                        "'dim " + kernel_.dims[d].name + " like OTHER'");
      }
    }
    for (std::size_t t = 0; t < made_.size(); ++t) {
      if (!made_[t]) in_.refuse_name(kernel_.tensors[t].name, "is never made");
    }
  }

  Tokens& in_;
  Kernel kernel_;
  std::vector<bool> made_;
};

}  // namespace

Kernel read_kernel(Tokens& tokens) { return KernelReader(tokens).read(); }

Kernel kernel_from(std::string_view text) {
  Tokens tokens(text, "kernel");
  Kernel kernel = read_kernel(tokens);
  if (tokens.kind() != Tokens::Kind::end) tokens.refuse("follows the kernel", "nothing");
  validate(kernel);
  return kernel;
}

}  // namespace placet
