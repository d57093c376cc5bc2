// One row of a table of runs, with the gaps that its source leaves filled from rules, and a record
// of what was taken from where.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/table.h"
#include "catalog/validation_catalog.h"

namespace placet {

/// Whether a row of the table matches; a column that the table does not have is an empty cell.
bool matches(const RowPattern& pattern, const Table& table, std::size_t row);

/// A cell that a rule filled.
struct FilledCell {
  const Filling* filling = nullptr;
  std::string_view column;
  std::string_view value;
};

/// Reads cells in this order: the first matching filling that stands instead of cells, the cell
/// itself, the cell of the column's `_derived` twin, the first other filling that matches; customs
/// fill only what a prediction cannot do without. All three references must outlive the reader.
class RowReader {
 public:
  RowReader(const Table& table, std::size_t row, const SourceReading& source);

  /// The value, or none. Fillings that were used are remembered.
  std::optional<std::string> find(std::string_view column);
  std::optional<std::int64_t> find_whole(std::string_view column, WholeRange range);

  /// The same where a prediction cannot do without: remembered as missing if there is none.
  std::string need(std::string_view column);
  std::int64_t need_whole(std::string_view column, WholeRange range);  // 1 where missing

  /// Says that something is missing or cannot be understood.
  void miss(std::string what) { missing_.push_back(std::move(what)); }

  /// The cell as the source states it.
  std::string_view stated(std::string_view column) const { return table_->text(row_, column); }
  bool matches(const RowPattern& pattern) const { return placet::matches(pattern, *table_, row_); }

  /// The table's file.
  const std::string& where() const { return table_->where; }

  const std::vector<std::string>& missing() const { return missing_; }
  const std::vector<FilledCell>& used() const { return used_; }

 private:
  std::optional<std::string> cell_of(std::string_view column, bool needed);
  std::optional<std::string> filled(std::string_view column, bool needed, bool instead);
  void note_used(const FilledCell& cell);

  const Table* table_;
  std::size_t row_;
  const SourceReading* source_;
  std::vector<std::string> missing_;
  std::vector<FilledCell> used_;
};

}  // namespace placet
