#include "cli/catalogue_call.h"

#include "cli/output.h"
#include "cli/program.h"
#include "report/html.h"
#include "report/json.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

/// Whether an entry is the one that was asked for, a version or a variant of it.
bool is_named(const CatalogueRow& row, const std::string& name) {
  if (!row.name.starts_with(name)) return false;
  const char next = row.name.size() > name.size() ? row.name[name.size()] : '@';
  return next == '@' || next == '+';
}

void keep_named(Catalogue& list, const std::string& name) {
  std::vector<std::string> names;
  for (const CatalogueRow& row : list.rows) {
    names.push_back(row.name);
    names.push_back(row.name.substr(0, row.name.find('@')));
  }
  std::erase_if(list.rows, [&](const CatalogueRow& row) { return !is_named(row, name); });
  if (!list.rows.empty()) return;
  throw InputError({.where = "placet " + list.kind,
                    .value = name,
                    .problem = "is not in the list",
                    .allowed = "a name that `placet " + list.kind + "` prints",
                    .nearest = nearest(name, names)});
}

}  // namespace

void add_catalogue_flags(CLI::App& command, CatalogueCall& call) {
  command.add_option("NAME", call.name, "Only entries of this name, their versions and options")
      ->type_name("");
  command.add_flag("--json", call.json, "Print one JSON document, with sources")
      ->disable_flag_override();
  command.add_option("--html", call.html, "Write a self-contained page")->type_name("FILE");
  command.add_flag("--names", call.names, "Print names only, one a line")->disable_flag_override();
}

int show_catalogue(const CatalogueCall& call, Catalogue list) {
  if (!call.name.empty()) keep_named(list, call.name);
  if (call.names) {
    std::string text;
    for (const CatalogueRow& row : list.rows) text += row.name + "\n";
    print(text);
    return kGood;
  }
  if (!call.html.empty()) write_file(call.html, catalogue_html(list), "--html");
  print(call.json ? catalogue_json(list) : catalogue_text(list, output_style()));
  return kGood;
}

}  // namespace placet
