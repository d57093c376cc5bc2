// Amounts and conditions of a profile's own terms: products of sizes of a job, and when they hold.
// They are evaluated in conditions.h, and for one stage in derive.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "placement/placement.h"
#include "profile/training.h"

namespace placet {

/// Sizes that a profile's own terms are products of. All are of one device of the class in
/// question.
enum class Symbol : std::uint8_t {
  micro_batch,      // samples per micro-batch
  micro_batches,    // per step
  sequence,         // tokens of a sample on this device, inside parallel regions
  residual_tokens,  // tokens of a sample on this device, on the residual stream
  hidden,
  vocabulary,      // the device's part, padding included
  parameters,      // trainable elements that the device computes with (after compute cuts)
  owned,           // elements whose optimizer state the device holds
  largest_unit,    // elements of its largest unit, after compute cuts
  largest_tensor,  // elements of its largest trained tensor, after compute cuts
  blocks,          // blocks it hosts
  experts,         // experts it hosts
  data_degree,     // product of the axes that divide samples or tokens of dense work
  tensor_degree,
  devices,         // of the job
  whole_sequence,  // tokens of a sample, before any cut
  global_batch,    // samples per step
  batch_degree,    // product of the axes that divide samples of dense work
  sequence_degree,
  stage_degree,   // product of the layer axes
  expert_degree,  // product of the axes along which experts are divided among devices
  chunks,         // virtual stages per device
  heads,          // query heads of the widest block
  kv_heads,
  model_blocks,          // of the whole model
  model_experts,         // routed experts per block, before any cut; 0: none
  choices,               // experts per token
  moe_blocks,            // blocks with routed experts that the device hosts
  expert_tensor_degree,  // product of the axes that cut the experts themselves
  moe_passes,            // moe_blocks, those twice whose experts run again in backward
  state_heads,  // groups of state spaces or key heads of delta nets, before any cut; 0: none
  head_size,    // of a query head of the widest block
  tensors,      // trainable parameter tensors that the device computes with, shared ones once
  moment_bytes  // of one number of the last tensor of optimizer state; 0: there is none
};
inline constexpr int kSymbolCount = 34;
std::string_view name_of(Symbol symbol);
std::optional<Symbol> symbol_named(std::string_view name);

/// factor x product of symbols + added, but no more than `most`. Case: 4 owned at most 4e9 is
/// 4e9 from 1e9 owned elements on.
struct Amount {
  Rational factor{1};
  std::vector<Symbol> symbols;
  std::int64_t added = 0;
  std::optional<std::int64_t> most;
  friend bool operator==(const Amount&, const Amount&) = default;
};

/// A comparison of two amounts of symbols that a job alone fixes.
struct Comparison {
  enum class Relation : std::uint8_t { not_multiple, above };
  Relation relation = Relation::above;  // left is no multiple of right; left > right
  Amount left;
  Amount right;
  friend bool operator==(const Comparison&, const Comparison&) = default;
};

/// A state lives in one of these modes.
struct StateInModes {
  State state = State::parameters;
  std::vector<Mode> modes;
  friend bool operator==(const StateInModes&, const StateInModes&) = default;
};

/// What a recomputation is, for engines that know some of them. `core` is that of attention's core
/// alone, `modules` any list of modules (that one too), `policy` one of the engine's own.
enum class RecomputeKind : std::uint8_t { none, full, every, first, core, modules, policy };

/// Some axis with the one cut stands outside of one with the other.
struct CutsInOrder {
  Cut outer = Cut::batch;
  Cut inner = Cut::layer;
  friend bool operator==(const CutsInOrder&, const CutsInOrder&) = default;
};

/// A condition on placement, job and device class; every part that is given must hold.
/// Cut::expert speaks of the axes along which experts are divided, whatever dense work sees there.
struct When {
  std::vector<Cut> cuts;             // some axis with one of these cuts ...
  std::int64_t degree_above = 1;     // ... and a product of degrees above this
  bool absent = false;               // instead: no such axis; without axes: no such offload
  std::vector<StateInModes> states;  // ... along which all of this holds
  std::optional<bool> first_stage;
  std::optional<bool> last_stage;
  std::optional<bool> accumulates;       // more than one micro-batch
  std::optional<bool> recomputes;        // whole units are recomputed
  std::optional<bool> recomputes_some;   // units or parts of them are
  std::optional<bool> recomputes_every;  // of every n blocks one is
  std::optional<Dtype> compute;          // the job computes in this format
  std::optional<Dtype> parameters;       // parameters rest in this format
  std::optional<Dtype> gather;           // ... and are gathered for use in this one
  std::optional<bool> clips;             // gradients are clipped by their global norm
  std::optional<bool> scales_loss;       // the loss is scaled dynamically
  std::optional<bool> has_experts;       // the model has routed experts
  std::optional<bool> shares_embedding;  // embedding and output matrix are one tensor
  std::optional<bool> trains_output;     // the output matrix is trained
  std::optional<bool> trains_embedding;  // the embedding is
  std::optional<bool> has_adapters;      // low-rank adapters are trained
  std::optional<bool> offsets_choice;    // experts are chosen by offset scores (router correction)
  std::optional<bool> drops_tokens;      // experts take no more tokens than they have slots
  std::vector<BalanceScope> balance;     // routers' balance loss is taken over one of these
  std::vector<std::string> optimizers;   // the job's optimizer is one of these
  std::optional<bool> states_stages;     // the placement states the blocks of each stage
  std::optional<bool> uneven_stages;     // ... and they are not all as many
  std::optional<State> offloads;         // some of this state is moved to host memory ...
  bool partly = false;                   // ... and some of it stays
  std::optional<bool> offloads_to_nvme;  // some state is moved beyond host memory
  std::optional<bool> divides_checkpoints;      // kept unit inputs rest in parts
  std::optional<bool> exchanges_heads;          // attention over the sequence exchanges heads
  std::vector<std::string> schedule_beyond;     // stages work in an order not in this list
  std::vector<std::string> exchange_beyond;     // a divided sequence's exchange is not in this list
  std::vector<RecomputeKind> recompute_beyond;  // what is recomputed is of none of these kinds
  std::vector<Keep> keeps;  // parameters that are gathered for use are kept so long on some axis
  std::optional<CutsInOrder> order;
  std::optional<Comparison> compares;
  friend bool operator==(const When&, const When&) = default;
};

}  // namespace placet
