// What is moved off the device, apart from all else that a layout says: placements that differ in
// nothing but that share the rest, which is dearer to know.
#pragma once

#include <vector>

#include "derive/communication.h"
#include "derive/layout.h"

namespace placet {

/// Whether nothing but what is moved off the device, and where the update runs, differs: offload
/// and update of the axes and of their overrides.
bool differ_in_moved_alone(const Placement& a, const Placement& b);

/// Reads what is moved off the device anew from the layout's job. REQUIRES: the placement laid out
/// differed in that alone.
void read_moved(Layout& layout);

/// Whether some state of a parameter rests off the device, or its update is told where to run.
bool is_moved(const LocalParameter& parameter);

/// Of the parameter_traffic of a unit the copies between device and host. The rest of it does not
/// depend on what is moved.
std::vector<UnitTerm> host_traffic(const Layout& layout, int unit);

}  // namespace placet
