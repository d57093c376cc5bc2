// How a model is trained, apart from where its states live: batch, formats, optimizer,
// recomputation (docs/theory.md §1, "job").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/dtype.h"
#include "model/model.h"
#include "units/rational.h"

namespace placet {

/// The format in which matrices are multiplied: numbers with the scales of their blocks, and the
/// format whose units a device needs for it. Case: mxfp8, fp8 with one byte per 32 numbers, on
/// devices that scale blocks themselves, which are those that multiply fp4.
struct ProductFormat {
  std::string name;
  StorageFormat numbers;
  Dtype units = Dtype::bf16;
  bool scales_from_before = false;  // scales are those of earlier steps (delayed scaling)

  friend bool operator==(const ProductFormat&, const ProductFormat&) = default;
};

/// Formats of the states (docs/theory.md §2). The fp32 master is part of the optimizer state if
/// parameters rest in low precision; if they rest in fp32 there is none.
struct Precision {
  std::string name = "mixed";
  Dtype parameters = Dtype::bf16;  // at rest
  Dtype compute = Dtype::bf16;     // operators, activations, pipeline messages
  Dtype gather = Dtype::bf16;      // gathered parameters
  Dtype gradients = Dtype::bf16;   // at rest, accumulated over micro-batches
  Dtype reduce = Dtype::bf16;      // on the wire of gradient reductions
  std::optional<Dtype> master = Dtype::fp32;
  std::optional<ProductFormat> products;  // with the matrices of blocks; none: the compute format

  friend bool operator==(const Precision&, const Precision&) = default;
};

/// One tensor of optimizer state per parameter tensor.
struct OptimizerState {
  /// element: as many numbers as the parameter. row_and_column: one per row and one per column of
  /// its last two dims (Adafactor); one-dimensional parameters keep one per element. block: one per
  /// block of the optimizer (constants of 8-bit moments).
  enum class Extent : std::uint8_t { element, row_and_column, block };
  std::string what;  // "first moment"
  Dtype dtype = Dtype::fp32;
  Extent extent = Extent::element;

  friend bool operator==(const OptimizerState&, const OptimizerState&) = default;
};

/// The smallest piece of a parameter that the update must see whole.
enum class UpdateRegion : std::uint8_t { element, block, row_and_column, matrix };

/// What an update does with each element beside reading and writing its states once: how often it
/// reads the parameter (its master copy, where there is one) and the gradient, and its arithmetic.
/// The parameter is written once. Where no kernel joins them, operations are kernels of their own,
/// which read and write `words_in_steps` numbers in the format of the update; 0: there is always
/// one kernel.
struct UpdateCost {
  std::int64_t parameter_reads = 1;
  std::int64_t gradient_reads = 1;
  std::int64_t words_in_steps = 0;
  double flops = 0;  // per element

  friend bool operator==(const UpdateCost&, const UpdateCost&) = default;
};

/// A product of an iteration over a matrix X of m rows and n columns, m no more than n (else its
/// transpose): gram X X^T, 2 m^2 n FLOPs; square an m x m matrix, 2 m^3; apply an m x m matrix to
/// X, 2 m^2 n.
enum class MatrixProduct : std::uint8_t { gram, square, apply };

/// What an update does with each matrix as a whole, in a format of its own.
struct MatrixUpdate {
  std::int64_t iterations = 0;
  std::vector<MatrixProduct> products;  // of each iteration
  Dtype dtype = Dtype::bf16;
  std::int64_t passes = 0;  // times that the matrix is read or written beside its products

  friend bool operator==(const MatrixUpdate&, const MatrixUpdate&) = default;
};

struct Optimizer {
  std::string name = "adam";
  bool updates = true;  // false: parameters stay as they are
  std::vector<OptimizerState> states;
  UpdateCost cost;
  MatrixUpdate matrices;  // of tensors with `states` and two dims or more
  UpdateRegion region = UpdateRegion::element;
  std::int64_t block = 1;  // elements of a block, for UpdateRegion::block
  /// Tensors that are updated element by element with states of their own: those of these classes,
  /// and those of one dim. None of either: all tensors have `states`.
  std::vector<OptimizerState> other_states;
  UpdateCost other_cost;
  ClassSet other_classes = 0;
  bool keeps_master =
      true;  // whether a low-precision parameter has an fp32 master (none: SGD pure)

  friend bool operator==(const Optimizer&, const Optimizer&) = default;
};

/// Gives moments, which the optimizer's file has in fp32, the format of the parameters where these
/// have no master. Case: bf16 without a master: Adam's moments take 4 bytes an element and not 8.
void follow_parameters(const Precision& precision, Optimizer& optimizer);

/// Whether a parameter is one of those with states of their own.
bool is_other(const Optimizer& optimizer, const Parameter& parameter);

/// The states that the optimizer keeps for a parameter, and the piece of it that its update sees.
const std::vector<OptimizerState>& states_of(const Optimizer& optimizer,
                                             const Parameter& parameter);
UpdateRegion region_of(const Optimizer& optimizer, const Parameter& parameter);
const UpdateCost& cost_of(const Optimizer& optimizer, const Parameter& parameter);

/// Activation recomputation.
struct Recompute {
  /// every: one block in `count` is recomputed. first: the first `count` blocks of each stage are.
  /// uniform: all are, `count` blocks (2 or more) at a time: only what the first of them reads is
  /// kept.
  enum class Kind : std::uint8_t { none, full, selective, every, first, uniform };
  Kind kind = Kind::none;
  std::int64_t count = 0;
  std::vector<Module> modules;  // selective: the modules whose insides are recomputed
  std::string policy;           // a profile's own selective policy by name; empty: modules

  friend bool operator==(const Recompute&, const Recompute&) = default;
};

/// Samples of one of several lengths: a part of all samples.
struct SampleLength {
  std::int64_t tokens = 0;
  Rational share;

  friend bool operator==(const SampleLength&, const SampleLength&) = default;
};

/// Where samples have several lengths, those of the longest stand for all: `sequence` is its tokens
/// and `global` as many of it as keep the devices busy for as long (profile/lengths.h).
struct Batch {
  std::int64_t sequence = 0;          // tokens per sample
  std::int64_t global = 0;            // samples per optimizer step
  std::int64_t micro = 1;             // samples per micro-batch on one device group
  std::vector<SampleLength> lengths;  // empty: all samples have one
  std::int64_t samples = 0;           // per optimizer step, of these lengths

  friend bool operator==(const Batch&, const Batch&) = default;
};

/// How tokens spread over experts. balanced: every expert gets the same. worst: of the k
/// choices of each token one device gets as many as it has experts for, min(k, its experts).
/// capacity: every expert of the fullest device is full. Case: 10 tokens of 2 choices, 8 experts,
/// capacity 5/4: ceil(20 / 8 x 5/4) = 4 slots each.
/// expected: balanced times `skew`, the load of the fullest device over the mean.
struct Routing {
  enum class Kind : std::uint8_t { balanced, expected, capacity, worst };
  Kind kind = Kind::balanced;
  double skew = 1.0;
  Rational capacity{1};  // slots of an expert over its balanced share, rounded up
  friend bool operator==(const Routing&, const Routing&) = default;
};

/// What the balance loss of routers is taken over: how evenly the tokens of each sample, of each
/// device's micro-batch, or of the whole step are spread. none: there is no such loss.
enum class BalanceScope : std::uint8_t { none, sequence, micro_batch, global };

}  // namespace placet
