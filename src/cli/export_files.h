// Exported files as they are shown and written, for the commands that export.
#pragma once

#include <string>

#include "interop/export.h"

namespace placet {

/// The files, or what the dialect cannot say.
std::string exported_text(const Exported& exported);

/// Writes the files into a folder, which is made. Throws InputError that speaks of `flag`.
void write_exported(const Exported& exported, const std::string& folder, const std::string& flag);

}  // namespace placet
