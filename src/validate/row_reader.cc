#include "validate/row_reader.h"

#include <algorithm>

namespace placet {
namespace {

bool matches_any(const CellPattern& pattern, std::string_view cell) {
  return std::any_of(pattern.any_of.begin(), pattern.any_of.end(),
                     [&](const std::string& text) { return matches_text(text, cell); });
}

}  // namespace

bool matches(const RowPattern& pattern, const Table& table, std::size_t row) {
  return std::all_of(pattern.begin(), pattern.end(), [&](const CellPattern& cell) {
    return matches_any(cell, table.text(row, cell.column));
  });
}

RowReader::RowReader(const Table& table, std::size_t row, const SourceReading& source)
    : table_(&table), row_(row), source_(&source) {}

void RowReader::note_used(const FilledCell& cell) {
  const bool known = std::ranges::any_of(
      used_, [&](const FilledCell& used) { return used.column == cell.column; });
  if (!known) used_.push_back(cell);
}

std::optional<std::string> RowReader::filled(std::string_view column, bool needed, bool instead) {
  for (const Filling& filling : source_->fillings) {
    if (filling.instead != instead || (filling.is_custom && !needed)) continue;
    const auto cell = std::find_if(filling.cells.begin(), filling.cells.end(),
                                   [&](const auto& entry) { return entry.first == column; });
    if (cell == filling.cells.end() || !matches(filling.when)) continue;
    note_used({.filling = &filling, .column = cell->first, .value = cell->second});
    if (!cell->second.starts_with('=')) return cell->second;
    return find(std::string_view(cell->second).substr(1));
  }
  return std::nullopt;
}

std::optional<std::string> RowReader::cell_of(std::string_view column, bool needed) {
  if (auto cell = filled(column, needed, true)) return cell;
  if (const auto cell = stated(column); !cell.empty()) return std::string(cell);
  if (const auto cell = stated(std::string(column) + "_derived"); !cell.empty()) {
    return std::string(cell);
  }
  return filled(column, needed, false);
}

std::optional<std::string> RowReader::find(std::string_view column) {
  return cell_of(column, false);
}

std::optional<std::int64_t> RowReader::find_whole(std::string_view column, WholeRange range) {
  const auto cell = find(column);
  if (!cell) return std::nullopt;
  return whole_of(*cell, range, table_->place(row_, column));
}

std::string RowReader::need(std::string_view column) {
  auto cell = cell_of(column, true);
  if (!cell) miss(std::string(column) + " is not stated");
  return cell.value_or("");
}

std::int64_t RowReader::need_whole(std::string_view column, WholeRange range) {
  const std::string cell = need(column);
  return cell.empty() ? 1 : whole_of(cell, range, table_->place(row_, column));
}

}  // namespace placet
