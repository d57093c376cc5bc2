// What a kernel makes of a row of tensors that "..." stands for (docs/theory.md §6.5). Inside of
// check/.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "check/content.h"
#include "program/kernel.h"

namespace placet {

/// What a kernel makes of a row of several tensors, tensor by tensor: one for each, a sum over all
/// of them, or something that has to do with none of them.
enum class OverRow : std::uint8_t { each, sum, none };

/// By tensor of the kernel. Nothing: it cannot be worked out tensor by tensor, as a sum over all is
/// taken by another statement.
std::optional<std::vector<OverRow>> over_rows(const Kernel& kernel);

/// Whether the rows that a kernel takes element by element have the same tensors, cut alike.
bool are_rows_alike(const Kernel& kernel, const std::vector<ContentView>& inputs);

}  // namespace placet
