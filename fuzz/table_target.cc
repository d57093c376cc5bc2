// Tables of measured runs.
#include "catalog/table.h"
#include "target.h"

namespace placet::fuzz {

std::string_view target_name() { return "table"; }

void read_one(std::string_view text) {
  const Table table = parse_table(text, "runs.csv");
  ensure(!table.rows.empty(), "a table has rows");
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    for (const std::string& column : table.columns) table.text(row, column);
  }
}

}  // namespace placet::fuzz
