// The reference: the step on one device that a program claims to be, with whole tensors and all
// samples at once (docs/theory.md §6.3). It is made from the model alone.
//
// Units stand in a row and hand a stream to each other; equal units share a kind. Written down is
// the forward pass; the backward pass follows by the rules of adjoint.h, the update from the rule
// of each parameter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "program/adjoint.h"
#include "program/kernel.h"

namespace placet {

/// What the samples of a step bring: token ids, labels, the weight of each token in the loss.
struct ReferenceInput {
  std::string name;
  std::vector<int> dims;  // positions in Program::dims

  friend bool operator==(const ReferenceInput&, const ReferenceInput&) = default;
};

/// A tensor of a unit kind: an input of the step, a parameter, or what an application makes.
struct ReferenceValue {
  std::string name;
  std::vector<int> dims;
  int input = -1;      // position in Reference::inputs
  int parameter = -1;  // position in ReferenceKind::parameters

  friend bool operator==(const ReferenceValue&, const ReferenceValue&) = default;
};

struct ReferenceParameter {
  std::string name;  // "{}" stands for the unit's number
  int value = 0;     // position in ReferenceKind::values
  bool trainable = true;
  int rule = 0;  // position in Reference::rules
  /// The unit and parameter whose storage it is, if it is another unit's tensor.
  struct Tie {
    int unit = 0;
    int parameter = 0;
    friend bool operator==(const Tie&, const Tie&) = default;
  };
  std::optional<Tie> tied;

  friend bool operator==(const ReferenceParameter&, const ReferenceParameter&) = default;
};

/// A kernel applied to values of the unit. `key`: what its random numbers are drawn for.
struct Application {
  int kernel = 0;
  std::vector<int> inputs;
  std::vector<int> outputs;
  std::string key;

  friend bool operator==(const Application&, const Application&) = default;
};

struct ReferenceKind {
  std::string name;
  std::vector<ReferenceValue> values;
  std::vector<ReferenceParameter> parameters;
  std::vector<Application> applications;
  int stream_in = -1;   // value that is the stream of the unit before; -1: none (embedding)
  int stream_out = -1;  // value handed to the next unit; -1: none (head)
  int loss = -1;        // value that is the loss of each token [sample, token]; -1: none

  friend bool operator==(const ReferenceKind&, const ReferenceKind&) = default;
};

struct ReferenceUnit {
  int kind = 0;
  int number = 0;

  friend bool operator==(const ReferenceUnit&, const ReferenceUnit&) = default;
};

/// How a parameter is updated: a kernel over dims "...", from the parameter, its states, its
/// gradient, (where there is one) the factor of gradients and (where the loss is scaled) the number
/// of entries that overflowed, to the parameter and its states.
struct UpdateRule {
  int kernel = 0;
  std::vector<std::string> states;  // "first moment"

  friend bool operator==(const UpdateRule&, const UpdateRule&) = default;
};

struct Reference {
  std::vector<ReferenceInput> inputs;
  std::vector<ReferenceKind> kinds;
  std::vector<ReferenceUnit> units;
  std::vector<UpdateRule> rules;
  /// Kernel from an input of weights to its sum over all samples; from weights and that sum to the
  /// gradient of each token's loss; the input of weights.
  int count_kernel = -1, seed_kernel = -1, weights = -1;
  /// Kernel of a gradient's squared norm; -1: not limited. Kernel of the factor by which gradients
  /// are multiplied for the update, from the squared norm of all of them (where it is limited) and
  /// the scale of the loss (where it is scaled); -1: there is none.
  int norm_kernel = -1, clip_kernel = -1;
  /// Numbers that last from one step to the next, the scale of the loss first; none: it is not
  /// scaled. Kernels from the gradient of each token's loss and the scale to what backward begins
  /// with; of the entries of a gradient that are not finite, counted; from all numbers and the
  /// count over all gradients to the numbers of the next step.
  std::vector<std::string> numbers;
  int scale_kernel = -1, overflow_kernel = -1, adjust_kernel = -1;
  std::vector<std::string> choices;  // "loss: mean over valid tokens of the global batch"

  friend bool operator==(const Reference&, const Reference&) = default;
};

/// What a tensor of the initial state is; `loss` stands in results only.
struct StateRef {
  enum class Kind : std::uint8_t { parameter, state, input, zero, loss, number };
  Kind kind = Kind::zero;
  int unit = 0;
  int tensor = 0;  // position in ReferenceKind::parameters, or in Reference::inputs or ::numbers
  int state = 0;   // position in UpdateRule::states

  friend bool operator==(const StateRef&, const StateRef&) = default;
};

/// One application backward: gradients of some of its outputs in, of some of its inputs out.
struct BackwardApplication {
  int application = 0;  // position in ReferenceKind::applications
  Adjoint adjoint;
};

/// The backward pass of a kind: its applications in reverse order, as far as a gradient reaches a
/// trainable parameter or the stream. A value's gradient is the sum of what all its users make.
std::vector<BackwardApplication> backward_of(const ReferenceKind& kind,
                                             const std::vector<Kernel>& kernels);

/// Whether the value has a gradient in that pass.
std::vector<bool> values_with_gradient(const ReferenceKind& kind,
                                       const std::vector<Kernel>& kernels);

}  // namespace placet
