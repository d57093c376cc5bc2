#include "algebra/error_bound.h"

#include <algorithm>

namespace placet::algebra {
namespace {

/// Of all entries of a tensor: degree, and the largest degree of an inverted number in it.
struct Degree {
  double degree = 0;
  double inverted = 0;
};

Degree larger_degree(const Degree& a, const Degree& b) {
  return {.degree = std::max(a.degree, b.degree), .inverted = std::max(a.inverted, b.inverted)};
}

class DegreeRun {
 public:
  explicit DegreeRun(const OperationList& list)
      : list_(list), memory_(static_cast<std::size_t>(list.memory), Degree{.degree = 1}) {
    for (const Operation& op : list.operations) {
      if (op.code == nullptr) continue;
      terms_.hashes += op.code->hashes;
      terms_.inversions += op.code->inversions;
    }
  }

  ErrorTerms run(int steps) {
    terms_.hashes *= steps;
    terms_.inversions *= steps;
    for (int step = 0; step < steps; ++step) {
      for (const Operation& op : list_.operations) op.code == nullptr ? move(op) : call(op);
    }
    for (const Degree& d : memory_) {
      terms_.degree = std::max(terms_.degree, d.degree);
      terms_.inverse_degree = std::max(terms_.inverse_degree, d.inverted);
    }
    return terms_;
  }

 private:
  void move(const Operation& op) {
    for (std::size_t t = op.first; t < op.first + op.count; ++t) move(list_.transfers[t]);
  }

  void move(const Transfer& transfer) {
    for (std::int64_t i = 0; i < transfer.length; ++i) {
      Degree all;
      for (std::size_t s = 0; s < transfer.source_count; ++s) {
        all = larger_degree(all, memory_[place(transfer.sources + s, i)]);
      }
      for (std::size_t s = 0; s < transfer.target_count; ++s) {
        memory_[place(transfer.targets + s, i)] = all;
      }
    }
  }

  std::size_t place(std::size_t address, std::int64_t offset) const {
    return static_cast<std::size_t>(list_.addresses[address] + offset);
  }

  void call(const Operation& op) {
    const KernelCode& code = *op.code;
    tensors_.assign(code.sizes.size(), Degree{});
    for (int t = 0; t < code.arguments; ++t) {
      const auto n = static_cast<std::size_t>(t);
      const auto first = memory_.begin() + list_.addresses[op.addresses + n];
      for (auto d = first; d != first + static_cast<std::ptrdiff_t>(code.sizes[n]); ++d) {
        tensors_[n] = larger_degree(tensors_[n], *d);
      }
    }
    for (const StatementCode& s : code.statements) {
      tensors_[static_cast<std::size_t>(s.result)] =
          s.products.empty() ? function(s.function) : linear(s);
    }
    for (int t = code.inputs; t < code.arguments; ++t) {
      const auto n = static_cast<std::size_t>(t);
      std::fill_n(memory_.begin() + list_.addresses[op.addresses + n], code.sizes[n], tensors_[n]);
    }
  }

  Degree linear(const StatementCode& s) const {
    Degree result;
    for (const ProductCode& p : s.products) {
      Degree product;
      for (const OperandCode& o : p.operands) {
        const Degree& factor = tensors_[static_cast<std::size_t>(o.tensor)];
        product.degree += factor.degree;
        product.inverted = std::max(product.inverted, factor.inverted);
      }
      result = larger_degree(result, product);
    }
    return result;
  }

  Degree function(const FunctionCode& f) const {
    const auto operand = [&](std::size_t i) {
      return tensors_[static_cast<std::size_t>(f.operands[i].tensor)];
    };
    // The denominator of degree w has been multiplied out of its own inverses.
    const auto inverse = [&](const Degree& b) {
      return Degree{.degree = 1, .inverted = b.degree * (1 + terms_.inversions * b.inverted)};
    };
    switch (f.kind) {
      case FunctionKind::id:
        return operand(0);
      case FunctionKind::ratio: {
        const Degree below = inverse(operand(1));
        return {.degree = operand(0).degree + 1,
                .inverted = std::max(operand(0).inverted, below.inverted)};
      }
      case FunctionKind::inv:
        return inverse(operand(0));
      case FunctionKind::exp_shift:
        return {.degree = 2, .inverted = 1};
      case FunctionKind::exp_dot:
      case FunctionKind::exp_seen:
      case FunctionKind::unknown:
      case FunctionKind::draw:
      case FunctionKind::route:
        return {.degree = 1};
      case FunctionKind::onehot:
      case FunctionKind::position:
      case FunctionKind::chosen:
        break;
    }
    return {};
  }

  const OperationList& list_;
  std::vector<Degree> memory_;
  std::vector<Degree> tensors_;
  ErrorTerms terms_;
};

}  // namespace

ErrorTerms error_terms(const OperationList& list, int steps) { return DegreeRun(list).run(steps); }

double error_probability(const ErrorTerms& reference, const ErrorTerms& program, double entries) {
  const double inversions = reference.inversions + program.inversions;
  const double inverted = std::max(reference.inverse_degree, program.inverse_degree);
  const double degree = std::max(reference.degree, program.degree) * (1 + inversions * inverted);
  const double hashes = reference.hashes + program.hashes;
  const auto p = static_cast<double>(kPrime);
  const auto q = static_cast<double>(kExponents);
  return std::min(1.0, entries * degree / q + 2 * hashes / p);
}

}  // namespace placet::algebra
