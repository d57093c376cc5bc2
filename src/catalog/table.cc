#include "catalog/table.h"

#include <csv.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "catalog/file_text.h"
#include "units/error.h"
#include "units/nearest.h"
#include "units/number.h"

namespace placet {
namespace {

std::string line_place(const std::string& where, std::int64_t line) {
  return where + ": line " + std::to_string(line);
}

// The parser of the library with the rows it has made so far. Its callbacks come from C and must
// not throw; what they find wrong is asked for after each line.
class CsvParser {
 public:
  CsvParser() {
    ensure(csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI) == 0, "the parser starts");
  }
  ~CsvParser() { csv_free(&parser_); }
  CsvParser(const CsvParser&) = delete;
  CsvParser& operator=(const CsvParser&) = delete;

  /// Takes one line of the text, its end included. Returns the bytes that were understood. A blank
  /// line is no row, unless it stands inside a quoted cell.
  std::size_t take(std::string_view line, std::int64_t number) {
    if (!inside_row_ && line.find_first_not_of(" \t\r\n") == std::string_view::npos) {
      return line.size();
    }
    if (!inside_row_) row_.line = number;
    inside_row_ = true;
    return csv_parse(&parser_, line.data(), line.size(), &CsvParser::on_cell, &CsvParser::on_row,
                     this);
  }
  bool finish() { return csv_fini(&parser_, &CsvParser::on_cell, &CsvParser::on_row, this) == 0; }
  bool has_too_many_columns() const { return too_many_columns_; }
  std::int64_t open_line() const { return row_.line; }
  std::vector<TableRow>& rows() { return rows_; }

 private:
  static void on_cell(void* cell, std::size_t size, void* self) {
    auto& parser = *static_cast<CsvParser*>(self);
    if (parser.row_.cells.size() == kMostTableColumns) {
      parser.too_many_columns_ = true;
      return;
    }
    parser.row_.cells.emplace_back(static_cast<const char*>(cell), size);
  }
  static void on_row(int, void* self) {
    auto& parser = *static_cast<CsvParser*>(self);
    parser.rows_.push_back(std::move(parser.row_));
    parser.row_ = {};
    parser.inside_row_ = false;
  }

  csv_parser parser_{};
  TableRow row_;
  bool inside_row_ = false;
  bool too_many_columns_ = false;
  std::vector<TableRow> rows_;
};

void refuse_large(bool too_large, const std::string& where, const std::string& problem,
                  const std::string& allowed) {
  if (too_large) throw InputError({.where = where, .problem = problem, .allowed = allowed});
}

std::vector<TableRow> parse_rows(std::string_view text, const std::string& where) {
  CsvParser parser;
  std::int64_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    const std::string_view line = text.substr(0, end + 1);
    const std::string place = line_place(where, number);
    refuse_large(line.size() > kLongestTableLine, place, "the line is too long",
                 "at most " + std::to_string(kLongestTableLine) + " bytes");
    const std::size_t understood = parser.take(line, number);
    if (understood < line.size()) {
      throw InputError({.where = place + ", character " + std::to_string(understood + 1),
                        .value = std::string(line.substr(understood, 1)),
                        .problem = "cannot stand here",
                        .allowed = "a cell with quotes round the whole of it or none, and quotes "
                                   "inside doubled"});
    }
    refuse_large(parser.has_too_many_columns(), place, "the row has too many cells",
                 "at most " + std::to_string(kMostTableColumns));
    refuse_large(parser.rows().size() > kMostTableRows + 1, place, "the table has too many rows",
                 "at most " + std::to_string(kMostTableRows));
    text.remove_prefix(line.size());
  }
  const std::int64_t open = parser.open_line();
  if (!parser.finish()) {
    throw InputError({.where = line_place(where, open),
                      .problem = "a quoted cell does not end",
                      .allowed = "a closing quote"});
  }
  return std::move(parser.rows());
}

bool has_column(const std::vector<std::string>& columns, std::string_view name) {
  return std::find(columns.begin(), columns.end(), name) != columns.end();
}

// The component tables have columns that no other table has.
TableKind kind_of(const std::vector<std::string>& columns) {
  if (has_column(columns, "gpu_gb_derived")) return TableKind::states;
  if (has_column(columns, "activation_gib")) return TableKind::activations;
  return TableKind::runs;
}

// Collections that stand beside the tables of runs, by a column that only they have, and what they
// are for.
struct OtherTable {
  std::string_view column;
  std::string_view what;
};
constexpr std::array<OtherTable, 4> kOtherTables = {
    {{"params_published_b", "a table of models: `placet model NAME` counts their parameters"},
     {"hbm_gb", "a table of devices: `placet devices` lists those that are known"},
     {"busbw_gb_s", "a table of collectives: data/hardware/links holds what is used of them"},
     {"forward_ms", "a table of layers: data/hardware/devices holds what is used of them"}}};

void refuse_other_tables(const Table& table) {
  for (const OtherTable& other : kOtherTables) {
    if (!has_column(table.columns, other.column)) continue;
    throw InputError({.where = table.where,
                      .problem = "is " + std::string(other.what),
                      .allowed = "a table of runs, of model states by formula or of saved "
                                 "activations, with the columns of SCHEMA.md"});
  }
}

std::vector<std::string> names_of(TableKind kind) {
  std::vector<std::string> names;
  for (const TableColumn& column : columns_of(kind)) names.emplace_back(column.name);
  return names;
}

const TableColumn* find_column(TableKind kind, std::string_view name) {
  for (const TableColumn& column : columns_of(kind)) {
    if (column.name == name) return &column;
  }
  return nullptr;
}

// A name beside a known one by a slip of the pen: one edit away from a column that is missing.
std::string slip_of(const std::string& name, const std::vector<std::string>& known,
                    const std::vector<std::string>& columns) {
  for (const std::string& candidate : known) {
    if (!has_column(columns, candidate) && edit_distance(name, candidate) <= 1) return candidate;
  }
  return {};
}

void check_header(const Table& table, const std::string& place) {
  const std::vector<std::string> known = names_of(table.kind);
  std::size_t last_known = 0;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (find_column(table.kind, table.columns[i]) != nullptr) last_known = i;
  }
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const std::string& name = table.columns[i];
    if (find_column(table.kind, name) != nullptr) continue;
    const std::string slip = slip_of(name, known, table.columns);
    if (i > last_known && slip.empty() && !name.empty()) continue;
    throw InputError(
        {.where = place + ", column " + std::to_string(i + 1),
         .value = name,
         .problem = name.empty() ? "the name of the column is empty" : "is not a known column",
         .allowed = "a column of SCHEMA.md; own columns stand after those",
         .nearest = slip.empty() ? nearest(name, known) : slip});
  }
  if (!has_column(table.columns, "row_id")) {
    throw InputError({.where = place,
                      .value = table.columns.front(),
                      .problem = "the header has no column row_id",
                      .allowed = "a header in the first line, with the columns of SCHEMA.md"});
  }
}

void take_header(Table& table, std::vector<TableRow>& rows) {
  if (rows.empty()) {
    throw InputError({.where = table.where,
                      .problem = "the table is empty",
                      .allowed = "a header and rows below it"});
  }
  table.columns = std::move(rows.front().cells);
  const std::string place = line_place(table.where, rows.front().line);
  rows.erase(rows.begin());
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (!table.position.emplace(table.columns[i], i).second) {
      throw InputError({.where = place + ", column " + std::to_string(i + 1),
                        .value = table.columns[i],
                        .problem = "is a column given twice"});
    }
  }
  table.kind = kind_of(table.columns);
  refuse_other_tables(table);
  check_header(table, place);
}

constexpr Range kAnyNumber{.least = -1e300, .greatest = 1e300};

void check_cell(const Table& table, std::size_t row, const TableColumn& column) {
  const std::string_view cell = table.text(row, column.name);
  if (cell.empty()) return;
  switch (column.type) {
    case TableColumn::Type::text:
      return;
    case TableColumn::Type::flag:
      whole_of(cell, {0, 1}, table.place(row, column.name));
      return;
    case TableColumn::Type::whole:
      whole_of(cell, {}, table.place(row, column.name));
      return;
    case TableColumn::Type::number:
      number_of(cell, kAnyNumber, table.place(row, column.name));
      return;
  }
}

// The first bad cell of a row, in words; empty if all are as their columns ask.
std::string fault_of_row(const Table& table, std::size_t row) {
  for (const TableColumn& column : columns_of(table.kind)) {
    try {
      check_cell(table, row, column);
    } catch (const InputError& error) {
      return fault_of_cell(error);
    }
  }
  return {};
}

void check_rows(Table& table) {
  std::map<std::string, std::int64_t> seen;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    TableRow& cells = table.rows[row];
    const std::string place = line_place(table.where, cells.line);
    if (cells.cells.size() != table.columns.size()) {
      throw InputError({.where = place,
                        .value = std::to_string(cells.cells.size()) + " cells",
                        .problem = "is not what the header has",
                        .allowed = std::to_string(table.columns.size())});
    }
    const std::string_view id = table.text(row, "row_id");
    if (id.empty()) throw InputError({.where = place, .problem = "row_id is empty"});
    const auto [at, added] = seen.emplace(std::string(id), cells.line);
    if (!added) {
      throw InputError({.where = place,
                        .value = std::string(id),
                        .problem = "is the row_id of line " + std::to_string(at->second) + " too"});
    }
    cells.fault = fault_of_row(table, row);
  }
  // Where no row can be read it is the table that is wrong: the first fault, with its place.
  const bool none_stands =
      std::ranges::none_of(table.rows, [](const TableRow& row) { return row.fault.empty(); });
  if (!none_stands) return;
  for (const TableColumn& column : columns_of(table.kind)) check_cell(table, 0, column);
}

// Text that another program made may begin with a byte order mark.
std::string_view without_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

std::string print_limit(double limit) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), limit);
  return {text.data(), end.ptr};
}

}  // namespace

std::string_view Table::text(std::size_t row, std::string_view column) const {
  const auto it = position.find(column);
  if (it == position.end()) return {};
  return rows[row].cells[it->second];
}

std::string Table::place(std::size_t row, std::string_view column) const {
  return line_place(where, rows[row].line) + " (" + std::string(text(row, "row_id")) +
         "), column " + std::string(column);
}

Table read_table(const std::filesystem::path& path) {
  return parse_table(read_file_text(path, kMostTableBytes, "a table"), path.string());
}

Table parse_table(std::string_view text, const std::string& where) {
  refuse_large(text.size() > kMostTableBytes, where, "the table is too large",
               "at most " + std::to_string(kMostTableBytes >> 20) + " MiB");
  const std::size_t zero = text.find('\0');
  if (zero != std::string_view::npos) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<long>(zero), '\n');
    throw InputError({.where = line_place(where, line), .problem = "there is a zero byte"});
  }
  Table table{.where = where};
  std::vector<TableRow> rows = parse_rows(without_mark(text), where);
  take_header(table, rows);
  table.rows = std::move(rows);
  if (table.rows.empty()) {
    throw InputError({.where = where,
                      .problem = "the table has a header and no rows",
                      .allowed = "one row per run"});
  }
  check_rows(table);
  return table;
}

std::string fault_of_cell(const InputError& error) {
  const std::string column = ", column ";
  InputFault fault = error.fault();
  const std::size_t at = fault.where.rfind(column);
  fault.where = at == std::string::npos ? "" : fault.where.substr(at + column.size());
  fault.excerpt.clear();
  return describe(fault);
}

std::int64_t whole_of(std::string_view cell, WholeRange range, const std::string& where) {
  const auto number = number_in<std::int64_t>(cell);
  if (number && *number >= range.least && *number <= range.greatest) return *number;
  const bool bounded = range.greatest < WholeRange{}.greatest;
  throw InputError({.where = where,
                    .value = std::string(cell),
                    .problem = number ? "is out of range" : "is not a whole number",
                    .allowed = "a whole number from " + std::to_string(range.least) +
                               (bounded ? " to " + std::to_string(range.greatest) : "")});
}

double number_of(std::string_view cell, Range range, const std::string& where) {
  const auto number = number_in<double>(cell);
  if (number && std::isfinite(*number) && *number >= range.least && *number <= range.greatest) {
    return *number;
  }
  const bool bounded = range.greatest < 1e300;
  const bool from_below = range.least > -1e300;
  std::string allowed = "a number";
  if (from_below) allowed += " from " + print_limit(range.least);
  if (bounded) allowed += " to " + print_limit(range.greatest);
  throw InputError({.where = where,
                    .value = std::string(cell),
                    .problem = number ? "is out of range" : "is not a number",
                    .allowed = allowed});
}

}  // namespace placet
