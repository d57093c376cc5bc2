// placet strategies | schedules | models | clusters | devices | engines: what the catalogue holds.
#include <memory>
#include <string>
#include <utility>

#include "call/lists.h"
#include "catalog/meant.h"
#include "cli/catalogue_call.h"
#include "cli/command.h"
#include "cli/data_flag.h"
#include "cli/engine_page.h"
#include "cli/output.h"

namespace placet {
namespace {

int show_list(const std::string& kind, CatalogueCall call) {
  const Catalog catalog = called_catalog();
  Catalogue list = listed_of(catalog, kind, print_warning);
  if (kind == "engines" && !call.name.empty()) {
    const Meant engine = meant_engine(catalog, call.name);
    for (const std::string& note : engine.notes) print_warning(note);
    call.name = engine.text;
    list.pages = engine_page(catalog, call.name);
  }
  return show_catalogue(call, std::move(list));
}

}  // namespace

void add_list_command(CLI::App& program, const ListKind& kind, Action& action) {
  auto call = std::make_shared<CatalogueCall>();
  const std::string name(kind.name);
  CLI::App* command = program.add_subcommand(name, std::string(kind.summary));
  add_catalogue_flags(*command, *call);
  command->callback(
      [call, name, &action] { action = [call, name] { return show_list(name, *call); }; });
}

}  // namespace placet
