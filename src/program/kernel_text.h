// Kernels as text, in the notation of kernel.h.
//
//   kernel linear(x[s t i], w[o i]) -> (y[s t o]) {
//     y[s t o] = x[s t i] * w[o i]
//   }
//   kernel lookup(ids[s t], w[v h]) -> (y[s t h]) {
//     e[s t v] = onehot(ids[s t]; at v)
//     y[s t h] = e[s t v] * w[v h]
//   }
//
// Dims are numbered as they are met, tensors inside as they are made. Where another order matters,
// dims stand in it after the name, tensors inside in it after "with":
//   kernel f[s t](x[t s]) -> (y[t]) with (b[t], a[t]) { ... }
#pragma once

#include <string>
#include <string_view>

#include "program/kernel.h"
#include "program/tokens.h"

namespace placet {

/// Reads one kernel, from the word "kernel" to the closing brace. Throws InputError with the line.
Kernel read_kernel(Tokens& tokens);

/// The kernel in a text of its own.
Kernel kernel_from(std::string_view text);

/// The text that reads back to the same kernel, one statement a line.
std::string to_text(const Kernel& kernel);

}  // namespace placet
