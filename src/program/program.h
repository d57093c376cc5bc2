// The step program: what each device executes in one step of training (docs/theory.md §6).
//
// A program has three parts. The reference is the step on one device with whole tensors. The
// initial state says which parts of parameters, optimizer state and samples each device holds when
// the step begins. The instructions say what is computed and sent. Names of buffers, instructions
// and procedures are for people: no reader of a program draws conclusions from them.
//
// Devices that do the same are one class. What is repeated stands once: a procedure has two
// parameters, a unit u and a micro-batch j, and buffers come in families with an element for each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "program/kernel.h"
#include "program/reference.h"
#include "program/tensor.h"

namespace placet {

/// A number that an index of a buffer or an argument of a call stands for: a variable plus a
/// constant, or the constant alone.
struct IndexTerm {
  enum class Variable : std::uint8_t { none, unit, micro_batch };
  Variable variable = Variable::none;
  std::int64_t offset = 0;

  friend bool operator==(const IndexTerm&, const IndexTerm&) = default;
};

/// Buffers of one type, with an element for each unit, or micro-batch, or both.
struct Family {
  std::string name;
  BufferType type;
  bool by_unit = false;
  bool by_micro_batch = false;
  bool on_host = false;

  friend bool operator==(const Family&, const Family&) = default;
};

/// One buffer, as an instruction names it.
struct BufferRef {
  int family = 0;
  IndexTerm unit;
  IndexTerm micro_batch;
  int piece = -1;  // one tensor of several inside the buffer; -1: all of it

  friend bool operator==(const BufferRef&, const BufferRef&) = default;
};

/// The kinds of instructions. Those from `compute` to `recompute` all call a kernel; their names
/// only say to people what it is for.
enum class InstructionKind : std::uint8_t {
  alloc,
  free,
  zero,
  compute,
  update,
  norm,
  scale,
  random,
  route,
  recompute,
  accumulate,  // output 0 += input 0
  copy,        // output 0 = input 0
  host_copy,   // the same between device and host memory
  slice,       // output 0 = the device's part of input 0 along `axes`
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  permute,  // output i = input i of the device `shift` places further on along the axis
  send,
  receive,
  record,
  wait
};
inline constexpr int kInstructionKindCount = 24;
std::string_view name_of(InstructionKind kind);
/// Whether it calls a kernel.
bool calls_kernel(InstructionKind kind);
/// Whether it moves data between devices.
bool is_collective(InstructionKind kind);

/// Queues of a device that run beside each other. What is recorded on one can be waited for on
/// another; within one, instructions run in order.
enum class Stream : std::uint8_t { compute, communication, to_host, from_host };
inline constexpr int kStreamCount = 4;
std::string_view name_of(Stream stream);

/// Where data is taken apart or put together: a tensor's dim, or the row of all elements.
inline constexpr int kFlat = -1;

/// Phase of the step, for people and for faults.
enum class StepPhase : std::uint8_t { forward, backward, reduce, update };
std::string_view name_of(StepPhase phase);

/// What a random number is drawn for: equal keys give equal numbers.
struct DrawKey {
  std::string name;
  IndexTerm unit;

  friend bool operator==(const DrawKey&, const DrawKey&) = default;
};

/// Where the code believes that its part of a dim lies.
struct Position {
  int dim = 0;             // of the kernel
  Division by;             // its part, as `part_of` gives it
  std::int64_t shift = 0;  // of the device so many places further on, as of `DividedDim`
  friend bool operator==(const Position&, const Position&) = default;
};

/// Where the text of a program has something, for messages: not a part of what the program is.
struct SourceLine {
  int number = 0;  // 0: it was not read from a text
  friend bool operator==(const SourceLine&, const SourceLine&) { return true; }
};

struct Instruction {
  InstructionKind kind = InstructionKind::compute;
  Stream stream = Stream::compute;
  StepPhase phase = StepPhase::forward;
  std::vector<BufferRef> inputs;
  std::vector<BufferRef> outputs;

  // Kernels.
  int kernel = -1;
  std::vector<Position> positions;
  DrawKey key;          // random
  Rational factor{1};   // scale: every product is multiplied by it
  std::string because;  // scale: the factor in words ("1/dp"), for people

  // Collectives and slices.
  AxisList axes;  // the group: all devices that differ only along these
  Combine op = Combine::sum;
  int dim = kFlat;         // gathered, scattered, sliced; split by an all-to-all
  int into = kFlat;        // all-to-all: put together along
  std::int64_t shift = 0;  // slice: the part of the device so many places further on; permute

  // Messages between classes: along `axes` (one axis) to or from the device at `peer`.
  std::int64_t peer = 0;
  // All-reduce over a part of one axis: the coordinates that take part. Empty: all.
  std::vector<std::int64_t> among;

  int event = -1;  // record, wait
  /// Executed in that step only, counted from 1; 0: in every step.
  std::int64_t step = 0;
  std::string label;  // for people: the tensor it is about
  SourceLine line;

  friend bool operator==(const Instruction&, const Instruction&) = default;
};

/// A call of a procedure.
struct Call {
  int procedure = 0;
  IndexTerm unit;
  IndexTerm micro_batch;

  friend bool operator==(const Call&, const Call&) = default;
};

struct Step;

/// The body for each value of a variable from `first` to `last`, downwards where last < first.
struct Loop {
  IndexTerm::Variable variable = IndexTerm::Variable::unit;
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::vector<Step> body;

  friend bool operator==(const Loop& a, const Loop& b);
};

/// A step of a body.
struct Step {
  std::variant<Instruction, Call, Loop> what;

  friend bool operator==(const Step&, const Step&) = default;
};

inline bool operator==(const Loop& a, const Loop& b) {
  return a.variable == b.variable && a.first == b.first && a.last == b.last && a.body == b.body;
}

struct Procedure {
  std::string name;
  std::vector<Step> body;

  friend bool operator==(const Procedure&, const Procedure&) = default;
};

/// What a buffer holds when the step begins, piece by piece; the type's division says which part.
struct Initial {
  BufferRef buffer;  // constants only
  std::vector<StateRef> pieces;

  friend bool operator==(const Initial&, const Initial&) = default;
};

/// Devices that do the same: all whose coordinates lie in the box.
struct DeviceClass {
  std::string name;
  std::vector<std::vector<std::int64_t>> box;  // per mesh axis the coordinates; empty: all
  std::vector<Initial> initial;
  std::vector<Initial> results;  // what else it claims to hold when the step ends: the loss
  std::vector<Step> body;

  friend bool operator==(const DeviceClass&, const DeviceClass&) = default;
};

struct Program {
  std::vector<ProgramAxis> axes;  // the mesh, then the micro-batches
  std::vector<LogicalDim> dims;
  std::vector<Kernel> kernels;
  Reference reference;
  std::vector<Family> families;
  std::vector<Procedure> procedures;
  std::vector<DeviceClass> classes;

  friend bool operator==(const Program&, const Program&) = default;
};

}  // namespace placet
