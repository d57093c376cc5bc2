// Liveness and sums of a step program: what a device has alive and what it sends, counted from the
// program alone (docs/theory.md §6.10).
//
// A buffer's size depends on its family and on the device, not on which element of the family it
// is, so that the effect of a body on memory is two numbers: the change it leaves behind and the
// most it reaches. They are worked out once for each procedure, and loops multiply. The cost is
// that of the program's text, whatever the number of devices and micro-batches.
//
// Counted are programs that check() accepts: no buffer is made twice or freed without being alive.
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.h"
#include "program/walk.h"
#include "units/quantity.h"

namespace placet {

/// What the buffers of one family take, together.
struct FamilyBytes {
  int family = 0;  // position in Program::families
  Bytes bytes;

  friend bool operator==(const FamilyBytes&, const FamilyBytes&) = default;
};

/// The fullest instant of a step, on one medium.
struct TalliedPeak {
  Bytes bytes;
  const Instruction* at = nullptr;  // that runs then, in the program; none: no instruction
  Arguments arguments;
  std::vector<FamilyBytes> families;  // alive then, in the order of the program
};

/// Messages that are alike, `count` of them in a step. Several buffers in one instruction are one
/// message. `kind` is a collective, a send or a host copy.
struct TalliedMessage {
  InstructionKind kind = InstructionKind::all_reduce;
  AxisList axes;              // sorted
  std::int64_t group = 1;     // devices that take part
  Combine op = Combine::sum;  // of reductions
  Dtype dtype = Dtype::fp32;
  StepPhase phase = StepPhase::forward;
  Bytes payload;  // the whole value on the group; of an all-to-all and of what goes from a device
                  // to one, what the device sends
  Bytes sent;     // in one call, by the device that sends most
  std::int64_t count = 0;

  friend bool operator==(const TalliedMessage&, const TalliedMessage&) = default;
};

/// One device over one step.
struct Tally {
  Bytes rest;                        // on the device when the step begins
  Bytes host_rest;                   // in its part of host memory
  std::vector<FamilyBytes> at_rest;  // both
  TalliedPeak peak;
  TalliedPeak host_peak;
  std::vector<TalliedMessage> messages;
  Bytes sent;  // over links between devices and to the host
};

/// Of the device at `at`, which belongs to the class. Buffers divided by micro-batches are counted
/// as those of the first, which are the largest.
/// Case: alloc a (8 bytes), call p twice, where p allocates 4 bytes and frees them: the peak is 12
/// bytes beside what rests, at the first call.
Tally tally(const Program& program, int device_class, const ProgramCoordinates& at);

/// Of the device of the class with the highest peak.
Tally tally(const Program& program, int device_class);

/// The first device of a class, in the first micro-batch.
ProgramCoordinates first_of(const Program& program, const DeviceClass& device_class);

}  // namespace placet
