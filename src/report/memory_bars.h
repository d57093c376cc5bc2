// Memory at the peak as bars, class by class and state by state.
#pragma once

#include <string>

#include "report/judged.h"
#include "report/style.h"

namespace placet {

/// The ink and the ASCII letter of a memory category.
Ink ink_of(MemoryCategory category);
char letter_of(MemoryCategory category);

/// The memory part of a derivation's text: one line per category of the fullest class, one stacked
/// bar for every class if there are several, the instant of the peak, the capacity, the host.
std::string memory_text(const Judged& judged, const TextStyle& style);

/// What the letters of bars without colours mean.
std::string memory_legend(const TextStyle& style);

}  // namespace placet
