// Running compiled kernels over F_p.
#pragma once

#include <cstdint>
#include <vector>

#include "algebra/hash.h"
#include "ranks/kernel_code.h"

namespace placet::algebra {

using ranks::compile;
using ranks::FunctionCode;
using ranks::FunctionKind;
using ranks::KernelCode;
using ranks::OperandCode;
using ranks::PositionCode;
using ranks::ProductCode;
using ranks::StatementCode;

/// Two elements as a reduction takes them together: their sum, or the larger.
constexpr Element combined(Combine how, Element a, Element b) {
  return how == Combine::sum ? add(a, b) : larger(a, b);
}

/// What a call of a kernel needs beside its tensors.
struct CallContext {
  KeyedHash hash{0};
  const std::int64_t* begins = nullptr;  // by dim of the kernel: where its part begins; none: 0
  std::uint64_t draw = 0;                // what random numbers are drawn for
  Element factor = 1;                    // of every product of linear statements
};

/// Room that calls use one after the other.
class KernelRunner {
 public:
  /// Reads the inputs and writes the outputs; `tensors` points to them in the kernel's order.
  /// Outputs do not overlap inputs. False: a number was divided by zero, the outputs are
  /// worthless.
  bool run(const KernelCode& code, Element* const* tensors, const CallContext& context);

 private:
  void run_linear(const StatementCode& s, Element factor);
  bool run_function(const FunctionCode& f, int result, const CallContext& context);
  bool run_quotients(const FunctionCode& f, Element* result);
  void run_vectors(const FunctionCode& f, Element* result, const CallContext& context);

  struct Entry {
    std::size_t outer = 0;
    std::size_t inner = 0;
  };
  Element operand(const FunctionCode& f, std::size_t which, Entry e) const;
  Element value(const FunctionCode& f, Entry e, const CallContext& context) const;
  Element weight_of_key(const FunctionCode& f, Entry e, const CallContext& context) const;
  std::uint64_t hash_of_numbers(const FunctionCode& f, Entry e, std::uint64_t name,
                                const CallContext& context) const;
  std::uint64_t hash_of_operands(const FunctionCode& f, Entry e, std::uint64_t name,
                                 const CallContext& context) const;
  void number_indices(const FunctionCode& f, const std::int64_t* begins);
  void add_vector(const FunctionCode& f, std::uint64_t hash, Element* result,
                  const CallContext& context) const;
  bool is_chosen(std::size_t row) const { return row < chosen_.size() && chosen_[row] != 0; }
  void choose(const FunctionCode& f, Entry e, std::uint64_t hash, const CallContext& context);

  std::vector<Element> scratch_;
  std::vector<Element*> tensors_;
  std::vector<Element> inverses_;
  std::vector<std::uint64_t> scores_;
  std::vector<std::size_t> order_;
  std::vector<char> chosen_;
  std::vector<std::uint64_t> index_numbers_;
  std::vector<std::uint64_t> index_rows_;
};

}  // namespace placet::algebra
