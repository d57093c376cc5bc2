// What an engine version does with time, apart from the arithmetic that every engine shares: which
// operators it runs as one kernel, what its host needs to launch one, which messages run beside
// computation (docs/theory.md §7.5). Facts with sources, like the rest of a profile.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/model.h"
#include "units/quantity.h"

namespace placet {

/// Messages that an engine may run beside computation.
enum class Overlap : std::uint8_t {
  gathers,          // of parameters for use, beside the units before
  reductions,       // of gradients, beside backward
  update,           // parameters gathered after the update, beside the next step's forward
  stages,           // activations and gradients between pipeline stages
  tensor_forward,   // collectives around parallel regions, beside the products that they feed
  tensor_backward,  // the same of gradients, beside the products for weights
  sequence,         // keys and values of other devices, beside attention on those at hand
  experts,          // tokens on their way to and from experts
  host              // copies to and from host memory
};
inline constexpr int kOverlapCount = 9;
std::string_view name_of(Overlap overlap);

/// An operator that an engine runs as several kernels, each way: bytes moved per element of its
/// outputs by all of them, and their number. No bytes: one kernel, which reads and writes once.
struct OperatorSteps {
  double forward_bytes = 0;
  double backward_bytes = 0;
  std::int64_t forward_launches = 1;
  std::int64_t backward_launches = 1;
  bool given() const { return forward_bytes > 0 || backward_bytes > 0; }
  friend bool operator==(const OperatorSteps&, const OperatorSteps&) = default;
};

struct EngineTiming {
  /// Operators that run as one kernel, in order of the model: what flows between them never
  /// reaches memory. The plain theory fuses a bias into the product before it.
  std::vector<std::vector<OpKind>> fused{{OpKind::linear, OpKind::bias}};
  std::array<OperatorSteps, kOpKindCount> steps{};
  std::string attention_kernel = "flash-2";  // empty: products, softmax and dropout apart
  /// Of attention without such a kernel: bytes moved per score beside the products, by softmax and
  /// by dropout (each way).
  double score_bytes_forward = 4;
  double score_bytes_backward = 6;
  double dropped_score_bytes = 5;
  /// Bytes moved per logit by the loss, forward and backward together, beside the product.
  double logit_bytes = 20;
  /// Bytes moved per element that a device updates, beyond what the optimizer itself streams:
  /// copies of gradients in another format, of masters to parameters, resets. Operations of the
  /// update are kernels of their own: `UpdateCost::words_in_steps`.
  double update_extra_bytes = 0;
  bool update_in_steps = false;
  double clip_bytes = 4;  // the same per element whose norm it takes
  /// The host: what it needs per kernel, per collective, per pass of a chunk over a micro-batch and
  /// per step. A device waits for its host where launching takes longer than running.
  Seconds host_per_launch = microseconds(10);
  Seconds host_per_collective = microseconds(20);
  Seconds host_per_pass{};
  Seconds host_per_step{};
  std::int64_t extra_launches = 0;  // per block and pass, of kernels that no operator stands for
  /// The same of blocks with experts: of router and dispatcher, before tokens leave.
  std::int64_t routing_launches = 0;
  /// Launches per expert of a product with the device's experts, and of the cast of what goes into
  /// it; 0: one kernel for all of them.
  std::int64_t launches_per_expert = 0;
  /// What the host needs for each of these where a loop inside the library launches them, beside
  /// one launch for all; none: as much as for any other.
  std::optional<Seconds> host_per_expert_launch;
  /// Products in fewer bits than their operands have: bytes per element that the cast before those
  /// of experts reads, beyond what the kernel before wrote, and further launches per product
  /// (scales brought into order).
  double cast_bytes = 0;
  std::int64_t narrow_launches = 0;
  /// The same of all other products, forward of what no norm wrote in fewer bits itself.
  double linear_cast_bytes = 0;
  bool norm_casts = false;
  /// Tokens of a chunk, by which a state-space recurrence is computed as products of matrices.
  std::int64_t scan_chunk = 256;
  /// Bytes moved per element of a matrix's gradient and micro-batch on its way to the reduction:
  /// joined with others, divided, cast.
  double gradient_bytes = 0;
  /// Bytes moved per element of parameters each time that they are gathered: from the gathered
  /// buffer to tensors of their own.
  double gathered_bytes = 0;
  /// Launches per collective of parameters or gradients and further member of its group, whose part
  /// is copied by a kernel of its own; 0: members' parts lie side by side in one buffer.
  std::int64_t launches_per_member = 0;
  /// After the update each owner of whole tensors broadcasts what it updated, one owner after the
  /// other: as many messages as the group has members, or tensors where these are fewer.
  bool broadcasts_updates = false;
  /// Bytes moved per element of gradients that are reduced, once a step: joined into buckets, and
  /// copied back.
  double flattened_bytes = 0;
  /// Backward, a unit's parameters are gathered after the gradients of the one before are reduced,
  /// one message at a time: nothing is left for either to run beside.
  bool gathers_after_reductions = false;
  /// Tokens leave for each device, host, ... once, however many of their experts stand there, and
  /// are spread inside it; false: once per choice.
  bool exchanges_once_per_domain = false;
  bool sorts_on_arrival = false;  // tokens are put in order of experts only where they arrive
  /// A token's weight is applied with the experts' activation, so that their sum is plain.
  bool weighs_in_activation = false;
  bool narrow_head = false;          // the output matrix multiplies in the products' format, too
  bool waits_for_routing = false;    // the host reads how many tokens each expert gets
  bool captures_launches = false;    // a pass is replayed as one recorded graph: one launch
  bool captures_to_routing = false;  // so is what a block with experts runs before its dispatch
  std::uint16_t overlaps = 0;        // set of Overlap
  bool sends_block = true;           // a stage's device waits until its message has arrived
  bool plain_sends_block = false;    // one of a single virtual stage does, whatever `overlaps` says

  bool runs_beside(Overlap what) const {
    return (overlaps >> static_cast<unsigned>(what) & 1U) != 0;
  }

  /// Whether a device of so many virtual stages waits until its message has arrived.
  bool sender_waits(std::int64_t chunks) const {
    if (chunks == 1 && plain_sends_block) return true;
    return sends_block && !runs_beside(Overlap::stages);
  }
  friend bool operator==(const EngineTiming&, const EngineTiming&) = default;
};

/// Hosts that take `pace` times as long for all they do.
inline void slow_hosts(EngineTiming& timing, double pace) {
  for (Seconds EngineTiming::*time :
       {&EngineTiming::host_per_launch, &EngineTiming::host_per_collective,
        &EngineTiming::host_per_pass, &EngineTiming::host_per_step}) {
    timing.*time = timing.*time * pace;
  }
}

}  // namespace placet
