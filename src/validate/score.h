// Scoring of each kind of table. Inside of validate.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "profile/profile.h"
#include "units/error.h"
#include "validate/row_reader.h"
#include "validate/validate.h"

namespace placet {

inline constexpr double kGb = 1e9;
inline constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

/// The rows of a table that the options choose, by position.
std::vector<std::size_t> chosen_rows(const Table& table, const ValidateOptions& options);

/// Predictions, fits, skipped rows and facts; the summaries are not filled yet.
Validation score_runs(const Catalog& catalog, const Table& table, const ValidateOptions& options);
Validation score_states(const Catalog& catalog, const Table& table, const ValidateOptions& options);
Validation score_activations(const Catalog& catalog, const Table& table,
                             const ValidateOptions& options);

/// Cells that are not of their column's kind are the fault of their row; its words, or empty.
inline const std::string& fault_of(const Table& table, std::size_t row) {
  return table.rows[row].fault;
}

/// What is wrong, without the place, so that equal reasons of several rows read alike.
std::string reason_of(const InputError& error);

/// Adds `rows` to a fact, which is known by origin, key and value.
class FactList {
 public:
  void add(UsedFact fact, std::int64_t rows = 1);
  /// Cells of a row of `source` that rules filled.
  void add_filled(const std::string& source, const std::vector<FilledCell>& cells);
  /// Every fact of a profile that `rows` jobs use. A term of memory touches only the rows in which
  /// its conditions hold: `term_rows`, by the term's name. Messages touch no figure of memory.
  void add_profile(const Profile& profile, std::int64_t rows,
                   const std::map<std::string, std::int64_t>& term_rows);
  /// Sorted by origin, key, value.
  std::vector<UsedFact> list() const;

 private:
  std::map<std::tuple<std::string, std::string, std::string>, UsedFact> facts_;
};

}  // namespace placet
