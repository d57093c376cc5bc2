// placet strategies | schedules | models | clusters | devices | engines: what the catalogue holds.
#include <memory>
#include <string>

#include "call/lists.h"
#include "cli/catalogue_call.h"
#include "cli/command.h"
#include "cli/data_flag.h"
#include "cli/output.h"

namespace placet {
namespace {

void add_catalogue_command(CLI::App& program, const ListKind& kind, Action& action) {
  auto call = std::make_shared<CatalogueCall>();
  const std::string name(kind.name);
  CLI::App* command = program.add_subcommand(name, std::string(kind.summary));
  add_catalogue_flags(*command, *call);
  command->callback([call, name, &action] {
    action = [call, name] {
      return show_catalogue(*call, listed_of(called_catalog(), name, print_warning));
    };
  });
}

}  // namespace

void add_catalogue_commands(CLI::App& program, Action& action) {
  for (const ListKind& kind : list_kinds()) add_catalogue_command(program, kind, action);
}

}  // namespace placet
