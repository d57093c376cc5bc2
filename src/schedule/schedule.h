// Pipeline schedules: which blocks a device hosts, in which order it works, and how many
// micro-batches it holds (docs/theory.md §2, layer cut).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace placet {

/// How virtual stages map to devices. single: device i hosts stage i. loop: device i hosts i, i+p,
/// i+2p, ... vee: device i hosts i and 2p-1-i. bidirectional: device i hosts i and p-1-i of the
/// same p stages (each stage twice, one per direction). table: as a table says.
enum class Hosting : std::uint8_t { single, loop, vee, bidirectional, table };

/// The rule that orders forward and backward work. all_forward: all forwards, then all backwards.
/// one_forward_one_backward: forwards until the pipeline is full, then pairs. The split kinds cut
/// backward into the input's (B) and the weights' part (W).
enum class Order : std::uint8_t {
  all_forward,
  one_forward_one_backward,
  interleaved,
  split_single,         // zero-bubble over single stages, memory of 1F1B
  split_vee,            // zero-bubble over a vee
  bidirectional_split,  // two directions, overlapped pairs
  table,                // as a table says, whose backwards are whole
  split_table           // as a table says that splits some
};

/// Whether the weights' part of backward is work of its own.
bool splits_backward(Order order);

/// One piece of work of a device.
struct Work {
  enum class Kind : std::uint8_t { forward, backward, backward_input, backward_weight };
  Kind kind = Kind::forward;
  std::int64_t chunk = 0;
  std::int64_t micro_batch = 0;  // 0 .. m-1 of the step; bidirectional: those of its direction

  friend bool operator==(const Work&, const Work&) = default;
};

/// A schedule that is written out: by device the virtual stages of its chunks, and its work in
/// order (schedule/work_table.h). Empty for a schedule that is a rule.
struct WorkTable {
  std::int64_t micro_batches = 0;
  std::vector<std::vector<std::int64_t>> stages;
  std::vector<std::vector<Work>> work;

  friend bool operator==(const WorkTable&, const WorkTable&) = default;
};

/// A schedule over a layer cut, as its data file and its arguments say.
struct Schedule {
  std::string name;  // for reports only
  Hosting hosting = Hosting::single;
  Order order = Order::one_forward_one_backward;
  std::int64_t chunks = 1;  // virtual stages per device: V of loop, 2 of vee and bidirectional
  std::int64_t group = 0;   // interleaved: micro-batches per chunk before switching; 0: the degree
  WorkTable table = {};     // of Hosting::table

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// Virtual stages of the whole pipeline: degree x chunks; bidirectional: degree (each hosted
/// twice).
std::int64_t virtual_stages(const Schedule& schedule, std::int64_t degree);

/// The virtual stage that device `device` hosts as its chunk `chunk`.
std::int64_t hosted_stage(const Schedule& schedule, std::int64_t degree, std::int64_t device,
                          std::int64_t chunk);

/// Where a virtual stage runs: the device, and which of its chunks that is.
struct StageHost {
  std::int64_t device = 0;
  std::int64_t chunk = 0;
};

/// The host of virtual stage `stage`, the inverse of hosted_stage. Of two directions, each of which
/// hosts every stage, that of chunk `chunk`.
StageHost host_of(const Schedule& schedule, std::int64_t degree, std::int64_t stage,
                  std::int64_t chunk);

/// How far backward goes in a pipeline: to virtual stage `end`, before which nothing is trained
/// (docs/theory.md §3.2). Case: of stages 0 to 3 the third and the fourth train something, end = 2:
/// backward runs in both, and the fourth alone hands a gradient back.
struct BackwardReach {
  std::int64_t end = 0;

  /// Whether backward has work in a stage, if only to pass on what comes.
  bool runs_in(std::int64_t stage) const { return stage >= end; }
  /// Whether the stage before it waits for the gradient of what it gave.
  bool hands_back(std::int64_t stage) const { return stage > end; }

  friend bool operator==(const BackwardReach&, const BackwardReach&) = default;
};

/// The order of work of one device over a step of `micro_batches`. O(chunks x micro_batches). A
/// table of fewer is carried out again and again, of more without those that the step lacks.
std::vector<Work> order_of_work(const Schedule& schedule, std::int64_t degree, std::int64_t device,
                                std::int64_t micro_batches);

/// The interleaved order of one device: groups of micro-batches go through chunk after chunk, the
/// last group with what is left of `planned`; `warm_up` forwards, then a forward and a backward in
/// turn. Backwards go through the chunks from the last to the first. Work on micro-batches beyond
/// the step's is left out. Case: degree 4, 2 chunks, m = 8, device 1: groups of 4, warm_up 8.
struct InterleavedOrder {
  std::int64_t group = 0;
  std::int64_t planned = 0;
  std::int64_t warm_up = 0;
};
InterleavedOrder interleaved_order(const Schedule& schedule, std::int64_t degree,
                                   std::int64_t device, std::int64_t micro_batches);

/// Micro-batches whose saved activations the device holds at once, per chunk, at the instant when
/// their total over chunks is largest (of several such instants the first). A micro-batch counts
/// from its forward until its backward ends (W of a split backward included for what W needs).
/// Closed form; equal to counting along order_of_work (a test). Case: 1F1B, degree 4, device 1,
/// m = 8: {3}.
std::vector<std::int64_t> held_micro_batches(const Schedule& schedule, std::int64_t degree,
                                             std::int64_t device, std::int64_t micro_batches);

/// The same, counted along a device's order of work.
std::vector<std::int64_t> held_along(const std::vector<Work>& order, std::int64_t chunks);

/// Blocks per virtual stage when none are given: even, the first stages one larger.
std::vector<std::int64_t> even_blocks(std::int64_t blocks, std::int64_t stages);

/// The order that devices carry out: the schedule's own, or all forwards, then all backwards, where
/// it needs an even degree and does not have one.
Order feasible_order(const Schedule& schedule, std::int64_t degree);

/// What the schedule asks of degree and micro-batches: empty if satisfied, else one sentence with
/// the values ("interleaved needs micro-batches to be a multiple of the degree 8; 12 is not").
std::string unmet_need(const Schedule& schedule, std::int64_t degree, std::int64_t micro_batches);

}  // namespace placet
