// Which extents a kernel's dims have when it is called on given buffers.
#pragma once

#include <string>
#include <vector>

#include "program/kernel.h"
#include "ranks/local_shape.h"

namespace placet::ranks {

/// Extents by dim of the kernel, or why the tensors do not fit it.
struct Binding {
  Extents extents;
  std::string problem;  // empty: they fit
};

/// Binds the dims of inputs and outputs by position, then those inside the kernel that are like
/// others. The dim "..." stands for all dims of a tensor that no other one takes, and
/// alone for all elements of a buffer. A tensor without dims fits any buffer of one element.
Binding bind_kernel(const Kernel& kernel, const std::vector<BufferView>& tensors);

}  // namespace placet::ranks
