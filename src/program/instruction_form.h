// What each kind of instruction says: which buffers, and which of its fields. The text form, the
// grammar check and readers of programs agree on this one table (docs/formats.md, "Step program").
#pragma once

#include <cstdint>

#include "program/program.h"

namespace placet {

/// Fields that a kind does not use keep their defaults. A buffer that ends is an input of `free`;
/// one that begins, an output of `alloc`.
struct InstructionForm {
  enum class Buffers : std::uint8_t {
    makes,     // one output: alloc, zero, receive
    takes,     // one input: free, send
    kernel,    // as the kernel's inputs and outputs
    pair,      // one input, one output
    pairs,     // as many outputs as inputs: they travel together
    in_place,  // outputs are the inputs, one or more
    none       // record, wait
  };
  Buffers buffers = Buffers::none;
  bool factor = false;  // factor and because
  bool axes = false;
  bool one_axis = false;  // of the axes
  bool op = false;
  bool dim = false;
  bool into = false;
  bool shift = false;
  bool peer = false;
  bool among = false;
  bool event = false;
};

/// Of kinds that call a kernel, all use kernel, positions and key.
InstructionForm form_of(InstructionKind kind);

/// Whether both name one buffer, whatever piece of it.
bool is_same_buffer(const BufferRef& a, const BufferRef& b);

/// Whether a list names the buffer, whatever piece of it.
bool names_buffer(const std::vector<BufferRef>& list, const BufferRef& buffer);

}  // namespace placet
