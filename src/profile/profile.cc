#include "profile/profile.h"

#include <array>

#include "units/error.h"

namespace placet {
namespace {

constexpr std::array<std::string_view, kSymbolCount> kSymbolNames = {"micro_batch",
                                                                     "micro_batches",
                                                                     "sequence",
                                                                     "residual_tokens",
                                                                     "hidden",
                                                                     "vocabulary",
                                                                     "parameters",
                                                                     "owned",
                                                                     "largest_unit",
                                                                     "largest_tensor",
                                                                     "blocks",
                                                                     "experts",
                                                                     "data_degree",
                                                                     "tensor_degree",
                                                                     "devices",
                                                                     "whole_sequence",
                                                                     "global_batch",
                                                                     "batch_degree",
                                                                     "sequence_degree",
                                                                     "stage_degree",
                                                                     "expert_degree",
                                                                     "chunks",
                                                                     "heads",
                                                                     "kv_heads",
                                                                     "model_blocks",
                                                                     "model_experts",
                                                                     "choices",
                                                                     "moe_blocks",
                                                                     "expert_tensor_degree",
                                                                     "moe_passes",
                                                                     "state_heads",
                                                                     "head_size",
                                                                     "tensors",
                                                                     "moment_bytes"};

SavedSlots slots(std::uint16_t inputs, std::uint16_t outputs, std::uint16_t internals) {
  return {.inputs = inputs, .outputs = outputs, .internals = internals};
}

constexpr std::uint16_t one(int i) { return static_cast<std::uint16_t>(1U << i); }

}  // namespace

std::string_view name_of(Instant instant) {
  switch (instant) {
    case Instant::forward:
      return "forward";
    case Instant::loss:
      return "loss";
    case Instant::backward:
      return "backward";
    case Instant::reduction:
      return "reduction";
    case Instant::update:
      return "update";
    case Instant::start:
      return "start";
  }
  return "";
}

std::string_view name_of(Symbol symbol) { return kSymbolNames[static_cast<std::size_t>(symbol)]; }

std::optional<Symbol> symbol_named(std::string_view name) {
  for (std::size_t i = 0; i < kSymbolNames.size(); ++i) {
    if (kSymbolNames[i] == name) return static_cast<Symbol>(i);
  }
  return std::nullopt;
}

std::string_view name_of(MemoryCategory category) {
  switch (category) {
    case MemoryCategory::parameters:
      return "parameters";
    case MemoryCategory::optimizer:
      return "optimizer";
    case MemoryCategory::gradients:
      return "gradients";
    case MemoryCategory::activations:
      return "activations";
    case MemoryCategory::transient:
      return "transient";
    case MemoryCategory::overhead:
      return "overhead";
  }
  return "";
}

std::string_view name_of(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
      return "all_reduce";
    case Collective::reduce_scatter:
      return "reduce_scatter";
    case Collective::all_gather:
      return "all_gather";
    case Collective::all_to_all:
      return "all_to_all";
    case Collective::send_recv:
      return "send_recv";
    case Collective::broadcast:
      return "broadcast";
    case Collective::host_copy:
      return "host_copy";
  }
  return "";
}

std::string_view name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::none:
      return "none";
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::max:
      return "max";
    case ReduceOp::min:
      return "min";
  }
  return "";
}

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::reduce:
      return "reduce";
    case Phase::update:
      return "update";
  }
  return "";
}

SavedTable plain_saved_table() {
  SavedTable table{};
  auto set = [&](OpKind kind, SavedSlots saved) { table[static_cast<std::size_t>(kind)] = saved; };
  set(OpKind::embedding, slots(one(0), 0, 0));
  set(OpKind::linear, slots(one(0) | one(1), 0, 0));  // two where their columns are joined
  set(OpKind::grouped_linear, slots(one(0), 0, 0));
  set(OpKind::norm, slots(one(0), 0, one(internal::kNormStatistics)));
  set(OpKind::attention, slots(one(0) | one(1) | one(2), one(0), one(internal::kLogSumExp)));
  set(OpKind::activation, slots(one(0), 0, 0));
  set(OpKind::gated_activation, slots(one(0) | one(1), 0, one(internal::kActivated)));
  set(OpKind::multiply, slots(one(0) | one(1), 0, 0));
  set(OpKind::dropout, slots(0, 0, one(internal::kDropoutMask)));
  set(OpKind::router, slots(0, 0, one(internal::kRouterProbabilities)));
  set(OpKind::combine, slots(one(0) | one(1), 0, 0));
  set(OpKind::convolution, slots(one(0), 0, 0));
  set(OpKind::scan, slots(0xF, one(0), 0));
  set(OpKind::loss, slots(0, 0, one(internal::kLossProbabilities)));
  return table;
}

}  // namespace placet
