// The work of one unit on one device over one micro-batch, kernel by kernel: products of matrices,
// attention, and kernels that only stream through memory. Sizes are read off the operators' tensors
// and the local layout (docs/theory.md §7.1); what a kernel takes is another file's business.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cluster/rates.h"
#include "derive/layout.h"

namespace placet {

/// `batch` products of an m x k by a k x n matrix.
struct ProductShape {
  std::int64_t batch = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  friend bool operator==(const ProductShape&, const ProductShape&) = default;
};

/// 2 m n k for each of the batch: a multiplication and an addition per term.
double flops_of(const ProductShape& shape);

struct KernelWork {
  /// dequantise: streams, too; blocks of few bits made numbers that a product can take.
  enum class Kind : std::uint8_t { product, attention, stream, dequantise };
  Kind kind = Kind::stream;
  std::string_view what;  // name of the operator
  ProductShape shape;     // of products
  MatmulFormat format = MatmulFormat::bf16;
  double bytes = 0;        // moved through device memory
  double added_bytes = 0;  // of a product: of the sums that it adds its results to
  double flops = 0;
  double seen = 1;             // of attention: the part of all pairs of tokens that `flops` has
  double open = 0;             // ... and of `flops` that of blocks in which no pair is masked
  std::int64_t head_size = 0;  // of attention and scans
  std::int64_t length = 0;     // tokens whose keys a query may see; tokens of a scan's chunk
  bool backward = false;
  bool scan = false;         // a recurrence in chunks: streams, at no more than a rate of its own
  bool for_weights = false;  // a weight's gradient: split schedules put it off
  std::int64_t launches = 1;
  std::int64_t inner_launches = 0;  // further ones, by a loop inside the library
  bool routes = false;          // tokens to their experts: where a host may have to read how many
  bool before_routing = false;  // of a block with experts
  bool aligned = true;          // rows of its operands begin at multiples of two elements

  friend bool operator==(const KernelWork&, const KernelWork&) = default;
};

struct UnitWork {
  std::vector<KernelWork> forward;
  std::vector<KernelWork> again;     // what backward computes once more
  std::vector<KernelWork> backward;  // in order of the operators, the last ones run first

  friend bool operator==(const UnitWork&, const UnitWork&) = default;
};

/// The kernels of local unit `unit` of the layout. Case: a matrix of 4h columns and h rows used on
/// t tokens: forward a product (t, 4h, h), backward (t, h, 4h) for its input and (4h, h, t) for its
/// gradient: 8 t h^2 FLOPs forward and twice that backward.
UnitWork unit_work(const Layout& layout, int unit, bool recomputed);

}  // namespace placet
