// Running compiled kernels on real numbers (docs/theory.md §6.11).
//
// A kernel reads each number once, as one of the format that it computes in, and stores without
// rounding again. What reads are rounded and how products are added is the only difference between
// canonical and plain numbers.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "execute/meanings.h"
#include "execute/number.h"
#include "program/kernel.h"
#include "ranks/kernel_code.h"

namespace placet::execute {

using ranks::FunctionCode;
using ranks::KernelCode;
using ranks::OperandCode;
using ranks::ProductCode;
using ranks::StatementCode;

/// Sums are exact, reads are rounded to binary32.
struct CanonicalNumbers {
  using Stored = Number;
};
/// Sums in the order of the loops, in the format of the numbers: what any library does.
template <class Real>
struct PlainNumbers {
  using Stored = Real;
};

/// How far a tensor may be a partial sum, as read off a list of operations: 0 it is none. 1 a
/// contraction made it. 2 and more: products with something complete were taken of it, one after
/// the other. A product that is linear in it reads it exactly, so that the sum may be taken before
/// or after, for as long as there is a part of a number left for it (docs/theory.md §6.11).
using Level = std::uint8_t;
inline constexpr Level kMostExactLevel = kParts;

/// The operand of a product that is read exactly; -1: all are rounded.
int exact_operand(const ProductCode& product, const std::vector<Level>& levels);
/// The level of a statement's result.
Level level_of(const StatementCode& statement, const std::vector<Level>& levels);

/// The meanings of all functions of a program by ranks::number_of(name).
class FunctionTable {
 public:
  explicit FunctionTable(const Meanings& meanings) : meanings_(meanings) {}
  /// Throws InputError for a function without a meaning.
  void add(const Kernel& kernel);
  const MeantFunction& at(std::uint64_t name) const { return functions_.at(name); }
  const Meanings& meanings() const { return meanings_; }

 private:
  Meanings meanings_;
  std::map<std::uint64_t, MeantFunction> functions_;
};

/// Deliberate mistakes, for tests of what finds mistakes.
enum class Slip : std::uint8_t {
  none,
  float_sums,  // products are added up in binary64, in the order of the loops
  unread,      // inputs are not rounded when they are read
  reordered    // sums in binary32, backwards
};

/// What a call of a kernel needs beside its tensors.
struct CallContext {
  const std::int64_t* begins = nullptr;  // by dim of the kernel: where its part begins; none: 0
  const std::int64_t* wholes = nullptr;  // likewise: how long the whole is; none: the part is
  std::uint64_t draw = 0;
  std::int64_t step = 1;
  double factor = 1;
  Slip slip = Slip::none;
};

/// A product as it is run.
struct ProductRun {
  const ProductCode* code = nullptr;
  double scale = 1;
  int exact = -1;        // the operand that is read exactly
  bool bounded = false;  // no term can be out of range
  Slip slip = Slip::none;
};

/// Room that calls use one after the other.
template <class Numbers>
class KernelRunner {
 public:
  using Stored = typename Numbers::Stored;
  explicit KernelRunner(const FunctionTable& functions) : functions_(functions) {}

  /// Reads the inputs and writes the outputs; `tensors` points to them in the kernel's order, which
  /// do not overlap. `levels` by tensor: of inputs given, of outputs made. False: a number is out
  /// of range, the outputs are worthless.
  bool run(const KernelCode& code, Stored* const* tensors, std::vector<Level>& levels,
           const CallContext& context);

 private:
  struct Entry {
    std::size_t outer = 0;
    std::size_t inner = 0;
  };
  /// What is known of a kernel before it runs.
  struct Prepared {
    std::vector<MeantFunction> functions;     // by statement
    std::vector<std::vector<double>> scales;  // by statement and product
  };
  const Prepared& prepared(const KernelCode& code);
  void read(std::size_t tensor, std::size_t size);
  bool run_linear(const StatementCode& s, const std::vector<double>& scales,
                  const std::vector<Level>& levels, const CallContext& context);
  bool run_product(const StatementCode& s, const ProductRun& product);
  bool add_single(const ProductRun& product, std::size_t e, Stored& to) const;
  bool add_read_exactly(const ProductRun& product, const std::vector<const double*>& numbers,
                        std::size_t e, Stored& to) const;
  bool run_function(const StatementCode& s, const MeantFunction& f, const KernelCode& code,
                    const CallContext& context);
  bool run_vectors(const StatementCode& s, const MeantFunction& f, FunctionPlace place,
                   const CallContext& context);
  void read_vectors(const FunctionCode& fc, Entry e);
  bool add_values(const FunctionCode& fc, const MeantFunction& f, const CallContext& context,
                  Stored* out) const;
  struct ValueContext {
    FunctionPlace& place;
    const CallContext& call;
  };
  bool make_one(const FunctionCode& code, const MeantFunction& f, Entry e,
                const ValueContext& context, Stored& one);
  double one_value(const FunctionCode& code, const MeantFunction& f, Entry e, FunctionPlace& place,
                   const CallContext& context);
  double score(const FunctionCode& code, const MeantFunction& f, Entry e,
               const FunctionPlace& place) const;
  FunctionPlace place_of(const FunctionCode& f, const KernelCode& code,
                         const CallContext& context) const;

  const FunctionTable& functions_;
  std::map<const KernelCode*, Prepared> prepared_;
  std::vector<Stored> scratch_;
  std::vector<Stored*> tensors_;
  std::vector<std::vector<double>> rounded_;  // by tensor: as they are read
  std::vector<double> most_;                  // by tensor: the largest of these
  std::vector<double> operands_;
  std::vector<std::vector<double>> vectors_;
  std::vector<double> values_;
  bool rounds_ = true;
};

extern template class KernelRunner<CanonicalNumbers>;
extern template class KernelRunner<PlainNumbers<float>>;
extern template class KernelRunner<PlainNumbers<double>>;

}  // namespace placet::execute
