// Running compiled kernels on real numbers (docs/theory.md §6.11).
//
// A kernel reads each number once, as one of the format that it computes in, and stores without
// rounding again. What reads are rounded and how products are added is the only difference between
// canonical and plain numbers.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <type_traits>
#include <vector>

#include "execute/function_run.h"
#include "execute/kernel_plan.h"
#include "execute/kernel_tensors.h"

namespace placet::execute {

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

/// A product as it is run.
struct ProductRun {
  const ProductCode* code = nullptr;
  const ProductPlan* plan = nullptr;
  double scale = 1;
  bool sets = false;     // in place of what the result holds
  int exact = -1;        // the operand that is read exactly
  bool bounded = false;  // no term can be out of range
  Slip slip = Slip::none;
};

/// Room that calls use one after the other.
template <class Numbers>
class KernelRunner {
 public:
  using Stored = typename Numbers::Stored;
  explicit KernelRunner(const FunctionTable& functions)
      : functions_(functions), function_runner_(functions, tensors_) {}
  KernelRunner(const KernelRunner&) = delete;
  KernelRunner& operator=(const KernelRunner&) = delete;

  /// The code is known again by where it stands: it must stay there for as long as the runner does.
  /// Reads the inputs and writes the outputs; `tensors` points to them in the kernel's order, which
  /// do not overlap. `levels` by tensor: of inputs given, of outputs made. False: a number is out
  /// of range, the outputs are worthless.
  bool run(const KernelCode& code, Stored* const* tensors, std::vector<Level>& levels,
           const CallContext& context);

 private:
  static constexpr bool kIsExact = KernelTensors<Numbers>::kIsExact;

  void place_tensors(const KernelCode& code, const KernelPlan& plan, Stored* const* tensors);
  void read(std::size_t tensor, std::size_t size);
  bool run_linear(const StatementCode& s, const StatementPlan& plan,
                  const std::vector<Level>& levels, const CallContext& context);
  bool run_sum(const StatementCode& s, const ProductRun& product);
  bool run_lookup(const StatementCode& s, const ProductRun& product, const CallContext& context);
  bool add_looked_up(const ProductRun& product, const std::int64_t* places, std::int64_t entry,
                     Stored& to) const;
  bool run_exactly(const StatementCode& s, const ProductRun& product);
  bool add_rounded(const ProductRun& product, const std::int64_t* places, Stored& to) const;
  bool add_single(const ProductRun& product, std::int64_t place, Stored& to) const;
  bool add_read_exactly(const ProductRun& product, const std::int64_t* places, Stored& to) const;
  void clear(const StatementCode& s);

  const FunctionTable& functions_;
  std::map<const KernelCode*, KernelPlan> plans_;
  bool rounds_ = true;
  std::vector<Stored> scratch_;
  KernelTensors<Numbers> tensors_;
  FunctionRunner<Numbers> function_runner_;
  std::vector<typename KernelTensors<Numbers>::Read> room_;  // of sums of products
};

extern template class KernelRunner<CanonicalNumbers>;
extern template class KernelRunner<PlainNumbers<float>>;
extern template class KernelRunner<PlainNumbers<double>>;

}  // namespace placet::execute
