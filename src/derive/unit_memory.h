// Memory of one unit on one device over one micro-batch: what it keeps from forward to backward,
// and the most that is alive while it runs (docs/theory.md §3.3). A walk over its operators; the
// same for every unit of a kind, so a hundred blocks cost one walk.
#pragma once

#include <cstdint>
#include <vector>

#include "derive/exchange_memory.h"
#include "derive/layout.h"

namespace placet {

/// Bytes alive at the fullest point of a unit's forward or backward.
struct UnitPeak {
  std::int64_t kept = 0;             // of this unit's kept values
  std::int64_t rebuilt = 0;          // made again for backward
  std::int64_t working = 0;          // forward: values in flight; backward: gradients of values
  std::int64_t gathered = 0;         // whole copies of divided inputs
  std::int64_t weight_gradient = 0;  // of the parameters of the unit, in compute format
  std::int64_t waiting = 0;          // what the weights' part of a split backward reads
  std::int64_t loss = 0;             // workspace of the loss
  ExchangeBytes exchange;            // buffers of attention over a cut sequence

  std::int64_t total() const {
    return kept + rebuilt + working + gathered + weight_gradient + waiting + loss +
           exchange.total();
  }
};

struct UnitMemory {
  std::int64_t kept = 0;        // device bytes from forward to backward of one micro-batch
  std::int64_t kept_whole = 0;  // the same before anything moved to the host
  std::int64_t kept_on_host = 0;
  bool kept_on_nvme = false;  // that part is on NVMe instead
  std::int64_t passing = 0;   // casts of weights that stay to the end of the loss's forward
  UnitPeak forward;           // without the loss
  UnitPeak loss;              // all zero where there is none
  UnitPeak loss_forward;      // of the loss, before it lets the logits go; zero where it keeps them
  UnitPeak backward;
  /// The same of a backward in two parts, if the schedule splits it: for values, with the gradients
  /// that stay for the second part counted as waiting; and for weights, all that is left waiting.
  UnitPeak inputs;
  UnitPeak weights;
  UnitPeak scatter_weights;  // `scatter`, after the weights' part
  std::int64_t waiting = 0;  // bytes of one micro-batch between the two parts
  UnitPeak begins_with;      // before its first operator forward, and before its last one backward
  UnitPeak ends_with;
  UnitPeak scatter;  // after it: gradients go to their owners; all zero where none do, or in place
  /// Bytes of its parameters that are gathered for use, or copied in from the host.
  std::int64_t gathered_parameters = 0;
  std::int64_t gathered_from = 0;     // copies of parts from which they are gathered, until then
  Keep keep = Keep::none;             // how long they stay
  std::int64_t kept_parts = 0;        // bytes kept to backward of those kept along some axes only
  std::int64_t kept_parts_step = 0;   // the same over the step
  std::int64_t weight_gradients = 0;  // bytes of all its weights' gradients in compute format
  std::int64_t gradient_whole = 0;  // bytes, compute format, of gradients scattered per micro-batch
};

/// Bytes of each value of a local unit, by its place: those of UnitKind::values, then copies and
/// casts where there are some (PreparedKind::stored).
struct ValueBytes {
  std::vector<std::int64_t> once;  // of one copy, or of its gradient
  std::vector<std::int64_t> held;  // where it is kept, in two layouts where both are read
};

/// Of unit `unit` of the layout, as a block that is made again or one that is not.
ValueBytes value_bytes(const Layout& layout, int unit, bool recomputed);

/// Bytes of the values that the steps of a loss go through at most, what is left of them when the
/// gradient of the logits is made, and the most before the logits are let go, 0 where they are not:
/// {peak, left, forward}. Case: +4 -4 +2 per logit: {4, 2, 0} x logits.
struct LossWorkspace {
  std::int64_t peak = 0;
  std::int64_t left = 0;
  std::int64_t forward = 0;
};
LossWorkspace loss_workspace(const std::vector<LossStep>& steps, std::int64_t logits);

/// The profile's steps of the loss for a layout: those of a cut vocabulary where there are such.
const std::vector<LossStep>& steps_of_loss(const Layout& layout);

/// Walks local unit `unit` of the layout, recomputed or not. The second: also through backward in
/// two parts, whatever the layout's schedule.
UnitMemory unit_memory(const Layout& layout, int unit, bool recomputed);
UnitMemory unit_memory_in_parts(const Layout& layout, int unit, bool recomputed);

}  // namespace placet
