// From a model to the reference of its training step (docs/theory.md §6.3). Lowering does not take
// part: what a program is judged against depends on the model and the sizes of the batch alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/model.h"
#include "program/reference.h"
#include "program/tensor.h"

namespace placet {

/// What the reference needs to know beside the model.
struct ReferenceRequest {
  std::int64_t samples = 1;  // of the global batch
  std::int64_t tokens = 1;   // of a sample
  /// Names of the optimizer's states by rule, and the rule of each parameter.
  std::vector<std::vector<std::string>> rules{{}};
  std::function<int(const Parameter&)> rule_of;
  /// Whether the rule of a parameter orthogonalises matrices: then it sees all of one at once.
  std::function<bool(const Parameter&)> sees_matrices;
  bool clips = false;        // the gradient's global norm is limited
  bool scales_loss = false;  // by a number that follows from overflows; steps with such are skipped
  /// Routers add a loss of how evenly tokens are spread: those of each sample, or of all samples.
  enum class Balance : std::uint8_t { none, sample, step };
  Balance balance = Balance::none;
};

/// How one kind of the model stands in the reference.
struct KindMap {
  std::vector<int> value_of;             // by value of the model; -1: inside a kernel, or unused
  std::vector<std::vector<int>> pieces;  // by parameter of the model: parameters of the reference
  std::vector<int> operator_of;          // by application: operator of the model
};

/// The parts of a program that come from the model.
struct ModelReference {
  std::vector<LogicalDim> dims;
  std::vector<Index> indices;       // by dim: the index of the model it is (a part of)
  std::vector<std::int64_t> outer;  // by dim: pieces that the rest of its index has (a group's: the
                                    // key and value heads); else 1
  std::vector<Kernel> kernels;
  Reference reference;
  std::vector<KindMap> kinds;
};

/// Fused tensors become several parameters, one for each of their outputs, which a buffer may hold
/// side by side. A dim of heads becomes up to three: key and value heads, query heads of each, and
/// the size of a head. Throws InputError for parts of models that have no form here yet, by name.
ModelReference reference_of(const Model& model, const ReferenceRequest& request);

}  // namespace placet
