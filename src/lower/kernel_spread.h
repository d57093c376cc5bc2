// What becomes of partial values in a kernel. Inside of lower/.
#pragma once

#include <optional>
#include <vector>

#include "lower/writer.h"
#include "program/kernel.h"

namespace placet {

/// Axes along which an output is still to be put together, and how.
struct PartialResult {
  AxisList axes;
  Combine op = Combine::sum;
};

/// By output: the axes that divide dims it is summed over, and those along which an operand is
/// partial already. `by`: the division of each dim of the kernel; `inputs`: axes along which each
/// input is partial. None: some input is partial where the kernel needs it complete.
std::optional<std::vector<PartialResult>> results_of(const Kernel& kernel,
                                                     const std::vector<Division>& by,
                                                     const std::vector<AxisList>& inputs);

}  // namespace placet
