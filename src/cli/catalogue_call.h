// What the lists of the catalogue have in common: their flags, and how they are shown.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "report/catalogue.h"

namespace placet {

struct CatalogueCall {
  bool json = false;
  bool names = false;
  std::string html;
};

/// Adds --json, --html and --names. `call` must outlive the parse.
void add_catalogue_flags(CLI::App& command, CatalogueCall& call);

/// Prints the list as the flags ask; gives the exit status.
int show_catalogue(const CatalogueCall& call, const Catalogue& list);

}  // namespace placet
