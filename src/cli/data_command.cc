// placet data check DIR | list [KIND]: a user's own data, and where names come from.
#include <fmt/format.h>

#include <memory>

#include "catalog/data_folder.h"
#include "catalog/reader.h"
#include "cli/catalogue_call.h"
#include "cli/command.h"
#include "cli/data_flag.h"
#include "cli/output.h"
#include "units/error.h"

namespace placet {
namespace {

struct DataCall {
  std::string action;
  std::string what;
  CatalogueCall show;
};

Json file_json(const DataFile& file) {
  Json json{{"kind", file.kind}, {"name", file.name}, {"file", file.path.string()}};
  if (!file.hides.empty()) json["hides"] = file.hides.string();
  return json;
}

Json finding_json(const InputFault& fault) {
  return {{"where", fault.where},     {"value", fault.value},     {"problem", fault.problem},
          {"allowed", fault.allowed}, {"nearest", fault.nearest}, {"message", describe(fault)}};
}

std::string sheet_json(const DataSheet& sheet) {
  Json json{{"schema", "placet.data/1"},
            {"folder", sheet.folder.string()},
            {"adds", Json::array()},
            {"hides", Json::array()},
            {"findings", Json::array()}};
  for (const DataFile& file : sheet.files) {
    json[file.hides.empty() ? "adds" : "hides"].push_back(file_json(file));
  }
  for (const InputFault& fault : sheet.findings) json["findings"].push_back(finding_json(fault));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string sheet_text(const DataSheet& sheet) {
  std::string text;
  for (const DataFile& file : sheet.files) {
    text += file.hides.empty()
                ? fmt::format("adds   {} {}\n", file.kind, file.name)
                : fmt::format("hides  {} {} of {}\n", file.kind, file.name, file.hides.string());
  }
  for (const InputFault& fault : sheet.findings) text += "wrong  " + describe(fault) + "\n";
  return text + fmt::format("{}: files {}, findings {}\n", sheet.folder.string(),
                            sheet.files.size(), sheet.findings.size());
}

int check_folder(const DataCall& call) {
  if (call.what.empty()) {
    throw InputError({.where = "placet data check",
                      .problem = "the folder is missing",
                      .allowed = "placet data check DIR"});
  }
  const DataSheet sheet = check_data(called_catalog(), call.what);
  print(call.show.json ? sheet_json(sheet) : sheet_text(sheet));
  return sheet.findings.empty() ? kGood : kWrongInput;
}

void add_rows(const Catalog& catalog, const DataKind& kind, Catalogue& list) {
  for (const CatalogFile& file : files_in(catalog, kind.folder)) {
    const bool is_own = file.layer < catalog.overlays.size();
    const auto hides = hidden_by(catalog, kind.folder, file.path);
    list.rows.push_back({.name = file.name,
                         .title = is_own ? file.path.string() : "shipped",
                         .cells = {std::string(kind.word), hides.empty() ? "" : hides.string()},
                         .sources = {file.path.string()}});
  }
}

int list_names(const DataCall& call) {
  const Catalog catalog = called_catalog();
  Catalogue list{.kind = "data",
                 .columns = {"kind", "hides"},
                 .rows = {},
                 .hint =
                     "A file of your own hides the one of the same name below it; placet data "
                     "check DIR reads a folder strictly."};
  if (!call.what.empty()) {
    add_rows(catalog, data_kind(call.what, "placet data list"), list);
  } else {
    for (const DataKind& kind : data_kinds()) add_rows(catalog, kind, list);
  }
  return show_catalogue(call.show, list);
}

}  // namespace

void add_data_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<DataCall>();
  CLI::App* command = program.add_subcommand(
      "data", "Your own data over the catalogue: check a folder, list where names come from");
  command->add_option("ACTION", call->action, "check or list")
      ->required()
      ->check(CLI::IsMember({"check", "list"}));
  command->add_option("WHAT", call->what, "check: the folder; list: a kind, such as devices");
  add_catalogue_flags(*command, call->show);
  command->footer("\nExamples:\n  placet data check ./placet\n  placet data list devices\n");
  command->callback([call, &action] {
    action = [call] { return call->action == "check" ? check_folder(*call) : list_names(*call); };
  });
}

}  // namespace placet
