#include "report/catalogue.h"

#include "report/human.h"

namespace placet {

std::string catalogue_text(const Catalogue& catalogue, const TextStyle& style) {
  std::vector<Column> columns = {{.title = "name", .may_shrink = false}};
  for (const std::string& column : catalogue.columns) {
    columns.push_back({.title = spaced(column), .may_go = true});
  }
  columns.push_back({.title = "what it is", .may_shrink = true, .least = 40});
  std::vector<std::vector<std::string>> rows;
  for (const CatalogueRow& row : catalogue.rows) {
    std::vector<std::string> cells = {row.name};
    cells.insert(cells.end(), row.cells.begin(), row.cells.end());
    cells.push_back(row.title);
    rows.push_back(std::move(cells));
  }
  std::string text = table(style, columns, rows, 0);
  if (!catalogue.hint.empty()) {
    text += "\n" + inked(style, Ink::faint, wrapped(style, catalogue.hint, 0)) + "\n";
  }
  if (!catalogue.pages.empty()) text += "\n" + explanations_text(catalogue.pages, style);
  return text;
}

}  // namespace placet
