#include "program/kernel_rounds.h"

#include <algorithm>

#include "units/at.h"

namespace placet {
namespace {

bool holds_one(const std::vector<int>& list, int number) {
  return std::ranges::find(list, number) != list.end();
}

template <class Visit>
void visit_operands(Statement& s, Visit visit) {
  for (Product& p : s.products) {
    for (Operand& o : p.operands) visit(o);
  }
  for (Operand& o : s.operands) visit(o);
}

template <class Condition>
bool any_operand(const Statement& s, Condition holds) {
  const auto in_product = [&](const Product& p) { return std::ranges::any_of(p.operands, holds); };
  return std::ranges::any_of(s.products, in_product) || std::ranges::any_of(s.operands, holds);
}

/// What a statement does with the dim.
enum class Use : std::uint8_t {
  none,   // it has nothing to do with it
  entry,  // its result has the dim: a piece gives a piece
  sum,    // its result is summed over the dim: a piece gives a summand
  whole   // neither
};

Use use_of(const Statement& s, int dim) {
  const auto has = [&](const Operand& o) { return holds_one(o.dims, dim); };
  if (holds_one(s.whole, dim)) return Use::whole;
  if (holds_one(s.result.dims, dim)) return Use::entry;
  if (!s.is_linear()) {
    if (!any_operand(s, has)) return Use::none;
    return holds_one(s.reduced, dim) && s.combine == Combine::sum ? Use::sum : Use::whole;
  }
  const auto sums = [&](const Product& p) { return std::ranges::any_of(p.operands, has); };
  const auto count = std::ranges::count_if(s.products, sums);
  if (count == 0) return Use::none;
  return count == static_cast<std::ptrdiff_t>(s.products.size()) ? Use::sum : Use::whole;
}

/// Dims of a kernel that statements and tensors have, and those they are like.
std::vector<bool> used_dims(const Kernel& kernel, const std::vector<Statement>& statements,
                            const std::vector<int>& tensors) {
  std::vector<bool> used(kernel.dims.size(), false);
  const auto mark = [&](const std::vector<int>& dims) {
    for (int d : dims) used[at(d)] = true;
  };
  for (const Statement& s : statements) {
    mark(s.result.dims);
    any_operand(s, [&](const Operand& o) {
      mark(o.dims);
      return false;
    });
  }
  for (int t : tensors) mark(kernel.tensors[at(t)].dims);
  for (std::size_t d = used.size(); d-- > 0;) {
    if (used[d] && kernel.dims[d].like >= 0) used[at(kernel.dims[d].like)] = true;
  }
  return used;
}

}  // namespace

KernelPart part_of_kernel(const Kernel& kernel, const std::vector<Statement>& statements,
                          const std::vector<int>& inputs, const std::vector<int>& outputs) {
  KernelPart out;
  out.tensors = inputs;
  out.tensors.insert(out.tensors.end(), outputs.begin(), outputs.end());
  std::vector<int> order = out.tensors;
  for (const Statement& s : statements) {
    if (!holds_one(order, s.result.tensor)) order.push_back(s.result.tensor);
  }
  const std::vector<bool> used = used_dims(kernel, statements, order);
  std::vector<int> dim_number(kernel.dims.size(), -1);
  for (std::size_t d = 0; d < used.size(); ++d) {
    if (!used[d]) continue;
    dim_number[d] = static_cast<int>(out.dims.size());
    out.dims.push_back(static_cast<int>(d));
    out.kernel.dims.push_back(kernel.dims[d]);
  }
  for (Kernel::LocalDim& d : out.kernel.dims) {
    if (d.like >= 0) d.like = dim_number[at(d.like)];
  }
  const auto renumber = [&](std::vector<int>& dims) {
    for (int& d : dims) d = dim_number[at(d)];
  };
  std::vector<int> number(kernel.tensors.size(), -1);
  for (std::size_t t = 0; t < order.size(); ++t) {
    number[at(order[t])] = static_cast<int>(t);
    out.kernel.tensors.push_back(kernel.tensors[at(order[t])]);
    renumber(out.kernel.tensors.back().dims);
  }
  const auto rename = [&](Operand& o) {
    o.tensor = number[at(o.tensor)];
    renumber(o.dims);
  };
  out.kernel.statements = statements;
  for (Statement& s : out.kernel.statements) {
    rename(s.result);
    visit_operands(s, rename);
    for (std::vector<int>* dims : {&s.whole, &s.positions, &s.reduced}) renumber(*dims);
  }
  out.kernel.inputs = static_cast<int>(inputs.size());
  out.kernel.outputs = static_cast<int>(outputs.size());
  return out;
}

namespace {

/// Sorts the statements of a kernel into those of pieces and those of the end.
class Rounds {
 public:
  Rounds(const Kernel& kernel, int dim)
      : kernel_(kernel),
        dim_(dim),
        sum_(kernel.tensors.size(), false),
        late_(kernel.tensors.size(), false),
        in_end_(kernel.tensors.size(), false),
        apart_(kernel.tensors.size(), -1) {}

  std::optional<KernelRounds> split() {
    for (const Statement& s : kernel_.statements) {
      if (!take(s)) return std::nullopt;
    }
    for (int t = kernel_.inputs; t < kernel_.inputs + kernel_.outputs; ++t) {
      if (!is_of_no_piece(t)) continue;
      // Each piece would give it once more.
      if (apart_[at(t)] < 0) return std::nullopt;
      make_in_end(t);
    }
    std::vector<int> results;
    for (int t = kernel_.inputs; at(t) < kernel_.tensors.size(); ++t) {
      if (is_given_by_pieces(t)) results.push_back(t);
    }
    std::vector<int> inputs(at(kernel_.inputs));
    for (int i = 0; i < kernel_.inputs; ++i) inputs[at(i)] = i;
    drop_unread(results);
    KernelRounds out{.piece = part_of_kernel(kernel_, pieces_, inputs, results), .end = {}};
    out.piece.kernel.name = kernel_.name + "-piece";
    validate(out.piece.kernel);
    if (end_.empty()) return out;
    out.end = end();
    validate(out.end->kernel);
    return out;
  }

 private:
  /// False: the statement fits neither.
  bool take(const Statement& s) {
    const bool follows =
        any_operand(s, [&](const Operand& o) { return sum_[at(o.tensor)] || late_[at(o.tensor)]; });
    const Use use = use_of(s, dim_);
    if (use == Use::whole || (follows && use != Use::none)) return false;
    if (follows) return take_late(s);
    sum_[at(s.result.tensor)] = use == Use::sum;
    if (use == Use::none && is_apart(s)) {
      apart_[at(s.result.tensor)] = static_cast<int>(pieces_.size());
    }
    pieces_.push_back(s);
    return true;
  }

  /// Of what pieces make, the end reads the sums only; what has nothing to do with pieces it makes
  /// by itself. False: the statement reads more.
  bool take_late(const Statement& s) {
    const bool reads_pieces = any_operand(s, [&](const Operand& o) {
      if (o.tensor >= kernel_.inputs && apart_[at(o.tensor)] >= 0) make_in_end(o.tensor);
      return o.tensor >= kernel_.inputs && !sum_[at(o.tensor)] && !in_end_[at(o.tensor)];
    });
    if (reads_pieces) return false;
    late_[at(s.result.tensor)] = true;
    in_end_[at(s.result.tensor)] = true;
    end_.push_back(s);
    return true;
  }

  bool is_given_by_pieces(int tensor) const {
    const bool is_output = tensor < kernel_.inputs + kernel_.outputs;
    return (is_output && !in_end_[at(tensor)]) || (sum_[at(tensor)] && is_read_late(tensor));
  }

  bool is_of_no_piece(int tensor) const {
    return !late_[at(tensor)] && !sum_[at(tensor)] &&
           !holds_one(kernel_.tensors[at(tensor)].dims, dim_);
  }

  bool is_apart(const Statement& s) const {
    return !any_operand(s, [&](const Operand& o) {
      return o.tensor >= kernel_.inputs && apart_[at(o.tensor)] < 0;
    });
  }

  /// Makes a tensor that has nothing to do with the dim in the end, with what it follows from; the
  /// pieces make it too where they read it.
  void make_in_end(int tensor) {
    if (in_end_[at(tensor)]) return;
    const Statement& s = pieces_[at(apart_[at(tensor)])];
    any_operand(s, [&](const Operand& o) {
      if (o.tensor >= kernel_.inputs) make_in_end(o.tensor);
      return false;
    });
    in_end_[at(tensor)] = true;
    end_.push_back(s);
  }

  /// Takes out of the pieces what is made in the end and what no piece needs.
  void drop_unread(const std::vector<int>& results) {
    std::vector<bool> read(kernel_.tensors.size(), false);
    for (int t : results) read[at(t)] = true;
    for (std::size_t i = pieces_.size(); i-- > 0;) {
      if (!read[at(pieces_[i].result.tensor)]) continue;
      any_operand(pieces_[i], [&](const Operand& o) {
        read[at(o.tensor)] = true;
        return false;
      });
    }
    std::erase_if(pieces_, [&](const Statement& s) { return !read[at(s.result.tensor)]; });
  }

  bool is_read_late(int tensor) const {
    return std::ranges::any_of(end_, [&](const Statement& s) {
      return any_operand(s, [&](const Operand& o) { return o.tensor == tensor; });
    });
  }

  KernelPart end() const {
    std::vector<int> inputs;
    for (const Statement& s : end_) {
      any_operand(s, [&](const Operand& o) {
        if (!in_end_[at(o.tensor)] && !holds_one(inputs, o.tensor)) inputs.push_back(o.tensor);
        return false;
      });
    }
    std::vector<int> outputs;
    for (int t = kernel_.inputs; t < kernel_.inputs + kernel_.outputs; ++t) {
      if (in_end_[at(t)]) outputs.push_back(t);
    }
    KernelPart out = part_of_kernel(kernel_, end_, inputs, outputs);
    out.kernel.name = kernel_.name + "-end";
    return out;
  }

  const Kernel& kernel_;
  int dim_ = 0;
  std::vector<bool> sum_;     // by tensor: summed over the dim
  std::vector<bool> late_;    // by tensor: follows from such a sum
  std::vector<bool> in_end_;  // by tensor: made in the end
  /// By tensor that has nothing to do with the dim, nor has what it follows from: its statement
  /// among those of the pieces. Else -1.
  std::vector<int> apart_;
  std::vector<Statement> pieces_;
  std::vector<Statement> end_;
};

}  // namespace

std::optional<KernelRounds> rounds_over(const Kernel& kernel, int dim) {
  return Rounds(kernel, dim).split();
}

}  // namespace placet
