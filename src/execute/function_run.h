// How kernels run functions: of numbers row by row, of vectors one after the other
// (docs/theory.md §6.11).
#pragma once

#include <array>
#include <vector>

#include "execute/kernel_plan.h"
#include "execute/kernel_tensors.h"
#include "execute/meanings.h"

namespace placet::execute {

template <class Numbers>
class FunctionRunner {
 public:
  using Stored = typename Numbers::Stored;
  /// Both are used for as long as it lives.
  FunctionRunner(const FunctionTable& functions, const KernelTensors<Numbers>& tensors)
      : functions_(functions), tensors_(tensors) {}

  /// Makes the result of a statement. False: a number is out of range.
  bool run(const StatementCode& s, const StatementPlan& plan, const KernelCode& code,
           const CallContext& context);

 private:
  static constexpr bool kIsExact = KernelTensors<Numbers>::kIsExact;
  using Read = typename KernelTensors<Numbers>::Read;
  static constexpr std::size_t kBlock = 256;  // entries of a row that are computed at once
  struct Row {
    const std::int64_t* places = nullptr;  // of the whole row: result, operands, positions
    std::int64_t first = 0;
    std::size_t count = 0;
    const std::int64_t* begins = nullptr;
    Stored* result = nullptr;
    std::int64_t apart = 0;  // entries of the result; 0: they are put together
  };

  bool run_numbers(const StatementCode& s, const StatementPlan& plan, const FunctionPlace& place,
                   const CallContext& context);
  bool run_scores(const StatementCode& s, const StatementPlan& plan, const CallContext& context);
  bool run_identity(const StatementCode& s, const StatementPlan& plan);
  void begin_combined(const StatementCode& s);
  void fill_row(const StatementCode& s, const Nest& nest, const Row& row, FunctionRow<Read>& out);
  const Read* gathered(int tensor, std::int64_t place, std::int64_t stride, std::size_t operand,
                       std::size_t count);
  bool run_row(const StatementCode& s, const StatementPlan& plan, const Row& row,
               FunctionRow<Read>& entries);
  double score(const FunctionCode& f, const StatementPlan& plan, const Row& row,
               const FunctionRow<Read>& at_first, std::size_t entry) const;
  bool put_row(const FunctionCode& f, const Row& row);
  bool run_vectors(const StatementCode& s, const StatementPlan& plan, FunctionPlace place,
                   const CallContext& context);
  void read_vectors(const FunctionCode& fc, std::size_t outer, std::size_t inner);
  bool add_values(const FunctionCode& fc, const CallContext& context, Stored* out) const;
  FunctionPlace place_of(const FunctionCode& f, const KernelCode& code,
                         const CallContext& context) const;

  const FunctionTable& functions_;
  const KernelTensors<Numbers>& tensors_;
  std::array<std::vector<Read>, kMostFunctionOperands> operands_;
  std::vector<Read> row_;   // values of a row
  std::vector<Read> room_;  // of scores
  std::vector<std::vector<double>> vectors_;
  std::vector<double> values_;
};

extern template class FunctionRunner<CanonicalNumbers>;
extern template class FunctionRunner<PlainNumbers<float>>;
extern template class FunctionRunner<PlainNumbers<double>>;

}  // namespace placet::execute
