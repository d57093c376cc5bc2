#include "program/program.h"

#include <array>

#include "units/error.h"

namespace placet {
namespace {

constexpr std::array<std::string_view, kInstructionKindCount> kKindNames = {
    "alloc",     "free",    "zero",       "compute",        "update",     "norm",
    "scale",     "random",  "route",      "recompute",      "accumulate", "copy",
    "host_copy", "slice",   "all_reduce", "reduce_scatter", "all_gather", "all_to_all",
    "broadcast", "permute", "send",       "receive",        "record",     "wait"};

}  // namespace

std::string_view name_of(InstructionKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}

bool calls_kernel(InstructionKind kind) {
  return kind >= InstructionKind::compute && kind <= InstructionKind::recompute;
}

bool is_collective(InstructionKind kind) {
  return kind >= InstructionKind::all_reduce && kind <= InstructionKind::receive;
}

std::string_view name_of(Stream stream) {
  switch (stream) {
    case Stream::compute:
      return "compute";
    case Stream::communication:
      return "communication";
    case Stream::to_host:
      return "to_host";
    case Stream::from_host:
      return "from_host";
  }
  fail_internally("every stream has a name");
}

std::string_view name_of(StepPhase phase) {
  switch (phase) {
    case StepPhase::forward:
      return "forward";
    case StepPhase::backward:
      return "backward";
    case StepPhase::reduce:
      return "reduce";
    case StepPhase::update:
      return "update";
  }
  fail_internally("every phase has a name");
}

}  // namespace placet
