// Kernels of single operators of one unit: their sizes, products of matrices, attention. What a
// unit runs, and in which order, is put together from them. Inside of unit_work.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "derive/scan_work.h"
#include "derive/unit_traffic.h"
#include "derive/unit_work.h"
#include "profile/products.h"

namespace placet {

/// The sum of each(v) over values.
template <class Each>
double sum_over(const std::vector<int>& values, Each each) {
  double total = 0;
  for (int v : values) total += each(v);
  return total;
}

class UnitKernels {
 public:
  UnitKernels(const Layout& of, int number, bool recomputed)
      : unit(of, number, recomputed),
        layout(of),
        job(*of.job),
        timing(job.profile.timing),
        kind(unit.kind) {}

  const UnitTraffic unit;
  const Layout& layout;
  const Job& job;
  const EngineTiming& timing;
  const UnitKind& kind;

  // --- bytes of an operator's values on the device

  double bytes_of_value(int v) const;
  double gradient_bytes(int v) const;  // 0 where it has none
  double inputs(const Operator& op) const;
  double outputs(const Operator& op) const;
  double input_gradients(const Operator& op) const;

  /// Values inside the kernel that it leaves for backward are written once and read once.
  double kept_inside(const Operator& op) const;

  /// A kernel that streams so many bytes through memory.
  static KernelWork stream(const Operator& op, double bytes, std::int64_t launches);

  // --- products

  bool has_product(const Operator& op) const;

  /// The product of an operator with its matrix: n the outputs' length, k the inputs'.
  ProductShape product_of(const Operator& op) const;
  KernelWork product(const Operator& op, const ProductShape& shape) const;

  /// Products in fewer bits than their operands have: forward the input, backward the gradient of
  /// the output is written for this product and, the other way round, for that of the weight's
  /// gradient; what writes it reads it where it is a kernel of its own.
  void write_cast(const Operator& op, const ProductShape& s, bool backward,
                  std::vector<KernelWork>& out) const;

  /// Matrices that rest in a block format are made numbers of the compute format before each
  /// product that reads them: their blocks and constants are read, the numbers written. Constants
  /// of constants are a kernel of their own. Case: a frozen matrix of 16384 numbers in nf4 with
  /// double quantisation, products in bf16: 8192 + 260 bytes read, 32768 written.
  void write_dequantised(const Operator& op, std::vector<KernelWork>& out) const;

  // --- scans

  /// Scans by heads: their input holds the channels and, per group, an input and an output vector;
  /// their second input a step per head. Others are one kernel that streams.
  bool in_chunks(const Operator& op) const;
  KernelWork scan(const Operator& op, bool backward) const;

  // --- attention

  void write_attention(const Operator& op, bool backward, std::vector<KernelWork>& out) const;

  /// Elements of the heads of an attention's query.
  std::int64_t head_size(const Operator& op) const;

 private:
  std::int64_t part_size(int v) const;  // elements per head of a value
  double bytes_each(int v) const;
  std::int64_t tokens_of(const Operator& op) const;
  MatmulFormat format(const Operator& op) const;
  bool is_narrow(const Operator& op) const;
  bool once_for_all(const Operator& op) const;
  std::int64_t launches_of(const Operator& op, std::int64_t experts) const;
  bool is_aligned(const Operator& op) const;
  bool is_cast_before(const Operator& op) const;
  double part_cast(const Operator& op, bool backward) const;
  double cast_reads(const Operator& op, bool backward) const;
  ScanShape scan_of(const Operator& op) const;

  struct Scores;
  Scores scores_of(const Operator& op) const;
  std::int64_t ring_chunks() const;
  KernelWork fused_attention(const Operator& op, bool backward) const;
  void plain_attention(const Operator& op, bool backward, std::vector<KernelWork>& out) const;
  void write_expanded(const Operator& op, std::vector<KernelWork>& out) const;
};

}  // namespace placet
