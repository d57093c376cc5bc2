// A step program from any reference in the plainest way: every device has all parameters and its
// share of the samples, gradients are summed over the devices. Independent of lower/.
#pragma once

#include <cstdint>

#include "program/model_reference.h"
#include "program/program.h"

namespace placet {

/// The program over an axis "data" of that degree.
Program data_parallel(const ModelReference& model, std::int64_t degree, std::int64_t micro_batches);

}  // namespace placet
