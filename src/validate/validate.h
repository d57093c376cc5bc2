// Predictions beside measurements: every row of a table becomes a job, the job is derived, and the
// figures that the row gives are compared with ours (docs/formats.md).
//
// A row is in one of three groups (RowGroup). Rows that could be scored and are not (no profile for
// their engine, a word that is not known, a placement that the grammar refuses) count as 100 %
// error, so that a result cannot be made better by leaving rows out. No constant of memory is
// fitted to a row: all that a prediction uses stands in the row, in the theory, or in a data file
// with its source, and is listed in Validation::facts. For times, rates of devices and times of
// hosts were calibrated on the tables that docs/theory.md, section 7.6 names. What fills gaps of a
// table is an assumption, and some were read off the table's own figures after looking at it: those
// are named apart.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "catalog/catalog.h"
#include "catalog/table.h"
#include "catalog/validation_catalog.h"
#include "validate/validation.h"

namespace placet {

/// Every second of the chosen rows: figures chosen on one half can be judged on the other.
enum class Half : std::uint8_t { both, even, odd };

struct ValidateOptions {
  std::optional<std::string> engine;  // instead of the profile that a row's framework means
  RowPattern where;                   // only rows that match
  Half half = Half::both;             // of those: even takes the first, third, fifth ...
  bool without_table = false;         // without what was read off the table's own figures
  /// Also every row's command (Validation::commands), whose files lie in this folder.
  std::optional<std::string> commands;
  int threads = 2;
  /// Called now and then with rows done and rows in all, never by two threads at once.
  std::function<void(std::int64_t, std::int64_t)> progress;
};

/// A table of which figures were read off is scored twice: Validation::without_table has the errors
/// of the same rows without them. Throws InputError for data files that are wrong, an engine that
/// is not known, a condition on a column that the table does not have; what is wrong with single
/// rows stands in the result.
Validation validate(const Catalog& catalog, const Table& table, const ValidateOptions& options);

/// "column=text" with * for any characters, as --where spells it. Throws InputError.
CellPattern parse_condition(const std::string& text, const std::string& where);

}  // namespace placet
