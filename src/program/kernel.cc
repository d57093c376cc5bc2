#include "program/kernel.h"

#include <algorithm>

#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

/// Calls visit(operand) for all that a statement reads.
template <class Visit>
void for_each_operand(const Statement& statement, Visit visit) {
  for (const Product& product : statement.products) {
    for (const Operand& operand : product.operands) visit(operand);
  }
  for (const Operand& operand : statement.operands) visit(operand);
}

void check_operand(const Kernel& kernel, const Operand& operand) {
  ensure(operand.tensor >= 0 && at(operand.tensor) < kernel.tensors.size(),
         "an operand is a tensor of its kernel");
  ensure(operand.dims.size() == kernel.tensors[at(operand.tensor)].dims.size(),
         "an operand has as many dims as its tensor");
  for (int d : operand.dims) {
    ensure(d >= 0 && at(d) < kernel.dims.size(), "an operand's dims are the kernel's");
  }
}

Operand renumbered(Operand operand, const std::vector<int>& tensors, const std::vector<int>& dims) {
  operand.tensor = tensors[at(operand.tensor)];
  for (int& d : operand.dims) d = dims[at(d)];
  return operand;
}

void renumber(std::vector<int>& values, const std::vector<int>& dims) {
  for (int& d : values) d = dims[at(d)];
}

Statement renumbered(Statement s, const std::vector<int>& tensors, const std::vector<int>& dims) {
  s.result = renumbered(std::move(s.result), tensors, dims);
  for (Product& product : s.products) {
    for (Operand& operand : product.operands) operand = renumbered(operand, tensors, dims);
  }
  for (Operand& operand : s.operands) operand = renumbered(operand, tensors, dims);
  renumber(s.whole, dims);
  renumber(s.positions, dims);
  renumber(s.reduced, dims);
  return s;
}

/// Two kernels on their way to one.
class Fusion {
 public:
  Fusion(const Kernel& first, const Kernel& second, const std::vector<int>& wires)
      : first_(first), second_(second), wires_(wires) {}

  Kernel build(const std::vector<int>& drop) {
    out_.name = first_.name + "." + second_.name;
    out_.dims = first_.dims;
    map_dims();
    add_tensors(drop);
    for (const Statement& s : first_.statements) {
      std::vector<int> same(first_.dims.size());
      for (std::size_t d = 0; d < same.size(); ++d) same[d] = static_cast<int>(d);
      out_.statements.push_back(renumbered(s, first_tensors_, same));
    }
    for (const Statement& s : second_.statements) {
      out_.statements.push_back(renumbered(s, second_tensors_, dims_));
    }
    return std::move(out_);
  }

 private:
  /// Dims of `second` that a wired input has are those of the output it is; all others are new.
  void map_dims() {
    dims_.assign(second_.dims.size(), -1);
    for (std::size_t i = 0; i < wires_.size(); ++i) {
      if (wires_[i] < 0) continue;
      const auto& from = first_.tensors[at(first_.inputs + wires_[i])].dims;
      const auto& to = second_.tensors[i].dims;
      ensure(from.size() == to.size(), "a wired tensor has as many dims on both ends");
      for (std::size_t d = 0; d < to.size(); ++d) dims_[at(to[d])] = from[d];
    }
    for (std::size_t d = 0; d < dims_.size(); ++d) {
      if (dims_[d] >= 0) continue;
      dims_[d] = static_cast<int>(out_.dims.size());
      out_.dims.push_back({.name = unused(second_.dims[d].name), .like = -1});
    }
    for (std::size_t d = 0; d < dims_.size(); ++d) {
      const int like = second_.dims[d].like;
      if (like >= 0 && at(dims_[d]) >= first_.dims.size()) {
        out_.dims[at(dims_[d])].like = dims_[at(like)];
      }
    }
  }

  std::string unused(std::string name) const {
    const auto taken = [&](const std::string& text) {
      return std::ranges::any_of(out_.dims, [&](const auto& d) { return d.name == text; });
    };
    if (name == kAnyDims) return name;
    while (taken(name)) name += "'";
    return name;
  }

  void add(std::vector<int>& numbers, const Kernel& from, std::size_t t,
           const std::vector<int>& dims) {
    Kernel::Tensor tensor = from.tensors[t];
    if (!dims.empty() || &from == &second_) renumber(tensor.dims, dims_);
    const auto taken = [&](const std::string& text) {
      return std::ranges::any_of(out_.tensors, [&](const auto& x) { return x.name == text; });
    };
    while (taken(tensor.name)) tensor.name += "'";
    numbers[t] = static_cast<int>(out_.tensors.size());
    out_.tensors.push_back(std::move(tensor));
  }

  void add_tensors(const std::vector<int>& drop) {
    first_tensors_.assign(first_.tensors.size(), -1);
    second_tensors_.assign(second_.tensors.size(), -1);
    const auto dropped = [&](int output) { return std::ranges::find(drop, output) != drop.end(); };
    for (int i = 0; i < first_.inputs; ++i) add(first_tensors_, first_, at(i), {});
    for (int i = 0; i < second_.inputs; ++i) {
      if (wires_[at(i)] < 0) add(second_tensors_, second_, at(i), dims_);
    }
    out_.inputs = static_cast<int>(out_.tensors.size());
    for (int o = 0; o < first_.outputs; ++o) {
      if (!dropped(o)) add(first_tensors_, first_, at(first_.inputs + o), {});
    }
    for (int o = 0; o < second_.outputs; ++o) {
      add(second_tensors_, second_, at(second_.inputs + o), dims_);
    }
    out_.outputs = static_cast<int>(out_.tensors.size()) - out_.inputs;
    add_inner_tensors();
  }

  void add_inner_tensors() {
    for (std::size_t t = 0; t < first_.tensors.size(); ++t) {
      if (first_tensors_[t] < 0) add(first_tensors_, first_, t, {});
    }
    for (std::size_t i = 0; i < wires_.size(); ++i) {
      if (wires_[i] >= 0) second_tensors_[i] = first_tensors_[at(first_.inputs + wires_[i])];
    }
    for (std::size_t t = 0; t < second_.tensors.size(); ++t) {
      if (second_tensors_[t] < 0) add(second_tensors_, second_, t, dims_);
    }
  }

  const Kernel& first_;
  const Kernel& second_;
  const std::vector<int>& wires_;
  std::vector<int> dims_;
  std::vector<int> first_tensors_;
  std::vector<int> second_tensors_;
  Kernel out_;
};

}  // namespace

bool draws(std::string_view function) { return function == "kept"; }

bool draws(const Kernel& kernel) {
  return std::ranges::any_of(kernel.statements,
                             [](const Statement& s) { return draws(s.function); });
}

std::vector<int> positions_of(const Kernel& kernel) {
  std::vector<int> found;
  for (const Statement& statement : kernel.statements) {
    for (int d : statement.positions) {
      if (std::ranges::find(found, d) == found.end()) found.push_back(d);
    }
  }
  return found;
}

void validate(const Kernel& kernel) {
  std::vector<bool> made(kernel.tensors.size(), false);
  std::vector<bool> sized(kernel.dims.size(), false);
  ensure(kernel.inputs >= 0 && kernel.outputs >= 0 &&
             at(kernel.inputs + kernel.outputs) <= kernel.tensors.size(),
         "a kernel has its inputs and outputs");
  for (int i = 0; i < kernel.inputs; ++i) {
    made[at(i)] = true;
    for (int d : kernel.tensors[at(i)].dims) sized[at(d)] = true;
  }
  for (std::size_t d = 0; d < sized.size(); ++d) sized[d] = sized[d] || kernel.dims[d].like >= 0;
  for (const Statement& s : kernel.statements) {
    for_each_operand(s, [&](const Operand& operand) {
      check_operand(kernel, operand);
      ensure(made[at(operand.tensor)], "a tensor is made before it is used");
    });
    check_operand(kernel, s.result);
    ensure(!made[at(s.result.tensor)], "a tensor is made once");
    made[at(s.result.tensor)] = true;
  }
  ensure(std::ranges::all_of(made, [](bool m) { return m; }), "all tensors of a kernel are made");
}

Kernel fuse(const Kernel& first, const Kernel& second, const std::vector<int>& wires,
            const std::vector<int>& drop) {
  ensure(static_cast<int>(wires.size()) == second.inputs, "a wire for each input");
  Kernel out = Fusion(first, second, wires).build(drop);
  validate(out);
  return out;
}

}  // namespace placet
