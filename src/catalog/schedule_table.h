// The table of a schedule file: rows in the file itself, or a CSV file beside it.
#pragma once

#include <filesystem>
#include <string>

#include "catalog/reader.h"
#include "schedule/schedule.h"

namespace placet {

/// The schedule that the value of `table` says: a list of rows, each a text of actions with blanks
/// or commas between them, or the path of a CSV file from the folder of `file`. Throws InputError
/// with file, row and slot for what is wrong (schedule/work_table.h).
Schedule read_schedule_table(const std::filesystem::path& file, const Reader& table,
                             const std::string& name);

}  // namespace placet
