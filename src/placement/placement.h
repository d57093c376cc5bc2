// A placement: where the four training states live along each axis of a mesh, and what each axis
// cuts of the work (docs/theory.md §2). Plain data: no strategy is known here, only cuts and modes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/model.h"
#include "units/names.h"
#include "units/rational.h"

namespace placet {

/// The four training states, in the order of every mode tuple.
enum class State : std::uint8_t { parameters, optimizer, gradients, activations };
inline constexpr std::array<State, 4> kStates = {State::parameters, State::optimizer,
                                                 State::gradients, State::activations};
std::string_view name_of(State state);

/// How a state lives along one axis (n = degree): R whole; S own part, used as such; S* own part at
/// rest, gathered for use; M nothing at rest, rebuilt; O the usual division, in host memory.
enum class Mode : std::uint8_t { replicated, sharded, sharded_gather, materialized, offloaded };
/// "R" "S" "S*" "M" "O".
std::string_view symbol_of(Mode mode);

/// What an axis divides of the work.
enum class Cut : std::uint8_t { batch, tensor, sequence, layer, expert };
inline constexpr int kCutCount = 5;
std::string_view name_of(Cut cut);

struct Modes {
  Mode parameters = Mode::replicated;
  Mode optimizer = Mode::replicated;
  Mode gradients = Mode::replicated;
  Mode activations = Mode::replicated;

  constexpr Mode operator[](State state) const {
    switch (state) {
      case State::parameters:
        return parameters;
      case State::optimizer:
        return optimizer;
      case State::gradients:
        return gradients;
      case State::activations:
        return activations;
    }
    return Mode::replicated;
  }
  friend bool operator==(const Modes&, const Modes&) = default;
};

/// How long gathered parameters stay: freed after each use; from forward to backward of a
/// micro-batch; over all micro-batches of the step.
enum class Keep : std::uint8_t { none, backward, step };

enum class Medium : std::uint8_t { device, host, nvme };

/// Bytes of a state moved off the device: `fraction` of them, to host or NVMe. The division among
/// devices is unchanged.
struct Offload {
  Medium medium = Medium::host;
  Rational fraction{1};
  friend bool operator==(const Offload&, const Offload&) = default;
};

/// What happens to a class of tensors along one axis: a cut, four modes, and options.
struct How {
  Cut cut = Cut::batch;
  Modes modes;
  Keep keep = Keep::none;
  std::optional<std::int64_t> prefetch;  // units gathered ahead; none: the engine profile's
  std::array<std::optional<Offload>, 4> offload;  // by state, beside mode O
  std::optional<Medium> update;  // where the optimizer runs; none: on the medium of its state
  /// Which indices a tensor cut divides; others than the default make 2D and 3D cuts.
  IndexSet tensor_indices = kTensorIndices;

  friend bool operator==(const How&, const How&) = default;
};

/// Inputs of units kept for recomputation: a class of its own, not a class of parameters.
struct Checkpoints {
  friend auto operator<=>(const Checkpoints&, const Checkpoints&) = default;
};
/// Blocks first..last (both included, counted from 0) as a class.
struct BlockRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  friend auto operator<=>(const BlockRange&, const BlockRange&) = default;
};
using Selector = std::variant<TensorClass, BlockRange, Checkpoints>;

/// Another How for a class of tensors; of several that match, the last one holds.
struct Override {
  Selector selector;
  How how;
  friend bool operator==(const Override&, const Override&) = default;
};

/// The name of a realisation (a schedule, an attention exchange) with its arguments, as written;
/// what it means is resolved by whoever reads the catalogue and stands in the job as a value.
struct RealisationWord {
  std::string word;
  std::vector<std::int64_t> arguments;
  friend bool operator==(const RealisationWord&, const RealisationWord&) = default;
};

struct AxisPlacement {
  AxisName axis;
  std::int64_t degree = 1;
  /// Shares per coordinate, empty when even. Layer cut: blocks per virtual stage, in order of the
  /// model. Other cuts: parts of the cut work per coordinate, as proportions (4,4,3: 4/11, ...).
  std::vector<std::int64_t> shares;
  How how;  // for every class without an override
  std::vector<Override> overrides;
  std::optional<RealisationWord> schedule;   // layer cut
  std::optional<RealisationWord> attention;  // sequence cut
  /// The word of a method that gives up to be the training of one device: its rewrites of the step
  /// program stand in the job (Job::methods).
  std::optional<std::string> method;

  friend bool operator==(const AxisPlacement&, const AxisPlacement&) = default;
};

/// Axes outermost (slowest links) first; a rank is the row-major index of its coordinates.
struct Placement {
  std::vector<AxisPlacement> axes;
  friend bool operator==(const Placement&, const Placement&) = default;
};

/// Set of axes of a placement, by position. A placement has at most 64 axes.
using AxisMask = std::uint64_t;
constexpr AxisMask axis_bit(int axis) { return AxisMask{1} << axis; }

/// Product of the degrees. Throws std::overflow_error past 2^63.
std::int64_t devices_of(const Placement& placement);

/// The How that holds for a tensor of these classes in block `block` (no block: embedding, head):
/// the last matching override, else the axis's own. Checkpoints never match a tensor.
/// Case: `ep=8:batch(R,S,R,R);experts:expert(S,S,S,R)`: an experts tensor sees the expert cut.
const How& how_of(const AxisPlacement& axis, ClassSet classes, std::optional<std::int64_t> block);

/// Whether the tuple may stand for that cut (docs/theory.md §2, table of meaningful modes).
bool is_meaningful(Cut cut, State state, Mode mode);

/// The first meaningful mode of each state under a cut: what a cut means if nothing more is said.
/// batch(R,R,R,R) sequence(R,R,R,S) tensor(S,S,S,R) layer(S,S,S,S) expert(S,S,S,R).
Modes default_modes(Cut cut);

/// The nearest meaningful tuple: each meaningless mode replaced by the table's first allowed one
/// that keeps its bytes at rest if there is one. Case: tensor(S*,S,S,R) -> tensor(S,S,S,R).
Modes nearest_meaningful(Cut cut, const Modes& modes);

}  // namespace placet
