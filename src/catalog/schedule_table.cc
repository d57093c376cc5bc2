#include "catalog/schedule_table.h"

#include <algorithm>
#include <string_view>

#include "catalog/file_text.h"
#include "schedule/work_table.h"

namespace placet {
namespace {

constexpr std::size_t kMostBytesOfSchedule = std::size_t{4} << 20;

/// The actions of a row: at commas, an empty cell being an idle slot; without commas at blanks.
std::vector<std::string> actions_in(std::string_view row) {
  const char separator = row.find(',') == std::string_view::npos ? ' ' : ',';
  std::vector<std::string> actions(1);
  for (const char c : row) {
    if (c == separator) {
      actions.emplace_back();
    } else if (c != ' ' && c != '\t' && c != '"' && c != '\r') {
      actions.back() += c;
    }
  }
  return actions;
}

TableRows rows_of_file(const std::filesystem::path& path) {
  const std::string text = read_file_text(path, kMostBytesOfSchedule, "a table of a schedule");
  TableRows rows;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) rows.push_back(actions_in(line));
    begin = end + 1;
  }
  return rows;
}

}  // namespace

Schedule read_schedule_table(const std::filesystem::path& file, const Reader& table,
                             const std::string& name) {
  if (table.is_text()) {
    const std::filesystem::path path = (file.parent_path() / table.text()).lexically_normal();
    return schedule_of_table(rows_of_file(path), name, path.string());
  }
  TableRows rows;
  for (const Reader& row : table.items()) rows.push_back(actions_in(row.text()));
  return schedule_of_table(rows, name, table.where());
}

}  // namespace placet
