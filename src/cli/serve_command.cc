// placet serve: the page on this machine, with this program in the place of the page's own engine.
#include <cstdlib>
#include <memory>

#include "cli/command.h"
#include "cli/data_flag.h"
#include "cli/net_program.h"
#include "cli/output.h"
#include "serve/server.h"

namespace placet {
namespace {

constexpr int kMostPort = 65535;

struct ServeCall {
  int port = 0;
  std::string page;
};

/// Beside the catalogue, where an installation and a checkout have it.
std::filesystem::path page_of(const ServeCall& call, const Catalog& catalog) {
  if (!call.page.empty()) return call.page;
  const std::filesystem::path above = catalog.root.parent_path();
  for (const char* place : {"web/index.html", "web/dist/index.html"}) {
    std::error_code error;
    if (std::filesystem::is_regular_file(above / place, error)) return above / place;
  }
  return above / "web/dist/index.html";
}

int serve_page(const ServeCall& call) {
  go_on_in_net_program();
  const Catalog catalog = called_catalog();
  serve(catalog, {.port = call.port, .page = page_of(call, catalog)},
        [](const std::string& address) { print("serving " + address + "\nCtrl-C ends it\n"); });
  return kGood;
}

}  // namespace

void add_serve_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<ServeCall>();
  CLI::App* command = program.add_subcommand(
      "serve",
      "Open Placet as a page on this machine (127.0.0.1), with this program as its engine");
  command->add_option("--port", call->port, "Port to listen at; 0: any that is free")
      ->option_text("N")
      ->check(CLI::Range(0, kMostPort));
  command->add_option("--page", call->page, "The page that ./dev web builds (web/dist/index.html)")
      ->option_text("FILE");
  command->footer(
      "\nExamples:\n"
      "  placet serve\n"
      "  placet serve --port 8080\n");
  command->callback([call, &action] { action = [call] { return serve_page(*call); }; });
}

}  // namespace placet
