// Runs of a procedure's instructions that concern one device alone (docs/theory.md §6.5). What such
// a run makes depends on what its buffers hold and on nothing else, so that the machine works it
// out once for equal contents: for one micro-batch of all, as a rule. Inside of check/.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "check/repeating.h"
#include "program/walk.h"

namespace placet {

/// A buffer that a run of instructions touches.
struct Touched {
  BufferRef buffer;      // all of it
  bool needed = false;   // what it holds before the run is read
  bool fresh = false;    // the first that happens to it is its allocation
  bool ends = false;     // the last that happens to it is its end
  bool begins = false;   // it is allocated in the run, after all that happens to the old one
  bool changes = false;  // allocated, written or freed
  bool sum = false;      // only ever the left side of additions
  const Instruction* reader = nullptr;  // the first that reads it, after an allocation
};

struct Segment {
  std::vector<const Instruction*> instructions;
  std::vector<Touched> touched;   // but for those within
  std::vector<BufferRef> within;  // allocated and freed in the run
  /// Terms of what is drawn for: equal contents drawn for different things are different.
  std::vector<IndexTerm> keys;
  /// The micro-batches that its buffers are of, and nothing else, move with that of its call.
  bool follows_call = true;
};

/// One after the other, a segment (with `instruction` null) or a single instruction, where they
/// stand in the order of execution.
struct SegmentOrInstruction {
  const Segment* segment = nullptr;
  const Instruction* instruction = nullptr;
  Arguments arguments;
};

/// What orders the queues of a device: records and waits.
enum class Orders : std::uint8_t { listed, left_out };

/// The bodies of a class cut into segments. Single instructions are those outside of procedures,
/// those that are not `local`, and those whose buffers might be one although their names differ.
class Segments {
 public:
  /// `orders` says whether records and waits are listed, where they are no part of a segment: no
  /// value depends on them.
  Segments(const Program& program, std::function<bool(const Instruction&)> local, Orders orders)
      : program_(program),
        local_(std::move(local)),
        orders_(orders),
        procedures_(program.procedures.size()) {}

  Repeating<SegmentOrInstruction> list(const std::vector<Step>& body);

 private:
  /// A step of a procedure: a segment, or what is no part of one.
  struct Cut {
    std::optional<Segment> segment;
    const Step* step = nullptr;
  };

  using Listed = std::vector<SegmentOrInstruction>;

  Listed round_of(const Loop& loop, std::int64_t value);
  void add(const std::vector<Step>& body, const Arguments& arguments, Listed& out);
  void add(const Step& step, const Arguments& arguments, Listed& out);
  void add(const Call& call, const Arguments& arguments, Listed& out);
  void add_run(std::span<const Step> steps, std::vector<Cut>& cuts) const;
  const std::vector<Cut>& cuts_of(int procedure);

  const Program& program_;
  std::function<bool(const Instruction&)> local_;
  Orders orders_;
  std::vector<std::optional<std::vector<Cut>>> procedures_;
};

}  // namespace placet
