#include "program/instruction_form.h"

#include <algorithm>

namespace placet {

InstructionForm form_of(InstructionKind kind) {
  using Buffers = InstructionForm::Buffers;
  switch (kind) {
    case InstructionKind::alloc:
    case InstructionKind::zero:
      return {.buffers = Buffers::makes};
    case InstructionKind::free:
      return {.buffers = Buffers::takes};
    case InstructionKind::compute:
    case InstructionKind::update:
    case InstructionKind::norm:
    case InstructionKind::random:
    case InstructionKind::route:
    case InstructionKind::recompute:
      return {.buffers = Buffers::kernel};
    case InstructionKind::scale:
      return {.buffers = Buffers::kernel, .factor = true};
    case InstructionKind::accumulate:
    case InstructionKind::copy:
    case InstructionKind::host_copy:
      return {.buffers = Buffers::pair};
    case InstructionKind::slice:
      return {.buffers = Buffers::pair, .axes = true, .dim = true, .shift = true};
    case InstructionKind::all_reduce:
      return {.buffers = Buffers::in_place, .axes = true, .op = true, .among = true};
    case InstructionKind::reduce_scatter:
      return {.buffers = Buffers::pairs, .axes = true, .op = true, .dim = true};
    case InstructionKind::all_gather:
      return {.buffers = Buffers::pairs, .axes = true, .dim = true};
    case InstructionKind::all_to_all:
      return {.buffers = Buffers::pairs, .axes = true, .dim = true, .into = true};
    case InstructionKind::broadcast:
      return {.buffers = Buffers::in_place, .axes = true, .peer = true};
    case InstructionKind::permute:
      return {.buffers = Buffers::pairs, .axes = true, .one_axis = true, .shift = true};
    case InstructionKind::send:
      return {.buffers = Buffers::takes, .axes = true, .one_axis = true, .peer = true};
    case InstructionKind::receive:
      return {.buffers = Buffers::makes, .axes = true, .one_axis = true, .peer = true};
    case InstructionKind::record:
    case InstructionKind::wait:
      return {.buffers = Buffers::none, .event = true};
  }
  return {};
}

bool is_same_buffer(const BufferRef& a, const BufferRef& b) {
  return a.family == b.family && a.unit == b.unit && a.micro_batch == b.micro_batch;
}

bool names_buffer(const std::vector<BufferRef>& list, const BufferRef& buffer) {
  return std::ranges::any_of(list,
                             [&](const BufferRef& ref) { return is_same_buffer(ref, buffer); });
}

}  // namespace placet
