// Tables of measured runs: comma-separated text under a header, read strictly (docs/formats.md,
// data/validation/tables/SCHEMA.md). A cell is text; an empty one means that the source does not
// say. The columns of a kind of table have types, and every cell of theirs is checked when the
// table is read, so that a wrong number never counts as a gap: its row says what is wrong with it
// and is left out; the others stand.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/reader.h"
#include "units/error.h"

namespace placet {

/// What is read at most.
inline constexpr std::size_t kMostTableBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMostTableRows = 1'000'000;
inline constexpr std::size_t kMostTableColumns = 1024;
inline constexpr std::size_t kLongestTableLine = std::size_t{1} << 20;  // bytes

/// Kinds of tables, told apart by their headers. runs: one training run per row. states: one
/// device's share of parameters, gradients and optimizer state. activations: one device's saved
/// activations.
enum class TableKind : std::uint8_t { runs, states, activations };

/// A column of a kind of table and what its cells hold.
struct TableColumn {
  enum class Type : std::uint8_t { text, flag /* 0 or 1 */, whole, number };
  std::string_view name;
  Type type = Type::text;
};

/// The columns of a kind, in their order.
std::span<const TableColumn> columns_of(TableKind kind);

struct TableRow {
  std::int64_t line = 0;  // in the text, from 1, where the row begins
  std::vector<std::string> cells;
  std::string fault;  // "dp: 'eight' is not a whole number ...", of its first bad cell; else empty
};

struct Table {
  std::string where;  // the file, for messages
  TableKind kind = TableKind::runs;
  std::vector<std::string> columns;
  std::map<std::string, std::size_t, std::less<>> position;  // of a column
  std::vector<TableRow> rows;

  /// The cell of a row; empty where the table has no such column.
  std::string_view text(std::size_t row, std::string_view column) const;

  /// "runs.csv: line 7 (runs-0003), column dp".
  std::string place(std::size_t row, std::string_view column) const;
};

/// Reads a table. The header comes first and names `row_id`. Columns of the kind may be left out;
/// after the last of them others may follow. Throws InputError with file, line and column for a
/// column that is not known among the others or given twice, a near miss of a known name, a row of
/// another length, a row_id that is empty or given twice, quotes that do not match, a table without
/// rows, and text beyond the limits above. A cell of a wrong type is its row's fault alone, unless
/// every row has one.
Table read_table(const std::filesystem::path& path);

/// The same for text that is at hand; `where` names it in messages.
Table parse_table(std::string_view text, const std::string& where);

/// What is wrong with a cell, with its column and without file and line, so that equal faults of
/// several rows read alike: "dp: 'eight' is not a whole number; expected a whole number from 0".
std::string fault_of_cell(const InputError& error);

/// A cell as a whole number or a number in a range; `where` is the place that messages name.
std::int64_t whole_of(std::string_view cell, WholeRange range, const std::string& where);
double number_of(std::string_view cell, Range range, const std::string& where);

}  // namespace placet
