#include "cli/catalogue_call.h"

#include "call/lists.h"
#include "cli/output.h"
#include "cli/program.h"
#include "report/html.h"
#include "report/json.h"

namespace placet {
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
