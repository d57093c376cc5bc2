// What collectives and copies do, as transfers between addresses.
#pragma once

#include <string>
#include <vector>

#include "program/program.h"
#include "ranks/operation.h"

namespace placet::ranks {

/// One buffer of one rank of a group: what it gives and what it takes.
struct Member {
  BufferView from;
  std::int64_t from_address = 0;
  BufferView to;
  std::int64_t to_address = 0;
};

/// Adds the transfers of one collective over the members in the order of their parts. How a dim is
/// divided follows from the extents that the members' buffers have there. Returns why the buffers
/// do not fit; empty: they do. For all kinds of collectives but messages.
std::string add_collective(OperationList& list, const Instruction& instruction,
                           const std::vector<Member>& members);

/// Adds the transfers of copy, host_copy, accumulate and zero (from nothing).
std::string add_local(OperationList& list, InstructionKind kind, const Member& buffers);

/// Adds the transfer of a slice: `part` of the input along the dim.
std::string add_slice(OperationList& list, int dim, const Part& part, const Member& buffers);

}  // namespace placet::ranks
