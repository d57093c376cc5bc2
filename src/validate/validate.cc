#include "validate/validate.h"

#include <algorithm>

#include "units/error.h"
#include "units/nearest.h"
#include "validate/row_reader.h"
#include "validate/score.h"

namespace placet {
namespace {

void check_conditions(const Table& table, const RowPattern& where) {
  for (const CellPattern& cell : where) {
    const bool known =
        std::find(table.columns.begin(), table.columns.end(), cell.column) != table.columns.end();
    if (known) continue;
    throw InputError({.where = "--where",
                      .value = cell.column,
                      .problem = "is not a column of " + table.where,
                      .nearest = nearest(cell.column, table.columns)});
  }
}

// Runs without a status cannot be scored, so that a table without the column holds none.
void check_kind(const Table& table) {
  if (table.kind != TableKind::runs || table.position.contains("status")) return;
  throw InputError({.where = table.where,
                    .problem = "is not a table of runs: the header has no column status",
                    .allowed = "a row per run, whose status is ok or oom"});
}

Validation score(const Catalog& catalog, const Table& table, const ValidateOptions& options) {
  switch (table.kind) {
    case TableKind::runs:
      return score_runs(catalog, table, options);
    case TableKind::states:
      return score_states(catalog, table, options);
    case TableKind::activations:
      return score_activations(catalog, table, options);
  }
  fail_internally("every kind of table is scored");
}

std::string spelled(const RowPattern& where) {
  std::string text;
  for (const CellPattern& cell : where) {
    text += (text.empty() ? "" : " ") + cell.column + "=" + cell.any_of.front();
  }
  return text;
}

std::vector<std::size_t> half_of(const std::vector<std::size_t>& rows, Half half) {
  if (half == Half::both) return rows;
  std::vector<std::size_t> chosen;
  for (std::size_t i = half == Half::odd ? 1 : 0; i < rows.size(); i += 2) {
    chosen.push_back(rows[i]);
  }
  return chosen;
}

}  // namespace

std::vector<std::size_t> chosen_rows(const Table& table, const ValidateOptions& options) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    if (matches(options.where, table, row)) rows.push_back(row);
  }
  return half_of(rows, options.half);
}

Validation validate(const Catalog& catalog, const Table& table, const ValidateOptions& options) {
  check_kind(table);
  check_conditions(table, options.where);
  if (!options.where.empty() && chosen_rows(table, options).empty()) {
    throw InputError({.where = "--where",
                      .value = spelled(options.where),
                      .problem = "matches none of the " + std::to_string(table.rows.size()) +
                                 " rows of " + table.where,
                      .allowed = "text of a cell, in which * stands for any characters"});
  }
  Validation validation = summarized(score(catalog, table, options));
  const bool reads_table = std::ranges::any_of(
      validation.facts, [](const UsedFact& fact) { return fact.origin == kAssumedFromTable; });
  if (!reads_table) return validation;
  ValidateOptions without = options;
  without.without_table = true;
  without.commands.reset();
  const Validation other = summarized(score(catalog, table, without));
  validation.without_table = WithoutTable{.memory = other.memory,
                                          .time = other.time,
                                          .rank_correlation = other.rank_correlation,
                                          .out_of_memory = other.out_of_memory};
  return validation;
}

CellPattern parse_condition(const std::string& text, const std::string& where) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw InputError({.where = where,
                      .value = text,
                      .problem = "is no condition",
                      .allowed = "COLUMN=TEXT, in which * stands for any characters"});
  }
  return {.column = text.substr(0, equals), .any_of = {text.substr(equals + 1)}};
}

}  // namespace placet
