// Parts of the walk through one unit. Inside of the files that write unit_memory.
#pragma once

#include <cstdint>
#include <vector>

#include "derive/unit_memory.h"
#include "derive/unit_sizes.h"

namespace placet {

/// Whether a parameter is another unit's tensor, of this device.
bool is_shared_here(const UnitView& unit, const Parameter& parameter);

/// Adds what the unit's parameters take. `sizes`: of its values.
void read_parameters(const UnitView& unit, const std::vector<std::int64_t>& sizes, UnitMemory& out);

}  // namespace placet
