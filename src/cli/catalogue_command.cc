// placet strategies | schedules | models | clusters | devices | engines: what the catalogue holds.
#include <memory>
#include <string>

#include "call/lists.h"
#include "cli/catalogue_call.h"
#include "cli/command.h"
#include "cli/data_flag.h"
#include "cli/engine_page.h"
#include "cli/output.h"

namespace placet {

void add_list_command(CLI::App& program, const ListKind& kind, Action& action) {
  auto call = std::make_shared<CatalogueCall>();
  const std::string name(kind.name);
  CLI::App* command = program.add_subcommand(name, std::string(kind.summary));
  add_catalogue_flags(*command, *call);
  command->callback([call, name, &action] {
    action = [call, name] {
      const Catalog catalog = called_catalog();
      Catalogue list = listed_of(catalog, name, print_warning);
      if (name == "engines" && !call->name.empty()) list.pages = engine_page(catalog, call->name);
      return show_catalogue(*call, std::move(list));
    };
  });
}

}  // namespace placet
