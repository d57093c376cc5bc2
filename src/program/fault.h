// Faults: single changes to a step program, such as people make them by mistake (docs/theory.md
// §6.8). What reads programs is tried on them: the checker must find every one that matters.
//
//   delete(all_reduce, tensor=*norm*)     rescale(reduce_scatter, by=1/dp, rank=0)
//   move(free, by=-2, layer=3)            regroup(all_gather, to=dp*tp, nth=2)
//
// A fault changes all instructions that it matches. Names and labels serve to choose them only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "program/program.h"

namespace placet {

enum class FaultOp : std::uint8_t {
  remove,  // "delete"
  duplicate,
  move,
  regroup,
  rescale,
  reduce_op,
  swap_shards,
  shift_slice,
  drop_zero,
  add_zero,
  early_free,
  reuse_buffer,
  drop_wait,
  drop_record,
  stale,
  skip_update,
  local_norm,
  local_weight,
  wrong_key,
  copy_key,
  drop_use,
  detach_adjoint,
  swap_order,
  substitute,
  redim,
  drop_position,
  compress,
  mask
};
inline constexpr int kFaultOpCount = 28;
std::string_view name_of(FaultOp op);

/// A range of numbers, both ends taken.
struct NumberRange {
  std::int64_t first = 0;
  std::int64_t last = 0;

  friend bool operator==(const NumberRange&, const NumberRange&) = default;
};

/// Which devices: by row-major number, by coordinates, or all.
struct RankChoice {
  std::optional<NumberRange> ranks;
  std::map<std::string, std::int64_t> coordinates;  // by axis

  bool is_all() const { return !ranks && coordinates.empty(); }
  friend bool operator==(const RankChoice&, const RankChoice&) = default;
};

struct Fault {
  std::string text;  // as it was written
  FaultOp op = FaultOp::remove;
  std::vector<InstructionKind> kinds;  // empty: any
  std::string tensor;                  // glob; empty: any
  std::string axis;                    // of the group, or of claimed positions; empty: any
  std::optional<StepPhase> phase;
  std::optional<Stream> stream;
  RankChoice rank;
  std::int64_t step = 0;  // 1 or 2; 0: both
  std::optional<std::int64_t> micro_batch;
  std::optional<std::int64_t> layer;
  std::optional<std::int64_t> nth;  // from 1

  std::string to;         // regroup: axes; reduce_op: mean, max or min; substitute: a kind of
                          // instruction; redim: a dim
  std::string by;         // rescale: a product; move, shift_slice: a number; compress, mask: a name
  std::string of;         // reuse_buffer: glob
  std::int64_t with = 0;  // swap_order: the how-manieth next of its kind

  friend bool operator==(const Fault&, const Fault&) = default;
};

/// Reads a fault. Throws InputError with the place and what is allowed there.
Fault fault_from(const std::string& text);

/// An instruction that a fault changes.
struct FaultMatch {
  std::string body;         // "procedure forward.block", "class stage-0"
  std::string instruction;  // as the text form spells it
  InstructionKind kind = InstructionKind::compute;
  StepPhase phase = StepPhase::forward;

  friend bool operator==(const FaultMatch&, const FaultMatch&) = default;
};

/// What a fault matches, each place in the text of the program once, in the order of execution.
std::vector<FaultMatch> list_matches(const Program& program, const Fault& fault);

/// The program after all faults, one after the other. Classes are split where a fault concerns some
/// devices only, calls and loops opened up where it concerns some units or micro-batches. Throws
/// InputError for a fault that matches nothing, with what would match.
Program with_faults(Program program, const std::vector<Fault>& faults);

}  // namespace placet
